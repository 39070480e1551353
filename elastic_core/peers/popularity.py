"""Popularity: every person gets the items with the most training events. The lowest floor of every table."""

from dataclasses import dataclass

import torch
from torch import Tensor

from elastic_core.data import Dataset
from elastic_core.models import Batch, Catalog, Length, ModelConfig, Recommender, Variant, register


@dataclass(frozen=True, kw_only=True)
class PopularityConfig(ModelConfig, name="popularity", label="Popularity"):
    length: Length = 2  # it reads nothing; two is the shortest history there is


@register(PopularityConfig)
class Popularity(Recommender):
    """Scores are training counts."""

    variants = (Variant("Popularity", {}, "No training: the same list for everybody. The lowest floor."),)
    counts: Tensor

    def __init__(self, config: PopularityConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.register_buffer("counts", torch.zeros(self.n_items + 1), persistent=False)

    def fit(self, dataset: Dataset) -> None:
        self.counts.copy_(torch.from_numpy(dataset.item_counts()))

    def score(self, batch: Batch) -> Tensor:
        return self.counts.repeat(len(batch.items), 1)  # a copy: callers may blank out items
