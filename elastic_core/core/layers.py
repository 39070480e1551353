"""What several models are made of: padding, precision, products, dropout, embedding, feed-forward, convolution, whitening."""

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.causal_attention import causal_attention
from elastic_core.core.fused_ops import causal_convolution, convolve_rows, dropout_factors, fits_one_pass, linear_in_one_pass
from elastic_core.errors import InputError

# --- padding ---------------------------------------------------------------------------------------------------------

# Padding must not speak. `real` is True on events, `[B, N]`, or None where nothing is padded: then nothing is spent on it.
#
# Rows are left-padded: the most recent event is the last column. An empty history keeps its last column as its only place, so
# that no row of an attention is without a key.


def zero_padding(x: Tensor, real: Tensor | None) -> Tensor:
    """`[B, N, d]` with zeros on padding."""
    return x if real is None else x * real.unsqueeze(-1)


def readable_columns(real: Tensor) -> Tensor:
    """The places `[B, N]` that attention may read: the events, or the last column of an empty history."""
    return torch.cat([real[:, :-1], torch.ones_like(real[:, -1:])], dim=1)


def left_align(x: Tensor, real: Tensor | None) -> Tensor:
    """Rows of `[B, N, d]` turned until their first event is in column 0 and padding comes last: a causal mask then hides it."""
    return x if real is None else _roll_rows(x, x.shape[1] - readable_columns(real).sum(1))


def right_align(x: Tensor, real: Tensor | None) -> Tensor:
    """The inverse of `left_align`, with zeros on padding: there x has read what no padding may tell, later events."""
    return x if real is None else zero_padding(_roll_rows(x, readable_columns(real).sum(1)), readable_columns(real))


def _roll_rows(x: Tensor, by: Tensor) -> Tensor:
    """Row b of `[B, N, d]` turned to the left by `by[b]` columns. Whole vectors are moved, by one index each."""
    rows, n = x.shape[:2]
    column = (torch.arange(n, device=x.device) + by[:, None]) % n
    place = column + n * torch.arange(rows, device=x.device)[:, None]
    return x.flatten(0, 1).index_select(0, place.flatten()).view_as(x)


def pad_front(x: Tensor, real: Tensor | None, multiple: int) -> tuple[Tensor, Tensor | None]:
    """Return `[B, N, d]` and its mask, padded in front to a multiple of so many columns."""
    n_missing = -x.shape[1] % multiple
    if not n_missing:
        return x, real
    real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if real is None else real
    return functional.pad(x, (0, 0, n_missing, 0)), functional.pad(real, (n_missing, 0))


def split_heads(x: Tensor, heads: int) -> Tensor:
    """`[B, N, d]` → `[B, H, N, d/H]`."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """`[B, H, N, d/H]` → `[B, N, d]`."""
    return x.transpose(1, 2).flatten(-2)


# --- precision -------------------------------------------------------------------------------------------------------

# What is exact under autocast: sums, searches and what is carried from event to event stay in float32.
#
# A device that knows no autocast (torch's `meta`, on which shapes are tried) has none to be turned off.


P = ParamSpec("P")
R = TypeVar("R")


def without_autocast(kind: str) -> contextlib.AbstractContextManager[Any]:
    """Around what must not be rounded, on a kind of device (`cpu`, `cuda`)."""
    return contextlib.nullcontext() if kind == "meta" else torch.autocast(kind, enabled=False)


def autocast_to(kind: str) -> torch.dtype | None:
    """The lesser precision that products are asked for; None where autocast is off."""
    return torch.get_autocast_dtype(kind) if kind != "meta" and torch.is_autocast_enabled(kind) else None


def in_full_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Runs `function` without autocast and with its half-precision tensors (given by position) as float32.

    A sum in bfloat16 stops growing at 256 times its terms, and a logit of 20 rounded to 8 bits is off by a factor of e^0.06.
    """

    def as_float32(x: Any) -> Any:
        return x.float() if isinstance(x, Tensor) and x.dtype in (torch.bfloat16, torch.float16) else x

    @functools.wraps(function)
    def run_without_autocast(*args: P.args, **kwargs: P.kwargs) -> R:
        kind = next(x.device.type for x in args if isinstance(x, Tensor))
        with without_autocast(kind):
            return function(*(as_float32(x) for x in args), **kwargs)

    return run_without_autocast


