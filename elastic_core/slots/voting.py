"""Retrieval by votes (ours): every event asks the memory by product keys, and the k experts most wanted are this person's.

One query for a whole history must stand between its interests. Here nothing is averaged before the search: each event's own
content finds its m best experts, exactly (Eq. 6-7, core/elastic.py), and gives them its one vote, split by a softmax over the m
scores. An expert is wanted by as much as its part of a person's votes exceeds its part of everybody's (`usual`): by votes alone
many events would ask for the same few, and how many there are would decide. The k most wanted are retrieved and gated by how much
they are wanted, which is how the gradient reaches sub-keys and temperature. Only what somebody voted for is ever touched:
O(N·√K·d) for N events, whatever K.

While it learns an event votes for LEARNS times as many: with m alone an expert just out of reach is never told that it fits
(planted world of 64, validation full-seen: m = 4 gives 0.316 after 12 epochs, 16 gives 0.321, 64 no more).

A history that asks for fewer than k experts gets the newest event's next best beside them, with next to no weight.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.config import Few, Weight
from elastic_core.core.contract import LEAST_VOTES, Retrieved, VoteTally, excess_votes
from elastic_core.core.elastic import InterestMemory, MemoryConfig, gate_weights, top_pairs
from elastic_core.core.layers import Whitening, without_autocast, zero_padding

REMEMBERED = 131_072  # items at most whose answers are kept
LEARNS = 4  # times as many experts an event votes for while the model is in training mode


@dataclass(frozen=True, kw_only=True)
class VotingConfig(MemoryConfig):
    """What models share whose events vote."""

    votes: Few = 4  # m, experts an event votes for
    interest_weight: Weight = 0.0  # of the loss that asks experts to stand for items (item_distribution.py)


class SearchResult(NamedTuple):
    """What U contents ask and find: the query, the best experts, and the softmax over the scores of the best m."""

    query: Tensor  # [U, d]
    experts: Tensor  # [U, at least m and k]
    votes: Tensor  # [U, m]


class _HistorySearch(NamedTuple):
    """U different contents, what they ask and find, which of them each event of a batch has, and what people's votes come to."""

    content: Tensor  # [U, d]
    answers: SearchResult
    which: Tensor  # [B, N]
    weight: Tensor  # [B, N] every event's part of a person's votes, 0 on padding
    ballots: VoteTally


class _SearchCache(NamedTuple):
    """The answers of items, by number, for contents `[C, d]` and the memory's weights in this state: address and version."""

    weights: list[Tensor]
    state: list[tuple[int, int]]
    content: Tensor
    answers: SearchResult


