"""Experts as knobs: does an expert turned up, turned down or lent to somebody else move the list towards what it stands for?

Turned by a factor (`Retrieved.turned`): where every slot predicts for itself, its share of the prediction is multiplied and all
are made parts of 1 again; elsewhere the expert's gate is. Lent: the expert takes the place and the gate of the weakest of a
person's own. What an expert stands for is the genre (of a planted world: the block of items) that its own item distribution
prefers most, or, where experts have none, the genre most over-represented among its people (services/experts/overview.py).

Measured for every person and expert: the share of that genre among the ten likeliest candidates, and NDCG@10 of what
they did choose. Two nulls: another expert's genre in the same lists (a knob that only stirs the list moves both alike), and the
same genre where another of the person's own experts is turned instead (what any expert of theirs does).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from elastic_core.core.contract import Edit, Retrieved
from elastic_core.data.item_features import trait_table
from elastic_core.errors import InputError
from elastic_core.models import Recommender, as_retrieving_model
from elastic_core.services.experts import ablation, overview
from elastic_core.services.experts.ablation import EvaluationContext

FACTORS = (0.0, 0.5, 2.0, 4.0, 8.0)
TRIES = 50  # at drawing somebody an expert they do not have
LEAST = 0.002  # of an even mixture of all experts: a genre below is not what an expert can be named after
NOBODY = -1  # in the place of an expert's number
NO_GENRE = -1
CHANGES = ("own", "other", "instead", "ndcg")
MEASURED = ("own", "other", "gap", "instead", "beyond", "ndcg")


def turn_ranks(model: Recommender, factors: np.ndarray, lent_experts: np.ndarray) -> Edit:
    """Turn every rank by a factor of its own, float `[B, k]`; where `lent_experts [B]` is an expert's number and not -1, that
    one has the place and the gate of the row's weakest first."""
    rows = torch.from_numpy(np.flatnonzero(lent_experts != NOBODY))
    experts = torch.from_numpy(lent_experts)[rows]
    values = as_retrieving_model(model).select_experts(experts).detach()

    def edit(retrieved: Retrieved) -> Retrieved:
        turned = torch.from_numpy(factors).to(retrieved.gates)
        return ablation.replace_expert(retrieved, rows, -1, experts, values)._replace(turned=turned)

    return ablation.edit_first_layer(edit)


@torch.inference_mode()
def expert_genres(context: EvaluationContext, survey: overview.Survey | None = None) -> np.ndarray:
    """The genre every expert stands for, int64 [K]; -1 where it stands for none. `survey`: everybody's, if it is known.

    Raises InputError for data without genres."""
    genres, table = trait_table(context.dataset.catalog)
    if not genres:
        raise InputError("these data have no genres, so nobody can say what an expert stands for")
    n_experts = len(context.traffic.load)
    own = as_retrieving_model(context.model).item_log_probabilities(torch.arange(n_experts))
    if own is None:
        tops = (survey or overview.survey_experts(context)).of_people.top_genres
        tops = tops[tops["low"] > 1]
        named = np.full(n_experts, NO_GENRE)
        named[tops.index] = [genres.index(name) for name in tops["genre"]]
        return named
    shares = own[:, 1:].exp().numpy() @ table[1:]
    mean_shares = shares.mean(0)
    return np.where(mean_shares > LEAST, shares / np.maximum(mean_shares, LEAST), 0).argmax(1)


# --- everybody's knobs ----------------------------------------------------------------------------------------------------


