"""Dropout with cheap noise on a CPU: one draw of 64 bits decides on four numbers.

torch's own draws a uniform number for each, one after the other, which took a quarter of a training step; 16 bits hold any
p to 1/65,536, and what is kept is scaled by exactly what is kept on average. Other devices use torch's.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

LEVELS = 1 << 16


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Sets elements of `x` to 0 with probability p, rounded to 1/65,536 on a CPU, and scales the others so that the mean stays.

    The noise comes from torch's generator. Raises ValueError unless 0 ≤ p ≤ 1."""
    if not 0 <= p <= 1:
        raise ValueError(f"p must lie in 0 … 1, not {p}")
    if not training or round(p * LEVELS) == 0:
        return x
    kept = noise(x, p)
    return functional.dropout(x, p) if kept is None else x * kept


def noise(x: Tensor, p: float) -> Tensor | None:
    """What `dropout` multiplies `x` by, on a CPU; None where nothing or everything is dropped, elsewhere, and if compiled."""
    dropped = round(p * LEVELS)
    if x.device.type != "cpu" or dropped in (0, LEVELS) or torch.compiler.is_compiling():
        return None
    bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)
    kept = torch.empty(x.shape, dtype=x.dtype)
    torch.ge(bits[: x.numel()].view(x.shape), dropped - LEVELS // 2, out=kept)
    return kept.mul_(LEVELS / (LEVELS - dropped))


class Dropout(nn.Module):
    """`dropout` while training, nothing else."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"
