"""The rules by which rows of a bank learn: what each keeps of a row besides the row, and how far a gradient moves it.

Row-wise Adagrad, one number s per row beside the row w (Gupta et al. 2014; the usual one of embedding tables):

    s ← s + mean(g²)        w ← w - rate · g / (√s + ε)

A row with g = 0 does not move, so a step equals that of the same rule written over the whole table. Weight decay does not reach
the rows.

Lazy Adam, for tables of items: the training's own Adam or AdamW, with

    m ← β₁ m + (1 - β₁) g        v ← β₂ v + (1 - β₂) g²        w ← w - rate · (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)

for the rows that step t looked up and no others; t counts the training's steps, not a row's. Of what dense Adam does to a row in
the n steps in which nobody looks it up, its momentum is made good when it is looked up again, before the rule above:

    w ← w - rate · (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε) · Σ_{j=1..n} (β₁ / √β₂)ʲ        m ← β₁ⁿ m        v ← β₂ⁿ v

which without it would be lost, nine tenths of every gradient of a row that is rarely met. Left out is the weight decay of these
steps, and that the row is read once before it has moved. Where every row is looked up in every step this is dense Adam.
"""

from typing import ClassVar, Protocol

import torch
from torch import Tensor

from elastic_core.core.config import TrainConfig
from elastic_core.scale.row_bank import RowBank

EPS = 1e-10
BETAS, ADAM_EPS = (0.9, 0.999), 1e-8  # torch's, as of all other weights
FADES = BETAS[0] / BETAS[1] ** 0.5  # what a step without gradient leaves of the one before it


class Rule(Protocol):
    """`kept`: what it keeps of all K rows of a bank, by name, `[K]` or `[K, d]`: numbers of which only `signed` may be below
    zero, or whole ones that count steps."""

    signed: ClassVar[tuple[str, ...]]
    kept: dict[str, Tensor]

    def moves(self, numbers: Tensor, gradient: Tensor, step: int) -> Tensor:
        """How far rows `numbers [r]`, each once, move in this step, the first being 1, by their gradients `[r, d]`, which are
        overwritten: `[r, d]`."""
        ...


def rule_of(bank: RowBank, train: TrainConfig) -> Rule:
    return LazyAdam(bank, train) if bank.rule == "adam" else RowAdagrad(bank, train)


def kept_numbers(bank: RowBank) -> int:
    """How many numbers the rule of a bank keeps."""
    return (2 * bank.weight.numel() if bank.rule == "adam" else 0) + len(bank.weight)


class RowAdagrad:
    signed: ClassVar[tuple[str, ...]] = ()

    def __init__(self, bank: RowBank, train: TrainConfig) -> None:
        self.rate = bank.rate or train.learning_rate
        self.kept = {"squares": bank.weight.new_zeros(len(bank.weight))}

    def moves(self, numbers: Tensor, gradient: Tensor, step: int) -> Tensor:
        squares = self.kept["squares"][numbers] + torch.linalg.vector_norm(gradient, dim=1).square() / gradient.shape[1]
        self.kept["squares"][numbers] = squares
        return gradient.mul_(-self.rate / (squares.sqrt() + EPS).unsqueeze(1))


class LazyAdam:
    signed: ClassVar[tuple[str, ...]] = ("exp_avg",)

    def __init__(self, bank: RowBank, train: TrainConfig) -> None:
        self.bank, self.rate = bank, bank.rate or train.learning_rate
        self.decay, self.decoupled = train.weight_decay, train.optimizer == "adamw"
        met = torch.zeros(len(bank.weight), dtype=torch.int32, device=bank.weight.device)  # the last step that looked a row up
        self.kept = {"exp_avg": torch.zeros_like(bank.weight), "exp_avg_sq": torch.zeros_like(bank.weight), "met": met}

    def moves(self, numbers: Tensor, gradient: Tensor, step: int) -> Tensor:
        first, second = (1 - beta**step for beta in BETAS)
        mean, square, met = (values.index_select(0, numbers) for values in self.kept.values())
        idle = (step - 1 - met).clamp_min(0).to(mean.dtype).unsqueeze(1)
        drifted = mean.div(square.sqrt().div_(second**0.5).add_(ADAM_EPS))
        drifted.mul_((FADES**idle - 1).mul_(self.rate / first * FADES / (1 - FADES)))
        old = self.bank.weight.index_select(0, numbers).add_(drifted) if self.decay else None
        if old is not None and not self.decoupled:
            gradient.add_(old, alpha=self.decay)
        mean.mul_(BETAS[0] ** idle).lerp_(gradient, 1 - BETAS[0])
        square.mul_(BETAS[1] ** idle).mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        for values, found in zip(self.kept.values(), (mean, square, met.fill_(step)), strict=True):
            values.index_copy_(0, numbers, found)
        moved = mean.div_(square.sqrt_().div_(second**0.5).add_(ADAM_EPS)).mul_(-self.rate / first).add_(drifted)
        return moved if old is None or not self.decoupled else moved.add_(old, alpha=-self.rate * self.decay)
