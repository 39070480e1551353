"""What does a model remember? Its share of the planted oracle, by how long ago the interest of what came next last showed.

In the planted world the next event follows the last item met in its own interest. The *gap* is how many events ago that was: at
gap 1 local order is enough, at gaps of 5 and more somebody must have remembered where this person was in that interest. An
average over people hides the difference. The oracle knows mixture and interests; a model that forgets everything but the
last event has a share that falls to what popularity gives, which stands beside it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from numpy import ndarray
from pandas import DataFrame

from elastic_core.core.candidates import Candidates
from elastic_core.core.evaluate import Ranks, expected_metrics, rank_targets
from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.data.synthetic import NOISE, Truth
from elastic_core.errors import InputError

if TYPE_CHECKING:
    from elastic_core.runs.ranks import Report

BINS = ((1, 1), (2, 2), (3, 4), (5, 10), (11, 10**9))
METRIC, PROTOCOL = "NDCG@10", "full-seen"
ALL = "all"


def events_since_interest(dataset: Dataset, split: Split = "test") -> ndarray:
    """Events since the target's interest last showed, int [users]; 0 where the target is noise or its interest is new."""
    truth = truth_of(dataset)
    ends, starts = dataset.split_ends(split), dataset.histories.offsets[:-1]
    gap = np.zeros(len(ends), dtype=np.int64)
    for user, (start, end) in enumerate(zip(starts, ends, strict=True)):
        interest = truth.event_interest[end]
        same_interest = np.flatnonzero(truth.event_interest[start:end] == interest)
        if interest != NOISE and len(same_interest):
            gap[user] = end - start - same_interest[-1]
    return gap


def oracle_ranks(dataset: Dataset, protocol: str, split: Split = "test") -> Ranks:
    """Where the oracle puts every person's target."""
    truth, candidates = truth_of(dataset), Candidates(dataset, split, 0)
    starts, ends = dataset.histories.offsets[:-1], candidates.ends
    parts = []
    for at in range(0, len(ends), 256):
        users = np.arange(at, min(at + 256, len(ends)))
        scores = truth.oracle(dataset.histories.items, starts[users], ends[users], users)
        targets = torch.from_numpy(candidates.targets[users].astype(np.int64))
        parts.append(rank_targets(torch.from_numpy(scores), targets, candidates.candidate_mask(protocol, users)))
    return Ranks.concatenate(parts)


def share_by_gap(values: ndarray, oracle: ndarray, gap: ndarray) -> DataFrame:
    """A metric per person of a model and of the oracle, `[users]`: their means and the share, one row per range of gaps."""
    rows = []
    for low, high in BINS:
        is_in_bin = (gap >= low) & (gap <= high)
        if is_in_bin.any():
            name, mean, best = gap_name(low, high), float(values[is_in_bin].mean()), float(oracle[is_in_bin].mean())
            rows.append(
                {"gap": name, "people": int(is_in_bin.sum()), "model": mean, "oracle": best, "share": mean / max(best, 1e-12)}
            )
    return DataFrame(rows)


def covers_world(report: "Report", dataset: Dataset) -> bool:
    """Whether it is of the test of this world, all its people, so that its people have the gaps of this world's."""
    return (report.data_hash, report.split, len(report.users)) == (dataset.hash, "test", dataset.histories.n_users)


def remembered_shares(values: Mapping[str, ndarray], dataset: Dataset) -> DataFrame:
    """What systems remember, by their NDCG@10 (full-seen) per person: system, gap, people, share. First of all gaps together
    (`ALL`), with everybody, also those whose next item is noise or of a new interest."""
    gap, oracle, tables = events_since_interest(dataset), oracle_values(dataset), []
    for name, system_values in values.items():
        over_all = {
            "gap": ALL,
            "people": len(system_values),
            "share": float(system_values.mean()) / max(float(oracle.mean()), 1e-12),
        }
        tables.append(pd.concat([DataFrame([over_all]), share_by_gap(system_values, oracle, gap)]).assign(system=name))
    columns = ["system", "gap", "people", "share"]
    return pd.concat(tables)[columns].reset_index(drop=True) if tables else DataFrame(columns=columns)


def oracle_values(dataset: Dataset) -> ndarray:
    """The oracle's NDCG@10 per person."""
    return expected_metrics(oracle_ranks(dataset, PROTOCOL))[METRIC]


def gap_name(low: int, high: int) -> str:
    """`1`, `2-10`, `> 500`"""
    return str(low) if low == high else f"{low}-{high}" if high < 10**9 else f"> {low - 1}"


def truth_of(dataset: Dataset) -> Truth:
    if dataset.truth is None:
        raise InputError("only a planted world has known interests; take one with data.source=planted")
    return dataset.truth