def measure_knobs(context: EvaluationContext, factors: tuple[float, ...] = FACTORS) -> pd.DataFrame:
    """Turn everybody's own experts by every factor, and the largest for experts that were lent (see the module).

    Of each knob and user (index), the mean over their experts, unknown where there is none to turn: the change of the share of
    the turned expert's genre among the ten (own), of another expert's genre (other), of the same genre where another of the
    person's experts is turned (instead; unknown of lent ones), and of NDCG@10 (ndcg)."""
    rng, genres = np.random.default_rng(0), expert_genres(context)
    n_users, k = context.traffic.experts.shape
    named = np.flatnonzero((genres != NO_GENRE) & (context.traffic.load > 0))
    if len(np.unique(genres[named])) < 2:
        raise InputError("fewer than two genres are stood for, so there is nothing to compare with")
    before = ablation.rank_edited(context, np.arange(n_users))

    own = genres[context.traffic.experts].T  # [k, U]
    other = np.stack([_other_genres(rng, genres[named], row) for row in own])
    nobody = np.full(n_users, NOBODY)
    knobs = {
        f"own, × {factor:g}": _mean_changes(
            [_measure_changes(context, before, rank, factor, nobody, own, other[rank]) for rank in range(k)]
        )
        for factor in factors
    }

    lent_experts = _lend_experts(rng, context.traffic.experts, named)
    has_all = (context.traffic.experts == lent_experts[:, None]).any(1)  # who has them all can be lent none
    lent_genres = np.where(has_all, NO_GENRE, genres[lent_experts])[None]
    lent_other = _other_genres(rng, genres[named], genres[lent_experts])
    for factor in (1.0, max(factors)):
        knobs[f"lent, × {factor:g}"] = _mean_changes(
            [_measure_changes(context, before, k - 1, factor, lent_experts, lent_genres, lent_other)]
        )
    return pd.concat(knobs, names=["knob", "user"])


def _other_genres(rng: np.random.Generator, genres: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Draw the genre of another expert for every one of `own [U]`, never the same."""
    drawn = genres[rng.choice(len(genres), len(own))]
    while (same := drawn == own).any():
        drawn[same] = genres[rng.choice(len(genres), int(same.sum()))]
    return drawn


def _lend_experts(rng: np.random.Generator, experts: np.ndarray, named: np.ndarray) -> np.ndarray:
    """Draw one of the `named` experts for every user, where possible one that they do not retrieve: int64 [U]."""
    lent_experts = rng.choice(named, len(experts))
    for _ in range(TRIES):
        has = (experts == lent_experts[:, None]).any(1)
        lent_experts[has] = rng.choice(named, int(has.sum()))
    return lent_experts


def _measure_changes(
    context: EvaluationContext,
    before: pd.DataFrame,
    rank: int,
    factor: float,
    lent_experts: np.ndarray,
    genres: np.ndarray,
    other: np.ndarray,
) -> dict[str, list[np.ndarray]]:
    """What turning one rank by a factor changes for everybody, float [U] each.

    `genres [r, U]`: of every rank that is turned (of lent experts, one); `other [U]`: another expert's."""
    n_users, k = context.traffic.experts.shape
    factors = np.tile(np.where(np.arange(k) == rank, factor, 1.0), (n_users, 1))
    after = ablation.rank_edited(
        context, np.arange(n_users), lambda users: turn_ranks(context.model, factors[users], lent_experts[users])
    )
    row = rank if len(genres) == k else 0
    turned = genres[row] != NO_GENRE

    def share_change(genre: np.ndarray) -> np.ndarray:
        change = _genre_share(context, after, genre) - _genre_share(context, before, genre)
        return np.where(turned & (genre != NO_GENRE), change, np.nan)

    return {
        "own": [share_change(genres[row])],
        "other": [share_change(other)],
        "instead": [share_change(genres[each]) for each in range(len(genres)) if each != row],
        "ndcg": [np.where(turned, after["ndcg"] - before["ndcg"], np.nan)],
    }


def _genre_share(context: EvaluationContext, ranks: pd.DataFrame, genre: np.ndarray) -> np.ndarray:
    """Which part of everybody's ten has their genre, float [U]."""
    holds = trait_table(context.dataset.catalog)[1]
    return np.asarray(holds[ablation.top_ten(ranks), genre[:, None]].mean(1))


def _mean_changes(changes: Sequence[dict[str, list[np.ndarray]]]) -> pd.DataFrame:
    """Every person's mean over the ranks that were turned."""
    n_users = len(changes[0]["own"][0])
    of_all = {name: [each for change in changes for each in change[name]] for name in CHANGES}
    return pd.DataFrame({name: pd.DataFrame(each, columns=np.arange(n_users)).mean() for name, each in of_all.items()})


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
        knob_means = means[means.index.get_level_values("knob") == knob]
        row = {"knob": knob, "people": len(knob_means)}
        for name in MEASURED:
            values = knob_means[name].dropna()
            row[f"d_{name}"] = values.mean()
            row[f"{name}_low"], row[f"{name}_high"] = ablation.interval_of_change(values.to_numpy())
        rows.append(row)
    return pd.DataFrame(rows)
