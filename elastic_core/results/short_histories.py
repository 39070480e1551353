"""How well does a run know users of whom it knows little? Everybody's held-out item after their last 0, 1, 2 … events alone.

Somebody without events gets what is popular (elastic_core/recommendations.py). Beside each score stands popularity's for the same
users, and the paired difference: where it is not above 0, popularity would be the better answer.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from elastic_core.core.batches import Batch
from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.results.compare import METRIC
from elastic_core.runs.ranks import Interval, evaluate


class ShortHistoryScorer:
    """Reads the last `events` of a history; with none it scores by `popularity`, `[n_items + 1]`."""

    def __init__(self, model: Recommender, events: int, popularity: Tensor | None = None) -> None:
        self.model, self.events, self.popularity = model, events, popularity
        self.length = max(min(events, model.length), 1)

    def prepare_scores(self) -> Callable[[Batch], Tensor]:
        return self.model.eval().prepare_scores() if self.events else self.score

    def score(self, batch: Batch) -> Tensor:
        if self.events:
            return self.model.score(batch)
        assert self.popularity is not None
        return self.popularity.repeat(len(batch.items), 1)


class ShortHistoryScore(NamedTuple):
    events: int  # of everybody, at most
    score: Interval  # NDCG@10
    over_popularity: Interval  # paired over users


def score_short_histories(
    model: Recommender, dataset: Dataset, lengths: Sequence[int], protocol: str, split: Split = "test"
) -> list[ShortHistoryScore]:
    """One entry a length, of everybody."""
    popularity = torch.from_numpy(dataset.item_counts()).float()
    null = evaluate(ShortHistoryScorer(model, 0, popularity), dataset, split, [protocol]).user_values(protocol, METRIC)
    scores = []
    for events in lengths:
        report = evaluate(ShortHistoryScorer(model, events, popularity), dataset, split, [protocol])
        values = report.user_values(protocol, METRIC)
        scores.append(ShortHistoryScore(events, Interval.from_values(values), Interval.from_values(values - null)))
    return scores
