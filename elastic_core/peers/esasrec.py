"""eSASRec (Tikhonovich et al. 2025): SASRec with LiGR layers, whose residuals are gated (Borisyuk et al. 2025).

    x ← x + σ(W_a x + b_a) ⊙ dropout(Attention(LN(x)))
    x ← x + σ(W_f x + b_f) ⊙ dropout(W₂ dropout(SiLU(W₁ z) ⊙ W₃ z)),   z = LN(x)

A layer decides for every number how much of what it read and worked out is added. The feed-forward layer is SwiGLU, four times as
wide as the model, without biases, as released. Input and output are SASRec's as everywhere here: item plus learned position,
inner product with the item table. The published recipe also samples 256 negatives for its softmax; here the objective decides,
and it is the same for all models.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import Dropout, linear
from elastic_core.core.sasrec import self_attention
from elastic_core.models import ModelConfig, Variant, register
from elastic_core.peers.parts.blocks import Blocks

EXPANSION = 4  # hidden width of the feed-forward layers, in multiples of d


@dataclass(frozen=True, kw_only=True)
class ESASRecConfig(ModelConfig, name="esasrec", label="eSASRec"):
    """No settings of its own."""


class SwiGLU(nn.Module):
    """Gated feed-forward layer on `[..., d]`."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.gate, self.inner = (nn.Linear(width, EXPANSION * width, bias=False) for _ in range(2))
        self.outer = nn.Linear(EXPANSION * width, width, bias=False)
        self.dropout = Dropout(dropout)

    def forward(self, z: Tensor) -> Tensor:
        hidden = functional.silu(linear(z, self.gate.weight)) * linear(z, self.inner.weight)
        return linear(self.dropout(hidden), self.outer.weight)


class LiGRBlock(nn.Module):
    """Attention and SwiGLU on `[B, N, d]`, both gated by what they are added to."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.width
        self.norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = self_attention(config, fused=True, causal=True)
        self.attention_gate, self.feed_forward_gate = nn.Linear(width, width), nn.Linear(width, width)
        self.feed_forward = SwiGLU(width, config.dropout)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, real: Tensor | None = None, last: bool = False) -> Tensor:
        h = self.norm(x)
        read = self.attention.forward_last(h, real) if last else self.attention(h, real)
        x = x[:, -1:] if last else x
        x = x + torch.sigmoid(linear(x, self.attention_gate.weight, self.attention_gate.bias)) * self.dropout(read)
        worked_out = self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return x + torch.sigmoid(linear(x, self.feed_forward_gate.weight, self.feed_forward_gate.bias)) * worked_out


@register(ESASRecConfig)
class ESASRec(Blocks):
    """See the module's table."""

    objective = "all"
    last_weights = Blocks.block_weights  # `AttentionModel`: softmax weights
    variants = (Variant("eSASRec", {}, "SASRec with gated residuals and a wider SwiGLU layer: a strong transformer of 2025."),)
    causal = True
    config: ESASRecConfig

    def make_block(self) -> nn.Module:
        return LiGRBlock(self.config)

    def saved_per_event(self, columns: int) -> int:
        """Beside SASRec's block: two gates, and what SwiGLU keeps of its hidden numbers."""
        return self.saved_by_blocks() + (6 + 5 * EXPANSION) * self.config.width
