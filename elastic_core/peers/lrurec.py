"""LRURec (Yue et al. 2024, Linear Recurrent Units for Sequential Recommendation): linear recurrences, learned in parallel.

    x = norm(dropout(E[item]))
    per block    x ← norm(x + dropout(Re(C h + c)))      h as in peers/parts/linear_recurrence.py
                 x ← norm(x + dropout(W₂ dropout(gelu(W₁ x))))
    score of i   x · E[i] + bias_i

Post-norm and without positions, as published. Sizes and initial values are those of the released code: 2 d complex states,
a feed-forward layer of 4 d, |λ| from 0.8 to 0.99, normal weights of 0.02 cut at two deviations. There the imaginary part of
c is a parameter that nothing reads; here it is left out. Decays, angles and gains are kept from weight decay, which would pull
every |λ| towards e⁻¹.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig, Within
from elastic_core.core.contract import Encoded, Scorer, Variant
from elastic_core.core.histories import Catalog
from elastic_core.core.layers import Dropout, EventEmbedding
from elastic_core.core.registry import register
from elastic_core.peers.parts.linear_recurrence import LinearRecurrence
from elastic_core.peers.parts.stepwise import Stepwise


@dataclass(frozen=True, kw_only=True)
class LRURecConfig(ModelConfig, name="lrurec"):
    label: ClassVar[str] = "LRURec"
    expansion: Annotated[int, Within(1, 16)] = 4  # hidden width of the feed-forward layers, in multiples of d
    channels: Annotated[int, Within(1, 16)] = 2  # complex states of a recurrence, in multiples of d


class Block(nn.Module):
    """Recurrence and feed-forward layer on `[B, N, d]`, each with residual and norm after it."""

    def __init__(self, config: LRURecConfig) -> None:
        super().__init__()
        width = config.width
        self.recurrence = LinearRecurrence(width, config.channels * width)
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, config.expansion * width)
        self.outer = nn.Linear(config.expansion * width, width)
        self.final_norm = nn.LayerNorm(width)
        self.dropout = Dropout(config.dropout)
        for parameter in (*self.inner.parameters(), *self.outer.parameters()):
            nn.init.trunc_normal_(parameter, std=0.02, a=-0.04, b=0.04)

    def forward(self, x: Tensor, real: Tensor | None, before: Tensor | None = None, last: bool = False) -> tuple[Tensor, Tensor]:
        """The next `x`, of the last column alone with `last`, and the state to go on from."""
        told, after = (self.recurrence.last if last else self.recurrence)(x, real, before)
        x = self.norm((x[:, -1:] if last else x) + self.dropout(told))
        hidden = self.dropout(functional.gelu(self.inner(x)))
        return self.final_norm(x + self.dropout(self.outer(hidden))), after


@register(LRURecConfig)
class LRURec(Stepwise):
    """Learns from every position at once; `heads` is not used. Kept of a person: layers x 2 x channels x d numbers."""

    objective = "all"
    variants = (Variant("LRURec", {}, "A recurrence with nothing non-linear in it: learned in parallel, served event by event."),)
    config: LRURecConfig

    def __init__(self, config: LRURecConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.events = EventEmbedding(
            self.n_items, config.length, config.width, config.dropout, positions=False, rows=config.items_by_rows
        )
        self.norm = nn.LayerNorm(config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.bias = nn.Parameter(torch.zeros(self.n_items + 1))

    def forward(self, batch: Batch) -> Encoded:
        real = batch.real if batch.padded else None
        x = self.norm(self.events(batch.items, batch.padded))
        for block in self.blocks:
            x, _ = block(x, real)
        return Encoded(x)

    def advance(self, items: Tensor, real: Tensor | None, kept: list[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        x, after = self.norm(self.events(items, real is not None)), list[Tensor]()
        for i, block in enumerate(self.blocks):
            x, state = block(x, real, None if kept is None else kept[i], last=i == len(self.blocks) - 1)
            after.append(state)
        return x[:, -1], after

    def kept_per_event(self, columns: int) -> int:
        return (16 + 6 * self.config.channels + 4 * self.config.expansion) * self.config.width

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        free = {"decay", "angle", "gain"}
        named = list(self.named_parameters())
        decays = [parameter for name, parameter in named if name.rsplit(".", 1)[-1] not in free]
        rest = [parameter for name, parameter in named if name.rsplit(".", 1)[-1] in free]
        return [{"params": decays}, {"params": rest, "weight_decay": 0.0}]

    def scorer(self) -> Scorer:
        return super().scorer()._replace(bias=self.bias)
