"""Own frequency: everybody gets what they themselves chose most often, recent choices counting more.

In a shop this simple count is what trained models have to beat (Li et al. 2021, *A Next Basket Recommendation Reality Check*:
it was ahead of most deep models). It reads the whole history, where models that read 200 events know less of a household.

    s(b) = Σ_{j: x_j = b} decay^(j-1) + n(b) / (2 · max n), with x_1 the latest event and n the training counts

The second term only breaks ties, and ranks what somebody never chose. The decay was chosen on the validation split of groceries.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from elastic_core.data import Dataset
from elastic_core.models import Batch, Catalog, Length, ModelConfig, Recommender, Variant, register

DECAY = 0.995  # weight lost per event between the history's end and an event that is read


@dataclass(frozen=True, kw_only=True)
class FrequencyConfig(ModelConfig, name="frequency", label="Own frequency"):
    length: Length = 4_096


@register(FrequencyConfig)
class Frequency(Recommender):
    """Scores are counts of the person's own history."""

    variants = (Variant("Own frequency", {}, "No training: what a person chose most often. Hard to beat in a shop."),)
    popularity: Tensor

    def __init__(self, config: FrequencyConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.register_buffer("popularity", torch.zeros(self.n_items + 1), persistent=False)

    def fit(self, dataset: Dataset) -> None:
        counts = torch.from_numpy(dataset.item_counts()).float()
        self.popularity.copy_(counts / (2 * counts.max().clamp(min=1)))

    def score(self, batch: Batch) -> Tensor:
        items = batch.items[:, -self.length :]
        weights = DECAY ** torch.arange(items.shape[1] - 1, -1, -1, device=items.device).float()
        scores = self.popularity.repeat(len(items), 1)
        scores.scatter_add_(1, items, weights.expand(items.shape) * (items > 0))
        return scores
