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

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Batch, Catalog, Length, ModelConfig, Recommender, Variant, register

MOST_ITEMS = 20_000
WINDOW = 10
FADE = 0.9  # weight lost per event between two neighbours of a training history
DECAY = 0.7  # weight lost per event between the history's end and an event that is read
BACKWARD = 0.25
SOURCE_POWER, TARGET_POWER = 0.75, 0.25


@dataclass(frozen=True, kw_only=True)
class CooccurrenceConfig(ModelConfig, name="cooccurrence", label="Co-occurrence"):
    length: Length = 10


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
        self.register_buffer("table", torch.empty(0, 0), persistent=False)  # row: item read, column: item scored
        self.register_buffer("recency", DECAY ** torch.arange(config.length - 1, -1, -1).float(), persistent=False)

    def fit(self, dataset: Dataset) -> None:
        owners = np.repeat(np.arange(dataset.histories.n_users), dataset.histories.lengths)
        is_training = np.arange(len(owners)) < dataset.split_ends("train")[owners]  # what training may see
        items, owners = dataset.histories.items[is_training].astype(np.int64), owners[is_training]
        columns = self.n_items + 1
        table = torch.zeros(columns, columns)  # on the CPU, where adding has one order
        for distance in range(1, WINDOW + 1):
            same_owner = owners[distance:] == owners[:-distance]
            first = torch.from_numpy(items[:-distance][same_owner])
            later_items = torch.from_numpy(items[distance:][same_owner])
            weight = torch.full((len(first),), FADE ** (distance - 1))
            table.view(-1).index_add_(0, first * columns + later_items, weight)
            table.view(-1).index_add_(0, later_items * columns + first, weight * BACKWARD)
        n = torch.from_numpy(dataset.item_counts()).clamp(min=1).float()
        table.div_(n[:, None] ** SOURCE_POWER).div_(n**TARGET_POWER)
        self.table = table.to(self.recency.device)

    def score(self, batch: Batch) -> Tensor:
        items = batch.items[:, -self.length :]
        weights = self.recency[-items.shape[1] :].expand(items.shape)
        return embedding_bag(items, self.table, per_sample_weights=weights, mode="sum")  # the row of padding is zero
