"""Retrieval by votes (ours): every event of a history asks the memory, and the k experts that most events ask for are retrieved.

One query for a whole history must stand between its interests, and there it mostly tells how much somebody watched: averages of
many events lie closer together than averages of few. Here nothing is averaged before the search. Each event's own content is
compared with the 2√K sub-keys (Eq. 6-7). As a key's score is the sum of its two halves, the softmax over all K keys is the
product of a softmax over rows and one over columns, exactly: an event spreads one vote over the grid as a_t ⊗ b_t. Votes
fade with a half-life in events that is learned, fixed, or without end; the k experts with most votes are retrieved, and gated
by their part of the votes, which is how the gradient reaches sub-keys, half-life and temperature.

    votes = Σ_t w_t a_t b_tᵀ      [√K, √K]      O(N·(√K·d + K)) for N events

Which experts have most votes above what is usual (`unusual`) is told in usual_votes.py.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.layers.interest_memory import LEAST_VOTES, InterestMemory, Retrieved, gate
from elastic_core.layers.precision import without_autocast
from elastic_core.layers.usual_votes import Expected, usual_votes

HALF_LIFE = 32.0  # events, before anything is learned
TEMPERATURE = 0.1  # of the agreement of two views


class VotingMemory(InterestMemory):
    """side² experts of width d behind product keys. History content `[B, N, d]`, mask `[B, N]` or None → `Retrieved`."""

    def __init__(
        self, width: int, side: int, k: int, *, norm: str, scores: str, gate: str, half_life: float = 0.0, unusual: bool = False,
        erase_length: bool = False, pooled: bool = False, expected: bool = False,
    ) -> None:  # fmt: skip
        """`half_life` in events; 0 is learned. `unusual`: experts are chosen by their excess of votes, not by their votes;
        `erase_length`: by what of it does not tell how long the history is; `pooled`: those whose votes go together share;
        `expected`: by what another half of the history would be expected to vote."""
        super().__init__(width, side, k, norm=norm, scores=scores, gate=gate)
        self.log_half_life = nn.Parameter(torch.tensor(math.log(half_life or HALF_LIFE)), requires_grad=not half_life)
        self.usual = usual_votes(side, width, erase_length, pooled, expected) if unusual else None

    def forward(self, x: Tensor, real: Tensor | None) -> Retrieved:
        """`scores` are logarithms of parts of all votes; where experts are chosen by their excess, that, and `gates` then follow
        how many times the usual part an expert has. `halves` are logarithms of the mean softmax over each set of sub-keys,
        `query` and `raw` weighted means of what the events ask."""
        with without_autocast(x.device.type):
            x = x.to(self.values.weight.dtype)
            query = self.norm(x)
            asked, weight = self._asks(query), self.weights(x, real)
            votes, excess = self._votes(query, asked, weight)
            if self.usual is not None and excess is not None:
                excess = self.usual.pooled(excess)
            most, experts = (votes if excess is None else excess).topk(self.k)
            parts = (votes.gather(1, experts) + LEAST_VOTES).log()
            if self.usual is not None:
                parts = parts - (self.usual.mean[experts] + LEAST_VOTES).log()
            gates = gate(parts, self.kind)
            return Retrieved(
                interests=self.values(experts) * gates.unsqueeze(-1),
                experts=experts,
                scores=parts if excess is None else most,
                gates=gates,
                halves=(torch.einsum("bn,bnhs->bhs", weight, asked) + LEAST_VOTES).log(),
                query=torch.einsum("bn,bnd->bd", weight, query),
                raw=torch.einsum("bn,bnd->bd", weight, x),
                votes=votes,
                excess=excess,
            )

    def _asks(self, query: Tensor) -> Tensor:
        """Every event's softmax over rows and over columns: `[B, N, d]` → `[B, N, 2, side]`."""
        return self.keys(query.flatten(0, 1)).softmax(-1).unflatten(0, query.shape[:2])

    def _votes(self, query: Tensor, asked: Tensor, weight: Tensor) -> tuple[Tensor, Tensor | None]:
        """Every expert's part of the votes, `[B, K]`, and how far it exceeds the usual, if that is asked."""
        votes = _counted(asked, weight)
        return votes, None if self.usual is None else self.usual.excess(votes, weight, query)

    def weights(self, x: Tensor, real: Tensor | None) -> Tensor:
        """What part of all votes each event has, `[B, N]`: halved every half-life, zero on padding."""
        ago = torch.arange(x.shape[1] - 1, -1, -1, device=x.device)
        weight = (-math.log(2) * ago / self.log_half_life.exp()).exp().expand(x.shape[:2])
        weight = weight if real is None else weight * real
        return weight / weight.sum(1, keepdim=True).clamp_min(1e-12)

    def agreement(self, x: Tensor, real: Tensor) -> Tensor:
        """Do two parts of one history vote alike, and parts of different histories not? A contrastive loss, the mean over people.

        The parts have no event in common and the share of each is drawn at random, so neither an item that both hold nor how many
        there are can tell whose they are. Likeness is the Bhattacharyya coefficient of their votes, or the cosine of their excess
        where experts are chosen by it (1 = the same)."""
        first = real & (torch.rand(real.shape, device=x.device) < torch.rand(len(x), 1, device=x.device))
        both = first.any(1) & (real & ~first).any(1)  # who has no two parts takes no part
        with without_autocast(x.device.type):
            x = x.to(self.values.weight.dtype)
            query = self.norm(x)
            asked = self._asks(query)
            one, two = (self._likeness(*self._votes(query, asked, self.weights(x, part))) for part in (first, real & ~first))
            like = one @ two.T
        logits = (like / TEMPERATURE).masked_fill(~both, -1e4)
        missed = functional.cross_entropy(logits, torch.arange(len(x), device=x.device), reduction="none")
        return (missed * both).sum() / both.sum().clamp_min(1)

    @staticmethod
    def _likeness(votes: Tensor, excess: Tensor | None) -> Tensor:
        """Vectors whose products are how alike people vote."""
        return (votes + LEAST_VOTES).sqrt() if excess is None else functional.normalize(excess)

    @torch.no_grad()
    def calibrate(self, x: Tensor, real: Tensor | None, rate: float = 1.0) -> None:
        """As `InterestMemory.calibrate`, then which votes are usual, with the queries normalised as they are now."""
        super().calibrate(x, real, rate)
        if self.usual is not None and len(x):
            with without_autocast(x.device.type):
                x = x.to(self.values.weight.dtype)
                weight, query = self.weights(x, real), self.norm(x)
                asked, halves = self._asks(query), [self.weights(x, half) for half in _halves(weight)]
                parts = [(_counted(asked, half), half) for half in halves] if isinstance(self.usual, Expected) else []
                self.usual.learn(_counted(asked, weight), weight, query, rate, parts)

    def asked(self, x: Tensor, real: Tensor | None) -> Tensor:
        """Every event's own query before normalisation, `[M, d]`."""
        return x.flatten(0, 1) if real is None else x[real]


def _halves(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Every event, where it counts at all, in one of two parts: drawn at random, the same for the same shape."""
    first = torch.rand(weight.shape, generator=torch.Generator().manual_seed(0)).to(weight.device) < 0.5
    return first & (weight > 0), ~first & (weight > 0)


def _counted(asked: Tensor, weight: Tensor) -> Tensor:
    """Every expert's part of the votes, `[B, K]`: `asked [B, N, 2, side]` of events that weigh `weight [B, N]`."""
    rows, columns = asked.unbind(2)
    return ((rows * weight.unsqueeze(-1)).transpose(1, 2) @ columns).flatten(1)
