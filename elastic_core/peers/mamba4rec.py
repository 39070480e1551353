"""Mamba4Rec (Liu et al. 2024): a selective state space model, which decides event by event what its state forgets and keeps.

    z, u, δ = split(W_in x);   u = SiLU(convolution of the last 4 of u);   v, B, C = split(u)
    Δ = softplus(δ + b),   a = exp(−e^A Δ)                        one number a head and event
    S_t = a_t S_{t−1} + Δ_t v_t B_tᵀ                              d_h x n numbers a head
    y_t = S_t C_t + D v_t;   out = W_out RMSNorm(y ⊙ SiLU(z))

This is the layer of Mamba-2 (Dao and Gu 2024), in which all numbers of a head fade alike. Mamba4Rec has that of Mamba-1, where
each fades by itself, which needs a scan written for a GPU; this one is products of C x C numbers in chunks of C events,
O(N·C·(d + n)), with the states carried between chunks. Sizes are those of Mamba4Rec: 2 d inner numbers, n = 32, a convolution
over 4 events, a feed-forward layer of 4 d, post-norm, no positions. There are two heads of d numbers, as in Mamba-2 at d = 64.
e^A starts between 1 and 16, Δ between 0.001 and 0.1, D at 1.

Symbols: b people, c chunks, h heads, t and j events of a chunk, p numbers of a head, n numbers of B and C.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import in_full_precision, linear, zero_padding
from elastic_core.models import ModelConfig, Variant, register
from elastic_core.peers.parts.recurrent import EXPANSION, RecurrentModel

HEADS, STATE, TAPS, CHUNK = 2, 32, 4, 32
FASTEST, SHORTEST_STEP, LONGEST_STEP = 16.0, 0.001, 0.1


@dataclass(frozen=True, kw_only=True)
class Mamba4RecConfig(ModelConfig, name="mamba4rec", label="Mamba4Rec"):
    """No settings of its own."""


@in_full_precision
def scan_states(v: Tensor, keys: Tensor, queries: Tensor, steps: Tensor, fading: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """S_t C_t for every event, and S after the last.

    v `[B, N, h, p]`, keys (B) and queries (C) `[B, N, n]`, steps (Δ) and fading (log a) `[B, N, h]`, before `[B, h, p, n]`; steps
    and fading are 0 where there is no event. Returns `[B, N, h, p]` and `[B, h, p, n]`."""
    n_events = v.shape[1]
    v, keys, queries, steps, fading = (_cut(x, -n_events % CHUNK) for x in (v, keys, queries, steps, fading))
    total = fading.cumsum(2).movedim(3, 2)  # [B, c, h, C], log of what is left of the chunk's beginning
    is_past = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=v.device).tril()
    remaining = (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(~is_past, -torch.inf).exp()  # [B, c, h, t, j]
    inputs = v.movedim(3, 2) * steps.movedim(3, 2).unsqueeze(-1)  # [B, c, h, C, p]
    inside = (remaining * (queries @ keys.mT).unsqueeze(2)) @ inputs
    written = (inputs * (total[..., -1:] - total).exp().unsqueeze(-1)).mT @ keys.unsqueeze(2)  # [B, c, h, p, n]
    state, inherited = before, []
    for one_left, one_written in zip(total[..., -1:, None].exp().unbind(1), written.unbind(1), strict=True):
        inherited.append(state)
        state = torch.addcmul(one_written, one_left, state)
    read = queries.unsqueeze(2) @ torch.stack(inherited, 1).mT  # [B, c, h, C, p]
    y = torch.addcmul(inside, total.exp().unsqueeze(-1), read)
    return y.movedim(2, 3).flatten(1, 2)[:, :n_events], state


@in_full_precision
def read_last(v: Tensor, keys: Tensor, query: Tensor, steps: Tensor, fading: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """The last row of `scan_states` by one weighted sum, for `query [B, n]`: `[B, h, p]` and the state."""
    total = fading.cumsum(1)
    weights = steps * (total[:, -1:] - total).exp()
    state = before * total[:, -1].exp()[..., None, None] + torch.einsum("bjhp,bjh,bjn->bhpn", v, weights, keys)
    return (state @ query[:, None, :, None]).squeeze(-1), state


def _cut(x: Tensor, missing: int) -> Tensor:
    """Events `[B, N, …]` in chunks `[B, c, C, …]`, zero after the last."""
    return functional.pad(x, (*(0, 0) * (x.ndim - 2), 0, missing)).unflatten(1, (-1, CHUNK))


class SelectiveState(nn.Module):
    """On `x [B, N, d]`. Padding is nothing: Δ is 0 there, so nothing is written and nothing fades.

    A person's state is one row: S of all heads, then what the convolution still reads of the last 3 events."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.channels = 2 * width
        self.mixed = self.channels + 2 * STATE  # what the convolution goes over: v, B and C
        self.inner = nn.Linear(width, self.channels + self.mixed + HEADS, bias=False)
        self.taps = nn.Parameter(torch.empty(TAPS, self.mixed).uniform_(-(TAPS**-0.5), TAPS**-0.5))
        self.taps_bias = nn.Parameter(torch.zeros(self.mixed))
        self.decay = nn.Parameter(torch.empty(HEADS).uniform_(1, FASTEST).log_())  # A
        steps = torch.empty(HEADS).uniform_(math.log(SHORTEST_STEP), math.log(LONGEST_STEP)).exp_()
        self.step = nn.Parameter(steps.expm1_().log_())  # b: softplus of it is what was drawn
        self.skip = nn.Parameter(torch.ones(HEADS))  # D
        self.norm = nn.RMSNorm(self.channels, eps=1e-5)
        self.outer = nn.Linear(self.channels, width, bias=False)

    def forward(self, x: Tensor, real: Tensor | None, before: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._read(x, real, before, last=False)

    def forward_last(self, x: Tensor, real: Tensor | None, before: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The last row of `forward`, `[B, 1, d]`: O(N)."""
        return self._read(x, real, before, last=True)

    def _read(self, x: Tensor, real: Tensor | None, before: Tensor | None, last: bool) -> tuple[Tensor, Tensor]:
        z, u, delta = linear(x, self.inner.weight).split([self.channels, self.mixed, HEADS], -1)
        head = self.channels // HEADS
        if before is None:
            before = x.new_zeros(len(x), HEADS * head * STATE + (TAPS - 1) * self.mixed, dtype=self.taps.dtype)
        state, earlier = before.split([HEADS * head * STATE, (TAPS - 1) * self.mixed], -1)
        u = torch.cat([earlier.view(len(x), TAPS - 1, self.mixed), zero_padding(u, real).to(before.dtype)], 1)
        convolved = sum((u[:, i : i + x.shape[1]] * self.taps[i] for i in range(TAPS)), self.taps_bias)
        v, keys, queries = functional.silu(convolved).split([self.channels, STATE, STATE], -1)
        v = v.unflatten(-1, (HEADS, head))
        steps = zero_padding(functional.softplus(delta.to(before.dtype) + self.step), real)
        parts = v, keys, queries[:, -1] if last else queries, steps, -self.decay.exp() * steps
        y, state = (read_last if last else scan_states)(*parts, state.view(len(x), HEADS, head, STATE))
        y, v, z = (y.unsqueeze(1), v[:, -1:], z[:, -1:]) if last else (y, v, z)
        y = (y + self.skip.unsqueeze(-1) * v).flatten(-2) * functional.silu(z)
        after = torch.cat([state.flatten(1), u[:, -(TAPS - 1) :].flatten(1)], -1)
        return linear(self.norm(y), self.outer.weight), after


@register(Mamba4RecConfig)
class Mamba4Rec(RecurrentModel):
    """Learns from every position at once; `heads` is not used. Kept of a person: layers x (2 d n + 3 (2 d + 2 n)) numbers."""

    objective = "all"
    variants = (Variant("Mamba4Rec", {}, "A state space model that chooses what to forget; here with the layer of Mamba-2."),)
    config: Mamba4RecConfig

    def make_recurrence(self) -> SelectiveState:
        return SelectiveState(self.config.width)

    def saved_per_event(self, columns: int) -> int:
        width, chunk = self.config.width, min(CHUNK, columns)
        inside = HEADS * (3 * chunk + 2 * width * STATE // chunk)  # what a chunk's pairs and states take
        return (24 + 4 * EXPANSION) * width + 14 * STATE + inside

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """Decays, steps and what skips the state are kept from weight decay, as released."""
        groups: dict[bool, list[nn.Parameter]] = {False: [], True: []}
        for name, parameter in self.named_parameters():
            groups[name.endswith((".decay", ".step", ".skip"))].append(parameter)
        return [{"params": groups[False]}, {"params": groups[True], "weight_decay": 0.0}]
