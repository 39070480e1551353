"""Item co-occurrence over the last ten events: the training-free floor that many trained models do not reach.

Counts of neighbours in the same history, from training events only:

    C[a, b] = Σ_{l=1..window} fade^(l-1) · (#(b comes l events after a) + backward · #(a comes l events after b))

Score of b after the history …, x_2, x_1 (most recent last), with n the training counts:

    s(b) = Σ_{j=1..length} decay^(j-1) · C[x_j, b] / (n(x_j)^source_power · n(b)^target_power)

The table is n_items², so catalogs above 20,000 items (1.6 GB) are refused. The constants were chosen
on the validation splits of ML-1M and ML-100K together: the forward direction carries most of it, and a stronger fade helps
the first and hurts the second.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig, Within
from elastic_core.core.contract import Recommender, Variant
from elastic_core.core.histories import Catalog
from elastic_core.core.registry import register
from elastic_core.data import Dataset
from elastic_core.errors import InputError

MOST_ITEMS = 20_000


@dataclass(frozen=True, kw_only=True)
class CooccurrenceConfig(ModelConfig, name="cooccurrence"):
    label: ClassVar[str] = "Co-occurrence"
    length: Annotated[int, Within(2, 131_072)] = 10
    window: Annotated[int, Within(1, 10_000)] = 10
    fade: Annotated[float, Within(1e-6, 1)] = 0.9  # weight lost per event between two neighbours of a training history
    decay: Annotated[float, Within(1e-6, 1)] = 0.7  # weight lost per event between the history's end and an event that is read
    backward: Annotated[float, Within(0, 1)] = 0.25
    source_power: Annotated[float, Within(0, 10)] = 0.75
    target_power: Annotated[float, Within(0, 10)] = 0.25


@register(CooccurrenceConfig)
class Cooccurrence(Recommender):
    """Scores are weighted rows of one fitted table."""

    variants = (Variant("Co-occurrence", {}, "No training: which films follow which. A floor many models do not reach."),)
    table: Tensor
    recency: Tensor

    def __init__(self, config: CooccurrenceConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        if self.n_items > MOST_ITEMS:
            raise InputError(f"co-occurrence keeps a table of items x items: {self.n_items:,} items are more than {MOST_ITEMS:,}")
        self.settings = config
        self.register_buffer("table", torch.empty(0, 0), persistent=False)  # row: item read, column: item scored
        self.register_buffer("recency", config.decay ** torch.arange(config.length - 1, -1, -1).float(), persistent=False)

    def fit(self, dataset: Dataset) -> None:
        items, owners = _train_events(dataset)
        columns = self.n_items + 1
        table = torch.zeros(columns, columns)  # on the CPU, where adding has one order
        longest = int(np.bincount(owners).max(initial=1))  # further apart nothing stands in the same history
        for distance in range(1, min(self.settings.window, longest - 1) + 1):
            together = owners[distance:] == owners[:-distance]
            first = torch.from_numpy(items[:-distance][together])
            then = torch.from_numpy(items[distance:][together])
            weight = torch.full((len(first),), self.settings.fade ** (distance - 1))
            table.view(-1).index_add_(0, first * columns + then, weight)
            table.view(-1).index_add_(0, then * columns + first, weight * self.settings.backward)
        n = torch.from_numpy(dataset.counts()).clamp(min=1).float()
        table.div_(n[:, None] ** self.settings.source_power).div_(n**self.settings.target_power)
        self.table = table.to(self.recency.device)

    def score(self, batch: Batch) -> Tensor:
        items = batch.items[:, -self.length :]
        weights = self.recency[-items.shape[1] :].expand(items.shape)
        return embedding_bag(items, self.table, per_sample_weights=weights, mode="sum")  # the row of padding is zero


def _train_events(dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Items and users (int64) of every event that training may see."""
    histories = dataset.histories
    owners = np.repeat(np.arange(histories.n_users), histories.lengths)
    kept = np.arange(len(owners)) < dataset.ends("train")[owners]
    return histories.items[kept].astype(np.int64), owners[kept]
