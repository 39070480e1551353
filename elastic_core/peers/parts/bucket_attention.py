"""Softmax attention inside buckets, causal: what Reformer's hashes and the Routing Transformer's clusters are read with.

Every event has a bucket, in each of R rounds. One vector of an event asks and is asked (shared queries and keys, as both papers
have it where attention is causal), so both are in the same bucket. Event t reads

    P_t = { j <= t : bucket_j = bucket_t, and j one of the last w such }
    o_t = Σ_{j ∈ ∪_r P_t} softmax_j(q_t·k_j / √d_h) v_j

and itself only if there is nobody else: q_t·k_t would outweigh all others. Both papers sort events by bucket and cut the order
into chunks of equal size (or take the same number of events for every cluster). Where a cut falls depends on the buckets of
*later* events, and so does what an event may read: it leaks. The last w of one's own bucket do not depend on what follows.

In the order by (bucket, time), with a gap of w between buckets, u is an event's place and j ∈ P_t is 0 <= u_t - u_j < w: a
sliding window over the sorted events, in chunks that read themselves and the chunk before. O(R·N·w), plus the sorting.

Rounds are joined as in Reformer's Eq. 6: an event that several rounds find counts once, so the result is one softmax over the
union.

Symbols: B people, H heads, R rounds, N events, c chunks of C events, e = d_h.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import dropout, in_full_precision, merge_heads, readable_columns, split_heads

SELF = -1e5  # the logit of oneself (Reformer, appendix A)
FAR = 2**60  # a place beyond all


class BucketOrder(NamedTuple):
    """Where events stand in the order by (bucket, time)."""

    order: Tensor  # [B, H, R, N] the event at each place
    place: Tensor  # [B, H, R, N] the place of each event
    u: Tensor  # [B, H, R, N] the same with gaps between buckets


@in_full_precision
def project_precisely(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b of `[..., e]`, in float32 at least: what a bucket is found from. `weight` may have a matrix for each head."""
    out = x @ weight.mT
    return out if bias is None else out + bias


def rows_at(x: Tensor, index: Tensor) -> Tensor:
    """Rows of `[B, H, N, e]` at int64 `[B, H, …]` → `[B, H, …, e]`. Whole vectors are moved, by one index each."""
    b, h, n = x.shape[:3]
    first = n * torch.arange(b * h, device=x.device).view(b, h, *[1] * (index.ndim - 2))
    return x.flatten(0, 2).index_select(0, (index + first).flatten()).unflatten(0, index.shape)


def sort_by_bucket(bucket: Tensor, real: Tensor | None, window: int) -> BucketOrder:
    """Of buckets `[B, H, R, N]` (0, 1, …); padding is in one of its own."""
    n = bucket.shape[-1]
    if real is not None:
        bucket = bucket.masked_fill(~readable_columns(real)[:, None, None], -1)
    order = (bucket * n + torch.arange(n, device=bucket.device)).argsort(-1)
    place = torch.empty_like(order).scatter_(-1, order, torch.arange(n, device=bucket.device).expand_as(order))
    return BucketOrder(order, place, bucket * (n + window) + place)


