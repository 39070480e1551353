"""Which items does an expert push up or down? Said by its vector alone, measured by taking it away, and compared.

**Direct.** The expert's vector p = gate · value reaches the last state by a straight road in every layer: the last event reads
the interests with slot weights s, and s · W_O W_V2 p is added to the stream (for the two-way form W_V2 norm(p), aggregation
left out). Averaged over the people who retrieve it, without what the feed-forward layers and the aggregation make of it, then
centred and scaled as the final layer norm does, but for its division by the length of the state, and multiplied with the item
table. A relative score: its order over items means something, its size does not. Where a loss asks experts to stand for items
(slots/standing.py), direct is what the expert stands for: its own log-probabilities, centred.

**Measured.** Score of every item with the expert less its score without it, for each person who retrieves it; an item's place
counts only relative to the person's other items, so each person's mean over items is taken off. Then the mean over people.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from elastic_core.core.dispatch import Dispatcher, TwoWayDispatcher
from elastic_core.data import Dataset
from elastic_core.data.traits import trait_table
from elastic_core.memory.routing import Routing
from elastic_core.models import Recommender, memory_of, tracing
from elastic_core.services.experts.ablation import drop, retrieving
from elastic_core.services.person.people import some_of
from elastic_core.services.person.recommend import batches

NEAR = 100  # a ratio of chances says little for items far down everybody's list
FEWEST = 3  # people for whom an item must be near the top
CONTROLS = 50
COMPARED, SHUFFLES, RAREST = 1_024, 100, 0.002  # experts an average is of; shuffles; share below which a genre names nobody


class Pushes(NamedTuple):
    """Per item (0 = padding, 0): `direct` (None without a dispatcher), `measured` (None if nobody retrieves the expert or k = 1).

    `near`: item, n (people with it among their NEAR likeliest, with the expert or without), times (chance with the expert /
    chance without, geometric mean over them), low, high (95%, normal in its logarithm over people).
    """

    direct: np.ndarray | None
    measured: np.ndarray | None
    near: pd.DataFrame
    people: int
    agreement: float = np.nan  # Spearman's correlation of direct and measured over all items; NaN if one is missing
    control: float = np.nan  # the same with the direct scores of other experts, mean …
    control_high: float = np.nan  # … and 97.5% quantile


def pushes(model: Recommender, dataset: Dataset, traffic: Routing, expert: int) -> Pushes:
    """Both answers and how far they agree."""
    users, ranks = retrieving(traffic, expert)
    direct_of = _direct(model, dataset, users, ranks)
    direct = None if direct_of is None else direct_of(torch.tensor([expert]))[0]
    if not len(users) or traffic.experts.shape[1] < 2:
        return Pushes(direct, None, _near(_nobody(dataset), dataset), len(users))
    measured, near = _measure(model, dataset, users, ranks)
    if direct is None or direct_of is None:
        return Pushes(None, measured, near, len(users))
    used = np.setdiff1d(np.flatnonzero(traffic.load), expert)
    drawn = used[some_of(len(used), CONTROLS, seed=expert)]
    others = [spearman(row[1:], measured[1:]) for row in direct_of(torch.from_numpy(drawn))]
    mean, high = (float(np.mean(others)), float(np.quantile(others, 0.975))) if others else (np.nan, np.nan)
    return Pushes(direct, measured, near, len(users), spearman(direct[1:], measured[1:]), mean, high)


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of ranks, ties at their mean; NaN where one side is constant."""
    left, right = pd.Series(a).rank(), pd.Series(b).rank()
    return float(left.corr(right)) if left.nunique() > 1 and right.nunique() > 1 else float("nan")


# --- direct ----------------------------------------------------------------------------------------------------------


