"""The evaluation of a run as one table: metrics under every protocol with intervals, and what its lists are made of."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import torch

from elastic_core.core.candidates import SEED, Candidates
from elastic_core.core.contract import Recommender
from elastic_core.core.evaluate import evaluation_mode, score_batches
from elastic_core.core.histories import Dataset, Split
from elastic_core.runs.ranks import Interval, Report

TOP = 10
COLUMNS = ("protocol", "metric", "value", "low", "high", "people")
Row = tuple[str, str, float, float, float, int]


def evaluation_table(
    report: Report, protocols: Iterable[str], metrics: Sequence[str], of_lists: Sequence[Row] = ()
) -> pd.DataFrame:
    """A row a protocol and metric, the mean over people and its 95% interval, and then what `list_rows` says."""
    rows = [_row(each, metric, report.mean_interval(each, metric), len(report.users)) for each in protocols for metric in metrics]
    return pd.DataFrame([*rows, *of_lists], columns=COLUMNS)


def list_rows(model: Recommender, dataset: Dataset, split: Split, protocol: str) -> list[Row]:
    """What everybody's best ten under a protocol are made of.

    coverage@10: the share of all items that are in anybody's list. popularity@10: the place of listed items when all are ordered
    by training events, from 0 (the rarest) to 1; items drawn at random have 0.5. What people chose next stands beside it.
    """
    users = dataset.users_with_target(split)
    lists, place = top_lists(model, dataset, split, protocol, users), popularity_places(dataset.item_counts())
    is_listed = lists > 0
    popularity = np.where(is_listed, place[lists], 0).sum(1)[is_listed.any(1)] / is_listed.sum(1)[is_listed.any(1)]
    coverage = len(np.unique(lists[is_listed])) / dataset.catalog.n_items
    chosen = place[dataset.target_items(split)[users]]
    return [
        (protocol, f"coverage@{TOP}", coverage, np.nan, np.nan, len(users)),
        _row(protocol, f"popularity@{TOP}", Interval.from_values(popularity), len(popularity)),
        _row("", "popularity of what came next", Interval.from_values(chosen), len(chosen)),
    ]


def _row(protocol: str, metric: str, interval: Interval, n_users: int) -> Row:
    return protocol, metric, interval.mean, interval.low, interval.high, n_users


def popularity_places(counts: np.ndarray) -> np.ndarray:
    """float64 [n_items + 1]: the share of the other items that have fewer training events than an item, and half of those that
    have as many. `counts` int64 [n_items + 1]; entry 0 is padding."""
    ordered = np.sort(counts[1:])
    below, upto = (np.searchsorted(ordered, counts, side=side) for side in ("left", "right"))
    places = (below + (upto - below - 1) / 2) / max(len(ordered) - 1, 1)
    return np.concatenate([[0.0], places[1:]])


def top_lists(
    model: Recommender, dataset: Dataset, split: Split, protocol: str, users: np.ndarray, batch: int = 256
) -> np.ndarray:
    """The ten best items of `users` under a protocol, int32 [users, 10]; 0 where fewer are left."""
    candidates = Candidates(dataset, split, SEED)
    with evaluation_mode(model) as judge:
        lists = [
            best_items(scores, candidates.candidate_mask(protocol, chunk))
            for chunk, scores, _ in score_batches(judge, model.length, dataset, candidates, users, batch)
        ]
    return np.concatenate(lists)


def best_items(scores: torch.Tensor, candidates: torch.Tensor) -> np.ndarray:
    """The best of the items that are `candidates`, both [B, n_items + 1], as int32 [B, 10]; 0 where fewer are left."""
    values, items = scores.masked_fill(~candidates, -torch.inf).topk(min(TOP, scores.shape[1] - 1), dim=1)
    best = torch.where(values > -torch.inf, items, 0).to(torch.int32).numpy()
    return np.pad(best, ((0, 0), (0, TOP - best.shape[1])))
