"""ELASTIC whose events vote for the experts (ours): the paper's dispatcher, another way to retrieve.

In place of one query for the whole history every event asks the memory (voting.py), and a loss asks experts to stand for items
(item_distribution.py). It tells apart what the search and what the slots of `elastic-slots` are worth.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from elastic_core.core.config import Weight
from elastic_core.core.elastic import Elastic, ElasticConfig, InterestMemory, SharedInterests
from elastic_core.models import Batch, Catalog, Retrieved, Variant, register
from elastic_core.slots.item_distribution import ItemDistribution, WithItemDistributions
from elastic_core.slots.voting import VotingConfig, VotingMemory


@dataclass(frozen=True, kw_only=True)
class ElasticVotesConfig(VotingConfig, ElasticConfig, name="elastic-votes", label="ELASTIC with votes"):
    query: Literal["votes"] = "votes"  # type: ignore[assignment]
    interest_weight: Weight = 0.3


@register(ElasticVotesConfig)
class ElasticVotes(WithItemDistributions, Elastic):
    """See the module. `memory` = `none` has no experts to vote for, and is ELASTIC without memory."""

    forms: ClassVar = {}
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("ELASTIC with votes", {}, "Our search, in which each event votes for experts, with the paper’s dispatcher."),
    )
    config: ElasticVotesConfig

    def __init__(self, config: ElasticVotesConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.item_distribution = ItemDistribution(config.width) if config.interest_weight and self.retrieves else None

    def make_memory(self) -> InterestMemory | SharedInterests:
        if self.config.memory == "none":
            return SharedInterests(self.config.width, self.config.k)
        return VotingMemory(self.config, self.config.query_norm, self.config.gate)

    def summed_losses(self, retrieved: Retrieved, batch: Batch) -> dict[str, Tensor]:
        if self.item_distribution is None or batch.targets is None:
            return {}
        return {"interest": self.item_distribution.target_surprise(self, retrieved, batch)}

    def auxiliary_weights(self) -> dict[str, float]:
        weights = super().auxiliary_weights()
        return weights | ({"interest": self.config.interest_weight} if self.item_distribution is not None else {})
