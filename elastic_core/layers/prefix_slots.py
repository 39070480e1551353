"""Slots that summarise every prefix: the causal dispatcher's running sums, in chunks (ABC attention with given slots).

Slot s at time t holds a softmax average of the past, M_t[s] = Σ_{j<=t} e^{a_j[s]} x_j / Z_t[s] with Z_t[s] = Σ_{j<=t} e^{a_j[s]}.
Position t scores the slots, b_t[s] + q_t · M_t[s], and reads their mixture. Written directly this needs N x k x d numbers; in
chunks of C it needs N/C x k x d for the states at the chunk borders and N x C inside, all of it plain matrix products:
4kd + 4C(d + k) multiplications per event whatever the length.

All of it is `precise`: float32 at least, under autocast too.
"""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

CAP = 30.0  # bounded logits: e^±30 needs no running maximum in float32, so a prefix never depends on what follows
P = ParamSpec("P")
R = TypeVar("R")


def precise(function: Callable[P, R]) -> Callable[P, R]:
    """Runs `function` without autocast and with its half-precision tensors (given by position) as float32.

    A sum in bfloat16 stops growing at 256 times its terms, and a logit of 20 rounded to 8 bits is off by a factor of e^0.06.
    """

    def raised(x: Any) -> Any:
        return x.float() if isinstance(x, Tensor) and x.dtype in (torch.bfloat16, torch.float16) else x

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        device = next(x.device.type for x in args if isinstance(x, Tensor))
        with torch.autocast(device, enabled=False):
            return function(*(raised(x) for x in args), **kwargs)

    return run


@precise
def weigh(logits: Tensor) -> Tensor:
    """e^a with a softly bounded to ±CAP."""
    return (CAP * torch.tanh(logits / CAP)).exp()


def add_product(total: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """total + a @ b, into `total` itself: what costs is a pass over N x d numbers. `b` may lack leading dimensions of `a`."""
    b = b.to(total.dtype).expand(*a.shape[:-2], -1, -1)
    total.flatten(0, -3).baddbmm_(a.to(total.dtype).flatten(0, -3), b.flatten(0, -3))
    return total


@precise
def read_prefixes(x: Tensor, weights: Tensor, queries: Tensor, bias: Tensor, chunk: int = 32) -> tuple[Tensor, Tensor]:
    """One pass over all prefixes.

    x `[B, N, d]` events; weights `[B, H, N, k]` e^a, zero on padding; queries `[B, H, N, d]`; bias `[B, H, N, k]`.
    Returns the slot softmax `[B, H, N, k]` and Σ_s w_s M_t[s] `[B, H, N, d]`. A prefix without events reads zeros.
    """
    n = x.shape[1]
    short = -n % chunk
    if short:
        x, weights, queries, bias = (functional.pad(y, (0, 0, 0, short)) for y in (x, weights, queries, bias))
    x = x.unflatten(1, (-1, chunk)).unsqueeze(1)  # [B, 1, c, C, d]
    weights, queries, bias = (y.unflatten(2, (-1, chunk)) for y in (weights, queries, bias))

    # what every chunk inherits: sums over the chunks before it (shifted, not subtracted: exact, and blind to the chunk itself)
    totals = weights[:, :, :-1].transpose(-1, -2) @ x[:, :, :-1]  # [B, H, c - 1, k, d]
    before = functional.pad(totals, (0, 0, 0, 0, 1, 0)).cumsum(2)
    mass = weights.flatten(2, 3).cumsum(2).unflatten(2, weights.shape[2:4])  # Z_t
    mass = mass + (mass == 0)  # a prefix without events reads zeros, and must not divide by next to nothing

    # inside a chunk: masked products (filled, not multiplied: what lies ahead may be too large for a float)
    ahead = torch.ones(chunk, chunk, dtype=torch.bool, device=x.device).triu(1)
    near = (queries @ x.transpose(-1, -2)).masked_fill(ahead, 0)
    scores = (queries @ before.transpose(-1, -2) + near @ weights) / mass + bias
    slots = scores.softmax(-1)
    shares = slots / mass
    inside = (shares @ weights.transpose(-1, -2)).masked_fill(ahead, 0)
    mixed = add_product(shares @ before, inside, x)
    return slots.flatten(2, 3)[:, :, :n], mixed.flatten(2, 3)[:, :, :n]