class VotingMemory(InterestMemory):
    """n_subkeys² experts of width d behind product keys. History content `[B, N, d]`, mask `[B, N]` or None → `Retrieved`."""

    def __init__(self, config: VotingConfig, norm: str, gate: str) -> None:
        super().__init__(config, norm, gate)
        self.m = min(config.votes, config.n_subkeys**2)  # experts an event votes for
        self.mean_vote_share: Tensor
        self.register_buffer("mean_vote_share", torch.zeros(config.n_subkeys**2))  # every expert's part of everybody's votes
        self._cache: _SearchCache | None = None

    def forward(self, x: Tensor, real: Tensor | None, items: Tensor | None = None) -> Retrieved:
        """`scores` are logarithms of how much experts are wanted, `halves` of the votes by row and by column, `query` and `raw`
        means of what the events ask. `items [B, N]`: events of one item have one content, which asks once."""
        with without_autocast(x.device.type):
            search = self._search_history(x, real, items)
            experts, most = self._elect_experts(search, real)
            scores = (most.clamp_min(0) + LEAST_VOTES).log()
            gates = gate_weights(scores, self.kind)

            def mean(values: Tensor) -> Tensor:
                weight = search.weight.to(values.dtype)
                return functional.embedding_bag(search.which, values.flatten(1), mode="sum", per_sample_weights=weight)

            return Retrieved(
                interests=self.values(experts) * gates.unsqueeze(-1),
                experts=experts,
                scores=scores,
                gates=gates,
                halves=(_votes_by_half(search.ballots, self.keys.n_subkeys) + LEAST_VOTES).log(),
                query=mean(search.answers.query),
                raw=mean(search.content),
                ballots=search.ballots,
            )

    def _search_history(self, x: Tensor, real: Tensor | None, items: Tensor | None) -> _HistorySearch:
        weight = x.new_ones(x.shape[:2]) if real is None else real.to(x.dtype)
        weight = weight / weight.sum(1, keepdim=True).clamp_min(1)
        x = x.to(self.values.weight.dtype)
        content, which, numbers = _distinct_contents(zero_padding(x, real) if items is None else x, items)
        serving = numbers is not None and not self.training and not torch.is_grad_enabled()
        answers = self._search_cached(numbers, content) if serving and numbers is not None else self._search_contents(content)
        best = answers.experts[:, : answers.votes.shape[1]]
        experts = best.index_select(0, which.flatten()).view(*which.shape, -1)
        ballots = VoteTally(experts, functional.embedding(which, answers.votes) * weight.unsqueeze(-1), self.mean_vote_share)
        return _HistorySearch(content, answers, which, weight, ballots)

    def _search_contents(self, content: Tensor) -> SearchResult:
        query = self.norm(content)
        m = min(self.m * LEARNS, self.keys.n_subkeys**2) if self.training else self.m
        pairs = top_pairs(self.keys(query), max(m, self.k))
        return SearchResult(query, pairs.indices, pairs.scores[:, :m].softmax(-1))

    def _search_cached(self, numbers: Tensor, content: Tensor) -> SearchResult:
        """`_search_contents` of items (ascending `numbers [U]`), searched for again only where content or memory are not as they
        were."""
        weights = [*self.keys.parameters(), *self.norm.parameters(), *self.norm.buffers()]
        state, most = [(one.data_ptr(), one._version) for one in weights], int(numbers[-1])
        if most >= REMEMBERED:
            return self._search_contents(content)
        cache = self._cache
        same = cache is not None and cache.state == state and all(a is b for a, b in zip(cache.weights, weights, strict=True))
        if cache is None or not same or most >= len(cache.content) or cache.content.dtype != content.dtype:
            one, size = self._search_contents(content[:1]), 2 ** (most + 1).bit_length()
            with torch.inference_mode(False):  # or nobody outside that mode could write to them
                answers = SearchResult(*(part.new_zeros(size, part.shape[1]) for part in one))
                self._cache = cache = _SearchCache(weights, state, content.new_full((size, content.shape[1]), math.nan), answers)
        new = (cache.content[numbers] != content).any(1)
        if bool(new.any()):
            for table, row in zip(cache.answers, self._search_contents(content[new]), strict=True):
                table[numbers[new]] = row
            cache.content[numbers[new]] = content[new]
        return SearchResult(*(table.index_select(0, numbers) for table in cache.answers))

    def _elect_experts(self, search: _HistorySearch, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """The k experts that are most wanted, and how much, both `[B, k]`.

        The newest event's best k stand by: they are looked up with its votes (a tenth of the time of 64 events). While there are
        not many more experts than votes, each has a place of its own where its votes are added up (in training half of the time
        of sorting them)."""
        which = search.which
        last = which.shape[1] - 1 if real is None else (real * torch.arange(which.shape[1], device=which.device)).argmax(1)
        newest = which[torch.arange(len(which), device=which.device), last]
        spare_experts = search.answers.experts[newest, : self.k]
        rank = torch.arange(1, self.k + 1, device=spare_experts.device, dtype=search.weight.dtype)
        least = (LEAST_VOTES / rank).expand(len(spare_experts), -1)  # more than no vote at all
        experts = torch.cat([search.ballots.experts.flatten(1), spare_experts], 1)
        votes = torch.cat([search.ballots.votes.flatten(1), least], 1)
        if len(self.mean_vote_share) <= 2 * experts.shape[1]:
            total = votes.new_zeros(len(votes), len(self.mean_vote_share)).scatter_add(1, experts, votes)
            most, best_experts = excess_votes(total, self.mean_vote_share).topk(self.k)
            return best_experts, most
        numbers, votes = sum_votes(experts, votes)
        most, where = excess_votes(votes, self.mean_vote_share[numbers]).topk(self.k)
        return numbers.gather(1, where), most

    @torch.no_grad()
    def calibrate(self, x: Tensor, real: Tensor | None, rate: float = 1.0, items: Tensor | None = None) -> None:
        """As `InterestMemory.calibrate`, then what votes are usual, with the queries normalised as they are now; events of one
        item ask once and count as often as they come (a tenth of the time)."""
        with without_autocast(x.device.type):
            content, which, _ = _distinct_contents(x.to(self.values.weight.dtype), items)
            events = x.new_ones(x.shape[:2]) if real is None else real
            counts = content.new_zeros(len(content)).scatter_add(0, which.flatten(), events.flatten().to(content.dtype))
            if isinstance(self.norm, Whitening):
                self.norm.update_statistics(content, rate, counts)
            answers = self._search_contents(content)
            votes = (answers.votes * counts.unsqueeze(1)).flatten().to(self.mean_vote_share.dtype)
            experts = answers.experts[:, : answers.votes.shape[1]].flatten()
            vote_totals = torch.zeros_like(self.mean_vote_share).scatter_add(0, experts, votes)
            self.mean_vote_share.lerp_(vote_totals / vote_totals.sum().clamp_min(1), rate)

    def event_queries(self, x: Tensor, real: Tensor | None) -> Tensor:
        """Every event's own query before normalisation, `[M, d]`."""
        return x.flatten(0, 1) if real is None else x[real]


def sum_votes(experts: Tensor, votes: Tensor) -> tuple[Tensor, Tensor]:
    """Each row's experts once and the sums of their votes, both `[B, E]` as given; places that are left over have -1 of votes."""
    numbers, order = experts.sort(1)
    place = torch.zeros_like(numbers)
    place[:, 1:] = (numbers[:, 1:] != numbers[:, :-1]).cumsum(1)
    sums = torch.zeros_like(votes).scatter_add(1, place, votes.gather(1, order))
    is_filled = torch.arange(votes.shape[1], device=votes.device) <= place[:, -1:]
    return torch.zeros_like(numbers).scatter(1, place, numbers), torch.where(is_filled, sums, -1)


def _votes_by_half(ballots: VoteTally, n_subkeys: int) -> Tensor:
    """The votes that each set of sub-keys has, `[B, 2, n_subkeys]`."""
    if n_subkeys**2 <= 2 * ballots.votes[0].numel():
        by_pair = ballots.total_shares(n_subkeys**2).unflatten(1, (n_subkeys, n_subkeys))
        return torch.stack([by_pair.sum(2), by_pair.sum(1)], 1)
    experts, votes = ballots.experts.flatten(1), ballots.votes.flatten(1)
    no_votes = votes.new_zeros(len(votes), n_subkeys)
    return torch.stack([no_votes.scatter_add(1, half, votes) for half in (experts // n_subkeys, experts % n_subkeys)], 1)


def _distinct_contents(x: Tensor, items: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """The contents that differ `[U, d]`, which of them each event of `x [B, N, d]` has `[B, N]`, and the items' numbers `[U]`."""
    every = x.flatten(0, 1)
    places = torch.arange(len(every), device=x.device)
    if items is None or items.device.type != "cpu" or torch.compiler.is_compiling():  # how many differ, a device would be asked
        return every, places.view(x.shape[:2]), None
    most = int(items.max())
    if most < items.numel():  # a place for every item takes a tenth of the time of sorting them
        is_there = torch.zeros(most + 1, dtype=torch.bool).index_fill_(0, items.flatten(), True)
        numbers, which = is_there.nonzero().flatten(), (is_there.cumsum(0) - 1)[items]
    else:
        numbers, which = items.unique(return_inverse=True)
    return every.index_select(0, torch.empty_like(numbers).scatter_(0, which.flatten(), places)), which, numbers
