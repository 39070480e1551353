"""Intensities of marks in continuous time, and attention modulated by them (SMA, Chen et al. 2021).

    H = softmax(Q Kᵀ / √d) V_seq         h: a row of H, what the history says after an event
    g_k = σ(W_k h + b_k s)               s: time since that event
    λ_k = φ_k log(1 + exp((w_k · g_k + μ_k) / φ_k))

Marks are kinds of events; `marks [B, N, E]` says how much an event is of which kind, and each row adds up to 1. A weight of the
attention is multiplied by an intensity and not normalised again. Intensities start near 1, where this is plain attention.

CTReg, the negative of R(Θ) of one interval between two events, from h after the first, over the time s that it took:

    −log λ_k(s) + (1/E) Σ_k' ∫₀ˢ λ_k'(u) du        k: the mark of the event that ended it

Unit of an intensity: one usual interval, evenly spread over the marks, so that 1 is the mean of all (the factor 1/E above).
The integral is a Gauss-Legendre sum in √u: the same numbers every time, dense where intervals begin.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import dropout, fused, left_align, merge_heads, readable, split_heads

NODES = 8  # of the integral
LEAST = 1e-12  # an intensity whose logarithm is taken
EVEN = math.log(math.e - 1)  # softplus of it is 1


class Clock(NamedTuple):
    """Kinds of events and the time between them, in usual intervals; 1 where an interval is not known."""

    marks: Tensor  # [B, N, E] 0 on padding
    since: Tensor  # [B, N] since the event before
    until: Tensor  # [B, N] until the event after
    ended: Tensor  # [B, N] True where the event after is known too

    def left(self, real: Tensor | None) -> "Clock":
        """Turned as `left_align` turns the events."""
        if real is None:
            return self
        times = left_align(torch.stack([self.since, self.until, self.ended.to(self.since)], -1), real)
        return Clock(left_align(self.marks, real), times[..., 0], times[..., 1], times[..., 2] > 0)


class Intensity(nn.Module):
    """λ of every mark, from a state and the time since. `channels` is the width of g, of which the paper says nothing."""

    def __init__(self, width: int, marks: int, channels: int) -> None:
        super().__init__()
        self.marks = marks
        self.endogenous = nn.Linear(width, marks * channels, bias=False)  # W
        self.exogenous = nn.Parameter(torch.empty(marks, channels))  # b
        self.outer = nn.Parameter(torch.empty(marks, channels))  # w
        self.base = nn.Parameter(torch.empty(marks))  # μ
        self.log_scale = nn.Parameter(torch.empty(marks))  # log φ
        nn.init.normal_(self.exogenous, std=0.1)
        nn.init.normal_(self.outer, std=0.1)
        nn.init.constant_(self.base, EVEN)
        nn.init.zeros_(self.log_scale)
        nodes, weights = np.polynomial.legendre.leggauss(NODES)  # on -1 … 1
        roots = [(float(x) + 1) / 2 for x in nodes]
        self.nodes: Tensor
        self.weights: Tensor
        self.register_buffer("nodes", torch.tensor([root**2 for root in roots]), persistent=False)
        self.register_buffer(
            "weights", torch.tensor([root * float(w) for root, w in zip(roots, weights, strict=True)]), persistent=False
        )

    def forward(self, h: Tensor, since: Tensor) -> Tensor:
        """States `[..., d]` and the time since `[...]` → λ `[..., E]`."""
        return self._at(self._driven(h), since)

    def surprise(self, h: Tensor, took: Tensor, marks: Tensor) -> Tensor:
        """CTReg of M intervals, `[M]`: states `[M, d]` they began with, how long they took `[M]`, what ended them `[M, E]`."""
        driven = self._driven(h)
        event = (self._at(driven, took) * marks).sum(-1)
        inside = self._at(driven.unsqueeze(1), took.unsqueeze(-1) * self.nodes)  # [M, nodes, E]
        return took * (inside.mean(-1) @ self.weights.to(inside.dtype)) - event.clamp_min(LEAST).log()

    def factors(self, h: Tensor, clock: Clock, by: str, later: bool = False) -> Tensor:
        """What the weight of event j for the state at i is multiplied by, `[B, n or 1, N]`, from what the histories say after
        every event asked, h `[B, n, d]`:

        by = `state`   the intensity of j's mark in the state at i, `since` the event before i (the paper's λ(t | H_t, v_k))
        by = `event`   the intensity of j's mark in the state at j, and for `later` the time that passed after j: for every
                       state but j's own, which cannot know it and takes a usual interval
        """
        if by == "state":
            return self(h, clock.since) @ clock.marks.transpose(-1, -2)
        if not later:
            return (self(h, clock.since) * clock.marks).sum(-1).unsqueeze(1)
        after, own = ((self(h, s) * clock.marks).sum(-1) for s in (clock.until, torch.ones_like(clock.until)))
        itself = torch.eye(h.shape[1], dtype=torch.bool, device=h.device)
        return torch.where(itself, own.unsqueeze(1), after.unsqueeze(1))

    def _driven(self, h: Tensor) -> Tensor:
        driven: Tensor = self.endogenous(h).unflatten(-1, self.outer.shape)
        return driven.to(self.outer.dtype)  # under autocast too: logarithms follow

    def _at(self, driven: Tensor, since: Tensor) -> Tensor:
        g = (driven + since[..., None, None] * self.exogenous).sigmoid()
        scale = self.log_scale.exp()
        return scale * functional.softplus(((g * self.outer).sum(-1) + self.base) / scale)


class ModulatedAttention(nn.Module):
    """Causal self-attention of `x [B, N, d]` whose weight of event j for the state at i is multiplied by `Intensity.factors`.

    Without `later`, `event` is fused attention over scaled values; the others hold N x N weights. Heads share intensities.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        dropout: float,
        marks: int,
        channels: int,
        *,
        by: str,
        later: bool = False,
        fused: bool = True,
    ) -> None:
        super().__init__()
        self.heads, self.p, self.by, self.later = heads, dropout, by, later
        self.fused = fused and by == "event" and not later
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)  # a key bias cancels in the softmax
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.history = nn.Linear(width, width)  # V_seq
        self.intensity = Intensity(width, marks, channels)

    def forward(self, x: Tensor, clock: Clock) -> tuple[Tensor, Tensor]:
        """The output and H, both `[B, N, d]`, of rows that begin in column 0 (`left_align`)."""
        if self.fused:
            return self._fused(x, clock)
        n = x.shape[1]
        return self._written_out(x, x, torch.ones(n, n, dtype=torch.bool, device=x.device).tril(), clock)

    def last(self, x: Tensor, real: Tensor | None, clock: Clock) -> Tensor:
        """The last row of the output, `[B, 1, d]`, of rows that end in the last column; for `state` alone."""
        allowed = None if real is None else readable(real)[:, None, None, :]
        return self._written_out(x[:, -1:], x, allowed, clock._replace(since=clock.since[:, -1:]))[0]

    def last_weights(self, x: Tensor, real: Tensor | None, clock: Clock, h: Tensor) -> Tensor:
        """What the last row multiplies every event by, `[B, H, N]`, of rows that end in the last column; `h` as `forward` gives
        it, turned to the right."""
        q, k = self._heads((self.query,), x[:, -1:])[0], self._heads((self.key,), x)[0]
        scores = (q @ k.transpose(-1, -2)).squeeze(-2) / math.sqrt(q.shape[-1])
        weights = (scores if real is None else scores.masked_fill(~readable(real).unsqueeze(1), -torch.inf)).softmax(-1)
        if self.by == "state":
            h, clock = h[:, -1:], clock._replace(since=clock.since[:, -1:])
        return weights * self.intensity.factors(h, clock, self.by, self.later)[:, -1:]

    def _heads(self, maps: tuple[nn.Linear, ...], x: Tensor) -> list[Tensor]:
        return [split_heads(f(x), self.heads) for f in maps]

    def _fused(self, x: Tensor, clock: Clock) -> tuple[Tensor, Tensor]:
        q, k, v, past = self._heads((self.query, self.key, self.value, self.history), x)
        h = merge_heads(functional.scaled_dot_product_attention(q, k, past, is_causal=True))
        factors = (self.intensity(h, clock.since) * clock.marks).sum(-1)
        scaled = v * factors[:, None, :, None].to(v.dtype)
        mixed = fused(q, k, scaled, None, self.p if self.training else 0.0, True)
        return self.output(merge_heads(mixed)), h

    def _written_out(self, asking: Tensor, x: Tensor, allowed: Tensor | None, clock: Clock) -> tuple[Tensor, Tensor]:
        (q,) = self._heads((self.query,), asking)
        k, v, past = self._heads((self.key, self.value, self.history), x)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        weights = (scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)).softmax(-1)
        h = merge_heads(weights @ past)
        factors = self.intensity.factors(h, clock, self.by, self.later).unsqueeze(1)
        weights = dropout(weights, self.p, self.training) * factors
        return self.output(merge_heads(weights @ v)), h
