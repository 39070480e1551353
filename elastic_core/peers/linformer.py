"""Linformer (Wang et al. 2020): keys and values of N events projected to `rank` of them, along the length.

    out = softmax(Q (E K)ᵀ / √d_h) (F V)      E, F: rank x N, learned      (Eq. 7)

O(N·rank) instead of O(N²). E and F are shared by the heads (the paper's headwise sharing) and belong to a layer. A column of
theirs belongs to a position counted back from the last event, as positions do everywhere here; the paper knows one fixed length.
Padding is zero before it is projected, so it says nothing; with E = F = identity an unpadded row is softmax attention.

Every projected key mixes all positions, so there is no causal mask: only the last position may be asked (objective `last`). A
causal form would need an E of its own for every prefix, N x rank x d numbers; the paper has none.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elastic_core.core.layers import Attention, fused_attention, merge_heads, split_heads, zero_padding
from elastic_core.models import ModelConfig, Several, Variant, register
from elastic_core.peers.parts.blocks import Blocks


@dataclass(frozen=True, kw_only=True)
class LinformerConfig(ModelConfig, name="linformer", label="Linformer"):
    rank: Several = 64  # keys and values that are left of a history


class LowRankAttention(Attention):
    """Attention of `x [B, N, d]` to `rank` mixtures of its events; what it has on padding means nothing."""

    def __init__(self, config: LinformerConfig) -> None:
        super().__init__(config.width, config.heads, config.dropout, causal=False)
        self.key_projection, self.value_projection = (
            nn.Parameter(torch.empty(config.rank, config.length)) for _ in range(2)
        )  # E, F
        for weight in (self.key_projection, self.value_projection):
            nn.init.normal_(weight, std=config.rank**-0.5)  # lengths are kept on average (Johnson-Lindenstrauss, its Theorem 2)

    def forward(self, x: Tensor, real: Tensor | None = None, extra: Tensor | None = None) -> Tensor:
        return self.read_values(x, x, real)

    def forward_last(self, x: Tensor, real: Tensor | None = None, extra: Tensor | None = None) -> Tensor:
        """The last row of `forward`, `[B, 1, d]`."""
        return self.read_values(x[:, -1:], x, real)

    def last_weights(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """What an event's value is multiplied by through all mixtures, `[B, H, N]`: of either sign, as F is."""
        n = x.shape[1]
        q, k = (
            split_heads(y, self.heads)
            for y in (self.query(x[:, -1:]), self.key_projection[:, -n:] @ zero_padding(self.key(x), real))
        )
        mixtures = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1).squeeze(-2)
        weights = mixtures @ self.value_projection[:, -n:]
        return weights if real is None else weights * real.unsqueeze(1)

    def read_values(self, queries: Tensor, x: Tensor, real: Tensor | None) -> Tensor:
        n = x.shape[1]
        keys = self.key_projection[:, -n:] @ zero_padding(self.key(x), real)  # [B, rank, d]
        values = self.value_projection[:, -n:] @ zero_padding(self.value(x), real)
        q, k, v = (split_heads(y, self.heads) for y in (self.query(queries), keys, values))
        mixed = fused_attention(q, k, v, None, self.p if self.training else 0.0, False)
        return self.output(merge_heads(mixed))


@register(LinformerConfig)
class Linformer(Blocks):
    """See the module's equation."""

    objective = "last"
    attention = LowRankAttention
    last_weights = Blocks.block_weights  # `AttentionModel`: through the mixtures
    variants = (Variant("Linformer", {}, "Keys and values of all events are projected to a few mixtures along the length."),)
    config: LinformerConfig

    def saved_per_event(self, columns: int) -> int:
        """Beside the block's own: keys and values before and after the projection, and the scores."""
        config = self.config
        return self.saved_by_blocks() + 2 * config.width + config.rank * (4 * config.heads + -(-4 * config.width // columns))
