"""What models with an interest memory share: their settings, the memory these ask for, and what its experts are."""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from elastic_core.config import ModelConfig, Within
from elastic_core.errors import InputError
from elastic_core.layers.embedding import EventEmbedding
from elastic_core.layers.interest_memory import InterestMemory, QueriedMemory, Retrieved, SharedInterests
from elastic_core.layers.standing import Standing
from elastic_core.layers.voting import VotingMemory
from elastic_core.models.contract import Retrieves


@dataclass(frozen=True, kw_only=True)
class MemoryConfig(ModelConfig):
    side: Annotated[int, Within(2, 4_096)] = 16  # √K
    k: Annotated[int, Within(1, 4_096)] = 8
    memory: Literal["shared", "per-layer", "none"] = "shared"
    query: Literal["network", "mean", "votes"] = "network"
    votes: Annotated[int, Within(1, 64)] = 4  # m, experts an event votes for (query = votes)
    balance_weight: Annotated[float, Within(0, 1_000)] = 0.3  # of the auxiliary loss that spreads what is asked over the sub-keys
    interest_weight: Annotated[float, Within(0, 1_000)] = 0.0  # of the loss that asks experts to stand for items
    bank: Literal["dense", "rows"] = "dense"  # ours: `rows` touches only the experts a step retrieved; from some 30,000 on
    bank_rate: Annotated[float, Within(0, 1e9)] = 0.0  # learning rate of those rows; 0: train.learning_rate

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.items_by_rows and self.interest_weight:
            raise InputError("model.item_bank = rows needs model.interest_weight = 0: experts stand for every item there is")
        if self.k > self.side**2:
            raise InputError(f"model.k must lie in 1 … side² = {self.side**2}, not {self.k}")


def interest_memory(config: MemoryConfig, norm: str = "whiten", gate: str = "softmax") -> InterestMemory | SharedInterests:
    """Return one memory, as the settings ask for it."""
    if config.memory == "none":
        return SharedInterests(config.width, config.k)
    if config.query == "votes":
        return VotingMemory(
            config.width, config.side, config.k, norm=norm, gate=gate, votes=config.votes, rows=config.bank == "rows",
            rate=config.bank_rate,
        )  # fmt: skip
    return QueriedMemory(
        config.length, config.width, config.heads, config.side, config.k, query=config.query, norm=norm, gate=gate,
        rows=config.bank == "rows", rate=config.bank_rate,
    )  # fmt: skip


class WithMemory(Retrieves):
    """Its experts are those of `memories[0]`; with `standing` they stand for items."""

    config: MemoryConfig
    memories: nn.ModuleList
    standing: Standing | None
    events: EventEmbedding

    def expert_values(self) -> Tensor:
        memory = self.memories[0]
        return memory.values.weight if isinstance(memory, InterestMemory) else torch.zeros(0, self.config.width)

    def experts_at(self, experts: Tensor) -> Tensor:
        memory = self.memories[0]
        return memory.values(experts) if isinstance(memory, InterestMemory) else self.expert_values()[experts]

    @torch.no_grad()
    def stands_for(self, experts: Tensor) -> Tensor | None:
        if self.standing is None or not self.retrieves:
            return None
        return self.standing.log_probabilities(self.experts_at(experts), self.scorer().table)

    def _values(self, found: Retrieved) -> Tensor:
        """The experts as they are in the memory, without their gates: `[B, k, d]`."""
        return found.interests if isinstance(self.memories[0], SharedInterests) else self.experts_at(found.experts)

    def _masses(self, found: Retrieved) -> Tensor:
        """The normalisers of the retrieved experts' item distributions, `[B, k]`, by whichever way is shorter."""
        assert self.standing is not None
        values, table = self._values(found), self.scorer().table
        if not self.retrieves:
            return self.standing.masses(values[:1], table).expand(len(values), -1)
        if self.config.bank == "rows" or self.n_experts > found.experts.numel():
            return self.standing.masses(values, table)
        return self.standing.masses(self.expert_values(), table)[found.experts]

    def kept_per_event(self, columns: int) -> int:
        return super().kept_per_event(columns) + self.config.heads * 34 * (self.config.width + self.config.k)
