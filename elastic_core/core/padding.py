"""Padding must not speak. `real` is True on events, `[B, N]`, or None where nothing is padded: then nothing is spent on it.

Rows are left-padded: the most recent event is the last column. An empty history keeps its last column as its only place, so
that no row of an attention is without a key.
"""

import torch
from torch import Tensor
from torch.nn import functional


def masked(x: Tensor, real: Tensor | None) -> Tensor:
    """`[B, N, d]` with zeros on padding."""
    return x if real is None else x * real.unsqueeze(-1)


def readable(real: Tensor) -> Tensor:
    """The places `[B, N]` that attention may read: the events, or the last column of an empty history."""
    return torch.cat([real[:, :-1], torch.ones_like(real[:, -1:])], dim=1)


def left_align(x: Tensor, real: Tensor | None) -> Tensor:
    """Rows of `[B, N, d]` turned until their first event is in column 0 and padding comes last: a causal mask then hides it."""
    return x if real is None else _turned(x, x.shape[1] - readable(real).sum(1))


def right_align(x: Tensor, real: Tensor | None) -> Tensor:
    """The inverse of `left_align`, with zeros on padding: there x has read what no padding may tell, later events."""
    return x if real is None else masked(_turned(x, readable(real).sum(1)), readable(real))


def _turned(x: Tensor, by: Tensor) -> Tensor:
    """Row b of `[B, N, d]` turned to the left by `by[b]` columns. Whole vectors are moved, by one index each."""
    rows, n = x.shape[:2]
    column = (torch.arange(n, device=x.device) + by[:, None]) % n
    place = column + n * torch.arange(rows, device=x.device)[:, None]
    return x.flatten(0, 1).index_select(0, place.flatten()).view_as(x)


def pad_front(x: Tensor, real: Tensor | None, multiple: int) -> tuple[Tensor, Tensor | None]:
    """Return `[B, N, d]` and its mask, padded in front to a multiple of so many columns."""
    short = -x.shape[1] % multiple
    if not short:
        return x, real
    real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if real is None else real
    return functional.pad(x, (0, 0, short, 0)), functional.pad(real, (short, 0))
