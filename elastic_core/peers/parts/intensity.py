"""Intensities of marks in continuous time (SMA, Chen et al. 2021), and what models share whose attention is modulated by them:
the marks of events, the time between them, and CTReg. Which time is read and why, and its scale: peers/sma.py.

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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import left_align
from elastic_core.data.item_features import genre_table
from elastic_core.models import Batch, Catalog, ModelConfig, Recommender, Weight

NODES = 8  # of the integral
LEAST = 1e-12  # an intensity whose logarithm is taken
LEAST_USUAL = 1e-3  # of log(1 + Δ / unit): data whose events all happen at once
INVERSE_SOFTPLUS_OF_ONE = math.log(math.e - 1)  # softplus of it is 1
TIME_UNIT = 60.0  # seconds: beyond, intervals count by their logarithm
MARKS = 32  # at most; the rarest genres beyond are one
CHANNELS = 8  # width of g, of which the paper says nothing


class EventClock(NamedTuple):
    """Kinds of events and the time between them, in usual intervals; 1 where an interval is not known."""

    marks: Tensor  # [B, N, E] 0 on padding
    since: Tensor  # [B, N] since the event before
    until: Tensor  # [B, N] until the event after
    ended: Tensor  # [B, N] True where the event after is known too

    def left_aligned(self, real: Tensor | None) -> "EventClock":
        """Turned as `left_align` turns the events."""
        if real is None:
            return self
        times = left_align(torch.stack([self.since, self.until, self.ended.to(self.since)], -1), real)
        return EventClock(left_align(self.marks, real), times[..., 0], times[..., 1], times[..., 2] > 0)


class Intensity(nn.Module):
    """λ of every mark, from a state and the time since."""

    def __init__(self, width: int, marks: int) -> None:
        super().__init__()
        self.marks = marks
        self.endogenous = nn.Linear(width, marks * CHANNELS, bias=False)  # W
        self.exogenous = nn.Parameter(torch.empty(marks, CHANNELS))  # b
        self.outer = nn.Parameter(torch.empty(marks, CHANNELS))  # w
        self.base = nn.Parameter(torch.empty(marks))  # μ
        self.log_scale = nn.Parameter(torch.empty(marks))  # log φ
        nn.init.normal_(self.exogenous, std=0.1)
        nn.init.normal_(self.outer, std=0.1)
        nn.init.constant_(self.base, INVERSE_SOFTPLUS_OF_ONE)
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
        return self._decay_to(self._excitation(h), since)

    def interval_surprise(self, h: Tensor, took: Tensor, marks: Tensor) -> Tensor:
        """CTReg of intervals `[...]`: states they began with `[..., d]`, how long they took, what ended them `[..., E]`."""
        driven = self._excitation(h)
        event = (self._decay_to(driven, took) * marks).sum(-1)
        inside = self._decay_to(driven.unsqueeze(-3), took.unsqueeze(-1) * self.nodes)  # [..., nodes, E]
        return took * (inside.mean(-1) @ self.weights.to(inside.dtype)) - event.clamp_min(LEAST).log()

    def own_intensities(self, h: Tensor, since: Tensor, clock: EventClock) -> Tensor:
        """The intensity of every event's own mark, in its own state: h `[B, N, d]` → `[B, N]`."""
        return (self(h, since) * clock.marks).sum(-1)

    def later_intensities(self, h: Tensor, clock: EventClock) -> Tensor:
        """The intensity of j's mark in the state at i, λ(t | H_t, v_k), `since` the event before i: h `[B, n, d]` of the last n
        events → `[B, n, N]`."""
        return self(h, clock.since[:, -h.shape[1] :]) @ clock.marks.transpose(-1, -2)

    def _excitation(self, h: Tensor) -> Tensor:
        driven: Tensor = self.endogenous(h).unflatten(-1, self.outer.shape)
        return driven.to(self.outer.dtype)  # under autocast too: logarithms follow

    def _decay_to(self, driven: Tensor, since: Tensor) -> Tensor:
        g = (driven + since[..., None, None] * self.exogenous).sigmoid()
        scale = self.log_scale.exp()
        return scale * functional.softplus(((g * self.outer).sum(-1) + self.base) / scale)


@dataclass(frozen=True, kw_only=True)
class ModulatedConfig(ModelConfig):
    ctreg_weight: Weight = 0.0  # γ


