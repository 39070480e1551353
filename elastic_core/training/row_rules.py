"""The rules by which rows of a bank learn: what each keeps of a row besides the row, and how far a gradient moves it.

Row-wise Adagrad, one number s per row beside the row w (Gupta et al. 2014; the usual one of embedding tables):

    s ← s + mean(g²)        w ← w - rate · g / (√s + ε)

A row with g = 0 does not move, so a step equals that of the same rule written over the whole table. Weight decay does not reach
the rows.
"""

from typing import ClassVar

import torch
from torch import Tensor

from elastic_core.layers.row_bank import RowBank

EPS = 1e-10


class RowAdagrad:
    """`kept`: of all K rows of a bank their s, `squares [K]`. `rate`: the learning rate of a bank that has none of its own."""

    signed: ClassVar[tuple[str, ...]] = ()  # what of `kept` may be below zero

    def __init__(self, bank: RowBank, rate: float) -> None:
        self.bank, self.rate = bank, bank.rate or rate
        self.kept = {"squares": bank.weight.new_zeros(len(bank.weight))}

    def moves(self, numbers: Tensor, gradient: Tensor) -> Tensor:
        """How far rows `numbers [r]`, each once, move by their gradients `[r, d]`, which are overwritten: `[r, d]`."""
        squares = self.kept["squares"][numbers] + torch.linalg.vector_norm(gradient, dim=1).square() / gradient.shape[1]
        self.kept["squares"][numbers] = squares
        return gradient.mul_(-self.rate / (squares.sqrt() + EPS).unsqueeze(1))
