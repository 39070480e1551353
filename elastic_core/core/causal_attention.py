"""Causal attention with dropout for training on a CPU: only what lies before is worked on, a few people at a time.

torch has no kernel that drops weights there. Written out, half of the scores are of later events, and every pass over N x N
numbers goes through memory. Here a stretch of rows i … j reads columns up to j only, which leaves out up to half of the work, and
the scores of a few people fit a core's own cache. The same numbers up to rounding.

Symbols: w the softmax's weights, m what dropout multiplies them by, o the gradient of what was read.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from elastic_core.core.fused_ops import dropout_factors

ROWS = 72  # of a stretch: fewer leave out more, and products of them are slower
CACHE = 1 << 17  # numbers of scores that are worked on together


def causal_attention(q: Tensor, k: Tensor, v: Tensor, p: float) -> Tensor:
    """dropout(softmax(q kᵀ / √e, earlier and own columns only)) v, all `[B, H, N, e]`; p the probability to be dropped."""
    read: Tensor = _ChunkedAttention.apply(*(x.flatten(0, 1) for x in (q, k, v)), p)
    return read.unflatten(0, q.shape[:2])


class _ChunkedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, p: float) -> Tensor:
        read, scale, saved_weights = torch.empty_like(q), 1 / math.sqrt(q.shape[-1]), []
        causal_mask = torch.full((ROWS, ROWS), -torch.inf, dtype=q.dtype).triu(1)
        for users, rows, before in _chunk_ranges(q):
            scores = torch.baddbmm(causal_mask[:1, :1], q[users, rows], k[users, before].mT, beta=0, alpha=scale)
            n = scores.shape[1]
            scores[:, :, -n:] += causal_mask[:n, :n]
            w = torch.softmax(scores, -1, out=scores)
            m = dropout_factors(w, p)
            read[users, rows] = torch.bmm(w if m is None else w * m, v[users, before])
            saved_weights.append((w, m))
        ctx.save_for_backward(q, k, v)
        ctx.saved_weights = saved_weights
        return read

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v = ctx.saved_tensors
        (every,) = gradients
        d_q, d_k, d_v, scale = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), 1 / math.sqrt(q.shape[-1])
        for (users, rows, before), (w, m) in zip(_chunk_ranges(q), ctx.saved_weights, strict=True):
            o, own = every[users, rows], q[users, rows]
            has_more = float(rows.stop < q.shape[1])  # the last rows come first and read all columns: nothing is there yet
            d_v[users, before].baddbmm_((w if m is None else w * m).mT, o, beta=has_more)
            d_w = torch.bmm(o, v[users, before].mT)
            if m is not None:
                d_w.mul_(m)
            d_scores = torch._softmax_backward_data(d_w, w, -1, w.dtype).mul_(scale)
            d_q[users, rows] = torch.bmm(d_scores, k[users, before])
            d_k[users, before].baddbmm_(d_scores.mT, own, beta=has_more)
        return d_q, d_k, d_v, None


def _chunk_ranges(q: Tensor) -> Iterator[tuple[slice, slice, slice]]:
    """People, rows, and the columns that these may read."""
    batch_size, n = q.shape[:2]
    chunk_size = max(1, CACHE // (min(ROWS, n) * n))
    for at in range(0, batch_size, chunk_size):
        for row in reversed(range(0, n, ROWS)):
            end = min(row + ROWS, n)
            yield slice(at, at + chunk_size), slice(row, end), slice(0, end)
