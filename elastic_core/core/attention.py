"""Multi-head softmax attention, Eq. 1: written out (`eager`, N x N scores in memory) or `fused` (SDPA). Same numbers.

No mask here has a row per person and pair of events: that would be the N x N memory which the fused form is there to avoid.
What is causal is aligned to the left, where one triangle is right for everybody; what is not needs a mask of keys only.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.dropout import dropout
from elastic_core.core.padding import left_align, readable, right_align
from elastic_core.core.products import linear
from elastic_core.scale.causal_attention import causal_attention


def split_heads(x: Tensor, heads: int) -> Tensor:
    """`[B, N, d]` → `[B, H, N, d/H]`."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """`[B, H, N, d/H]` → `[B, N, d]`."""
    return x.transpose(1, 2).flatten(-2)


def rows_at(x: Tensor, index: Tensor) -> Tensor:
    """Rows of `[B, H, N, e]` at int64 `[B, H, …]` → `[B, H, …, e]`. Whole vectors are moved, by one index each."""
    b, h, n = x.shape[:3]
    first = n * torch.arange(b * h, device=x.device).view(b, h, *[1] * (index.ndim - 2))
    return x.flatten(0, 2).index_select(0, (index + first).flatten()).unflatten(0, index.shape)


def written_out(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, causal: bool) -> Tensor:
    """softmax(q kᵀ / √d) v with every score materialised and dropped with probability p. `mask` is True where attention is
    allowed, somewhere in every row."""
    n, m = q.shape[-2], k.shape[-2]
    scale = 1 / math.sqrt(q.shape[-1])
    if causal and mask is None:
        later = torch.full((n, m), -torch.inf, dtype=q.dtype, device=q.device).triu(m - n + 1)
        scores = torch.baddbmm(later, q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), alpha=scale).unflatten(0, q.shape[:2])
    else:
        scores = q @ k.transpose(-1, -2) * scale
        if causal:
            before = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
            mask = before if mask is None else mask & before
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
    return dropout(scores.softmax(-1), p) @ v


def fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, causal: bool) -> Tensor:
    """The same by torch’s fused kernels. These drop nothing on a CPU, where torch would write the scores out, more slowly."""
    if p and q.device.type == "cpu":
        if causal and mask is None and q.shape == k.shape == v.shape and q.dtype == torch.float32:
            return causal_attention(q, k, v, p)
        return written_out(q, k, v, mask, p, causal)
    return functional.scaled_dot_product_attention(q, k, v, mask, p, is_causal=causal)


class Attention(nn.Module):
    """Self-attention of `x [B, N, d]`, optionally with `extra [B, k, d]` keys that every position may read.

    `real` is the padding mask `[B, N]` of left-padded rows, or None when nothing is padded. Nobody reads padding; the causal
    form is zero there, and what the other form has there means nothing.
    """

    def __init__(self, width: int, heads: int, dropout: float, causal: bool, fused: bool = True) -> None:
        super().__init__()
        self.heads, self.causal, self.fused, self.p = heads, causal, fused, dropout
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)  # a key bias cancels in the softmax
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor, real: Tensor | None = None, extra: Tensor | None = None) -> Tensor:
        keys = x if extra is None else torch.cat([extra, x], dim=1)
        if not self.causal:
            return self._attend(x, keys, _readable_keys(real, extra), False)
        if real is not None:
            return right_align(self(left_align(x, real), None, extra), real)
        if extra is None:
            return self._attend(x, x, None, True)
        n, k = x.shape[1], extra.shape[1]
        return self._attend(x, keys, torch.ones(n, k + n, dtype=torch.bool, device=x.device).tril(k), False)

    def last(self, x: Tensor, real: Tensor | None = None, extra: Tensor | None = None) -> Tensor:
        """The last row of `forward`, `[B, 1, d]`, at the cost of one query: all that a next-item score needs."""
        keys = x if extra is None else torch.cat([extra, x], dim=1)
        return self._attend(x[:, -1:], keys, _readable_keys(real, extra), False)

    def last_weights(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """How the last row weighs every event, `[B, H, N]`: each head's add up to 1."""
        q, k = split_heads(self.query(x[:, -1:]), self.heads), split_heads(self.key(x), self.heads)
        scores = (q @ k.transpose(-1, -2)).squeeze(-2) / math.sqrt(q.shape[-1])
        return (scores if real is None else scores.masked_fill(~readable(real).unsqueeze(1), -torch.inf)).softmax(-1)

    def _attend(self, x: Tensor, keys: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        q, k, v = (
            split_heads(linear(y, f.weight, f.bias), self.heads)
            for f, y in ((self.query, x), (self.key, keys), (self.value, keys))
        )
        p = self.p if self.training else 0.0
        mixed = (fused if self.fused else written_out)(q, k, v, mask, p, causal)
        return linear(merge_heads(mixed), self.output.weight, self.output.bias)


def _readable_keys(real: Tensor | None, extra: Tensor | None) -> Tensor | None:
    """The mask of keys `[B, 1, 1, k + N]` that every query shares, or None where all may be read."""
    if real is None:
        return None
    mask = readable(real)[:, None, None, :]
    return mask if extra is None else functional.pad(mask, (extra.shape[1], 0), value=True)
