"""What votes are usual, and what of a history's is not (ours; the votes: voting.py).

Which experts have *most* votes tells how many events voted: the votes of many come near what everybody's events give, so that
the same few experts lead, and those of few are scattered. `unusual` retrieves the experts with most votes above what everybody's
events give them, (votes - mean) · √events, over the standard deviation of that among people: of events drawn at random it is
noise of one size for every number of events, so their number decides nothing, and every expert stands out for somebody.

What is watched tells how much is watched, too: who watches much also watches other things. `erase_length` takes out of the excess
what is told of log length by the mean of what a history asks, the one direction along which people of different lengths differ:
a linear erasure (Ravfogel et al. 2022, Belrose et al. 2023), fitted to everybody by ridge regression. An expert is then
retrieved for what sets somebody apart from people whose histories read as long.

Few events say little of 256 experts, but people differ in few ways. With `pooled`, experts whose votes rise and fall together
among people share them (`Pooled`); with `expected`, an expert counts for what other events of the same person would be expected
to vote (`Expected`).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

RIDGE = 0.1  # of the mean variance of what histories ask
PART_RIDGE = 8.0  # times the mean variance of a part's standard scores


class Usual(nn.Module):
    """What votes are usual, and how far people differ from it: moments over people of their votes v for each of side² experts,
    E[n], E[n·v] and E[n·v²], where n is the effective number of events. Nothing is learned by gradient: `learn` tells it,
    as the query's normalisation (query_network.py), and for the same reasons."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.events: Tensor
        self.votes: Tensor
        self.squares: Tensor
        self.register_buffer("events", torch.ones(()))
        self.register_buffer("votes", torch.full((side**2,), side**-2.0))
        self.register_buffer("squares", torch.full((side**2,), 2 * side**-4.0))

    @property
    def mean(self) -> Tensor:
        """What an event gives an expert, `[K]`, all events of all people alike."""
        return self.votes / self.events

    def excess(self, votes: Tensor, weight: Tensor, query: Tensor) -> Tensor:
        """How far votes `[B, K]` of events that weigh `weight [B, N]` exceed the usual, in standard deviations among people."""
        return self.above(votes, weight, query) / self.deviation * effective_size(weight).sqrt()

    @property
    def deviation(self) -> Tensor:
        """Of votes above the usual, times √events, among people: `[K]`."""
        variance = self.squares - self.votes.square() / self.events
        return variance.clamp_min(1e-6 * self.squares + 1e-30).sqrt()

    def pooled(self, excess: Tensor) -> Tensor:
        """What decides, `[B, K]`: here every expert's own excess."""
        return excess

    def above(self, votes: Tensor, weight: Tensor, query: Tensor) -> Tensor:
        """By what part of all votes they exceed the usual, `[B, K]`; `query [B, N, d]` is what the events ask."""
        return votes - self.mean

    @torch.no_grad()
    def learn(
        self, votes: Tensor, weight: Tensor, query: Tensor, rate: float, halves: Sequence[tuple[Tensor, Tensor]] = ()
    ) -> None:
        """Moves the moments towards those of these people; 1 makes them exactly theirs, rates of parts those of the whole.

        `halves`: votes and weights of two parts of each history that have no event in common, for `Expected`."""
        events = effective_size(weight)
        self.events.lerp_(events.mean(), rate)
        self.votes.lerp_((events * votes).mean(0), rate)
        self.squares.lerp_((events * votes.square()).mean(0), rate)


