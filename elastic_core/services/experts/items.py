"""Which items does an expert push up or down? Said by its vector alone, measured by taking it away, and compared.

**Direct.** The expert's vector p = gate · value reaches the last state by a straight road in every layer: the last event reads
the interests with slot weights s, and s · W_O W_V2 p is added to the stream (for the two-way form W_V2 norm(p), aggregation
left out). Averaged over the people who retrieve it, without what the feed-forward layers and the aggregation make of it, then
centred and scaled as the final layer norm does, but for its division by the length of the state, and multiplied with the item
table. A relative score: its order over items means something, its size does not. Where a loss asks experts to stand for items
(slots/item_distribution.py), direct is what the expert stands for: its own log-probabilities, centred.

**Measured.** Score of every item with the expert less its score without it, for each person who retrieves it; an item's place
counts only relative to the person's other items, so each person's mean over items is taken off. Then the mean over people.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from elastic_core.core.dispatch import Dispatcher, TwoWayDispatcher
from elastic_core.data.item_features import trait_table
from elastic_core.models import as_retrieving_model, as_tracing_model
from elastic_core.services.experts.ablation import EvaluationContext, drop_rank, ranks_of, retrieving_users
from elastic_core.services.person.recommend import read_batches
from elastic_core.services.person.user_lookup import sample_indices

NEAR = 100  # a ratio of chances says little for items far down everybody's list
FEWEST = 3  # people for whom an item must be near the top
CONTROLS = 50
COMPARED, SHUFFLES, RAREST = 1_024, 100, 0.002  # experts an average is of; shuffles; share below which a genre names nobody


class PushedItems(NamedTuple):
    """`table`, a row an item: item, title; `direct` where there is a straight road; `measured` where somebody retrieves the
    expert beside others, and of items near the top n (people with it among their NEAR likeliest, with the expert or without),
    times (chance with the expert / chance without, geometric mean over them), low, high (95%, normal in its logarithm over
    people)."""

    table: pd.DataFrame
    n_users: int
    agreement: float = np.nan  # Spearman's correlation of direct and measured over all items; NaN if one is missing
    control: float = np.nan  # the same with the direct scores of other experts, mean …
    control_high: float = np.nan  # … and 97.5% quantile


def measure_pushes(context: EvaluationContext, expert: int) -> PushedItems:
    """Find both answers and how far they agree."""
    n_users, used = len(retrieving_users(context.traffic, expert)), np.setdiff1d(np.flatnonzero(context.traffic.load), expert)
    drawn = used[sample_indices(len(used), CONTROLS, seed=expert)]
    items = np.arange(1, context.model.n_items + 1)
    table = pd.DataFrame({"item": items, "title": context.dataset.catalog.titles_of(items)})
    direct = _direct_scores(context, expert, np.append(drawn, expert))
    if direct is not None:
        table["direct"] = direct[-1].astype(float)
    if n_users and context.traffic.experts.shape[1] > 1:
        table = table.join(_measure_by_removal(context, expert))
    if direct is None or "measured" not in table:
        return PushedItems(table, n_users)
    *others, own = pd.DataFrame(direct.T).assign(measured=table["measured"]).corr("spearman")["measured"].tolist()[:-1]
    control = pd.Series(others, dtype=float)
    return PushedItems(table, n_users, own, float(control.mean()), float(control.quantile(0.975)))


def most_pushed(table: pd.DataFrame, by: str, top: int = 8) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the items of `PushedItems.table` that are pushed up most and down most, `by` "direct" or "measured" (then near the
    top); none where that is not known."""
    column, neutral = ("times", 1) if by == "measured" else ("direct", 0)
    if column not in table:
        return table[:0], table[:0]
    ordered = table.sort_values(column, ascending=False, kind="stable")
    return ordered[ordered[column] > neutral].head(top), ordered[ordered[column] < neutral].iloc[::-1].head(top)


# --- direct ----------------------------------------------------------------------------------------------------------


@torch.inference_mode()
def _direct_scores(context: EvaluationContext, expert: int, chosen_experts: np.ndarray) -> np.ndarray | None:
    """Return relative scores of all items `[E, n_items]` by each of the experts `asked`: what it stands for where a loss asks for
    that, or the straight road of its vector through the layers, as weighed by who retrieves `expert`; None where there is
    neither."""
    model, memory, experts = context.model, as_retrieving_model(context.model), torch.from_numpy(chosen_experts)
    if (own := memory.item_log_probabilities(experts)) is not None:
        return (own[:, 1:] - own[:, 1:].mean(1, keepdim=True)).numpy()
    layers = [layer for layer in model.layers if isinstance(layer, Dispatcher)]  # type: ignore[union-attr]
    if model.config.memory == "per-layer":  # type: ignore[attr-defined]
        layers = layers[:1]  # the first memory's experts enter no other
    if not layers:
        return None
    values = memory.select_experts(experts)
    state = torch.zeros_like(values)
    for layer, weights in zip(layers, _slot_weights(context, expert, layers), strict=True):
        p = layer.interest_norm(values) if isinstance(layer, TwoWayDispatcher) else values
        parts = layer.value2(p).unflatten(-1, (layer.heads, -1)) * weights[:, None]
        state += parts.flatten(-2) @ layer.output.weight.T
    centred = (state - state.mean(-1, keepdim=True)) * model.norm.weight  # type: ignore[operator, union-attr]
    return model.scorer()(centred)[:, 1:].numpy()