# --- products --------------------------------------------------------------------------------------------------------

# Products over N x d numbers with few passes: what a pass over memory costs is more than what it computes.


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none") -> Tensor:
    """x Wᵀ + b of `[..., d]`, then `none` or `gelu`; in one pass where nothing learns (fused_ops.py)."""
    if not torch.compiler.is_compiling() and fits_one_pass(x, weight):
        return linear_in_one_pass(x, weight, bias, activation)
    y = functional.linear(x, weight, bias)
    return functional.gelu(y) if activation == "gelu" else y


def add_product(total: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """total + a @ b, into `total` itself: what costs is a pass over N x d numbers. `b` may lack leading dimensions of `a`."""
    b = b.to(total.dtype).expand(*a.shape[:-2], -1, -1)
    total.flatten(0, -3).baddbmm_(a.to(total.dtype).flatten(0, -3), b.flatten(0, -3))
    return total


def add_in_place(y: Tensor, x: Tensor) -> Tensor:
    """x + y, into `y` itself unless it is of the lesser precision. `y` must be the caller's own."""
    return y.add_(x) if y.dtype == torch.promote_types(x.dtype, y.dtype) else x + y


def apply_maps(p: Tensor, maps: Tensor) -> Tensor:
    """Return interests `[B, k, d]` through each of `[m, d, o]` in one product, `[B, m, k, o]`."""
    return linear(p, maps.transpose(1, 2).flatten(0, 1)).unflatten(-1, maps.shape[::2]).transpose(1, 2)


# --- dropout ---------------------------------------------------------------------------------------------------------

LEAST_DROPPED = 2**-17  # a p below counts as 0


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Sets elements of `x` to 0 with probability p and scales the others so that the mean stays. Raises ValueError unless
    0 ≤ p ≤ 1. On a CPU the noise is drawn more cheaply (fused_ops.py), from torch's generator too."""
    if not 0 <= p <= 1:
        raise ValueError(f"p must lie in 0 … 1, not {p}")
    if not training or p <= LEAST_DROPPED:
        return x
    factors = None if torch.compiler.is_compiling() else dropout_factors(x, p)
    return functional.dropout(x, p) if factors is None else x * factors


class Dropout(nn.Module):
    """`dropout` while training, nothing else."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

    def add_dropped(self, x: Tensor, y: Tensor) -> Tensor:
        """x + dropout(y), in one pass on a CPU."""
        factors = dropout_factors(y, self.p) if self.training and self.p > LEAST_DROPPED else None
        return x + self(y) if factors is None else torch.addcmul(x, y, factors)


# --- embedding -------------------------------------------------------------------------------------------------------

# The input of every sequence model here: item embedding plus learned position (method: X of Eq. 1).
#
# Histories are left-padded, so column N-1 is always the most recent event and a column's index counts back from it.


SPREAD = 0.02  # standard deviation of an item's numbers at the start


def item_table(n_items: int, width: int, spread: float = SPREAD) -> nn.Embedding:
    """A row for every item, `[n_items + 1, width]`: normal with a standard deviation of `spread`, zero for padding (row 0)."""
    table = nn.Embedding(n_items + 1, width, padding_idx=0)
    nn.init.normal_(table.weight, std=spread)
    with torch.no_grad():
        table.weight[0] = 0
    return table


class EventEmbedding(nn.Module):
    """Items `[B, N]` (0 pads) → `[B, N, d]`. The item table also scores candidates (Eq. 8), unless `model.output` is `own`.
    Positions can be left out."""

    def __init__(self, n_items: int, length: int, width: int, dropout: float, positions: bool = True) -> None:
        super().__init__()
        self.items = item_table(n_items, width)
        self.positions = nn.Parameter(torch.empty(length, width)) if positions else None
        self.dropout = Dropout(dropout)
        self.scale = math.sqrt(width)
        if self.positions is not None:
            nn.init.normal_(self.positions, std=SPREAD)

    def forward(self, items: Tensor, padded: bool = True) -> Tensor:
        return self.add_positions(self.embed_items(items), items > 0 if padded else None)

    def add_positions(self, content: Tensor, real: Tensor | None) -> Tensor:
        """What the events are and where they stand: `[B, N, d]`, zero on padding. Raises InputError for too many."""
        if self.positions is not None and content.shape[1] > len(self.positions):
            raise InputError(f"this model reads {len(self.positions)} events, not {content.shape[1]}")
        placed = content if self.positions is None else content + self.positions_of(slice(-content.shape[1], None))
        return zero_padding(self.dropout(placed), real)

    def positions_of(self, columns: slice | int) -> Tensor | float:
        """The positions of these columns of a full window `[n, d]` or `[d]`; 0 without positions."""
        return 0.0 if self.positions is None else self.positions[columns]

    def embed_items(self, items: Tensor) -> Tensor:
        """What the events are, without where they stand: `[B, N, d]`, zero on padding. Input of the query network."""
        vectors: Tensor = self.items(items)
        return vectors.mul_(self.scale)


# --- feed forward ----------------------------------------------------------------------------------------------------

# Position-wise feed-forward layer: `x + W2 dropout(gelu(W1 norm(x)))`.


class FeedForward(nn.Module):
    """Pre-norm residual feed-forward layer on `[..., d]`; `expansion` is its hidden width in multiples of d."""

    def __init__(self, width: int, dropout: float, expansion: int = 1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, expansion * width)
        self.outer = nn.Linear(expansion * width, width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.dropout(linear(self.norm(x), self.inner.weight, self.inner.bias, "gelu"))
        return add_in_place(self.dropout(linear(hidden, self.outer.weight, self.outer.bias)), x)


# --- local convolution -----------------------------------------------------------------------------------------------

# What came just before: a depth-wise causal convolution (ours).


class LocalConvolution(nn.Module):
    """Depth-wise causal convolution over the last `width` events (ours): k aggregates cannot see short-range order."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.taps = nn.Parameter(torch.randn(width, channels) / width)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, N, d]` → `[B, N, d]`; tap i weighs the event i steps back."""
        own_gradient = x.device.type == "cpu" and x.dtype == self.taps.dtype and not torch.is_autocast_enabled("cpu")
        return causal_convolution(x, self.taps) if own_gradient else convolve_rows(x, self.taps.flip(0), 0)

    def forward_last(self, x: Tensor, rows: int = 1) -> Tensor:
        """The last rows of `forward`, `[B, rows, d]`."""
        if rows > 1:
            return self(x[:, -(rows + len(self.taps) - 1) :])[:, -rows:]
        taps = self.taps[: x.shape[1]].flip(0)
        return (x[:, -taps.shape[0] :] * taps).sum(1, keepdim=True)


# --- whitening -------------------------------------------------------------------------------------------------------

# Normalisation of queries (ours): decorrelated by statistics of the histories that are served.


class Whitening(nn.Module):
    """Decorrelate queries `[B, d]`: x → (x - m) C^(-1/2) with the mean and covariance that `update_statistics` was told (ours).

    Scaling each coordinate, as the batch norm of Lample et al. does, cannot spread a query that is nearly one-dimensional. Axes
    with less than `floor` of the largest variance are not blown up further. A pass changes nothing, in training neither: a
    training batch holds other histories than those that are served."""

    def __init__(self, width: int, floor: float = 1e-3) -> None:
        super().__init__()
        self.floor = floor
        self.mean: Tensor
        self.covariance: Tensor
        self.transform: Tensor
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("covariance", torch.eye(width))
        self.register_buffer("transform", torch.eye(width))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) @ self.transform

    @torch.no_grad()
    def update_statistics(self, queries: Tensor, rate: float, counts: Tensor | None = None) -> None:
        """Move mean and covariance towards those of `queries [B, d]`, as the moments of the mixture: the way between the means
        counts too. `counts [B]`: how often each is asked. Fewer than two change nothing. Raises LinAlgError if a query is not a
        number, and keeps what was known."""
        if (len(queries) if counts is None else counts.sum()) < 2:
            return
        if not queries.isfinite().all():
            raise torch.linalg.LinAlgError("the queries to be normalised are no longer numbers")
        queries = queries.to(self.mean.dtype)
        shares = None if counts is None else (counts / counts.sum()).to(queries)
        mean = queries.mean(0) if shares is None else shares @ queries
        centred, way = queries - mean, mean - self.mean
        spread = centred.T @ centred / len(queries) if shares is None else centred.T @ (centred * shares.unsqueeze(1))
        covariance = self.covariance.lerp(spread, rate) + rate * (1 - rate) * torch.outer(way, way)
        values, vectors = torch.linalg.eigh(covariance)
        values = values.clamp_min(values[-1].clamp_min(1e-12) * self.floor)
        self.mean.lerp_(mean, rate)
        self.covariance.copy_(covariance)
        self.transform.copy_(vectors @ torch.diag(values.rsqrt()) @ vectors.T)


