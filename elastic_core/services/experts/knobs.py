"""Experts as knobs: does an expert turned up, turned down or lent to somebody else move the list towards what it stands for?

Turned by a factor (`Retrieved.turned`): where every slot predicts for itself, its share of the prediction is multiplied and all
are made parts of 1 again; elsewhere the expert's gate is. Lent: the expert takes the place and the gate of the weakest of a
person's own. What an expert stands for is the genre (of a planted world: the block of items) that its own item distribution
prefers most, or, where experts have none, the genre most over-represented among its people (services/experts/overview.py).

Measured for every person and expert: the share of that genre among the ten likeliest items they had not met, and NDCG@10 of what
they did choose. Two nulls: another expert's genre in the same lists (a knob that only stirs the list moves both alike), and the
same genre where another of the person's own experts is turned instead (what any expert of theirs does).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from elastic_core.core.contract import Edit, Retrieved
from elastic_core.data.traits import trait_table
from elastic_core.errors import InputError
from elastic_core.models import Recommender, memory_of
from elastic_core.services.experts import ablation, overview
from elastic_core.services.experts.ablation import Population

FACTORS = (0.0, 0.5, 2.0, 4.0, 8.0)
TRIES = 50  # at drawing somebody an expert they do not have
LEAST = 0.002  # of an even mixture of all experts: a genre below is not what an expert can be named after


def turns(model: Recommender, factors: np.ndarray, lent: np.ndarray) -> Edit:
    """Turn every rank by a factor of its own, float `[B, k]`; where `lent [B]` is an expert's number and not -1, that one has the
    place and the gate of the row's weakest first."""
    rows = torch.from_numpy(np.flatnonzero(lent >= 0))
    experts = torch.from_numpy(lent)[rows]
    values = memory_of(model).experts_at(experts).detach()

    def edit(found: Retrieved) -> Retrieved:
        turned = torch.from_numpy(factors).to(found.gates)
        return ablation.put(found, rows, -1, experts, values)._replace(turned=turned)

    return ablation.first(edit)


@torch.inference_mode()
def stands_for(of: Population, found: overview.Survey | None = None) -> np.ndarray:
    """Return the genre every expert stands for, int64 [K]; -1 where it stands for none. `found`: everybody's survey, if it is
    known.

    Raises InputError for data without genres."""
    genres, table = trait_table(of.dataset.catalog)
    if not genres:
        raise InputError("these data have no genres, so nobody can say what an expert stands for")
    size = len(of.traffic.load)
    own = memory_of(of.model).stands_for(torch.arange(size))
    if own is None:
        tops = (found or overview.survey(of)).of_people.tops
        tops = tops[tops["low"] > 1]
        named = np.full(size, -1)
        named[tops.index] = [genres.index(name) for name in tops["genre"]]
        return named
    shares = own[:, 1:].exp().numpy() @ table[1:]
    even = shares.mean(0)
    return np.where(even > LEAST, shares / np.maximum(even, LEAST), 0).argmax(1)


MEASURED = ("own", "other", "gap", "instead", "beyond", "ndcg")


def knob_table(runs: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Sum up each knob in a row, of what was measured of one run, or of every person's mean over several (training seeds of one
    model): knob, people; d_own, d_other, d_gap (own less other's), d_instead, d_beyond (own less instead), d_ndcg, each with its
    95% interval over people.

    Raises InputError for runs that judge other people or turn other knobs."""
    if not all(run.index.equals(runs[0].index) for run in runs):
        raise InputError("these runs are not judged on the same people with the same knobs")
    means = pd.concat([run.dropna(subset="own") for run in runs]).groupby(["knob", "user"]).mean()
    means = means.assign(gap=means["own"] - means["other"], beyond=means["own"] - means["instead"])
    rows = []
    for knob in runs[0].index.unique("knob"):
        people = means[means.index.get_level_values("knob") == knob]
        row = {"knob": knob, "people": len(people)}
        for name in MEASURED:
            told = people[name].dropna()
            row[f"d_{name}"] = told.mean()
            row[f"{name}_low"], row[f"{name}_high"] = ablation.interval(told.to_numpy())
        rows.append(row)
    return pd.DataFrame(rows)


def measure_knobs(of: Population, factors: tuple[float, ...] = FACTORS) -> pd.DataFrame:
    """Turn everybody's own experts by every factor, and the largest for experts that were lent (see the module).

    Of each knob and user (index), the mean over their experts, unknown where there is none to turn: the change of the share of
    the turned expert's genre among the ten (own), of another expert's genre (other), of the same genre where another of the
    person's experts is turned (instead; unknown of lent ones), and of NDCG@10 (ndcg)."""
    rng = np.random.default_rng(0)
    traffic, means, holds = of.traffic, stands_for(of), trait_table(of.dataset.catalog)[1]
    users, k = np.arange(len(traffic.experts)), traffic.experts.shape[1]
    named = np.flatnonzero((means >= 0) & (traffic.load > 0))
    if len(np.unique(means[named])) < 2:
        raise InputError("fewer than two genres are stood for, so there is nothing to compare with")
    before = ablation.judged(of, users)

    def others(mine: np.ndarray) -> np.ndarray:
        """Draw another expert's genre for every one of `mine [U]`, never the same."""
        drawn = means[rng.choice(named, len(mine))]
        while (same := drawn == mine).any():
            drawn[same] = means[rng.choice(named, int(same.sum()))]
        return drawn

    def turned(
        ranks: Sequence[int], factor: float, lent: np.ndarray, mine: list[np.ndarray], null: list[np.ndarray]
    ) -> pd.DataFrame:
        """Turn one rank after the other: `mine` is the genre that each person's expert there stands for (-1: leave out), `null`
        is another's."""
        rows: dict[str, list[np.ndarray]] = {"own": [], "other": [], "instead": [], "ndcg": []}
        for at, rank in enumerate(ranks):
            factors = np.tile(np.where(np.arange(k) == rank, factor, 1.0), (len(users), 1))
            make = lambda some, factors=factors: turns(of.model, factors[some], lent[some])  # noqa: E731
            after = ablation.judged(of, users, make)
            rows["ndcg"].append(np.where(mine[at] >= 0, after["ndcg"] - before["ndcg"], np.nan))
            for name, genres in (
                ("own", mine[at]),
                ("other", null[at]),
                *(("instead", each) for each in mine[:at] + mine[at + 1 :]),
            ):
                now, then = (holds[ablation.top_ten(side), genres[:, None]].mean(1) for side in (after, before))
                rows[name].append(np.where((mine[at] >= 0) & (genres >= 0), now - then, np.nan))
        return pd.DataFrame({name: pd.DataFrame(each, columns=users).mean() for name, each in rows.items()})

    mine = list(means[traffic.experts].T)
    null = [others(each) for each in mine]
    found = {f"own, × {factor:g}": turned(range(k), factor, np.full(len(users), -1), mine, null) for factor in factors}
    lent = rng.choice(named, len(users))
    for _ in range(TRIES):
        had = (traffic.experts == lent[:, None]).any(1)
        lent[had] = rng.choice(named, int(had.sum()))
    had = (traffic.experts == lent[:, None]).any(1)  # who has them all can be lent none
    mine, null = [np.where(had, -1, means[lent])], [others(means[lent])]
    found |= {f"lent, × {factor:g}": turned([k - 1], factor, lent, mine, null) for factor in (1.0, max(factors))}
    return pd.concat(found, names=["knob", "user"])