class ErasedLength(Usual):
    """What is usual for a history that reads as long as this one does.

    `reads`, a ridge regression of log n on the mean m of what a history's events ask, says from *what* was watched how much
    probably was; `told`, how votes go with it. The moments are of people, (1, m)ᵀ(1, m), (1, m)·log n and votes·(1, m), beside
    the mean question of all events of all people, from which m is counted: events drawn at random read as neither."""

    def __init__(self, side: int, width: int) -> None:
        super().__init__(side)
        self.asked: Tensor
        self.products: Tensor
        self.lengths: Tensor
        self.shared: Tensor
        self.reads: Tensor
        self.told: Tensor
        self.register_buffer("asked", torch.zeros(width))  # E[n·m]
        self.register_buffer("products", torch.zeros(width + 1, width + 1))
        self.register_buffer("lengths", torch.zeros(width + 1))
        self.register_buffer("shared", torch.zeros(side**2, width + 1))
        self.register_buffer("reads", torch.zeros(width))
        self.register_buffer("told", torch.zeros(side**2))

    def above(self, votes: Tensor, weight: Tensor, query: Tensor) -> Tensor:
        mean = torch.einsum("bn,bnd->bd", weight, query)
        return super().above(votes, weight, query) - torch.outer((mean - self.asked / self.events) @ self.reads, self.told)

    @torch.no_grad()
    def learn(
        self, votes: Tensor, weight: Tensor, query: Tensor, rate: float, halves: Sequence[tuple[Tensor, Tensor]] = ()
    ) -> None:
        super().learn(votes, weight, query, rate)
        events, mean = effective_size(weight), torch.einsum("bn,bnd->bd", weight, query)
        known = torch.cat([torch.ones_like(events), mean], 1)
        people = len(votes)
        self.asked.lerp_((events * mean).mean(0), rate)
        self.products.lerp_(known.T @ known / people, rate)
        self.lengths.lerp_(known.T @ events.clamp_min(1).log().squeeze(1) / people, rate)
        self.shared.lerp_(votes.T @ known / people, rate)
        self._fit()

    def _fit(self) -> None:
        """`reads` and `told` from the moments, all of them taken from the mean event."""
        centre, mean = self.asked / self.events, self.products[0, 1:]
        products = self.products[1:, 1:] - torch.outer(mean, centre) - torch.outer(centre, mean) + torch.outer(centre, centre)
        ridge = RIDGE * products.diagonal().mean().clamp_min(1e-12) * torch.eye(len(centre), device=centre.device)
        reads = torch.linalg.solve(products + ridge, self.lengths[1:] - mean * self.lengths[0])
        usual, votes = self.mean.unsqueeze(1), self.shared[:, :1]
        shared = self.shared[:, 1:] - usual * mean - votes * centre + usual * centre
        self.reads.copy_(reads)
        self.told.copy_(shared @ reads / (reads @ products @ reads).clamp_min(1e-12))


class Pooled(ErasedLength):
    """Experts whose votes rise and fall together among people pool them, so that few events say as much as they can: of the
    standard scores z with covariance C among people, z C^(1/2), over its own standard deviation. (Whitening is z C^(-1/2): what
    it blows up is what people hardly differ in, and that is noise of few events; this trusts the main axes more, as shrinkage
    would.) Only the choice of experts pools: a loss on pooled votes would teach all experts one another's few largest axes
    (checkpoints/LOG.md). Moments, for the covariance of all experts' votes above the usual: E[n·(v, m)(v, m)ᵀ]."""

    def __init__(self, side: int, width: int, erase_length: bool) -> None:
        super().__init__(side, width)
        self.erase_length = erase_length
        self.pairs: Tensor
        self.pool: Tensor
        self.register_buffer("pairs", torch.zeros(side**2 + width, side**2 + width))
        self.register_buffer("pool", torch.eye(side**2))

    def pooled(self, excess: Tensor) -> Tensor:
        return excess @ self.pool

    @torch.no_grad()
    def learn(
        self, votes: Tensor, weight: Tensor, query: Tensor, rate: float, halves: Sequence[tuple[Tensor, Tensor]] = ()
    ) -> None:
        both = torch.cat([votes, torch.einsum("bn,bnd->bd", weight, query)], 1)
        self.pairs.lerp_((both * effective_size(weight)).T @ both / len(both), rate)
        super().learn(votes, weight, query, rate)

    def _fit(self) -> None:
        super()._fit()
        if not self.erase_length:
            self.told.zero_()
        mean = torch.cat([self.votes, self.asked])
        covariance = self._of_scores(self.pairs - torch.outer(mean, mean) / self.events)
        pool = self._pool(covariance)
        self.pool.copy_(pool / (pool * (covariance @ pool)).sum(0).clamp_min(1e-12).sqrt())

    def _pool(self, covariance: Tensor) -> Tensor:
        """How standard scores with this covariance among people are shared, up to their scale: `[K, K]`."""
        values, vectors = torch.linalg.eigh(covariance)
        return (vectors * values.clamp_min(0).sqrt()) @ vectors.T

    def _of_scores(self, covariance: Tensor) -> Tensor:
        """Of votes and questions, `[K + d, K + d]`, that of standard scores, `[K, K]`."""
        above = torch.cat([torch.eye(len(self.votes), device=covariance.device), -torch.outer(self.told, self.reads)], 1)
        scale = 1 / self.deviation
        return scale[:, None] * (above @ covariance @ above.T) * scale


