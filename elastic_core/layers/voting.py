"""Retrieval by votes (ours): every event of a history asks the memory, and the k experts that most events ask for are retrieved.

One query for a whole history must stand between its interests, and there it mostly tells how much somebody watched: averages of
many events lie closer together than averages of few. Here nothing is averaged before the search. Each event's own content is
the query of an exact product-key search (Eq. 5-7); its k best experts share one vote by the softmax of their scores; votes
fade with a half-life in events that is learned; the k experts with most votes are retrieved, and gated by their part of the
votes, which is how the gradient reaches sub-keys and half-life. O(N·(√K·d + k²)) for N events, nothing of size N x K.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from elastic_core.layers.interest_memory import LEAST_VOTES, InterestMemory, QueriedMemory, Retrieved, SharedInterests, gate
from elastic_core.layers.product_keys import top_pairs

HALF_LIFE = 32.0  # events, before anything is learned


class VotingMemory(InterestMemory):
    """side² experts of width d behind product keys. History content `[B, N, d]`, mask `[B, N]` or None → `Retrieved`."""

    def __init__(self, width: int, side: int, k: int, *, norm: str, scores: str, gate: str) -> None:
        super().__init__(width, side, k, norm=norm, scores=scores, gate=gate)
        self.log_half_life = nn.Parameter(torch.tensor(math.log(HALF_LIFE)))

    def forward(self, x: Tensor, real: Tensor | None) -> Retrieved:
        """`scores` are logarithms of parts of all votes, `halves` those of the mean softmax over each set of sub-keys; `query`
        and `raw` are weighted means of what the events ask."""
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(self.values.weight.dtype)
            query = self.norm(x)
            halves = self.keys(query.flatten(0, 1))  # [B N, 2, side]
            asked, scores = top_pairs(halves, self.k)
            weight = self.weights(x, real)
            vote = (scores.softmax(-1).unflatten(0, x.shape[:2]) * weight.unsqueeze(-1)).flatten(1)
            votes = x.new_zeros(len(x), len(self.values.weight)).scatter_add(1, asked.reshape(len(x), -1), vote)
            most, experts = votes.topk(self.k)
            found = (most + LEAST_VOTES).log()
            gates = gate(found, self.kind)
            return Retrieved(
                interests=self.values(experts) * gates.unsqueeze(-1),
                experts=experts,
                scores=found,
                gates=gates,
                halves=(torch.einsum("bn,bnhs->bhs", weight, halves.softmax(-1).unflatten(0, x.shape[:2])) + LEAST_VOTES).log(),
                query=torch.einsum("bn,bnd->bd", weight, query),
                raw=torch.einsum("bn,bnd->bd", weight, x),
                votes=votes,
            )

    def weights(self, x: Tensor, real: Tensor | None) -> Tensor:
        """What part of all votes each event has, `[B, N]`: halved every half-life, zero on padding."""
        ago = torch.arange(x.shape[1] - 1, -1, -1, device=x.device)
        weight = (-math.log(2) * ago / self.log_half_life.exp()).exp().expand(x.shape[:2])
        weight = weight if real is None else weight * real
        return weight / weight.sum(1, keepdim=True).clamp_min(1e-12)

    def asked(self, x: Tensor, real: Tensor | None) -> Tensor:
        """Every event's own query before normalisation, `[M, d]`."""
        return x.flatten(0, 1) if real is None else x[real]


def interest_memory(settings: Any) -> InterestMemory | SharedInterests:
    """The memory that a model's settings ask for: `memory`, `query`, `query_norm`, `scores`, `gate`, `stride`, `window`, and
    length, width, heads, side and k."""
    if settings.memory == "none":
        return SharedInterests(settings.width, settings.k)
    keys = {"norm": settings.query_norm, "scores": settings.scores, "gate": settings.gate}
    if settings.query == "votes":
        return VotingMemory(settings.width, settings.side, settings.k, **keys)
    return QueriedMemory(
        settings.length, settings.width, settings.heads, settings.side, settings.k,
        query=settings.query, stride=settings.stride, window=settings.window or None, **keys,
    )  # fmt: skip
