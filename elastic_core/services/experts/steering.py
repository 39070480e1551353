"""One person's experts turned by hand: what their list answers, what the same turn of other experts does, what it costs people.

A `Turn` names experts by number: a factor on the gate (or the share of the prediction, see knobs.py) of some, and one, maybe,
that is lent in the place of a person's weakest. For a person who does not retrieve an expert its factor means nothing; nobody is
lent what they have.

The null is the same turn of other experts: the same factors dealt at random to the person's own, and another expert lent that
somebody retrieves and they do not. What moves under it as much is the turning, not the expert.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.data.traits import trait_table
from elastic_core.lists import history_batch
from elastic_core.memory.routing import Routing
from elastic_core.models import Met, Recommender
from elastic_core.services.experts import ablation, knobs
from elastic_core.services.person.people import some_of
from elastic_core.services.person.recommend import Moved, Reading, answer, moved, running

DRAWS = 40  # random turns beside a person's
SAMPLE = 400  # people at most whom a turn is tried on
STEP = 64  # people between two words of progress
SCORES = 500_000  # of one pass over random turns


class Turn(NamedTuple):
    """`factors`: (expert, factor) in order of their numbers, none of 1. `lent` is turned `by`."""

    factors: tuple[tuple[int, float], ...] = ()
    lent: int | None = None
    by: float = 1.0

    @property
    def still(self) -> bool:
        """Nothing is turned."""
        return not self.factors and self.lent is None

    @property
    def experts(self) -> list[tuple[int, float]]:
        """Everybody who is turned, the lent one last."""
        return [*self.factors, *([] if self.lent is None else [(self.lent, self.by)])]

    def on(self, experts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For people with `experts [U, k]`: every rank's factor, float [U, k], and who is lent, int64 [U], -1 = nobody."""
        factors, lent = np.ones(experts.shape), np.full(len(experts), -1)
        for expert, factor in self.factors:
            factors[experts == expert] = factor
        if self.lent is not None:
            lent[~(experts == self.lent).any(1)] = self.lent
            factors[lent >= 0, -1] = self.by
        return factors, lent


def others(factors: np.ndarray, lent: int, own: np.ndarray, used: np.ndarray, draws: int, seed: int) -> list[tuple]:
    """Up to `draws` different turns `(factors [k], lent)` alike one person's, not it: the factors of their `own [k]` experts
    in another order, and another of the `used` ones lent. Fewer where there are fewer; none where all are turned alike."""
    rng, mine, found = np.random.default_rng(seed), len(own) - (lent >= 0), {}
    free, order = np.setdiff1d(used, [*own, lent]), len(set(factors[:mine])) > 1
    if (lent >= 0 and not len(free)) or (lent < 0 and not order):
        return []
    for _ in range(5 * draws + 20):
        dealt = np.concatenate([rng.permutation(factors[:mine]), factors[mine:]])
        other = int(rng.choice(free)) if lent >= 0 else -1
        if order and (dealt == factors).all():
            continue
        found[(*dealt, other)] = (dealt, other)
        if len(found) == draws:
            break
    return list(found.values())


class Steered(NamedTuple):
    """`table`, a row for each expert that is turned: expert, factor, lent, genre (empty: it stands for none); the share of that
    genre among the ten, `before` and `after`, and after the random turns (`null`, their median; 95% from `low` to `high`);
    and the same of the whole chance of what comes next (`chance_before` …)."""

    change: Moved
    truth: int | None
    table: pd.DataFrame
    chance: np.ndarray  # [m] how many of the ten each of m random turns brought in

    @property
    def fresh(self) -> int:
        """How many of the ten came in."""
        return self.change.counts["new"]

    @property
    def limits(self) -> list[float]:
        """Median of `chance`, and its 2.5% and 97.5% quantile."""
        return _limits(self.chance)