@torch.inference_mode()
def _direct(model: Recommender, dataset: Dataset, users: np.ndarray, ranks: np.ndarray) -> Callable[[Tensor], np.ndarray] | None:
    """What gives experts' `[E]` relative scores `[E, n_items + 1]`: what they stand for where a loss asks for that, or the
    straight road of their vectors through the layers; None where there is neither."""
    memory = memory_of(model)
    roads = _roads(model, dataset, users, ranks) if memory.stands_for(torch.tensor([0])) is None else []
    if roads is None:
        return None

    def scores_of(experts: Tensor) -> np.ndarray:
        found = memory.stands_for(experts)
        if found is None:
            return _project(model, roads, memory.experts_at(experts))
        found[:, 0] = 0
        found[:, 1:] -= found[:, 1:].mean(1, keepdim=True)
        return found.numpy()

    return scores_of


class Alone(NamedTuple):
    """What an expert's vector pushes up by itself: titles, and the genre its own item distribution prefers most, `times` what
    the average expert gives it; `chance`: what the best genre reaches with genres shuffled among items (97.5% quantile). Where
    experts have no distributions of their own, genre is empty and the numbers are NaN."""

    titles: tuple[str, ...]
    genre: str = ""
    times: float = np.nan
    chance: float = np.nan


def alone(model: Recommender, dataset: Dataset, traffic: Routing, expert: int) -> Alone | None:
    """None without a dispatcher. The titles are the first of the direct ones above."""
    direct_of = _direct(model, dataset, *retrieving(traffic, expert))
    if direct_of is None:
        return None
    scores = direct_of(torch.tensor([expert]))[0]
    titles = tuple(dataset.catalog.called(np.argsort(-scores[1:], kind="stable")[:3] + 1))
    return Alone(titles, *(preferred(model, dataset, expert) or ()))


@torch.inference_mode()
def preferred(model: Recommender, dataset: Dataset, expert: int) -> tuple[str, float, float] | None:
    """Genre, times and chance of an expert's own item distribution, as in `Alone`; None without genres or distributions."""
    (genres, holds), memory, rng = trait_table(dataset.catalog), memory_of(model), np.random.default_rng(expert)
    among = np.sort(rng.permutation(memory.n_experts)[:COMPARED])
    own = memory.stands_for(torch.from_numpy(np.append(among, expert)))
    if own is None or not genres:
        return None
    chances = own[:, 1:].exp().numpy()
    pair = np.stack([chances[-1], chances[:-1].mean(0)])

    def prefers(table: np.ndarray) -> np.ndarray:
        mine, even = pair @ table
        return np.where(even > RAREST, mine / np.maximum(even, RAREST), 0)

    times = prefers(holds[1:])
    shuffled = [prefers(holds[1:][rng.permutation(len(holds) - 1)]).max() for _ in range(SHUFFLES)]
    return genres[int(times.argmax())], float(times.max()), float(np.quantile(shuffled, 0.975))


Road = tuple[nn.Module, Tensor]  # a layer and how much of the vector takes it, per head [H]


@torch.inference_mode()
def _roads(model: Recommender, dataset: Dataset, users: np.ndarray, ranks: np.ndarray) -> list[Road] | None:
    """Layers that the first memory's experts enter, with the mean of gate · slot weight over their people (1 for nobody)."""
    layers = [layer for layer in model.layers if isinstance(layer, Dispatcher)]  # type: ignore[union-attr]
    if model.config.memory == "per-layer":  # type: ignore[attr-defined]
        layers = layers[:1]
    if not layers or not len(users):
        return [(layer, torch.ones(layer.heads)) for layer in layers] or None
    sums = [torch.zeros(layer.heads) for layer in layers]
    for rows, batch in batches(model, dataset, users):
        trace = tracing(model).trace(batch)
        here, where = torch.arange(len(rows)), torch.from_numpy(ranks[rows])
        gates = trace.retrieved[0].gates[here, where]
        for i, layer in enumerate(layers):
            weight = 1.0 if isinstance(layer, TwoWayDispatcher) else gates.unsqueeze(-1)  # its norm takes the gate out
            sums[i] += (trace.slots[i][here, :, where] * weight).sum(0)
    return [(layer, total / len(users)) for layer, total in zip(layers, sums, strict=True)]


