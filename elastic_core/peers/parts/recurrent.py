"""Recurrent models in post-norm blocks without positions, as LRURec and Mamba4Rec publish them.

x = norm(dropout(E[item]))
per block    x ← norm(x + dropout(recurrence(x)))
             x ← norm(x + dropout(W₂ dropout(gelu(W₁ x))))
"""

from abc import abstractmethod

from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import Dropout
from elastic_core.models import Batch, Catalog, Encoded, ModelConfig
from elastic_core.peers.parts.blocks import make_embedding
from elastic_core.peers.parts.stepwise import Stepwise

EXPANSION = 4  # hidden width of the feed-forward layers, in multiples of d


class RecurrentBlock(nn.Module):
    """Recurrence and feed-forward layer on `[B, N, d]`, each with residual and norm after it.

    `recurrence`: from `x [B, N, d]`, `real` and the state before the first event (None: nothing yet) to `[B, N, d]` and the state
    after the last event, one tensor with a row a person; `forward_last` gives only the last row."""

    def __init__(self, config: ModelConfig, recurrence: nn.Module) -> None:
        super().__init__()
        width = config.width
        self.recurrence = recurrence
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, EXPANSION * width)
        self.outer = nn.Linear(EXPANSION * width, width)
        self.final_norm = nn.LayerNorm(width)
        self.dropout = Dropout(config.dropout)
        for parameter in (*self.inner.parameters(), *self.outer.parameters()):
            nn.init.trunc_normal_(parameter, std=0.02, a=-0.04, b=0.04)

    def forward(self, x: Tensor, real: Tensor | None, before: Tensor | None = None, last: bool = False) -> tuple[Tensor, Tensor]:
        """The next `x`, of the last column alone with `last`, and the state to go on from."""
        mixed, after = (self.recurrence.forward_last if last else self.recurrence)(x, real, before)  # type: ignore[operator]
        x = self.norm((x[:, -1:] if last else x) + self.dropout(mixed))
        hidden = self.dropout(functional.gelu(self.inner(x)))
        return self.final_norm(x + self.dropout(self.outer(hidden))), after


class RecurrentModel(Stepwise):
    """A model says in `make_recurrence` what its blocks carry from event to event; all positions are learned at once."""

    def __init__(self, config: ModelConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.events = make_embedding(config, self.n_items, positions=False)
        self.norm = nn.LayerNorm(config.width)
        self.blocks = nn.ModuleList(RecurrentBlock(config, self.make_recurrence()) for _ in range(config.layers))

    @abstractmethod
    def make_recurrence(self) -> nn.Module:
        """One layer's, see `RecurrentBlock`."""

    def forward(self, batch: Batch) -> Encoded:
        real = batch.mask
        x = self.norm(self.events(batch.items, batch.padded))
        for block in self.blocks:
            x, _ = block(x, real)
        return Encoded(x)

    def read_on(self, items: Tensor, real: Tensor | None, state: list[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        after: list[Tensor] = []
        x = self.norm(self.events(items, real is not None))
        for i, block in enumerate(self.blocks):
            x, block_state = block(x, real, None if state is None else state[i], last=i == len(self.blocks) - 1)
            after.append(block_state)
        return x[:, -1], after
