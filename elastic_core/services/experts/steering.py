"""One person's experts turned by hand: what their list answers, what the same turn of other experts does, what it costs people.

A `Turn` names experts by number: a factor on the gate (or the share of the prediction, see knobs.py) of some, and one, maybe,
that is lent in the place of a person's weakest. For a person who does not retrieve an expert its factor means nothing; nobody is
lent what they have.

The null is the same turn of other experts: the same factors dealt at random to the person's own, and another expert lent that
somebody retrieves and they do not. What moves under it as much is the turning, not the expert.
"""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.core.batches import history_batch
from elastic_core.data.traits import trait_table
from elastic_core.memory.routing import Routing
from elastic_core.models import Met, Recommender
from elastic_core.services.experts import ablation, knobs
from elastic_core.services.experts.ablation import Population
from elastic_core.services.person.people import some_of
from elastic_core.services.person.recommend import Moved, Reading, answer, moved, reading, running

DRAWS = 40  # random turns beside a person's
SAMPLE = 400  # people at most whom a turn is tried on
STEP = 64  # people between two words of progress


class Turn(NamedTuple):
    """`factors`: (expert, factor) in order of their numbers, none of 1. `lent` is turned `by`."""

    factors: tuple[tuple[int, float], ...] = ()
    lent: int | None = None
    by: float = 1.0

    @property
    def experts(self) -> list[tuple[int, float]]:
        """List everybody who is turned, the lent one last; none where everything is as it was."""
        return [*self.factors, *([] if self.lent is None else [(self.lent, self.by)])]

    def on(self, experts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for people with `experts [U, k]`, every rank's factor, float [U, k], and who is lent, int64 [U], -1 =
        nobody."""
        factors, lent = np.ones(experts.shape), np.full(len(experts), -1)
        for expert, factor in self.factors:
            factors[experts == expert] = factor
        if self.lent is not None:
            lent[~(experts == self.lent).any(1)] = self.lent
            factors[lent >= 0, -1] = self.by
        return factors, lent


def others(
    factors: np.ndarray, lent: int, own: np.ndarray, used: np.ndarray, draws: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw up to `draws` different turns alike one person's, not it, `factors [m, k]` and `lent [m]`: the factors of their `own
    [k]` experts in another order, and another of the `used` ones lent. Fewer where there are fewer; none where all are turned
    alike."""
    rng, mine, found = np.random.default_rng(seed), len(own) - (lent >= 0), dict[tuple[float, ...], None]()
    free, order = np.setdiff1d(used, [*own, lent]), len(set(factors[:mine])) > 1
    able = len(free) > 0 if lent >= 0 else order
    for _ in range(5 * draws + 20 if able else 0):
        dealt = np.concatenate([rng.permutation(factors[:mine]), factors[mine:]])
        other = int(rng.choice(free)) if lent >= 0 else -1
        if not order or (dealt != factors).any():
            found[(*dealt, other)] = None
        if len(found) == draws:
            break
    turns = np.array(list(found)).reshape(-1, len(own) + 1)
    return turns[:, :-1], turns[:, -1].astype(np.int64)


class Steered(NamedTuple):
    """`table`, a row for each expert that is turned: expert, factor, lent, genre (empty: it stands for none); the share of that
    genre among the ten, `before` and `after`, and after the random turns (`null`, their median; 95% from `low` to `high`);
    and the same of the whole chance of what comes next (`chance_before` …)."""

    change: Moved
    truth: int | None
    table: pd.DataFrame
    chance: np.ndarray  # [m] how many of the ten each of m random turns brought in


def steer(of: Population, user: int, turn: Turn, means: np.ndarray | None) -> Steered:
    """Turn the list of a person. `means [K]`: the genre of every expert (`knobs.stands_for`), or None."""
    read, own = reading(of.dataset, user), of.traffic.experts[user]
    factors, lent = turn.on(own[None])
    before, after = (answer(of.model, of.dataset, read, edit=edit) for edit in (None, knobs.turns(of.model, factors, lent)))
    draws = DRAWS if turn.experts else 0
    null_factors, null_lent = others(factors[0], int(lent[0]), own, np.flatnonzero(of.traffic.load), draws, seed=0)
    every = np.concatenate([np.ones_like(factors), factors, null_factors]), np.concatenate([[-1], lent, null_lent])
    scores = _under(of.model, read, *every)  # as it is, with the turn, and with each of the random ones
    names, holds = trait_table(of.dataset.catalog)
    names, holds = (*names, ""), np.pad(holds, ((0, 0), (0, 1)), constant_values=np.nan)  # -1 stands for no genre
    tops, chances = scores.topk(min(ablation.TOP, of.model.n_items)).indices.numpy(), scores.softmax(1).numpy() @ holds
    rows = []
    for expert, factor in turn.experts:
        genre = -1 if means is None else means[expert]
        row = {"expert": expert, "factor": factor, "lent": expert == turn.lent, "genre": names[genre]}
        for part, shares in (("", holds[tops, genre].mean(1)), ("chance_", chances[:, genre])):
            row[f"{part}before"], row[f"{part}after"] = map(float, shares[:2])
            row[f"{part}null"], row[f"{part}low"], row[f"{part}high"] = middle_of(shares[2:])
        rows.append(row)
    fresh = (~(tops[2:, :, None] == tops[0]).any(2)).sum(1)
    return Steered(moved(before, after), before.truth, pd.DataFrame(rows), fresh)


def middle_of(values: np.ndarray) -> list[float]:
    """Return median, 2.5% and 97.5% quantile; unknown of nothing."""
    return np.quantile(values, (0.5, 0.025, 0.975)).tolist() if len(values) else [np.nan] * 3


@torch.inference_mode()
def _under(model: Recommender, read: Reading, factors: np.ndarray, lent: np.ndarray) -> torch.Tensor:
    """Return one person's scores of all items under m turns at once, -inf for what is not in the running, float [m, n_items +
    1]."""
    batch = history_batch(read.items, model.length, read.times).rows(torch.zeros(len(lent), dtype=torch.long))
    states = model.last_state(batch, edit=knobs.turns(model, factors, lent))  # type: ignore[call-arg]
    out = torch.from_numpy(~running(model.n_items + 1, read, stay=False))
    return model.scorer()(states, Met.by(batch)).float().masked_fill(out, -torch.inf)


def touched(traffic: Routing, turn: Turn) -> np.ndarray:
    """Find for whom the turn changes anything."""
    factors, lent = turn.on(traffic.experts)
    return np.flatnonzero((factors != 1).any(1) | (lent >= 0))


def cost(of: Population, turn: Turn, tell: Callable[[float], None]) -> pd.DataFrame:
    """Measure what the turn does to NDCG@10 of what people did choose, two rows (`ablation.effect`): for up to `SAMPLE` of whom
    it touches, drawn at random, and for the same people when other experts are turned alike."""
    traffic, everybody = of.traffic, touched(of.traffic, turn)
    used = np.flatnonzero(traffic.load)
    users = everybody[some_of(len(everybody), SAMPLE, seed=0)]
    before = ablation.judged(of, users)
    factors, lent = turn.on(traffic.experts)
    null_factors, null_lent, able = factors.copy(), lent.copy(), []
    for user in users:
        dealt, other = others(factors[user], int(lent[user]), traffic.experts[user], used, 1, seed=int(user))
        if len(other):
            null_factors[user], null_lent[user] = dealt[0], other[0]
            able.append(user)

    def turned(change: str, users: np.ndarray, factors: np.ndarray, lent: np.ndarray, begun: float) -> dict[Hashable, Any]:
        after = []
        for at in range(0, len(users), STEP):
            some = users[at : at + STEP]
            after.append(ablation.judged(of, some, lambda some: knobs.turns(of.model, factors[some], lent[some])))
            tell(begun + 0.5 * min((at + STEP) / len(users), 1.0))
        return ablation.effect(change, ablation.compared(before.loc[users], pd.concat(after or [before.loc[users]])))

    rows = [
        turned("this turn", users, factors, lent, 0.0),
        turned("the same turn of other experts", np.array(able, int), null_factors, null_lent, 0.5),
    ]
    return pd.DataFrame(rows).assign(touched=len(everybody))
