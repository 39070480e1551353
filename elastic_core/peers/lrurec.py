"""LRURec (Yue et al. 2024, Linear Recurrent Units for Sequential Recommendation): linear recurrences, learned in parallel.

    x = norm(dropout(E[item]))
    per block    x ← norm(x + dropout(Re(C h + c)))      h_t = λ ⊙ h_{t−1} + γ ⊙ (B x_t + b),  λ = exp(−e^ν + i e^θ), so |λ| < 1
                 x ← norm(x + dropout(W₂ dropout(gelu(W₁ x))))
    score of i   x · E[i] + bias_i

Post-norm and without positions, as published. Sizes and initial values are those of the released code: 2 d complex states,
a feed-forward layer of 4 d, |λ| from 0.8 to 0.99, normal weights of 0.02 cut at two deviations. There the imaginary part of
c is a parameter that nothing reads; here it is left out. Decays, angles and gains are kept from weight decay, which would pull
every |λ| towards e⁻¹.

The recurrence is the linear recurrent unit (Orvieto et al. 2023). h holds complex numbers; complex maps are written as real ones
on (real, imaginary) pairs, which weights and optimisers know. All h_t at once take log₂ N rounds: two halves whose first elements
started from nothing are put together by adding λ^j times the last state of the first to the j-th of the second (recursive
doubling; O(N log N) and nothing of size N x N). The gradient of a recurrence is the same recurrence backwards,
g_t = λ̄ g_{t+1} + ∂h_t, so h is all that is kept for it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elastic_core.core.layers import zero_padding
from elastic_core.models import Catalog, ModelConfig, Scorer, Variant, register
from elastic_core.peers.parts.recurrent import EXPANSION, RecurrentModel

CHANNELS = 2  # complex states of a recurrence, in multiples of d
SLOWEST, FASTEST = 0.99, 0.8  # |λ| at the start lies between


@dataclass(frozen=True, kw_only=True)
class LRURecConfig(ModelConfig, name="lrurec", label="LRURec"):
    pass


class LinearRecurrence(nn.Module):
    """On `[B, N, d]`, with `channels` complex states. Left padding is nothing: the state stays zero until the first event.

    |λ|² is spread evenly over its ring at the start, the angle over the circle, and γ = √(1 − |λ|²), which keeps h as large as
    its input; all three are learned from there, γ too, in logarithms. The state is float32 (or as the parameters) whatever the
    precision around it.
    """

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 2 * channels)  # B and b
        self.outer = nn.Linear(2 * channels, width)  # C and c
        squared = torch.empty(channels).uniform_(FASTEST**2, SLOWEST**2)
        self.decay = nn.Parameter(squared.clone().log_().mul_(-0.5).log_())  # ν
        self.angle = nn.Parameter(torch.empty(channels).uniform_(1e-6, 2 * math.pi).log_())  # θ
        self.gain = nn.Parameter(squared.neg_().add_(1).log_().mul_(0.5))  # log γ
        for parameter in (*self.inner.parameters(), *self.outer.parameters()):
            nn.init.trunc_normal_(parameter, std=0.02, a=-0.04, b=0.04)

    def poles(self) -> Tensor:
        """λ, complex `[channels]`."""
        return torch.complex(-self.decay.exp(), self.angle.exp()).exp()

    def forward(self, x: Tensor, real: Tensor | None, before: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """`[B, N, d]` → `[B, N, d]` and the state after the last event `[B, channels, 2]`; `before` is what it began from."""
        poles = self.poles()
        h = linear_scan(self._driven_inputs(x, real, before, poles), poles)
        return self._real_output(h), torch.view_as_real(h[:, -1])

    def forward_last(self, x: Tensor, real: Tensor | None, before: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The last row of `forward`, `[B, 1, d]`, from one weighted sum: O(N)."""
        poles = self.poles()
        u, n = self._driven_inputs(x, real, before, poles), x.shape[1]
        h = (u[:, :-1] * pole_powers(poles, n - 1).flip(0)).sum(1) + u[:, -1] if n > 1 else u[:, -1]
        return self._real_output(h.unsqueeze(1)), torch.view_as_real(h)

    def _driven_inputs(self, x: Tensor, real: Tensor | None, before: Tensor | None, poles: Tensor) -> Tensor:
        """What every event adds to the state, complex `[B, N, channels]`; the first also brings what was before."""
        pairs = zero_padding(self.inner(x).to(self.gain.dtype), real).unflatten(-1, (-1, 2))
        u = torch.view_as_complex(pairs * self.gain.exp().unsqueeze(-1))
        if before is None:
            return u
        return torch.cat([u[:, :1] + (poles * torch.view_as_complex(before)).unsqueeze(1), u[:, 1:]], 1)

    def _real_output(self, h: Tensor) -> Tensor:
        return self.outer(torch.view_as_real(h).flatten(-2))


def linear_scan(u: Tensor, poles: Tensor) -> Tensor:
    """h_t = λ h_{t−1} + u_t from h_0 = 0: complex `[B, N, C]`, `[C]` → `[B, N, C]`."""
    return _Scan.apply(u, poles)


def pole_powers(poles: Tensor, n: int) -> Tensor:
    """λ¹ … λⁿ: `[C]` → `[n, C]`, by doubling."""
    powers = poles.unsqueeze(0)
    while len(powers) < n:
        powers = torch.cat([powers, powers * powers[-1]])
    return powers[:n]


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, poles: Tensor) -> Tensor:
        h = _scan_by_doubling(u, poles)
        ctx.save_for_backward(h, poles)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        h, poles = ctx.saved_tensors
        back = _scan_by_doubling(gradient.flip(1), poles.conj()).flip(1)
        return back, (back[:, 1:] * h[:, :-1].conj()).sum((0, 1))


def _scan_by_doubling(u: Tensor, poles: Tensor) -> Tensor:
    n, half = u.shape[1], 1
    size = 1 << (n - 1).bit_length()
    h = functional.pad(u, (0, 0, size - n, 0)) if size > n else u.clone(memory_format=torch.contiguous_format)
    table = pole_powers(poles, max(size // 2, 1))
    while half < size:
        pairs = h.view(len(h), size // (2 * half), 2 * half, -1)
        pairs[:, :, half:] += table[:half] * pairs[:, :, half - 1 : half]
        half *= 2
    return h[:, size - n :].clone() if size > n else h  # a slice would keep all of it for the gradient


@register(LRURecConfig)
class LRURec(RecurrentModel):
    """Learns from every position at once; `heads` is not used. Kept of a person: layers x 4 d numbers."""

    objective = "all"
    variants = (Variant("LRURec", {}, "A recurrence with nothing non-linear in it: learned in parallel, served event by event."),)
    config: LRURecConfig

    def __init__(self, config: LRURecConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.bias = nn.Parameter(torch.zeros(self.n_items + 1))

    def make_recurrence(self) -> LinearRecurrence:
        return LinearRecurrence(self.config.width, CHANNELS * self.config.width)

    def saved_per_event(self, columns: int) -> int:
        return (16 + 6 * CHANNELS + 4 * EXPANSION) * self.config.width

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        groups: dict[bool, list[nn.Parameter]] = {False: [], True: []}
        for name, parameter in self.named_parameters():
            groups[name.endswith((".decay", ".angle", ".gain"))].append(parameter)
        return [{"params": groups[False]}, {"params": groups[True], "weight_decay": 0.0}]

    def scorer(self) -> Scorer:
        return super().scorer()._replace(bias=self.bias)
