"""Sinkhorn Transformer (Tay et al. 2020): local attention, plus attention to a block that a learned soft sorting brings here.

    S = Sinkhorn(R(X)),   block i reads K_i, V_i and Σ_j S_ij K_j, Σ_j S_ij V_j      (peers/parts/sinkhorn_attention.py)

O(N·b + (N/b)²·b·d) for blocks of b events; with one block it is softmax attention.

| `bidirectional` | |
| --- | --- |
| `False` | causal: blocks come from the past, chosen by what was there at a block's first event; learns from all positions |
| `True` | blocks come from anywhere, so only the last position may be asked (objective `last`) |

What is done differently: own and sorted keys share one softmax (the paper adds the two scores of a position; the code that LISA
compared with joins keys, as we do); blocks are pooled by their mean, not sum; columns are balanced over the rows so far in the
causal form, because the paper's sum over all rows tells a block about later ones. A block is at most a quarter of the length.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import nn

from elastic_core.core.config import Within
from elastic_core.core.contract import Variant
from elastic_core.core.histories import Catalog
from elastic_core.core.registry import register
from elastic_core.peers.parts.blocks import Blocks, BlocksConfig
from elastic_core.peers.parts.sinkhorn_attention import SinkhornAttention


@dataclass(frozen=True, kw_only=True)
class SinkhornConfig(BlocksConfig, name="sinkhorn"):
    label: ClassVar[str] = "Sinkhorn Transformer"
    block: Annotated[int, Within(1, 8_192)] = 32  # events; at most a quarter of the length, so that there is something to sort
    iterations: Annotated[int, Within(0, 100)] = 5  # of rows and columns
    temperature: Annotated[float, Within(0.01, 100)] = 0.75
    bidirectional: bool = False


@register(SinkhornConfig)
class Sinkhorn(Blocks):
    """See the module's table."""

    objective = "all"
    variants = (
        Variant("Sinkhorn Transformer", {}, "Attention to the last events and to earlier blocks that a learned sorting brings."),
        Variant("Sinkhorn, two-way", {"bidirectional": True}, "The same with blocks from anywhere in the history.", "last"),
    )
    config: SinkhornConfig

    def __init__(self, config: SinkhornConfig, catalog: Catalog) -> None:
        self.block = min(config.block, -(-config.length // 4))
        super().__init__(config, catalog)
        self.causal = not config.bidirectional

    def attention(self) -> nn.Module:
        config = self.config
        return SinkhornAttention(
            config.width, config.heads, config.dropout, config.length, self.block,
            config.iterations, config.temperature, not config.bidirectional,
        )  # fmt: skip

    def kept_per_event(self, columns: int) -> int:
        """Beside the block's own: keys and values by themselves, sorted and joined; scores where attention is not fused; S."""
        config, blocks = self.config, -(-columns // self.block)
        padded = blocks * self.block / columns
        scores = config.heads * 2 * self.block * 4
        order = blocks * blocks * config.heads * (8 + 6 * config.iterations) / columns
        return super().kept_per_event(columns) + round(padded * (12 * config.width + scores) + order) + 1
