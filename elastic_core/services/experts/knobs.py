"""Experts as knobs: does an expert turned up, turned down or lent to somebody else move the list towards what it stands for?

Turned by a factor (`Retrieved.turned`): where every slot predicts for itself, its share of the prediction is multiplied and all
are made parts of 1 again; elsewhere the expert's gate is. Lent: the expert takes the place and the gate of the weakest of a
person's own. What an expert stands for is the genre (of a planted world: the block of items) that its own item distribution
prefers most, or, where experts have none, the genre most over-represented among its people (services/experts/overview.py).

Measured for every person and expert: the share of that genre among the ten likeliest items they had not met, and NDCG@10 of what
they did choose. Two nulls: another expert's genre in the same lists (a knob that only stirs the list moves both alike), and the
same genre where another of the person's own experts is turned instead (what any expert of theirs does).
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.core.contract import Edit, Retrieved
from elastic_core.data import Dataset
from elastic_core.data.traits import trait_table
from elastic_core.errors import InputError
from elastic_core.memory.routing import Routing
from elastic_core.models import Recommender, memory_of
from elastic_core.services.experts import ablation, overview

FACTORS = (0.0, 0.5, 2.0, 4.0, 8.0)
TRIES = 50  # at drawing somebody an expert they do not have
LEAST = 0.002  # of an even mixture of all experts: a genre below is not what an expert can be named after


def turns(model: Recommender, factors: np.ndarray, lent: np.ndarray) -> Edit:
    """Every rank turned by a factor of its own, float `[B, k]`; where `lent [B]` is an expert's number and not -1, that one has
    the place and the gate of the row's weakest first."""
    rows = torch.from_numpy(np.flatnonzero(lent >= 0))
    numbers = torch.from_numpy(np.asarray(lent, np.int64))[rows]
    values = memory_of(model).experts_at(numbers).detach()

    def edit(found: Retrieved) -> Retrieved:
        interests, experts = found.interests.clone(), found.experts.clone()
        interests[rows, -1], experts[rows, -1] = values * found.gates[rows, -1:], numbers
        return found._replace(interests=interests, experts=experts, turned=torch.from_numpy(factors).to(found.gates))

    return ablation.first(edit)


@torch.inference_mode()
def stands_for(model: Recommender, dataset: Dataset, traffic: Routing, found: overview.Survey | None = None) -> np.ndarray:
    """The genre every expert stands for, int64 [K]; -1 where it stands for none. `found`: everybody's survey, if it is known.

    Raises InputError for data without genres."""
    genres, table = trait_table(dataset.catalog)
    if not genres:
        raise InputError("these data have no genres, so nobody can say what an expert stands for")
    own = memory_of(model).stands_for(torch.arange(len(traffic.load)))
    if own is None:
        tops = (found or overview.survey(model, dataset, traffic)).of_people.tops
        tops = tops[tops["low"] > 1]
        named = np.full(len(traffic.load), -1)
        named[tops.index] = [genres.index(name) for name in tops["genre"]]
        return named
    shares = own[:, 1:].exp().numpy() @ table[1:]
    even = shares.mean(0)
    return np.where(even > LEAST, shares / np.maximum(even, LEAST), 0).argmax(1)


class Turned(NamedTuple):
    """One turn of everybody's experts, means over each person's: float [U], unknown for who has no expert to turn."""

    what: str
    own: np.ndarray  # change of the share of the turned expert's genre among the ten
    other: np.ndarray  # … of another expert's genre
    instead: np.ndarray  # … of the same genre where another of the person's experts is turned instead; unknown of lent ones
    gain: np.ndarray  # change of NDCG@10

    def row(self) -> dict[str, object]:
        """knob, people; d_own, d_other, d_gap (own less other's), d_instead, d_beyond (own less instead), d_ndcg, each with its
        95% interval over people."""
        known = ~np.isnan(self.own)
        row: dict[str, object] = {"knob": self.what, "people": int(known.sum())}
        for name, values in (
            ("own", self.own), ("other", self.other), ("gap", self.own - self.other), ("instead", self.instead),
            ("beyond", self.own - self.instead), ("ndcg", self.gain),
        ):  # fmt: skip
            told = values[known & ~np.isnan(values)]
            low, high = ablation.interval(told)
            mean = float(told.mean()) if len(told) else float("nan")
            row |= {f"d_{name}": mean, f"{name}_low": low, f"{name}_high": high}
        return row