def mark_table(catalog: Catalog, most: int = MARKS) -> np.ndarray:
    """How much every item is of which mark, float32 `[n_items + 1, E]`: rows add up to 1, that of padding is 0. The marks are the
    commonest genres, then one for the rarest and for items that have none."""
    holds = genre_table(catalog)[1]
    order = np.argsort(-holds.sum(0), kind="stable")
    few = len(order) > most
    common, rest = holds[:, order[: most - few]], holds[:, order[most - few :]].sum(1, keepdims=True)
    rest = rest + (holds.sum(1, keepdims=True) == 0)
    rest[0] = 0
    if not rest.any():
        rest = rest[:, :0]
    elif common.shape[1] == most:  # no room for a mark of those that have none: they are with the rarest
        common, rest = common[:, :-1], rest + common[:, -1:]
    table = np.concatenate([common, rest], 1)
    return (table / np.maximum(table.sum(1, keepdims=True), 1)).astype(np.float32)


class Modulated(Recommender):
    """Knows what kinds of events there are and how long a usual interval between two is."""

    config: ModulatedConfig
    marks: Tensor
    mean_interval: Tensor

    def __init__(self, config: ModulatedConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.register_buffer("marks", torch.tensor(mark_table(catalog)), persistent=False)
        self.register_buffer("mean_interval", torch.tensor(1.0))  # the mean interval, on its logarithmic scale

    @torch.no_grad()
    def calibrate(self, batch: Batch, rate: float = 1.0) -> None:
        """Learns what a usual interval is."""
        after, ended = self._log_intervals(batch)
        if ended.any():
            self.mean_interval += rate * (after[ended].mean() - self.mean_interval)

    def auxiliary_weights(self) -> dict[str, float]:
        return {"ctreg": self.config.ctreg_weight} if self.config.ctreg_weight else {}

    def saved_by_intensities(self, times: int = 1) -> int:
        """Numbers of an event that intensities keep for the backward pass, which are asked `times` times, and for CTReg."""
        evaluations = times + (NODES + 1 if self.config.ctreg_weight else 0)
        return self.marks.shape[1] * (2 * CHANNELS + 8) * evaluations

    # --- for the models themselves -----------------------------------------------------------------------------------

    def _log_intervals(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """From every event to the one after it, on the logarithmic scale: `[B, N - 1]`, and where both are there."""
        ended = batch.real[:, :-1] & batch.real[:, 1:]
        if batch.times is None:
            return self.mean_interval.expand(ended.shape), torch.zeros_like(ended)
        seconds = (batch.times[:, 1:] - batch.times[:, :-1]).clamp_min(0)  # whole numbers: nothing is lost before the logarithm
        return (seconds.to(self.mean_interval.dtype) / TIME_UNIT).log1p(), ended

    def _event_clock(self, batch: Batch) -> EventClock:
        after, ended = self._log_intervals(batch)
        after = torch.where(ended, after / self.mean_interval.clamp_min(LEAST_USUAL), 1.0)
        edge = after.new_ones(len(after), 1)
        ended = functional.pad(ended, (0, 1))
        return EventClock(self.marks[batch.items], torch.cat([edge, after], 1), torch.cat([after, edge], 1), ended)

    def _needs_ctreg(self, batch: Batch) -> bool:
        """Whether CTReg is asked of a batch: it is learned from, and there are times."""
        return batch.targets is not None and batch.times is not None and self.config.ctreg_weight > 0

    def _ctreg(self, intensity: Intensity, h: Tensor, clock: EventClock) -> Tensor:
        """CTReg, the mean over intervals, from what histories say after every event, h `[B, N, d]`."""
        surprise = intensity.interval_surprise(h[:, :-1], clock.until[:, :-1], clock.marks[:, 1:])
        began = clock.ended[:, :-1]  # picked out, a device would have to be asked how many
        return surprise.where(began, 0.0).sum() / began.sum().clamp_min(1)

    def _scale_ctreg(self, batch: Batch, surprise: Tensor | None) -> dict[str, Tensor]:
        """CTReg as a batch's share of it: a batch counts as its targets do."""
        if surprise is None or batch.targets is None:
            return {}
        return {"ctreg": surprise * len(batch.places.items)}
