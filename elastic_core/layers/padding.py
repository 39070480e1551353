"""Padding must not speak. `real` is True on events, `[B, N]`, or None where nothing is padded: then nothing is spent on it."""

from torch import Tensor


def masked(x: Tensor, real: Tensor | None) -> Tensor:
    """`[B, N, d]` with zeros on padding."""
    return x if real is None else x * real.unsqueeze(-1)
