"""Interest Memory Retrieval (Eq. 4-7, Algorithm 1): a history → the k interest experts that will compress it.

Algorithm 1 drops the scores after the search, so no gradient could ever reach sub-keys and query network. Here the
scores gate the experts; `gate="none"` is the algorithm as printed, kept to show what it costs.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from elastic_core.distributed import batch_mean
from elastic_core.layers.precision import without_autocast
from elastic_core.layers.product_keys import ProductKeys, top_pairs
from elastic_core.layers.query_network import MeanQuery, QueryNetwork, Whitening, query_norm
from elastic_core.layers.row_bank import RowBank

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


def gate(scores: Tensor, kind: str) -> Tensor:
    """`softmax` scaled by k (so that the mean stays 1), or ones for `none`."""
    return scores.softmax(-1) * scores.shape[-1] if kind == "softmax" else torch.ones_like(scores)


class InterestMemory(nn.Module):
    """side² experts of width d behind product keys, and how a history's queries are normalised before they meet the sub-keys.

    Subclasses say what a history asks: `forward` takes its content `[B, N, d]`, mask `[B, N]` or None and, where equal items have
    equal content, the items `[B, N]` to `Retrieved`.
    """

    def __init__(self, width: int, side: int, k: int, *, norm: str, gate: str, rows: bool = False, rate: float = 0.0) -> None:
        """`rows`: a step touches only the experts it retrieved (row_bank.py), with a learning `rate` of their own."""
        super().__init__()
        self.k, self.kind = k, gate
        self.norm = query_norm(norm, width)
        self.keys = ProductKeys(width, side)
        self.values = RowBank(side * side, width, rate) if rows else nn.Embedding(side * side, width)
        nn.init.normal_(self.values.weight, std=width**-0.5)

    def asked(self, x: Tensor, real: Tensor | None) -> Tensor:
        """The queries of histories before normalisation, `[M, d]`."""
        raise NotImplementedError

    @torch.no_grad()
    def calibrate(self, x: Tensor, real: Tensor | None, rate: float = 1.0) -> None:
        """Tells the query's normalisation what these histories ask (`x [B, N, d]`, `real [B, N]`); 1 forgets all earlier ones.

        Layer norm and none have nothing to learn.
        """
        if isinstance(self.norm, Whitening):
            with without_autocast(x.device.type):  # a covariance of rounded queries is one of the rounding
                self.norm.learn(self.asked(x.to(self.values.weight.dtype), real), rate)


class QueriedMemory(InterestMemory):
    """The paper's: one query for the whole history, by Eq. 4 (`network`) or as its plain mean."""

    def __init__(
        self,
        length: int,
        width: int,
        heads: int,
        side: int,
        k: int,
        *,
        query: str,
        norm: str,
        gate: str,
        rows: bool = False,
        rate: float = 0.0,
    ) -> None:
        network = MeanQuery() if query == "mean" else QueryNetwork(length, width, heads)  # drawn first
        super().__init__(width, side, k, norm=norm, gate=gate, rows=rows, rate=rate)
        self.query_network = network

    def forward(self, x: Tensor, real: Tensor | None, items: Tensor | None = None) -> Retrieved:
        return self.search(self.query_network(x, real))

    def search(self, pooled: Tensor) -> Retrieved:
        """The experts for what the query network made of histories, `[B, d]`."""
        pooled = pooled.to(self.values.weight.dtype)
        with without_autocast(pooled.device.type):  # the search: in bfloat16 most of close scores would be ties
            query = self.norm(pooled)
            halves = self.keys(query)
            experts, scores = top_pairs(halves, self.k)
            gates = gate(scores, self.kind)
            return Retrieved(self.values(experts) * gates.unsqueeze(-1), experts, scores, gates, halves, query, pooled)

    def asked(self, x: Tensor, real: Tensor | None) -> Tensor:
        return self.query_network(x, real)


class SharedInterests(nn.Module):
    """Table 3's "w/o IMR": the same k learned interests for everybody."""

    def __init__(self, width: int, k: int) -> None:
        super().__init__()
        self.interests = nn.Parameter(torch.randn(k, width) * width**-0.5)

    def forward(self, x: Tensor, real: Tensor | None, items: Tensor | None = None) -> Retrieved:
        b, k = x.shape[0], self.interests.shape[0]
        ones = x.new_ones(b, k)
        numbers = torch.arange(k, device=x.device).expand(b, k)
        nothing = x.new_zeros(b, 0)
        return Retrieved(self.interests.expand(b, -1, -1), numbers, ones, ones, x.new_zeros(b, 2, 0), nothing, nothing)


def balance_penalty(found: Retrieved) -> Tensor:
    """How far the batch's mean use of the memory is from even: mean of log(size) - entropy, >= 0; 0 where nothing is retrieved.

    Of each set of sub-keys (`halves [B, 2, side]`): a marginal-entropy term, it spreads people over the memory and leaves each
    person's choice sharp.
    """
    if found.halves.shape[-1] == 0:
        return found.halves.new_zeros(())
    use = batch_mean(found.halves.softmax(-1))
    return (use * (use.clamp_min(1e-12).log() + math.log(use.shape[-1]))).sum(-1).mean()
