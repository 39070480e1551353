"""The hierarchical query network, Eq. 4: reshape (N/stride, stride·d) → linear → self-attention, until one vector is left.

Two things the paper leaves open. *Padding must not speak*: a block pools its real events only and is rescaled by their
number, empty blocks are never attended to, and positions are left out, or the query mostly tells how long the history
is. *Linear cost*: a fixed stride leaves N/stride tokens for the first attention, quadratic again, so attention works in
windows of `window` tokens; up to N = stride · window that is full attention.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.layers.attention import Attention
from elastic_core.layers.padding import masked


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
        pooled = self.project(masked(x, real).unflatten(1, (-1, self.stride)).flatten(2))
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
    """A history's content `[B, N, d]` and its mask `[B, N]` or None → one query `[B, d]` (N up to `length`)."""

    def __init__(self, length: int, width: int, heads: int, stride: int = 8, window: int | None = 64) -> None:
        super().__init__()
        levels, n = [], length
        while n > 1:
            n = -(-n // stride)
            levels.append(PoolingLevel(width, heads, stride, window, attends=n > 1))
        self.levels = nn.ModuleList(levels)

    def forward(self, x: Tensor, real: Tensor | None) -> Tensor:
        for level in self.levels:
            x, real = level(x, real)
        return x[:, 0]


class MeanQuery(nn.Module):
    """Table 3's "w/o Query Net": the average of the real events, `[B, d]`."""

    def forward(self, x: Tensor, real: Tensor | None) -> Tensor:
        return x.mean(1) if real is None else masked(x, real).sum(1) / real.sum(1, keepdim=True).clamp_min(1)


class Whitening(nn.Module):
    """Decorrelates queries `[B, d]` with the running mean and covariance of those seen in training.

    Scaling each coordinate (batch norm) cannot spread a query that is nearly one-dimensional; its principal axes must be
    brought to one variance. The statistics are buffers and carry no gradient: x → (x - m) C^(-1/2).
    """

    def __init__(self, width: int, momentum: float = 0.05, floor: float = 1e-3) -> None:
        super().__init__()
        self.momentum, self.floor = momentum, floor
        self.mean: Tensor
        self.covariance: Tensor
        self.transform: Tensor
        self.seen: Tensor
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("covariance", torch.eye(width))
        self.register_buffer("transform", torch.eye(width))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        if self.training and x.shape[0] > 1:
            self._learn(x.detach().float())
        return (x - self.mean) @ self.transform

    @torch.no_grad()
    def _learn(self, x: Tensor) -> None:
        self.seen += 1
        rate = max(self.momentum, 1.0 / float(self.seen))
        self.mean.lerp_(x.mean(0), rate)
        centred = x - self.mean
        self.covariance.lerp_(centred.T @ centred / x.shape[0], rate)
        values, vectors = torch.linalg.eigh(self.covariance)
        values = values.clamp_min(values[-1].clamp_min(1e-12) * self.floor)
        self.transform.copy_(vectors @ torch.diag(values.rsqrt()) @ vectors.T)


def query_norm(name: str, width: int) -> nn.Module:
    """`whiten` (ours), `layer`, `batch` (Lample et al.) or `none`: queries and sub-keys on one scale."""
    kinds: dict[str, Callable[[int], nn.Module]] = {"whiten": Whitening, "layer": nn.LayerNorm, "batch": nn.BatchNorm1d}
    return kinds[name](width) if name in kinds else nn.Identity()


def _pad_front(x: Tensor, real: Tensor | None, multiple: int) -> tuple[Tensor, Tensor | None]:
    short = -x.shape[1] % multiple
    if not short:
        return x, real
    if real is None:
        real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    return functional.pad(x, (0, 0, short, 0)), functional.pad(real, (short, 0))
