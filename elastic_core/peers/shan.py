"""SHAN, the sequential hierarchical attention network (Ying et al. 2018), a host of self-modulating attention (Chen et al. 2021):
attention over what somebody liked long ago gives one vector, and attention over that vector and the recent events the state.

    α_j = softmax over L of  u · ReLU(W₁ x_j + b₁)             u_long = Σ_{j in L} α_j x_j
    β   = softmax over {u_long} ∪ S of  u · ReLU(W₂ y + b₂)    state = β₀ u_long + Σ_{j in S} β_j x_j

so the state is one mean of the events, Σ ω_j x_j with ω_j = β₀ α_j or β_j; its inner product with an item's row is the score.
As in the paper one table is read and scored with, so what was just met is always alike: SHAN cannot learn by heart which item
follows which, as others can.

    S   paper: the items of the running session, a day's. Here the last three events: data say nothing of sessions, and the
        films of one day are many
    L   paper: the items of all earlier sessions, a set. Here all events before those, as often as they happened; if there are
        none, S stands alone
    u   paper: a vector learned for each user. Here U · mean of the events so far + u₀, because models are asked about people
        that no training has seen

The paper learns from pairs (BPR); here the loss is the softmax over all items, at every position.
As published, events of L and S are bags: their order is seen only in who is in which.

`intensity` (SMA) multiplies ω_j by the intensity of event j's mark and does not normalise again, with the state as it was without
for h: `state` and CTReg as in peers/sma.py. (The paper compares with SHAN, and puts its layer into DIN and SASRec alone; this is
ours.)
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import SPREAD
from elastic_core.errors import InputError
from elastic_core.models import Batch, Catalog, Encoded, Variant, register
from elastic_core.peers.parts.blocks import make_embedding
from elastic_core.peers.parts.intensity import Intensity, Modulated, ModulatedConfig

SHORT = 3  # events of S
READ = 0.3  # standard deviation of events at the start: where they are small, all are alike to attention, and little moves


@dataclass(frozen=True, kw_only=True)
class SHANConfig(ModulatedConfig, name="shan", label="SHAN"):
    intensity: Literal["none", "state"] = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ctreg_weight and self.intensity == "none":
            raise InputError("model.ctreg_weight is of intensities: take model.intensity=state with it")


@register(SHANConfig)
class SHAN(Modulated):
    """Learns from every position at once; `layers` and `heads` are not used. Holds N x N weights."""

    objective = "all"
    variants = (
        Variant("SHAN", {}, "Attention over the distant past, then over its result and the last few events."),
        Variant("SHAN + SMA", {"intensity": "state"}, "SHAN whose events count as intensely as their kind is happening."),
        Variant(
            "SHAN + SMA + CTReg", {"intensity": "state", "ctreg_weight": 0.1},
            "The same, and its intensities are to explain when events happen.",
        ),
    )  # fmt: skip
    causal = True
    config: SHANConfig

    def __init__(self, config: SHANConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.reads_times = config.intensity != "none"
        self.events = make_embedding(config, self.n_items, positions=False)
        self.events.scale = READ / SPREAD
        self.long = nn.Linear(config.width, config.width)  # W₁, b₁
        self.both = nn.Linear(config.width, config.width)  # W₂, b₂
        self.user_projection = nn.Linear(config.width, config.width, bias=False)  # U
        self.base_user = nn.Parameter(torch.randn(config.width) / math.sqrt(config.width))  # u₀
        self.intensity = Intensity(config.width, self.marks.shape[1]) if self.reads_times else None

    def forward(self, batch: Batch) -> Encoded:
        states, surprise = self._encode(batch, slice(None))
        return Encoded(states, {}, self._scale_ctreg(batch, surprise))

    def last_state(self, batch: Batch) -> Tensor:
        """Of the last row alone."""
        return self._encode(replace(batch, targets=None), slice(-1, None))[0][:, -1]

    def last_weights(self, batch: Batch) -> Tensor:
        """`AttentionModel`: what the state is a mean, or a modulated sum, of events by."""
        x = self.events(batch.items, batch.padded)
        weights = self._event_weights(x, batch.real, slice(-1, None))
        if self.intensity is not None:
            weights = weights * self.intensity.later_intensities(weights @ x, self._event_clock(batch))
        return weights.unsqueeze(0) * batch.real[:, None]

    def saved_per_event(self, columns: int) -> int:
        numbers = 12 * columns + 16 * self.config.width
        if self.intensity is not None:
            numbers += self.saved_by_intensities() + 3 * columns + 4 * self.config.width
        return -(-numbers // self.config.layers)  # it has one, whatever the setting says

    # --- inside ------------------------------------------------------------------------------------------------------

    def _encode(self, batch: Batch, rows: slice) -> tuple[Tensor, Tensor | None]:
        """States `[B, n, d]` of these rows; and CTReg, if it is asked."""
        x = self.events(batch.items, batch.padded)
        weights = self._event_weights(x, batch.real, rows)
        h = weights @ x
        if self.intensity is None:
            return h, None
        clock = self._event_clock(batch)
        modulated = weights * self.intensity.later_intensities(h, clock)
        return modulated @ x, self._ctreg(self.intensity, h, clock) if self._needs_ctreg(batch) else None

    def _event_weights(self, x: Tensor, real: Tensor, rows: slice) -> Tensor:
        """ω, `[B, n, N]`: rows add up to 1. A row of padding has itself, a zero."""
        place = torch.arange(x.shape[1], device=x.device)
        ago = place[rows].unsqueeze(1) - place
        short = (ago >= 0) & (ago < SHORT) & real.unsqueeze(1) | (ago == 0)
        old = (ago >= SHORT) & real.unsqueeze(1)
        has_old = old.any(-1, keepdim=True)  # [B, n, 1]
        mean = x.cumsum(1) / real.cumsum(1).clamp_min(1).unsqueeze(-1)
        u = (self.user_projection(mean) + self.base_user)[:, rows]
        alpha = _masked_softmax((u @ functional.relu(self.long(x)).transpose(1, 2)), old | ~has_old) * has_old
        beyond = (u * functional.relu(self.both(alpha.to(x.dtype) @ x))).sum(-1, keepdim=True)
        scores = torch.cat([beyond, u @ functional.relu(self.both(x)).transpose(1, 2)], -1)
        beta = _masked_softmax(scores, torch.cat([has_old, short], -1))
        return beta[..., :1] * alpha + beta[..., 1:]


def _masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    return scores.masked_fill(~allowed, -torch.inf).softmax(-1)
