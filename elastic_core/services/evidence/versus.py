"""Two models on the same people: everybody's place with both, who wins and who loses, and what their lists are like.

Places and metrics come from the ranks that a run keeps of its test; only the lists of ten need a model, and are made apart.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.core.evaluate import Candidates, judging, scored
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.runs.ranks import Report

TOP = 10
CHUNK = 128
Tell = Callable[[float], None]  # hears the share (0 … 1) that is done


def places(report: Report) -> np.ndarray:
    """float64 [users]: expected place (from 1) of the true next item among all unseen items. Raises InputError without `full`."""
    report.values("full", "NDCG@10")
    return report.ranks["full"].places


class Lists(NamedTuple):
    """int32 [users, 10]: everybody's ten unseen items with the highest scores, best first; 0 where fewer are left.

    `seconds` are of the processor in the thread that made them: other work on the machine hardly counts."""

    items: np.ndarray
    seconds: float


def list_everybody(model: Recommender, dataset: Dataset, tell: Tell | None = None) -> Lists:
    """One pass over all people."""
    began, people, candidates = time.thread_time(), np.arange(dataset.histories.n_users), Candidates(dataset, "test", 0)
    found = []
    with judging(model) as judge:
        for users, scores, targets in scored(judge, model.length, dataset, candidates, people, CHUNK):
            running = candidates.mask("full", users).scatter(1, targets[:, None], True)  # seen before or not, it takes part
            found.append(best_ten(scores.float(), running))
            if tell is not None:
                tell(min((users[-1] + 1) / len(people), 1.0))
    return Lists(np.concatenate(found), time.thread_time() - began)


def best_ten(scores: torch.Tensor, running: torch.Tensor) -> np.ndarray:
    """int32 [B, 10]: the best of the items that are `running`, both [B, n_items + 1]; 0 where fewer are left."""
    values, items = scores.masked_fill(~running, -torch.inf).topk(min(TOP, scores.shape[1] - 1), dim=1)
    best = torch.where(values > -torch.inf, items, 0).to(torch.int32).numpy()
    return np.pad(best, ((0, 0), (0, TOP - best.shape[1])))


def duel(a: Report, b: Report) -> dict[str, int]:
    """For how many people the true next item stands higher with A, higher with B, or at the same place."""
    mine, theirs = places(a), places(b)
    return {"a": int((mine < theirs).sum()), "b": int((mine > theirs).sum()), "same": int((mine == theirs).sum())}


def places_table(a: Report, b: Report, dataset: Dataset) -> pd.DataFrame:
    """user, title of the true next item, place_a, place_b: one row a person."""
    titles = dataset.catalog.called(dataset.targets("test"))
    return pd.DataFrame({"user": a.users, "title": titles, "place_a": places(a), "place_b": places(b)})


def extremes(a: Report, b: Report, dataset: Dataset, protocol: str, metric: str, top: int = 10) -> pd.DataFrame:
    """The people for whom A gains most over B, then those for whom it loses most.

    Ordered by the difference of the metric; equal ones by the ratio of the two places. `side` is A or B, whoever wins.
    """
    mine, theirs = places(a), places(b)
    difference = a.values(protocol, metric) - b.values(protocol, metric)
    ratio = np.log2(theirs / mine)
    order = np.lexsort((ratio, difference))
    ahead = np.where(difference != 0, difference, ratio)
    ends = order[::-1][:top], order[:top]
    best, worst = ends[0][ahead[ends[0]] > 0], ends[1][ahead[ends[1]] < 0]
    chosen = np.concatenate([best, worst])
    targets, counts = dataset.targets("test")[chosen], dataset.counts()
    return pd.DataFrame(
        {
            "side": ["A"] * len(best) + ["B"] * len(worst), "user": chosen, "title": dataset.catalog.called(targets),
            "place_a": mine[chosen], "place_b": theirs[chosen], "difference": difference[chosen],
            "events": dataset.readable()[chosen], "popularity": counts[targets],
        }
    )  # fmt: skip


class Properties(NamedTuple):
    """What a model's lists of ten are like."""

    coverage: float  # share of the catalogue that is recommended to anybody
    popularity: float  # training events of a recommended item, on average
    top_share: float  # share of recommendations that come from the most popular tenth of the catalogue


def properties(lists: np.ndarray, dataset: Dataset) -> Properties:
    """What lists of items `[people, n]` are like; 0 is no item."""
    counts, shown = dataset.counts(), lists[lists > 0]
    tenth = np.argsort(-counts[1:], kind="stable")[: max(dataset.catalog.n_items // 10, 1)] + 1
    return Properties(
        coverage=len(np.unique(shown)) / dataset.catalog.n_items,
        popularity=float(counts[shown].mean()) if len(shown) else 0.0,
        top_share=float(np.isin(shown, tenth).mean()) if len(shown) else 0.0,
    )


def shared_items(a: Lists, b: Lists) -> np.ndarray:
    """int [users]: how many of A's ten items are in B's ten, whatever their order."""
    same = (a.items[:, :, None] == b.items[:, None, :]) & (a.items[:, :, None] > 0)
    return same.any(2).sum(1)