def mean_known(rows: Sequence[np.ndarray], among: np.ndarray | bool = True) -> np.ndarray:
    """Of each column, the mean of the rows that are known (and `among` those); NaN where none is."""
    return pd.DataFrame(np.where(among, rows, np.nan)).mean().to_numpy()


def knob_table(turned: Sequence[Sequence[Turned]]) -> pd.DataFrame:
    """One row a knob; of several runs (training seeds) of one model on the same people, every person's mean over the runs.

    Raises InputError for runs that judge other people or turn other knobs."""
    rows = []
    for of_one in itertools.zip_longest(*turned):
        if any(t is None or (t.what, len(t.own)) != (of_one[0].what, len(of_one[0].own)) for t in of_one):
            raise InputError("these runs are not judged on the same people with the same knobs")
        asked = ~np.isnan([t.own for t in of_one])
        means = (mean_known([getattr(t, name) for t in of_one], asked) for name in ("own", "other", "instead", "gain"))
        rows.append(Turned(of_one[0].what, *means).row())
    return pd.DataFrame(rows)


def measure_knobs(model: Recommender, dataset: Dataset, traffic: Routing, factors: tuple[float, ...] = FACTORS) -> list[Turned]:
    """A knob each: every factor for everybody's own experts, and the largest for experts that were lent (see the module)."""
    rng = np.random.default_rng(0)
    means = stands_for(model, dataset, traffic)
    users, k = np.arange(len(traffic.experts)), traffic.experts.shape[1]
    named = np.flatnonzero((means >= 0) & (traffic.load > 0))
    if len(np.unique(means[named])) < 2:
        raise InputError("fewer than two genres are stood for, so there is nothing to compare with")
    before = ablation.judged(model, dataset, users)
    table = trait_table(dataset.catalog)[1]

    def others(mine: np.ndarray) -> np.ndarray:
        """Another expert's genre for every one of `mine [U]`, never the same."""
        drawn = means[rng.choice(named, len(mine))]
        while (same := drawn == mine).any():
            drawn[same] = means[rng.choice(named, int(same.sum()))]
        return drawn

    def turned(what: str, lent: np.ndarray, passes: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Turned:
        """`passes`: the genre each person's turned expert stands for (-1: leave out), another's, and the ranks' factors `[k]`."""
        found = [[np.full(len(users), np.nan)] for _ in range(4)]  # own, other, instead, gain
        for at, (mine, null, factors) in enumerate(passes):
            make = lambda rows, each=factors: turns(model, np.tile(each, (len(rows), 1)), lent[rows])  # noqa: E731
            after, who = ablation.judged(model, dataset, users, make), mine >= 0
            rest = [theirs for i, (theirs, *_) in enumerate(passes) if i != at]
            for to, genre in ((0, mine), (1, null), *((2, theirs) for theirs in rest)):
                moved = table[after.top, genre[:, None]].mean(1) - table[before.top, genre[:, None]].mean(1)
                found[to].append(np.where(who & (genre >= 0), moved, np.nan))
            found[3].append(np.where(who, after.gain - before.gain, np.nan))
        return Turned(what, *map(mean_known, found))

    def factors_of(rank: int, factor: float) -> np.ndarray:
        return np.where(np.arange(k) == rank, factor, 1.0)

    genres = [(mine, others(mine)) for mine in means[traffic.experts].T]
    nobody = np.full(len(users), -1)
    rows = [
        turned(f"own, × {factor:g}", nobody, [(*pair, factors_of(rank, factor)) for rank, pair in enumerate(genres)])
        for factor in factors
    ]
    lent = rng.choice(named, len(users))
    for _ in range(TRIES):
        had = (traffic.experts == lent[:, None]).any(1)
        lent[had] = rng.choice(named, int(had.sum()))
    had = (traffic.experts == lent[:, None]).any(1)  # who has them all can be lent none
    pair = (np.where(had, -1, means[lent]), others(means[lent]))
    for factor in (1.0, max(factors)):
        rows.append(turned(f"lent, × {factor:g}", lent, [(*pair, factors_of(k - 1, factor))]))
    return rows
