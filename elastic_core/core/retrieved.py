"""What one retrieval from an interest memory found, and the penalty that keeps retrievals spread over it."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from elastic_core.scale.distributed import batch_mean

LEAST_VOTES = 1e-6  # of all votes: what an expert counts that nobody voted for, when a history asks for fewer than k


class Ballots(NamedTuple):
    """Which experts every event voted for, best first, and with what part of all votes: both `[B, N, m]`; padding has none."""

    experts: Tensor
    votes: Tensor


class Retrieved(NamedTuple):
    """What one retrieval found, best first."""

    interests: Tensor  # [B, k, d] gated experts, the P of Eq. 2
    experts: Tensor  # [B, k] their numbers, row · side + column
    scores: Tensor  # [B, k]
    gates: Tensor  # [B, k]
    halves: Tensor  # [B, 2, side] every sub-key's score
    query: Tensor  # [B, d] after normalisation
    raw: Tensor  # [B, d] before it
    ballots: Ballots | None = None  # what every event voted, where events elect the experts (voting.py),
    usual: Tensor | None = None  # and every expert's part of everybody's votes, [K]
    before: "Retrieved | None" = None  # what was found before somebody took experts away
    turned: Tensor | None = None  # [B, k] by which factor somebody turned each expert up; the model knows what to multiply

    @property
    def votes(self) -> Tensor | None:
        """Every expert's part of all votes `[B, K]`, where events elect the experts: for memories small enough to be drawn."""
        if self.ballots is None:
            return None
        experts, votes = (one.flatten(1) for one in self.ballots)
        return votes.new_zeros(len(votes), self.halves.shape[-1] ** 2).scatter_add(1, experts, votes)

    @property
    def every(self) -> Tensor:
        """Every expert's score `[B, K]`, what it is chosen by: the sum of its halves, or how much its votes exceed the usual."""
        votes = self.votes
        if votes is not None:
            return votes if self.usual is None else wanted(votes, self.usual)
        return (self.halves[:, 0, :, None] + self.halves[:, 1, None, :]).flatten(1)

    def keep(self, rows: Tensor) -> "Retrieved":
        """Only the experts at these ranks `[r]`, for what-if questions."""
        return self._replace(
            interests=self.interests[:, rows],
            experts=self.experts[:, rows],
            scores=self.scores[:, rows],
            gates=self.gates[:, rows],
            turned=None if self.turned is None else self.turned[:, rows],
        )


def wanted(votes: Tensor, usual: Tensor) -> Tensor:
    """By how much parts of a person's votes exceed those of everybody's; who has next to no vote comes after all others."""
    return torch.where(votes > 2 * LEAST_VOTES, votes - usual, votes / LEAST_VOTES - 4)


def balance_penalty(found: Retrieved) -> Tensor:
    """How far the batch's mean use of the memory is from even: mean of log(size) - entropy, >= 0; 0 where nothing is retrieved.

    Of each set of sub-keys (`halves [B, 2, side]`): a marginal-entropy term, it spreads people over the memory and leaves each
    person's choice sharp.
    """
    if found.halves.shape[-1] == 0:
        return found.halves.new_zeros(())
    use = batch_mean(found.halves.softmax(-1))
    return (use * (use.clamp_min(1e-12).log() + math.log(use.shape[-1]))).sum(-1).mean()


Edit = Callable[[Retrieved], Retrieved]  # what somebody changes in a retrieval before it is used
Traced = Callable[[Retrieved, Tensor, Tensor], None]  # told of a layer: its retrieval, reading [B, H, k, N], slots [B, H, k]