def steer(
    model: Recommender, dataset: Dataset, read: Reading, turn: Turn, traffic: Routing, own: np.ndarray,
    means: np.ndarray | None,
) -> Steered:  # fmt: skip
    """The list of a person who retrieves `own [k]`. `means [K]`: the genre of every expert (`knobs.stands_for`), or None."""
    (factors, lent), used = turn.on(own[None]), np.flatnonzero(traffic.load)
    before = answer(model, dataset, read)
    after = answer(model, dataset, read, edit=knobs.turns(model, factors, lent))
    change, (genres, holds) = moved(before, after), trait_table(dataset.catalog)
    random = others(factors[0], int(lent[0]), own, used, DRAWS, seed=0) if not turn.still else []
    tops, parts = _many(model, read, random, holds)
    ten, rows = (before.table["item"].to_numpy(), after.table["item"].to_numpy()), []
    for expert, factor in turn.experts:
        genre = -1 if means is None else int(means[expert])
        row = {"expert": expert, "factor": factor, "lent": expert == turn.lent, "genre": genres[genre] if genre >= 0 else ""}
        for name, real, null in (
            ("", [holds[items, genre].mean() for items in ten], holds[tops, genre].mean(1)),
            ("chance_", [each.chances @ holds[:, genre] for each in (before, after)], parts[:, genre]),
        ):  # fmt: skip
            values = (*map(float, real), *_limits(null)) if genre >= 0 else (np.nan,) * 5
            row |= dict(zip([f"{name}{part}" for part in ("before", "after", "null", "low", "high")], values, strict=True))
        rows.append(row)
    fresh = (~(tops[:, :, None] == ten[0]).any(2)).sum(1)
    return Steered(change, before.truth, pd.DataFrame(rows), fresh)


def _limits(values: np.ndarray) -> list[float]:
    """Median, 2.5% and 97.5% quantile; unknown of nothing."""
    return np.quantile(values, (0.5, 0.025, 0.975)).tolist() if len(values) else [np.nan] * 3


@torch.inference_mode()
def _many(model: Recommender, read: Reading, random: list[tuple], holds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One person under several turns: the ten likeliest items they had not met, int64 [m, 10], and every genre's part of all
    chance, float [m, G]."""
    one, width = history_batch(read.items, model.length, read.times), max(SCORES // model.n_items, 1)
    factors, lent = np.array([row for row, _ in random]), np.array([expert for _, expert in random], np.int64)
    out = torch.from_numpy(~running(model.n_items + 1, read, stay=False))
    tops, parts = [np.zeros((0, ablation.TOP), np.int64)], [np.zeros((0, holds.shape[1]))]
    for at in range(0, len(lent), width):
        here = slice(at, at + width)
        batch = one.rows(torch.zeros(len(lent[here]), dtype=torch.long))
        states = model.last_state(batch, edit=knobs.turns(model, factors[here], lent[here]))  # type: ignore[call-arg]
        scores = model.scorer()(states, Met.by(batch)).float().masked_fill(out, -torch.inf)
        tops.append(scores.topk(min(ablation.TOP, scores.shape[1] - 1)).indices.numpy())
        parts.append(scores.softmax(1).numpy() @ holds)
    return np.concatenate([part for part in tops if len(part)] or tops), np.concatenate(parts)


def touched(traffic: Routing, turn: Turn) -> np.ndarray:
    """For whom the turn changes anything."""
    factors, lent = turn.on(traffic.experts)
    return np.flatnonzero((factors != 1).any(1) | (lent >= 0))


def cost(
    model: Recommender, dataset: Dataset, traffic: Routing, turn: Turn, tell: Callable[[float], None] | None = None
) -> pd.DataFrame:
    """What the turn does to NDCG@10 of what people did choose, two rows (`Effect.row`): for up to `SAMPLE` of whom it touches,
    drawn at random, and for the same people when other experts are turned alike."""
    used, everybody = np.flatnonzero(traffic.load), touched(traffic, turn)
    users = everybody[some_of(len(everybody), SAMPLE, seed=0)]
    factors, lent = turn.on(traffic.experts[users])
    first = ablation.judged(model, dataset, users)
    null, able = (factors.copy(), lent.copy()), np.zeros(len(users), dtype=bool)
    for i, user in enumerate(users):
        for dealt, other in others(factors[i], int(lent[i]), traffic.experts[user], used, 1, seed=int(user)):
            null[0][i], null[1][i], able[i] = dealt, other, True

    def after(where: np.ndarray, turned: tuple[np.ndarray, np.ndarray], begun: float) -> ablation.Judged:
        parts = []
        for at in range(0, len(where), STEP):
            here = where[at : at + STEP]
            make = lambda rows, here=here: knobs.turns(model, turned[0][here[rows]], turned[1][here[rows]])  # noqa: E731
            parts.append(ablation.judged(model, dataset, users[here], make))
            if tell:
                tell(begun + 0.5 * min((at + STEP) / len(where), 1.0))
        return ablation.together(parts) if parts else first.of(where)

    all_, some = np.arange(len(users)), np.flatnonzero(able)
    rows = [
        ablation.Effect("this turn", users, first, after(all_, (factors, lent), 0.0)),
        ablation.Effect("the same turn of other experts", users[some], first.of(some), after(some, null, 0.5)),
    ]
    return pd.DataFrame([row.row() for row in rows]).assign(touched=len(everybody))
