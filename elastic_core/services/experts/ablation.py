"""What happens to everybody who retrieves an expert when it is taken away, or replaced by another?

Always in a copy of what was retrieved (`edit`), never in the model. The other experts keep their gates; a replacement takes
over the gate of the expert it replaces. In runs that retrieve before every layer, only the first retrieval is changed.
The true next item is ranked against all items, or against those the user has not seen, as these data are judged
(`fitting_protocol`). d = after - before.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from elastic_core.core.candidates import Candidates
from elastic_core.core.contract import Edit, Retrieved
from elastic_core.core.evaluate import Ranks, expected_metrics, rank_targets
from elastic_core.data import Dataset
from elastic_core.data.repeats import fitting_protocol
from elastic_core.errors import InputError
from elastic_core.memory.routing import RoutedUsers
from elastic_core.models import Recommender, as_retrieving_model
from elastic_core.results.compare import side_of_zero
from elastic_core.results.statistics import interval_over_users, sign_flip_test
from elastic_core.services.person.recommend import read_batches
from elastic_core.services.person.user_lookup import sample_indices

METRIC, TOP = "NDCG@10", 10
ALIKE, GROUP = 5, 20  # so many of the experts next in load, of a group of so many, are what an expert is compared with …
FEW = 40  # … each on so many of its people at most


class EvaluationContext(NamedTuple):
    """A model, its data, and what everybody's history retrieves."""

    model: Recommender
    dataset: Dataset
    traffic: RoutedUsers


def edit_first_layer(edit: Edit) -> Edit:
    """Edit only the first retrieval of a pass: an expert's number means something else in a later layer's memory."""
    waiting = [edit]
    return lambda retrieved: waiting.pop()(retrieved) if waiting else retrieved


def drop_rank(ranks: np.ndarray) -> Edit:
    """Take one rank out of each row's retrieval: `ranks` int [B], counted from 0."""

    def edit(retrieved: Retrieved) -> Retrieved:
        k = retrieved.experts.shape[1]
        if k < 2:
            raise InputError("with k = 1 a history is read through one expert: without it there is nothing left to read through")
        places = torch.arange(k - 1).expand(len(ranks), -1)
        remaining = places + (places >= torch.from_numpy(ranks)[:, None])  # 0 … k-1 without `ranks`, row by row
        return retrieved.select_ranks(remaining)

    return edit_first_layer(edit)


def replace_expert(retrieved: Retrieved, rows: Tensor, ranks: Tensor | int, experts: Tensor | int, values: Tensor) -> Retrieved:
    """Put `experts` (their vectors `values [d]`) in some rows of what was retrieved, in the place and with the gate of
    `ranks`."""
    interests, numbers = retrieved.interests.clone(), retrieved.experts.clone()
    interests[rows, ranks] = values * retrieved.gates[rows, ranks].unsqueeze(-1)
    numbers[rows, ranks] = experts
    return retrieved._replace(interests=interests, experts=numbers)


def retrieving_users(traffic: RoutedUsers, expert: int, most: int | None = None) -> np.ndarray:
    """Return who retrieves an expert. `most`: no more than so many of them, drawn at random."""
    users = np.flatnonzero((traffic.experts == expert).any(1))
    return users if most is None else users[sample_indices(len(users), most, seed=expert)]


def ranks_of(traffic: RoutedUsers, expert: int, users: np.ndarray) -> np.ndarray:
    """Return at which rank (from 0) users retrieve an expert."""
    return (traffic.experts[users] == expert).argmax(1)


# --- what a change does to people --------------------------------------------------------------------------------------

Make = Callable[[np.ndarray], Edit]  # from some of the users to the edit of their batch


@torch.inference_mode()
def rank_edited(context: EvaluationContext, users: np.ndarray, make: Make | None = None) -> pd.DataFrame:
    """Judge every user (index) with an edit or without: `rank` of the true next item (from 1, ties at their middle), its
    `ndcg`, and the likeliest items among the candidates (columns 0 to 9)."""
    candidates, protocol, ranked, tops = Candidates(context.dataset, "test", 0), fitting_protocol(context.dataset), [], []
    for rows, batch in read_batches(context.model, context.dataset, users):
        batch_users = users[rows]
        states = context.model.last_state(batch, edit=make(batch_users)) if make else context.model.last_state(batch)  # type: ignore[call-arg]
        scores, allowed = context.model.scorer()(states).float(), candidates.candidate_mask(protocol, batch_users)
        ranked.append(rank_targets(scores, torch.from_numpy(candidates.targets[batch_users].astype(np.int64)), allowed))
        tops.append(scores.masked_fill(~allowed, -torch.inf).topk(min(TOP, scores.shape[1])).indices.numpy())
    if not ranked:
        return pd.DataFrame(columns=[*range(TOP), "rank", "ndcg"], dtype=float)
    ranks = Ranks.concatenate(ranked)
    return pd.DataFrame(np.concatenate(tops), users).assign(rank=ranks.places, ndcg=expected_metrics(ranks)[METRIC])


