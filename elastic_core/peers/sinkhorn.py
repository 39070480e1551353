"""Sinkhorn Transformer (Tay et al. 2020): local attention, plus attention to a block that a learned soft sorting brings here.

    z_i = mean of all events up to the first of block i, that one counted
    R_i = W_B relu(W_P z_i + b_P) + b_B          one logit for each block, in each head
    S   = exp of Sinkhorn balancing of (R + gumbel noise) / τ: rows and columns are normalised in turn
    block i attends to its own keys and values, and to Σ_j S_ij K_j and Σ_j S_ij V_j

O(N·b + (N/b)²·b·d) for blocks of b events; with one block it is softmax attention. The noise is drawn in training alone. Blocks
are counted back from the last event, which so ends a full one; the oldest is filled up with padding.

It is causal: blocks come from the past, chosen by what was there at a block's first event, so it learns from all positions.

What is done differently: own and sorted keys share one softmax (the paper adds the two scores of a position; the code that LISA
compared with joins keys, as we do); blocks are pooled by their mean, not sum; columns are balanced over the rows so far,
because the paper's sum over all rows tells a block about later ones. A block is at most a quarter of the length.

Block i may take from earlier blocks alone. To normalise column j the sum over all rows would read z of later blocks: it
leaks. Here row i divides by the sum of the rows up to i. Carried on for ever this has a limit that learns nothing: a matrix with
all its weight below the diagonal whose rows and columns add up to 1 can only be the shift by one block. A few iterations are a
preference for blocks that earlier rows have left; with none S is the softmax of the rows.

Symbols: B people, H heads, N events, m blocks of b events.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import (
    Attention,
    fused_attention,
    in_full_precision,
    merge_heads,
    readable_columns,
    split_heads,
    zero_padding,
)
from elastic_core.models import ModelConfig, Variant, Within, register
from elastic_core.peers.parts.blocks import Blocks

ITERATIONS, TEMPERATURE = 5, 0.75  # of rows and columns; τ
NEVER = -1e9  # finite, so that a row without any block is no NaN


@dataclass(frozen=True, kw_only=True)
class SinkhornConfig(ModelConfig, name="sinkhorn", label="Sinkhorn Transformer"):
    block: Annotated[int, Within(1, 8_192)] = 32  # events; at most a quarter of the length, so that there is something to sort

    @property
    def events_of_block(self) -> int:
        return min(self.block, -(-self.length // 4))


@in_full_precision
def balance_rows_and_columns(logits: Tensor, allowed: Tensor, iterations: int = ITERATIONS) -> Tensor:
    """S of logits `[…, m, m]`: rows add up to 1, those where nothing is `allowed` to 0; columns nearly, the more iterations."""

    def rows(s: Tensor) -> Tensor:
        return (s - s.logsumexp(-1, keepdim=True)).masked_fill(~allowed, NEVER)

    def columns(s: Tensor) -> Tensor:
        return (s - s.logcumsumexp(-2)).masked_fill(~allowed, NEVER)

    s = rows(logits.masked_fill(~allowed, NEVER))
    for _ in range(iterations):
        s = rows(columns(s))
    return s.exp()


class SinkhornAttention(Attention):
    """Self-attention of `x [B, N, d]`, N at most `length`, in blocks of `block`; what it has on padding means nothing."""

    def __init__(self, config: SinkhornConfig) -> None:
        super().__init__(config.width, config.heads, config.dropout, causal=True)
        self.block = config.events_of_block
        self.pooled = nn.Linear(config.width, config.width)  # W_P
        self.sort = nn.Linear(config.width, config.heads * -(-config.length // self.block))  # W_B

    def forward(self, x: Tensor, real: Tensor | None = None, extra: Tensor | None = None) -> Tensor:
        n = x.shape[1]
        x, real = self._pad_to_blocks(x, real)
        shares, there = self.sorting_matrix(x, real)
        q = self._split_blocks(self.query(x))
        keys, values = (self._split_blocks(zero_padding(f(x), real)) for f in (self.key, self.value))  # [B, H, m, b, e]
        known = real.unflatten(1, (-1, self.block))  # [B, m, b]
        own = known.unsqueeze(2).expand(-1, -1, self.block, -1).tril()
        own = own | torch.eye(self.block, dtype=torch.bool, device=x.device)  # padding reads itself
        other = torch.einsum("bij,bjp->bip", there.float(), known.float()) > 0
        seen = torch.cat([other.unsqueeze(2).expand_as(own), own], -1).unsqueeze(1)  # [B, 1, m, b, 2 b]
        k, v = (torch.cat([_sort_blocks(shares, y), y], -2) for y in (keys, values))
        mixed = fused_attention(q, k, v, seen, self.p if self.training else 0.0, False)
        return self.output(merge_heads(mixed.flatten(2, 3)[:, :, -n:]))

    def forward_last(self, x: Tensor, real: Tensor | None = None, extra: Tensor | None = None) -> Tensor:
        """The last row of `forward`, `[B, 1, d]`: one query and one row of the order."""
        x, real = self._pad_to_blocks(x, real)
        shares, there = self.sorting_matrix(x, real)
        q = split_heads(self.query(x[:, -1:]), self.heads)
        keys, values = (self._split_blocks(zero_padding(f(x), real)) for f in (self.key, self.value))
        known = real.unflatten(1, (-1, self.block))
        other = (there[:, -1:].transpose(1, 2) & known).any(1)
        seen = torch.cat([other, known[:, -1]], -1)[:, None, None]
        k, v = (torch.cat([_sort_blocks(shares[:, :, -1:], y), y[:, :, -1:]], -2).squeeze(2) for y in (keys, values))
        return self.output(merge_heads(functional.scaled_dot_product_attention(q, k, v, seen)))

    def sorting_matrix(self, x: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """S `[B, H, m, m]`, and which blocks a block may take from, `[B, m, m]`."""
        known = real.unflatten(1, (-1, self.block)).any(-1)
        m = known.shape[1]
        there = (known.unsqueeze(1) & known.unsqueeze(2)).tril(-1)  # a row of padding takes no part in the sums of columns
        z = self.pooled(_pool_blocks(x, real, self.block))
        logits = self.sort(functional.relu(z)).unflatten(-1, (self.heads, -1))[..., -m:].transpose(1, 2)
        if self.training:
            logits = logits - torch.empty_like(logits).exponential_().clamp_min(1e-20).log()
        return balance_rows_and_columns(logits / TEMPERATURE, there.unsqueeze(1)).to(x.dtype), there

    def _pad_to_blocks(self, x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """In whole blocks."""
        real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if real is None else readable_columns(real)
        short = -x.shape[1] % self.block
        return functional.pad(x, (0, 0, short, 0)), functional.pad(real, (short, 0))

    def _split_blocks(self, x: Tensor) -> Tensor:
        """`[B, N, d]` → `[B, H, m, b, e]`."""
        return split_heads(x, self.heads).unflatten(2, (-1, self.block))


@in_full_precision
def _pool_blocks(x: Tensor, real: Tensor, block: int) -> Tensor:
    """z of every block: `[B, N, d]`, `[B, N]` → `[B, m, d]`."""
    x, count = zero_padding(x, real), real.to(x.dtype).unsqueeze(-1)
    return x.cumsum(1)[:, ::block] / count.cumsum(1)[:, ::block].clamp_min(1)


def _sort_blocks(shares: Tensor, x: Tensor) -> Tensor:
    """Σ_j S_ij x_j: `[B, H, i, j]`, `[B, H, j, b, e]` → `[B, H, i, b, e]`."""
    return (shares @ x.flatten(3).to(shares.dtype)).unflatten(-1, x.shape[3:])


@register(SinkhornConfig)
class Sinkhorn(Blocks):
    """See the module's table."""

    objective = "all"
    attention = SinkhornAttention
    variants = (
        Variant("Sinkhorn Transformer", {}, "Attention to the last events and to earlier blocks that a learned sorting brings."),
    )
    causal = True
    config: SinkhornConfig

    def saved_per_event(self, columns: int) -> int:
        """Beside the block's own: keys and values by themselves, sorted and joined; scores where attention is not fused; S."""
        config, block = self.config, self.config.events_of_block
        blocks = -(-columns // block)
        padded, scores = blocks * block / columns, config.heads * 2 * block * 4
        order = blocks * blocks * config.heads * (8 + 6 * ITERATIONS) / columns
        return self.saved_by_blocks() + round(padded * (12 * config.width + scores) + order) + 1
