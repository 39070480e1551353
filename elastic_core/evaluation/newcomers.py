"""How well does a run know people of whom it knows little? Everybody's held-out item after their last 0, 1, 2 … events alone.

Somebody without events gets what is popular (elastic_core/recommendations.py). Beside each score stands popularity's for the
same people, and the paired difference: where it is not above 0, popularity would be the better answer.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from elastic_core.core.batches import Batch
from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.runs.ranks import Interval, evaluate

METRIC, NOBODY = "NDCG@10", torch.empty(0)


class CutReader:
    """A scorer that reads the last `events` of a history; none: it scores by `popular`, `[n_items + 1]`."""

    def __init__(self, model: Recommender, events: int, popular: Tensor = NOBODY) -> None:
        self.model, self.events, self.popular, self.length = model, events, popular, max(min(events, model.length), 1)

    def prepare(self) -> Callable[[Batch], Tensor]:
        return self.model.eval().prepare() if self.events else self.score

    def score(self, batch: Batch) -> Tensor:
        return self.model.score(batch) if self.events else self.popular.repeat(len(batch.items), 1)


class Known(NamedTuple):
    events: int  # of everybody, at most
    score: Interval  # NDCG@10
    beyond: Interval  # over popularity, person by person


def after_few(model: Recommender, dataset: Dataset, lengths: Sequence[int], protocol: str, split: Split = "test") -> list[Known]:
    """One entry a length, of everybody."""
    popular = torch.from_numpy(dataset.counts()).float()
    floor = evaluate(CutReader(model, 0, popular), dataset, split, [protocol]).values(protocol, METRIC)
    found = []
    for events in lengths:
        values = evaluate(CutReader(model, events, popular), dataset, split, [protocol]).values(protocol, METRIC)
        found.append(Known(events, Interval.of(values), Interval.of(values - floor)))
    return found
