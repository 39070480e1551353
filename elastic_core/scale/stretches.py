"""Ranks in a catalogue of millions, a stretch of the catalogue at a time: never a matrix of people x items.

The target's own score is taken from the very stretch that the others are compared in, which is made twice for it: a score that
was worked out in another way differs in its last digit, and items that tie would not. Everything is counted over all items;
what a protocol leaves out, or asks for alone, is a list of some hundred items a person (candidates.py), looked up in passing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.batches import Batch, Met, reading_batch
from elastic_core.core.evaluate import Candidates, Listed, Ranks
from elastic_core.core.histories import Dataset
from elastic_core.errors import InputError
from elastic_core.scale.met import met_pairs

NUMBERS = 1 << 21  # scores that are looked at together: 8 MiB


class Stretches:
    """What the states `[B, D]` of a batch score: `self[items]` is `[B, items]`, the same numbers whenever it is asked for.

    `scorer` and `met` are a model's (core/contract.py); a mixture's normalisers are found once, in a pass of their own."""

    def __init__(self, scorer: Any, states: Tensor, met: Any) -> None:
        self.scorer, self.states = scorer, states
        self.items = len(scorer.table) - 1
        self.width = max(1, NUMBERS // (len(states) * max(scorer.parts, 1)))
        self.met = None if scorer.again is None else Pairs(*met_pairs(met, self.items))
        self.norm: Tensor | None = None
        if scorer.parts:
            for items in self:
                found = self._logits(items).logsumexp(-1)  # [B, P]
                self.norm = found if self.norm is None else torch.logaddexp(self.norm, found)

    def __iter__(self) -> Iterator[slice]:
        return (slice(low, min(low + self.width, self.items + 1)) for low in range(1, self.items + 1, self.width))

    def __getitem__(self, items: slice) -> Tensor:
        logits = self._logits(items)
        if self.norm is None:
            return logits
        _, shares = self.scorer.split(self.states)
        return (logits - self.norm.unsqueeze(-1) + shares.unsqueeze(-1)).logsumexp(-2)

    def _logits(self, items: slice) -> Tensor:
        """`[B, items]`, or of every part `[B, P, items]`."""
        scorer = self.scorer
        if scorer.pairs is not None:
            logits = scorer.pairs.among(self.states, torch.arange(items.start, items.stop, device=self.states.device))
        else:
            vectors = scorer.split(self.states)[0] if scorer.parts else self.states
            logits = functional.linear(vectors, scorer.table[items], None if scorer.bias is None else scorer.bias[items])
        if self.met is not None:
            rows, columns = self.met.within(items)
            logits[rows, ..., columns] += scorer.again
        return logits


class Pairs(NamedTuple):
    """Rows and items, found again by stretches of the items, which are in ascending order."""

    rows: Tensor
    items: Tensor

    @classmethod
    def of(cls, listed: Listed, targets: Tensor) -> "Pairs":
        """What is listed, but for a row's own target."""
        order = np.argsort(listed.items, kind="stable")
        rows, items = (torch.from_numpy(x[order]).to(targets.device) for x in (listed.rows, listed.items))
        others = items != targets[rows]
        return cls(rows[others], items[others])

    def within(self, items: slice) -> tuple[Tensor, Tensor]:
        """Rows, and the items counted from the first of the stretch."""
        borders = torch.tensor([items.start, items.stop], device=self.items.device)
        low, high = torch.searchsorted(self.items, borders).tolist()
        return self.rows[low:high], self.items[low:high] - items.start


def rank_stretched(scores: Stretches, targets: Tensor, listed: Mapping[str, Listed]) -> dict[str, Ranks]:
    """Where every row's target `[B]` stands among each protocol's candidates: what `metrics.rank` finds in all the scores.

    Raises InputError where a score is NaN or +inf.
    """
    own = torch.empty(len(targets), device=targets.device)
    for items in scores:
        rows = ((targets >= items.start) & (targets < items.stop)).nonzero().squeeze(1)
        if len(rows):
            own[rows] = scores[items][rows, targets[rows] - items.start].float()
    own = own.unsqueeze(1)
    pairs = {protocol: Pairs.of(some, targets) for protocol, some in listed.items()}
    everywhere = torch.zeros(2, len(targets), dtype=torch.int64, device=targets.device)  # above, tied
    counts = {protocol: torch.zeros_like(everywhere) for protocol in listed}
    top = torch.full((len(targets),), -torch.inf, device=targets.device)
    for items in scores:
        found = scores[items].float()
        top = torch.maximum(top, found.amax(1))  # NaN wins every maximum
        everywhere[0] += (found > own).count_nonzero(1)
        everywhere[1] += (found == own).count_nonzero(1)
        for protocol, some in pairs.items():
            rows, columns = some.within(items)
            theirs, mine = found[rows, columns], own[rows, 0]
            counts[protocol].index_add_(1, rows, torch.stack([theirs > mine, theirs == mine]).long())
    broken = int((~(top < torch.inf)).sum())
    if broken:
        raise InputError(f"the model gives NaN or +inf scores to {broken} of {len(targets)} users: it has diverged")
    everywhere[1] -= 1  # the target itself
    final = {p: everywhere - counts[p] if some.out else counts[p] for p, some in listed.items()}
    return {protocol: Ranks(*(part.int().cpu().numpy() for part in found)) for protocol, found in final.items()}


def rank_stretches(
    reading: Callable[[], tuple[Callable[[Batch], Tensor], Any]],
    length: int,
    dataset: Dataset,
    candidates: Candidates,
    people: np.ndarray,
    protocols: Sequence[str],
    batch: int,
    device: str | torch.device,
) -> Iterator[dict[str, Ranks]]:
    """The ranks of batches of people, by protocol, of a model whose `reading` gives states and their scorer."""
    state, table = reading()
    if len(table.table) != dataset.catalog.n_items + 1:
        raise InputError(f"the model scores {len(table.table) - 1} items of {dataset.catalog.n_items}: it is made for other data")
    for start in range(0, len(people), batch):
        chunk = people[start : start + batch]
        read = reading_batch(dataset, chunk, candidates.ends[chunk], length).to(device)
        stretches = Stretches(table, state(read), Met.by(read))
        targets = torch.from_numpy(candidates.targets[chunk].astype(np.int64)).to(device)
        yield rank_stretched(stretches, targets, {p: candidates.listed(p, chunk) for p in protocols})
