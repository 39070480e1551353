"""Multi-head softmax attention, Eq. 1: written out (`eager`, N x N scores in memory) or `fused` (SDPA). Same numbers."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


def split_heads(x: Tensor, heads: int) -> Tensor:
    """`[B, N, d]` → `[B, H, N, d/H]`."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """`[B, H, N, d/H]` → `[B, N, d]`."""
    return x.transpose(1, 2).flatten(-2)


def written_out(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, causal: bool) -> Tensor:
    """softmax(q kᵀ / √d) v with every score materialised. `mask` is True where attention is allowed."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        n, m = scores.shape[-2:]
        allowed = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
        mask = allowed if mask is None else mask & allowed
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return functional.dropout(scores.softmax(-1), dropout) @ v


def allowed_pairs(real: Tensor, causal: bool) -> Tensor:
    """Which position may read which: `real [B, N]` → bool `[B, 1, N, N]`. A padding position reads itself, so that
    no row is empty; nothing else reads padding."""
    n = real.shape[1]
    allowed = real[:, None, None, :].expand(-1, 1, n, n)
    if causal:
        allowed = allowed & torch.ones(n, n, dtype=torch.bool, device=real.device).tril()
    return allowed | torch.eye(n, dtype=torch.bool, device=real.device)


class Attention(nn.Module):
    """Self-attention of `x [B, N, d]`, optionally with `extra [B, k, d]` keys that every position may read.

    `real` is the padding mask `[B, N]`, or None when nothing is padded (the fused path then needs no mask at all).
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
        mask = None
        if real is not None or (extra is not None and self.causal):
            mask = allowed_pairs(torch.ones_like(x[..., 0], dtype=torch.bool) if real is None else real, self.causal)
            if extra is not None:
                mask = functional.pad(mask, (extra.shape[1], 0), value=True)
        return self._attend(x, keys, mask, self.causal and mask is None)

    def last(self, x: Tensor, real: Tensor | None = None, extra: Tensor | None = None) -> Tensor:
        """The last row of `forward`, `[B, 1, d]`, at the cost of one query: all that a next-item score needs."""
        keys = x if extra is None else torch.cat([extra, x], dim=1)
        mask = None if real is None else real[:, None, None, :]
        if mask is not None and extra is not None:
            mask = functional.pad(mask, (extra.shape[1], 0), value=True)
        return self._attend(x[:, -1:], keys, mask, False)

    def _attend(self, x: Tensor, keys: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        q, k, v = (split_heads(f(y), self.heads) for f, y in ((self.query, x), (self.key, keys), (self.value, keys)))
        p = self.p if self.training else 0.0
        if self.fused:
            mixed = functional.scaled_dot_product_attention(q, k, v, mask, p, is_causal=causal)
        else:
            mixed = written_out(q, k, v, mask, p, causal)
        return self.output(merge_heads(mixed))