class Expected(Pooled):
    """What another half of the same history would be expected to vote: z (H + ridge)^-1 S, over its own standard deviation.

    With every history in two parts that share no event, S is the covariance of one part's standard scores with the other's:
    what stays of a person whichever of their events are looked at. What a part has beside it is the noise of few events, so that
    the covariance of parts, H, is that of whole histories less S (a whole has twice the person and the same noise). Ridge
    regression of one part on the other then trusts every axis as far as it repeats: where C^(1/2) trusts whatever is large.
    Moments: those of `Pooled`, and E[√(n₁n₂)·(v₁, m₁)(v₂, m₂)ᵀ] with E[√(n₁n₂)·(v, m)] and E[√(n₁n₂)], made symmetric."""

    def __init__(self, side: int, width: int, erase_length: bool) -> None:
        super().__init__(side, width, erase_length)
        self.both: Tensor
        self.between: Tensor
        self.across: Tensor
        self.register_buffer("both", torch.ones(()))
        self.register_buffer("between", torch.zeros(side**2 + width))
        self.register_buffer("across", torch.zeros(side**2 + width, side**2 + width))

    @torch.no_grad()
    def learn(
        self, votes: Tensor, weight: Tensor, query: Tensor, rate: float, halves: Sequence[tuple[Tensor, Tensor]] = ()
    ) -> None:
        (first, one), (second, two) = halves
        size = (effective_size(one) * effective_size(two)).sqrt()
        a, b = (torch.cat([v, torch.einsum("bn,bnd->bd", w, query)], 1) for v, w in ((first, one), (second, two)))
        across = (a * size).T @ b / len(votes)
        self.both.lerp_(size.mean(), rate)
        self.between.lerp_((size * (a + b) / 2).mean(0), rate)
        self.across.lerp_((across + across.T) / 2, rate)
        super().learn(votes, weight, query, rate)

    def _pool(self, covariance: Tensor) -> Tensor:
        mean = torch.cat([self.votes, self.asked]) / self.events
        across = (
            self.across - torch.outer(mean, self.between) - torch.outer(self.between, mean) + self.both * torch.outer(mean, mean)
        )
        stays = self._of_scores(across)
        part = covariance - stays
        ridge = PART_RIDGE * part.diagonal().mean().clamp_min(1e-6) * torch.eye(len(part), device=part.device)
        return torch.linalg.solve(part + ridge, stays)


def usual_votes(side: int, width: int, erase_length: bool, pooled: bool, expected: bool) -> Usual:
    """What is usual of side² experts, by queries of a width; what of the excess decides, as the settings say."""
    if expected:
        return Expected(side, width, erase_length)
    if pooled:
        return Pooled(side, width, erase_length)
    return ErasedLength(side, width) if erase_length else Usual(side)


def effective_size(weight: Tensor) -> Tensor:
    """Kish's effective sample size of events that weigh `weight [B, N]`, which sum to 1: `[B, 1]`; 0 without events."""
    squares = weight.square().sum(1, keepdim=True)
    return torch.where(squares > 0, 1 / torch.where(squares > 0, squares, 1), 0)