def top_ten(ranks: pd.DataFrame) -> np.ndarray:
    """Return the likeliest items of people ranked by `rank_edited`, int64 [U, 10]."""
    return ranks.drop(columns=["rank", "ndcg"]).to_numpy()


def compare_ranks(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Compare two judgements of the same people: `rank` and `ndcg` before, `rank_after` and `ndcg_after`, and how many of the ten
    suggestions are `replaced`."""
    stay = (top_ten(after)[:, :, None] == top_ten(before)[:, None, :]).any(2)
    return before.assign(rank_after=after["rank"], ndcg_after=after["ndcg"], replaced=(~stay).sum(1))


def remove_expert(context: EvaluationContext, expert: int, before: pd.DataFrame) -> pd.DataFrame:
    """Judge without the expert, for people who retrieve it, ranked `before`; as `compare_ranks`."""
    make = lambda users: drop_rank(ranks_of(context.traffic, expert, users))  # noqa: E731
    return compare_ranks(before, rank_edited(context, before.index.to_numpy(), make))


def remove_from_few(context: EvaluationContext, expert: int) -> pd.DataFrame:
    """Do the same of up to 40 of its people."""
    return remove_expert(context, expert, rank_edited(context, retrieving_users(context.traffic, expert, FEW)))


def swap_expert(context: EvaluationContext, expert: int, other: int, before: pd.DataFrame) -> pd.DataFrame:
    """Judge with `other` in its place, for those who do not retrieve that one anyway; as `remove_expert`."""
    free = before[~(context.traffic.experts[before.index] == other).any(1)]
    value = as_retrieving_model(context.model).select_experts(torch.tensor(other))

    def make(users: np.ndarray) -> Edit:
        ranks = torch.from_numpy(ranks_of(context.traffic, expert, users))
        return edit_first_layer(lambda retrieved: replace_expert(retrieved, torch.arange(len(users)), ranks, other, value))

    return compare_ranks(free, rank_edited(context, free.index.to_numpy(), make))


def interval_of_change(differences: np.ndarray) -> tuple[float, float]:
    """Return 95% limits, paired over people; unknown for fewer than two."""
    return interval_over_users(differences) if len(differences) > 1 else (float("nan"), float("nan"))


def effect_row(change: str, ranks: pd.DataFrame) -> dict[Hashable, Any]:
    """Sum up what a change did to people, as `compare_ranks` has it: n, median ranks, d rank (median, mean), NDCG@10 before and
    after, its d with interval and p, and how many of the ten suggestions are others (mean)."""
    d_rank, d_ndcg = ranks["rank_after"] - ranks["rank"], ranks["ndcg_after"] - ranks["ndcg"]
    low, high = interval_of_change(d_ndcg.to_numpy())
    return {
        "change": change, "n": len(ranks),
        "rank_before": ranks["rank"].median(), "rank_after": ranks["rank_after"].median(),
        "d_rank_median": d_rank.median(), "d_rank_mean": d_rank.mean(),
        "ndcg_before": ranks["ndcg"].mean(), "ndcg_after": ranks["ndcg_after"].mean(),
        "d_ndcg": d_ndcg.mean(), "low": low, "high": high, "p": sign_flip_test(d_ndcg.to_numpy()) if len(ranks) else np.nan,
        "replaced": ranks["replaced"].mean(),
    }  # fmt: skip


def effect_verdict(row: Mapping[Hashable, Any]) -> str:
    """Say an `effect_row` in a word. `worse` or `better` without it: where interval and sign-flip test agree. Else `unclear`,
    `same` (for everybody) or `few` (one person)."""
    if np.isnan(row["low"]):
        return "few"
    if row["low"] == row["high"] == 0:
        return "same"
    side = side_of_zero(row["low"], row["high"]) if row["p"] < 0.05 else ""
    return {"A": "better", "B": "worse", "": "unclear"}[side]


# --- beside which changes it stands ------------------------------------------------------------------------------------


def equally_busy_experts(traffic: RoutedUsers, expert: int) -> list[int]:
    """Draw other experts about as busy as this one at random: of the group of 20 that the used ones form in order of load.
    A group has the same ones drawn for all who are in it, so that what was measured of them serves again."""
    used = np.flatnonzero(traffic.load)
    order = used[np.argsort(traffic.load[used], kind="stable")]
    place = int(np.flatnonzero(order == expert)[0]) if expert in used else 0
    cuts = np.arange(GROUP, len(order) - GROUP + 1, GROUP)  # the last group takes the rest
    group = int(np.searchsorted(cuts, place, side="right"))
    drawn = np.random.default_rng(group).permutation(np.split(order, cuts)[group])[: ALIKE + 1]
    return [int(other) for other in drawn if other != expert][:ALIKE]


def measure_effects(context: EvaluationContext, expert: int, other: int) -> pd.DataFrame:
    """Set the changes side by side, one row each (`effect`): without an expert that somebody retrieves, without another of the
    same people's, without others about as busy (each from its own people), with `other` in its place, with others as busy as that
    one in its place."""
    traffic, users = context.traffic, retrieving_users(context.traffic, expert)
    before, (n_users, k) = rank_edited(context, users), traffic.experts.shape
    rows = [effect_row(f"without expert {expert}", remove_expert(context, expert, before))]
    other_ranks = np.zeros(n_users, np.int64)  # the yardstick: which rank besides, for each of the same people
    other_ranks[users] = (ranks_of(traffic, expert, users) + np.random.default_rng(expert).integers(1, k, len(users))) % k
    after = rank_edited(context, users, lambda batch_users: drop_rank(other_ranks[batch_users]))
    rows.append(effect_row("without another of their experts, drawn at random", compare_ranks(before, after)))
    if removals := [remove_from_few(context, each) for each in equally_busy_experts(traffic, expert)]:
        change = f"without an expert used as much ({len(removals)} others, each from its own people)"
        rows.append(effect_row(change, pd.concat(removals)))
    rows.append(effect_row(f"expert {other} in its place", swap_expert(context, expert, other, before)))
    few_ranks = before.loc[retrieving_users(traffic, expert, FEW)]
    if swaps := [
        swap_expert(context, expert, each, few_ranks) for each in equally_busy_experts(traffic, other) if each != expert
    ]:
        rows.append(effect_row(f"an expert used as much as {other} in its place ({len(swaps)} others)", pd.concat(swaps)))
    return pd.DataFrame(rows)


def draw_used_expert(traffic: RoutedUsers, expert: int, seed: int = 0, apart: bool = False) -> int:
    """Draw another expert that somebody retrieves, the same for the same seed; the expert itself if there is no other. `apart`:
    one that nobody retrieves together with it, where there is one."""
    used_experts = np.setdiff1d(np.flatnonzero(traffic.load), expert)
    apart_experts = np.setdiff1d(used_experts, traffic.experts[retrieving_users(traffic, expert)]) if apart else used_experts
    used_experts = apart_experts if len(apart_experts) else used_experts
    return int(np.random.default_rng([seed, expert]).choice(used_experts)) if len(used_experts) else expert


# --- all experts -------------------------------------------------------------------------------------------------------


def remove_each(context: EvaluationContext, report_progress: Callable[[float], None] = lambda share: None) -> pd.DataFrame:
    """Measure the effect of removing each expert, for all experts in k passes over everybody (each removes one rank): expert, n,
    d_rank_median, d_ndcg, low, high. Equals `remove_expert` one by one. `report_progress` hears the share that is done."""
    n_users, k = context.traffic.experts.shape
    before, changes_by_rank = rank_edited(context, np.arange(n_users)), []
    for at in range(k):
        report_progress((at + 1) / (k + 1))
        after = rank_edited(context, np.arange(n_users), lambda batch_users, at=at: drop_rank(np.full(len(batch_users), at)))  # type: ignore[misc]
        changes_by_rank.append((after - before)[["rank", "ndcg"]].assign(expert=context.traffic.experts[:, at]))
    rows = [
        (expert, len(changes), changes["rank"].median(), changes["ndcg"].mean(), *interval_of_change(changes["ndcg"].to_numpy()))
        for expert, changes in pd.concat(changes_by_rank).sort_index(kind="stable").groupby("expert")
    ]
    return pd.DataFrame(rows, columns=["expert", "n", "d_rank_median", "d_ndcg", "low", "high"])


def count_clear_effects(effects: pd.DataFrame) -> tuple[int, int, float]:
    """Count, of `remove_each`'s rows, intervals below 0, above 0, and how many of both 95% intervals leave out 0 by chance, at
    most."""
    return int((effects["high"] < 0).sum()), int((effects["low"] > 0).sum()), 0.05 * len(effects)