def chunk_size(n: int, window: int) -> int:
    """Events of a chunk: at least the window, or all of them, and as evenly as can be."""
    return -(-n // max(n // window, 1))


def attend_in_buckets(q: Tensor, k: Tensor, v: Tensor, buckets: BucketOrder, window: int, p: float) -> Tensor:
    """`[B, H, N, e]` three times → `[B, H, N, e]`."""
    rounds = [_attend_round(q, k, v, buckets, r, window, p) for r in range(buckets.order.shape[2])]
    if len(rounds) == 1:
        return rounds[0][0]
    outs, masses = (torch.stack(parts, -1) for parts in zip(*rounds, strict=True))
    return (outs * masses.softmax(-1)).sum(-1)


def _attend_round(q: Tensor, k: Tensor, v: Tensor, buckets: BucketOrder, r: int, window: int, p: float) -> tuple[Tensor, Tensor]:
    """What events read in round r `[B, H, N, e]`, and the logarithm of its softmax's denominator `[B, H, N, 1]`."""
    n, rounds = q.shape[2], buckets.order.shape[2]
    chunk = chunk_size(n, window)
    order, place = buckets.order[:, :, r], buckets.place[:, :, r]

    def sort_into_chunks(x: Tensor, beyond: int = 0) -> Tensor:
        """`[B, H, N, e]` → `[B, H, c, C, e]`, sorted."""
        return functional.pad(rows_at(x, order), (0, 0, 0, -n % chunk), value=beyond).unflatten(2, (-1, chunk))

    def restore_order(x: Tensor) -> Tensor:
        """`[B, H, c, C, e]` → `[B, H, N, e]`, in the order of time."""
        return rows_at(x.flatten(2, 3), place)

    def keys_found_by(other: int) -> tuple[Tensor, Tensor]:
        """Whom a round lets each event read `[B, H, c, C, 2 C]`, and who is oneself."""
        u = sort_into_chunks(buckets.u[:, :, other].unsqueeze(-1), FAR)
        apart = u - _with_earlier(u, -FAR).transpose(-1, -2)
        return (apart >= 0) & (apart < window), apart == 0

    allowed, oneself = keys_found_by(r)
    scores = (
        sort_into_chunks(q) @ _with_earlier(sort_into_chunks(k)).transpose(-1, -2) / math.sqrt(q.shape[-1])
    )  # [B, H, c, C, 2 C]
    scores = scores.masked_fill(oneself, SELF).masked_fill(~allowed, -torch.inf)
    if rounds > 1:  # whom several rounds find they share
        times = torch.stack([keys_found_by(other)[0] for other in range(rounds)]).sum(0)
        scores = scores - times.clamp_min(1).log().to(scores.dtype)
    mixed = dropout(scores.softmax(-1), p) @ _with_earlier(sort_into_chunks(v))
    mass = scores.logsumexp(-1, keepdim=True) if rounds > 1 else mixed[..., :1]
    return restore_order(mixed), restore_order(mass)


def _with_earlier(x: Tensor, beyond: int = 0) -> Tensor:
    """Each chunk of `[B, H, c, C, e]` behind the one before it: `[B, H, c, 2 C, e]`."""
    return torch.cat([functional.pad(x[:, :, :-1], (0, 0, 0, 0, 1, 0), value=beyond), x], -2)


def attend_last(q: Tensor, k: Tensor, v: Tensor, buckets: BucketOrder, window: int) -> Tensor:
    """The last event alone: q `[B, H, 1, e]`, k and v `[B, H, N, e]` → `[B, H, 1, e]`."""
    apart = buckets.u[..., -1:] - buckets.u
    seen = ((apart >= 0) & (apart < window)).any(2)  # [B, H, N]
    scores = (q @ k.transpose(-1, -2)).squeeze(2) / math.sqrt(q.shape[-1])
    scores = torch.cat([scores[..., :-1], torch.full_like(scores[..., -1:], SELF)], -1)
    return scores.masked_fill(~seen, -torch.inf).softmax(-1).unsqueeze(2) @ v


class BucketAttention(nn.Module):
    """Causal self-attention of `x [B, N, d]` inside buckets, each event to the last `window` of its own; what it has on padding
    means nothing. Who inherits says what is asked with and which bucket it is in."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.heads, self.window, self.p = config.heads, config.window, config.dropout
        self.query, self.value, self.output = (nn.Linear(config.width, config.width) for _ in range(3))

    def shared_queries(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys `[B, H, N, e]`, made of the same vectors; in float32, because buckets are found from them."""
        raise NotImplementedError

    def find_buckets(self, q: Tensor) -> Tensor:
        """`[B, H, N, e]` → int64 `[B, H, R, N]`."""
        raise NotImplementedError

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        q, k, v, buckets = self._sorted_inputs(x, real)
        return self.project_output(attend_in_buckets(q, k, v, buckets, self.window, self.p if self.training else 0.0))

    def forward_last(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """The last row of `forward`, `[B, 1, d]`: one query."""
        q, k, v, buckets = self._sorted_inputs(x, real)
        return self.project_output(attend_last(q[:, :, -1:], k, v, buckets, self.window))

    def _sorted_inputs(self, x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor, Tensor, BucketOrder]:
        (q, k), v = self.shared_queries(x), split_heads(self.value(x), self.heads)
        return q.to(v), k.to(v), v, sort_by_bucket(self.find_buckets(q), real, self.window)

    def project_output(self, read: Tensor) -> Tensor:
        return self.output(merge_heads(read))


def saved_numbers(columns: int, config: Any, rounds: int) -> int:
    """Numbers per event that `attend_in_buckets` keeps for the backward pass, from above."""
    chunk = chunk_size(columns, config.window)
    padded = -(-columns // chunk) * chunk / columns
    return math.ceil(padded * rounds * (9 * config.width + config.heads * 2 * chunk * (5 if rounds == 1 else 7)))