def _slot_weights(context: EvaluationContext, expert: int, layers: list[Dispatcher]) -> list[Tensor]:
    """Return how much of an expert's vector takes the road of each layer, per head `[H]`: the mean of gate · slot weight over
    those who retrieve it; 1 for nobody."""
    users = retrieving_users(context.traffic, expert)
    if not len(users):
        return [torch.ones(layer.heads) for layer in layers]
    sums = [torch.zeros(layer.heads) for layer in layers]
    for rows, batch in read_batches(context.model, context.dataset, users):
        trace = as_tracing_model(context.model).trace_reading(batch)
        row_numbers, ranks = torch.arange(len(rows)), torch.from_numpy(ranks_of(context.traffic, expert, users[rows]))
        gates = trace.retrieved[0].gates[row_numbers, ranks].unsqueeze(-1)
        for layer, slots, total in zip(layers, trace.slots, sums, strict=False):
            weight = 1.0 if isinstance(layer, TwoWayDispatcher) else gates  # its norm takes the gate out
            total += (slots[row_numbers, :, ranks] * weight).sum(0)
    return [total / len(users) for total in sums]


class OwnRanking(NamedTuple):
    """What an expert's vector pushes up by itself: titles, and the genre its own item distribution prefers most, `times` what
    the average expert gives it; `chance`: what the best genre reaches with genres shuffled among items (97.5% quantile). Where
    experts have no distributions of their own, genre is empty and the numbers are NaN."""

    titles: tuple[str, ...] = ()
    genre: str = ""
    times: float = np.nan
    chance: float = np.nan


def rank_by_expert(context: EvaluationContext, expert: int) -> OwnRanking:
    """Return what an expert pushes up alone, its titles the first of the direct ones above; nothing without a dispatcher."""
    direct = _direct_scores(context, expert, np.array([expert]))
    if direct is None:
        return OwnRanking()
    titles = tuple(context.dataset.catalog.titles_of(np.argsort(-direct[0], kind="stable")[:3] + 1))
    return OwnRanking(titles, *(preferred_genre(context, expert) or ()))


@torch.inference_mode()
def preferred_genre(context: EvaluationContext, expert: int) -> tuple[str, float, float] | None:
    """Return genre, times and chance of an expert's own item distribution, as in `OwnRanking`; None without genres or
    distributions."""
    (genres, expert_shares), memory, rng = (
        trait_table(context.dataset.catalog),
        as_retrieving_model(context.model),
        np.random.default_rng(expert),
    )
    among = np.sort(rng.permutation(memory.n_experts)[:COMPARED])
    own = memory.item_log_probabilities(torch.from_numpy(np.append(among, expert)))
    if own is None or not genres:
        return None
    chances = own[:, 1:].exp().numpy()
    pair = np.stack([chances[-1], chances[:-1].mean(0)])

    def preference_ratios(table: np.ndarray) -> np.ndarray:
        observed, expected = pair @ table
        return np.where(expected > RAREST, observed / np.maximum(expected, RAREST), 0)

    times = preference_ratios(expert_shares[1:])
    shuffled = [preference_ratios(expert_shares[1:][rng.permutation(len(expert_shares) - 1)]).max() for _ in range(SHUFFLES)]
    return genres[int(times.argmax())], float(times.max()), float(np.quantile(shuffled, 0.975))


# --- measured --------------------------------------------------------------------------------------------------------


@torch.inference_mode()
def _measure_by_removal(context: EvaluationContext, expert: int) -> pd.DataFrame:
    """Return measured, n, times, low, high of every item in order, as in `PushedItems`."""
    model, users = context.model, retrieving_users(context.traffic, expert)
    sums = np.zeros((4, model.n_items))  # over people: change of score; near or not, log-ratio of chances, its square
    for rows, batch in read_batches(model, context.dataset, users):
        edit = drop_rank(ranks_of(context.traffic, expert, users[rows]))
        scores_with = model.scorer()(model.last_state(batch)).float()[:, 1:]
        scores_without = model.scorer()(model.last_state(batch, edit=edit)).float()[:, 1:]  # type: ignore[call-arg]
        change, ratio = scores_with - scores_without, scores_with.log_softmax(1) - scores_without.log_softmax(1)
        near = torch.zeros_like(scores_with)
        for scores in (scores_with, scores_without):
            near.scatter_(1, scores.topk(min(NEAR, scores.shape[1]), dim=1).indices, 1.0)
        terms = [change - change.mean(1, keepdim=True), near, ratio * near, ratio.square() * near]
        sums += torch.stack(terms).sum(1).double().numpy()
    total_change, n, logs, squares = sums
    n[n < FEWEST] = np.nan
    mean = logs / n
    reach = 1.96 * np.sqrt(np.maximum(squares / n - mean**2, 0) / (n - 1))
    ratios = {"times": np.exp(mean), "low": np.exp(mean - reach), "high": np.exp(mean + reach)}
    return pd.DataFrame({"measured": total_change / len(users), "n": n, **ratios})