@torch.inference_mode()
def _project(model: Recommender, roads: list[Road], values: Tensor) -> np.ndarray:
    """Vectors `[E, d]` → relative score of every item `[E, n_items + 1]`."""
    state = torch.zeros_like(values)
    for layer, weights in roads:
        assert isinstance(layer, Dispatcher)
        p = layer.interest_norm(values) if isinstance(layer, TwoWayDispatcher) else values
        parts = layer.value2(p).unflatten(-1, (layer.heads, -1)) * weights[:, None]
        state += parts.flatten(-2) @ layer.output.weight.T
    centred = (state - state.mean(-1, keepdim=True)) * model.norm.weight  # type: ignore[operator, union-attr]
    scores = model.scorer()(centred).numpy().copy()
    scores[:, 0] = 0
    return scores


# --- measured --------------------------------------------------------------------------------------------------------


@torch.inference_mode()
def _measure(model: Recommender, dataset: Dataset, users: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, pd.DataFrame]:
    total, sums = np.zeros(dataset.catalog.n_items + 1), _nobody(dataset)
    for rows, batch in batches(model, dataset, users):
        having = model.scorer()(model.last_state(batch)).float()
        lacking = model.scorer()(model.last_state(batch, edit=drop(ranks[rows]))).float()  # type: ignore[call-arg]
        having[:, 0] = lacking[:, 0] = -torch.inf
        change = (having - lacking)[:, 1:]
        total[1:] += (change - change.mean(1, keepdim=True)).sum(0).double().numpy()
        logs = (having.log_softmax(1) - lacking.log_softmax(1)).nan_to_num(0.0)
        near = _among(having) | _among(lacking)
        sums += torch.stack([near.float(), logs * near, logs.square() * near]).sum(1).double().numpy()
    return total / len(users), _near(sums, dataset)


def _among(scores: Tensor) -> Tensor:
    """Bool, the NEAR likeliest items of each row."""
    best = scores.topk(min(NEAR, scores.shape[1] - 1), dim=1).indices
    return torch.zeros_like(scores, dtype=torch.bool).scatter_(1, best, True)


def _nobody(dataset: Dataset) -> np.ndarray:
    """Sums over people, of each item: how many have it near, the logarithm of its ratio, and that squared."""
    return np.zeros((3, dataset.catalog.n_items + 1))


def _near(sums: np.ndarray, dataset: Dataset) -> pd.DataFrame:
    items = np.flatnonzero(sums[0] >= FEWEST)
    n, logs, squares = sums[:, items]
    mean = logs / n
    reach = 1.96 * np.sqrt(np.maximum(squares / n - mean**2, 0) / (n - 1))
    frame = pd.DataFrame({"item": items, "title": dataset.catalog.called(items), "n": n.astype(np.int64)})
    return frame.assign(times=np.exp(mean), low=np.exp(mean - reach), high=np.exp(mean + reach))


def pushed(found: Pushes, dataset: Dataset, by: str, top: int = 8) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The items pushed up most and down most, `by` "direct" (item, title, score) or "measured" (the rows of `near`)."""
    if by == "measured":
        ordered = found.near.sort_values("times", ascending=False, kind="stable")
        up, down = ordered[ordered["times"] > 1].head(top), ordered[ordered["times"] < 1].iloc[::-1].head(top)
        return up.reset_index(drop=True), down.reset_index(drop=True)
    scores = found.direct if found.direct is not None else np.zeros(1)
    order = np.argsort(-scores[1:], kind="stable") + 1
    up, down = (
        pd.DataFrame({"item": items, "title": dataset.catalog.called(items), "score": scores[items]})
        for items in (order[scores[order] > 0][:top], order[scores[order] < 0][::-1][:top])
    )
    return up, down


def both(found: Pushes, dataset: Dataset) -> pd.DataFrame:
    """Every item: item, title, direct, measured, and where it is near the top n, times, low, high."""
    items = np.arange(1, dataset.catalog.n_items + 1)
    frame = pd.DataFrame({"item": items, "title": dataset.catalog.called(items)})
    for name, values in (("direct", found.direct), ("measured", found.measured)):
        if values is not None:
            frame[name] = values[1:].astype(float)
    return frame.merge(found.near.drop(columns="title"), on="item", how="left")
