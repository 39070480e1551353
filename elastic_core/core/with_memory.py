"""What models with an interest memory share: what its experts are, and what they stand for."""

import torch
from torch import Tensor, nn

from elastic_core.core.contract import Retrieves
from elastic_core.core.elastic import InterestMemory, QueriedMemory, SharedInterests
from elastic_core.core.embedding import EventEmbedding
from elastic_core.core.retrieved import Retrieved
from elastic_core.core.settings import MemoryConfig
from elastic_core.slots.standing import Standing
from elastic_core.slots.voting import VotingMemory


def interest_memory(config: MemoryConfig, norm: str = "whiten", gate: str = "softmax") -> InterestMemory | SharedInterests:
    """Return one memory, as the settings ask for it."""
    c, rows = config, config.bank == "rows"
    if c.memory == "none":
        return SharedInterests(c.width, c.k)
    if c.query == "votes":
        return VotingMemory(c.width, c.side, c.k, norm=norm, gate=gate, votes=c.votes, rows=rows, rate=c.bank_rate)
    return QueriedMemory(
        c.length, c.width, c.heads, c.side, c.k, query=c.query, norm=norm, gate=gate, rows=rows, rate=c.bank_rate
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
