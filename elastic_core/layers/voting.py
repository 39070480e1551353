"""Retrieval by votes (ours): every event asks the memory by product keys, and the k experts most wanted are this person's.

One query for a whole history must stand between its interests. Here nothing is averaged before the search: each event's own
content finds its m best experts, exactly (Eq. 6-7, product_keys.py), and gives them its one vote, split by a softmax over the m
scores. Votes fade with a half-life in events that is learned. The k experts with most votes are retrieved and gated by
their part of all votes, which is how the gradient reaches sub-keys, half-life and temperature. Only what somebody voted for is
ever touched: O(N·√K·d) for N events, whatever K.

A history that asks for fewer than k experts gets the newest event's next best beside them, with next to no weight.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.layers.interest_memory import LEAST_VOTES, Ballots, InterestMemory, Retrieved, gate
from elastic_core.layers.padding import masked
from elastic_core.layers.precision import without_autocast
from elastic_core.layers.product_keys import Keys, top_pairs

HALF_LIFE = 32.0  # events, before anything is learned


class VotingMemory(InterestMemory):
    """side² experts of width d behind product keys. History content `[B, N, d]`, mask `[B, N]` or None → `Retrieved`."""

    def __init__(
        self, width: int, side: int, k: int, *, norm: str, scores: str, gate: str, votes: int, rows: bool = False,
        rate: float = 0.0,
    ) -> None:  # fmt: skip
        """`votes` is m, the experts an event votes for."""
        super().__init__(width, side, k, norm=norm, scores=scores, gate=gate, rows=rows, rate=rate)
        self.m = min(votes, side**2)
        self.log_half_life = nn.Parameter(torch.tensor(math.log(HALF_LIFE)))

    def forward(self, x: Tensor, real: Tensor | None, items: Tensor | None = None) -> Retrieved:
        """`scores` are logarithms of parts of all votes, `halves` those of the mean softmax over each set of sub-keys, `query`
        and `raw` weighted means of what the events ask. `items [B, N]`: events of one item have one content, which asks once."""
        with without_autocast(x.device.type):
            weight = self.weights(x, real)
            x = x.to(self.values.weight.dtype)
            content, which = _distinct(masked(x, real) if items is None else x, items)
            query = self.norm(content)
            halves = self.keys(query)  # [U, 2, side]
            found = top_pairs(halves, self.m)
            ballots = Ballots(found.indices[which], found.scores.softmax(-1)[which] * weight.unsqueeze(-1))
            experts, votes = self._elected(ballots, halves, which, real)
            parts = (votes + LEAST_VOTES).log()
            gates = gate(parts, self.kind)

            def mean(of: Tensor) -> Tensor:
                return functional.embedding_bag(which, of.flatten(1), mode="sum", per_sample_weights=weight.to(of.dtype))

            return Retrieved(
                interests=self.values(experts) * gates.unsqueeze(-1),
                experts=experts,
                scores=parts,
                gates=gates,
                halves=(mean(halves.softmax(-1)).unflatten(1, halves.shape[1:]) + LEAST_VOTES).log(),
                query=mean(query),
                raw=mean(content),
                ballots=ballots,
            )

    def _elected(self, ballots: Ballots, halves: Tensor, which: Tensor, real: Tensor | None) -> Keys:
        """The k experts with most votes and these, both `[B, k]`; `halves [U, 2, side]` is what the events `which [B, N]` ask."""
        last = which.shape[1] - 1 if real is None else (real * torch.arange(which.shape[1], device=which.device)).argmax(1)
        newest = which[torch.arange(len(which), device=which.device), last]
        spare = top_pairs(halves[newest].detach(), self.k).indices
        least = LEAST_VOTES / torch.arange(1, self.k + 1, device=spare.device, dtype=halves.dtype)  # more than who has no vote
        return counted(
            torch.cat([ballots.experts.flatten(1), spare], 1),
            torch.cat([ballots.votes.flatten(1), least.expand(len(spare), -1)], 1),
            self.k,
        )

    def weights(self, x: Tensor, real: Tensor | None) -> Tensor:
        """What part of all votes each event has, `[B, N]`: halved every half-life, zero on padding."""
        ago = torch.arange(x.shape[1] - 1, -1, -1, device=x.device, dtype=x.dtype)
        weight = (-math.log(2) * ago / self.log_half_life.exp()).exp().expand(x.shape[:2])
        weight = weight if real is None else weight * real
        return weight / weight.sum(1, keepdim=True).clamp_min(1e-12)

    def asked(self, x: Tensor, real: Tensor | None) -> Tensor:
        """Every event's own query before normalisation, `[M, d]`."""
        return x.flatten(0, 1) if real is None else x[real]


def counted(experts: Tensor, votes: Tensor, k: int) -> Keys:
    """The k experts with the largest sums of votes, both `[B, E]`, and these sums; at least k of each row must differ."""
    numbers, order = experts.sort(1)
    place = torch.zeros_like(numbers)
    place[:, 1:] = (numbers[:, 1:] != numbers[:, :-1]).cumsum(1)
    sums = torch.zeros_like(votes).scatter_add(1, place, votes.gather(1, order))
    most, where = sums.topk(k)
    return Keys(torch.zeros_like(numbers).scatter(1, place, numbers).gather(1, where), most)


def _distinct(x: Tensor, items: Tensor | None) -> tuple[Tensor, Tensor]:
    """The contents that differ `[U, d]`, and which of them each event of `x [B, N, d]` has `[B, N]`."""
    every = x.flatten(0, 1)
    places = torch.arange(len(every), device=x.device)
    if items is None or torch.compiler.is_compiling():
        return every, places.view(x.shape[:2])
    numbers, which = items.unique(return_inverse=True)
    return every[torch.empty_like(numbers).scatter_(0, which.flatten(), places)], which
