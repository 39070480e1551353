"""The hierarchical query network, Eq. 4: reshape (N/stride, stride·d) → linear → self-attention, until one vector is left.

Two things the paper leaves open. *Padding must not speak*: a block pools its real events only and is rescaled by their
number, empty blocks are never attended to, and positions are left out, or the query mostly tells how long the history
is. *Linear cost*: a fixed stride leaves N/stride tokens for the first attention, quadratic again, so attention works in
windows of `window` tokens; up to N = stride · window that is full attention.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.errors import InputError
from elastic_core.layers.attention import Attention
from elastic_core.layers.padding import masked
from elastic_core.layers.products import linear


class PoolingLevel(nn.Module):
    """`[B, n, d]` and its mask or None → `[B, ceil(n / stride), d]` and its own. Blocks are counted back from the last event."""

    def __init__(self, width: int, heads: int, stride: int, window: int | None, attends: bool) -> None:
        super().__init__()
        self.stride, self.window = stride, window
        self.project = nn.Linear(stride * width, width)
        self.norm = nn.LayerNorm(width) if attends else None
        self.attention = Attention(width, heads, dropout=0.0, causal=False) if attends else None

    def forward(self, x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor | None]:
        x, real = _pad_front(x, real, self.stride)
        blocks = masked(x, real).unflatten(1, (-1, self.stride)).flatten(2)
        pooled = linear(blocks, self.project.weight, self.project.bias)
        if real is not None:
            counts = real.unflatten(1, (-1, self.stride)).sum(-1, keepdim=True)
            pooled, real = pooled * (self.stride / counts.clamp_min(1)), counts.squeeze(-1) > 0
        if self.norm is None or self.attention is None:  # one block is left: nobody to attend to
            return pooled, real
        return pooled + self._among(self.attention, self.norm(pooled), real), real

    def _among(self, attention: Attention, x: Tensor, real: Tensor | None) -> Tensor:
        n = x.shape[1]
        if self.window is None or n <= self.window:
            return attention(x, real)
        x, real = _pad_front(x, real, self.window)
        mixed = attention(x.reshape(-1, self.window, x.shape[2]), None if real is None else real.reshape(-1, self.window))
        return mixed.reshape(x.shape)[:, -n:]


class QueryNetwork(nn.Module):
    """A history's content `[B, N, d]` and its mask `[B, N]` or None → one query `[B, d]`.

    The levels are as many as `length` events need. Raises InputError for a stride or window that covers nothing, and for more
    events than that: they would be left out of the query, and nobody would see it.
    """

    def __init__(self, length: int, width: int, heads: int, stride: int = 8, window: int | None = 64) -> None:
        super().__init__()
        if stride < 2 or (window is not None and window < 1):
            raise InputError(f"a query network needs a stride of 2 or more and a window of 1 or more, not {stride} and {window}")
        self.length = length
        levels, n = [], length
        while n > 1:
            n = -(-n // stride)
            levels.append(PoolingLevel(width, heads, stride, window, attends=n > 1))
        self.levels = nn.ModuleList(levels)

    def forward(self, x: Tensor, real: Tensor | None) -> Tensor:
        if x.shape[1] > self.length:
            raise InputError(f"the strides of this query network cover {self.length} events, not {x.shape[1]}")
        for level in self.levels:
            x, real = level(x, real)
        return x[:, 0]


class MeanQuery(nn.Module):
    """Table 3's "w/o Query Net": the average of the real events, `[B, d]`."""

    def forward(self, x: Tensor, real: Tensor | None) -> Tensor:
        return x.mean(1) if real is None else masked(x, real).sum(1) / real.sum(1, keepdim=True).clamp_min(1)


class Whitening(nn.Module):
    """Decorrelates queries `[B, d]` with a mean and covariance that `learn` was told: x → (x - m) C^(-1/2).

    Scaling each coordinate, as the batch norm of Lample et al. does, cannot spread a query that is nearly one-dimensional; its
    principal axes must be brought to one variance. Axes with less than `floor` of the largest variance are not blown up further.

    A pass changes nothing, in training neither: a training batch holds other histories (most of them short) than those
    that are served, and weights that are averaged over steps need statistics of their own.
    """

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
    def learn(self, queries: Tensor, rate: float) -> None:
        """Moves mean and covariance towards those of `queries [B, d]`; rate 1 makes them exactly theirs.

        They are the moments of the mixture (1 - rate) · what was known + rate · queries, so the way between the two means
        counts as variance too. Fewer than two queries have none and change nothing. Raises LinAlgError if a query is
        not a number, and keeps what was known.
        """
        if len(queries) < 2:
            return
        queries = _numbers(queries).to(self.mean.dtype)
        mean = queries.mean(0)
        centred, way = queries - mean, mean - self.mean
        covariance = self.covariance.lerp(centred.T @ centred / len(queries), rate) + rate * (1 - rate) * torch.outer(way, way)
        values, vectors = torch.linalg.eigh(covariance)
        values = values.clamp_min(values[-1].clamp_min(1e-12) * self.floor)
        self.mean.lerp_(mean, rate)
        self.covariance.copy_(covariance)
        self.transform.copy_(vectors @ torch.diag(values.rsqrt()) @ vectors.T)


def _numbers(queries: Tensor) -> Tensor:
    """The queries themselves. Raises LinAlgError where one is not a number: `eigh` does not always, and statistics keep a NaN."""
    if not queries.isfinite().all():
        raise torch.linalg.LinAlgError("the queries to be normalised are no longer numbers")
    return queries


def query_norm(name: str, width: int) -> nn.Module:
    """Return the normalisation of queries: `whiten` (ours) or `layer`. Queries and sub-keys are on one scale then."""
    return Whitening(width) if name == "whiten" else nn.LayerNorm(width)


def _pad_front(x: Tensor, real: Tensor | None, multiple: int) -> tuple[Tensor, Tensor | None]:
    short = -x.shape[1] % multiple
    if not short:
        return x, real
    if real is None:
        real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    return functional.pad(x, (0, 0, short, 0)), functional.pad(real, (short, 0))