# --- softmax attention, Eq. 1: written out (`eager`, N x N scores in memory) or `fused`, the same numbers ------------


def eager_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, causal: bool) -> Tensor:
    """softmax(q kᵀ / √d) v with every score materialised and dropped with probability p. `mask` is True where attention is
    allowed, somewhere in every row."""
    n, m = q.shape[-2], k.shape[-2]
    scale = 1 / math.sqrt(q.shape[-1])
    if causal and mask is None:
        causal_mask = torch.full((n, m), -torch.inf, dtype=q.dtype, device=q.device).triu(m - n + 1)
        scores = torch.baddbmm(causal_mask, q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), alpha=scale).unflatten(
            0, q.shape[:2]
        )
    else:
        scores = q @ k.transpose(-1, -2) * scale
        if causal:
            before = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
            mask = before if mask is None else mask & before
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
    return dropout(scores.softmax(-1), p) @ v


def fused_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, causal: bool) -> Tensor:
    """The same by torch’s fused kernels. These drop nothing on a CPU, where torch would write the scores out, more slowly."""
    if p and q.device.type == "cpu":
        if causal and mask is None and q.shape == k.shape == v.shape and q.dtype == torch.float32:
            return causal_attention(q, k, v, p)
        return eager_attention(q, k, v, mask, p, causal)
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
            return self._attend_to(x, keys, _readable_keys(real, extra), False)
        if real is not None:
            return right_align(self(left_align(x, real), None, extra), real)
        if extra is None:
            return self._attend_to(x, x, None, True)
        n, k = x.shape[1], extra.shape[1]
        return self._attend_to(x, keys, torch.ones(n, k + n, dtype=torch.bool, device=x.device).tril(k), False)

    def forward_last(self, x: Tensor, real: Tensor | None = None, extra: Tensor | None = None) -> Tensor:
        """The last row of `forward`, `[B, 1, d]`, at the cost of one query: all that a next-item score needs."""
        keys = x if extra is None else torch.cat([extra, x], dim=1)
        return self._attend_to(x[:, -1:], keys, _readable_keys(real, extra), False)

    def last_weights(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """How the last row weighs every event, `[B, H, N]`: each head's add up to 1."""
        q, k = split_heads(self.query(x[:, -1:]), self.heads), split_heads(self.key(x), self.heads)
        scores = (q @ k.transpose(-1, -2)).squeeze(-2) / math.sqrt(q.shape[-1])
        return (scores if real is None else scores.masked_fill(~readable_columns(real).unsqueeze(1), -torch.inf)).softmax(-1)

    def _attend_to(self, x: Tensor, keys: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        q, k, v = (
            split_heads(linear(y, f.weight, f.bias), self.heads)
            for f, y in ((self.query, x), (self.key, keys), (self.value, keys))
        )
        p = self.p if self.training else 0.0
        mixed = (fused_attention if self.fused else eager_attention)(q, k, v, mask, p, causal)
        return linear(merge_heads(mixed), self.output.weight, self.output.bias)


def _readable_keys(real: Tensor | None, extra: Tensor | None) -> Tensor | None:
    """The mask of keys `[B, 1, 1, k + N]` that every query shares, or None where all may be read."""
    if real is None:
        return None
    mask = readable_columns(real)[:, None, None, :]
    return mask if extra is None else functional.pad(mask, (extra.shape[1], 0), value=True)
