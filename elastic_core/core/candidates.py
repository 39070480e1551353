"""Against which items a target is ranked, under four protocols:

    full        every item, less those the person has seen before the target in the whole history (not only the last N); a
                target that was seen before is left out with them, so it is missed, as by any list without seen items
    full-seen   every item
    pop100      100 draws with replacement, P(item) proportional to how often it is a *target*; only the person's own target
                is excluded and duplicates collapse. As RecBole 1.2.1 does (`pop100` with `repeatable`,
                sampler.RepeatableSampler): it counts after SequentialDataset.data_augmentation has left one row a target,
                of training, validation and test alike, so everybody's first event, never a target, is not counted
    uniform100  100 different items drawn evenly from those absent from the whole history, or all of them if fewer. Where targets
                recur, a target is the only seen item among them, so here whoever tells seen from unseen is flattered

Draws depend on the seed and the person alone, through a counter-based generator (SplitMix64, Steele et al. 2014): every model
faces the same candidates, whatever the batch size, the subset of users or the device.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elastic_core.core.histories import Dataset, Split
from elastic_core.errors import InputError

PROTOCOLS = ("full", "full-seen", "pop100", "uniform100")
SEED = 0  # of the draws that every test is ranked by
DRAWS = 100
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class CandidateList(NamedTuple):
    """Items by row, each once; they are what the target is ranked against, or, if `out`, what is left out of all items."""

    rows: np.ndarray  # int64 [E]
    items: np.ndarray  # int64 [E]
    out: bool


class Candidates:
    """`list_candidates(protocol, users)` names items; `candidate_mask(protocol, users)` is the same as bool [users, n_items +
    1], with the target where it may be found. Column 0 (padding) is False."""

    def __init__(self, dataset: Dataset, split: Split, seed: int) -> None:
        if split not in ("valid", "test"):
            raise InputError(f"only the splits valid and test have targets, not {split!r}")
        self.items, self.offsets = dataset.histories.items, dataset.histories.offsets
        self.ends, self.targets = dataset.split_ends(split), dataset.target_items(split)
        self.columns = dataset.catalog.n_items + 1
        self.seed = seed
        self.counts = target_counts(dataset)
        self.before = np.cumsum(self.counts) - self.counts  # events of all lower items

    def list_candidates(self, protocol: str, users: np.ndarray) -> CandidateList:
        """The candidates of these users under a protocol. Raises InputError for an unknown one."""
        if protocol not in PROTOCOLS:
            raise InputError(f"unknown protocol {protocol!r}; known are {', '.join(PROTOCOLS)}")
        if protocol == "pop100":
            return self._draw_by_popularity(users)
        if protocol == "uniform100":
            return self._draw_unseen(users)
        rows, items = self._seen_pairs(users, self.ends[users]) if protocol == "full" else (np.empty(0, np.int64),) * 2
        return CandidateList(rows, items, True)

    def candidate_mask(self, protocol: str, users: np.ndarray) -> Tensor:
        rows, items, out = self.list_candidates(protocol, users)
        mask = np.full((len(users), self.columns), out)
        mask[rows, items] = not out
        if not out:
            mask[np.arange(len(users)), self.targets[users]] = True
        mask[:, 0] = False
        return torch.from_numpy(mask)

    def _seen_pairs(self, users: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Row and item, each pair once and in order, of the events at the positions offsets[user] … end - 1."""
        starts = self.offsets[users]
        lengths = ends - starts
        rows = np.repeat(np.arange(len(users)), lengths)
        skipped = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)  # from a running index to a position
        key = np.unique(rows * self.columns + self.items[np.arange(len(rows)) + skipped])
        return key // self.columns, key % self.columns

    def _draw_by_popularity(self, users: np.ndarray) -> CandidateList:
        """Inverse of the cumulative counts from which the target's own stretch is cut out."""
        targets = self.targets[users][:, None]
        n_others = self.counts.sum() - self.counts[targets]
        if not n_others.all():
            raise InputError("pop100 needs at least two items that are targets")
        event = (uniform_numbers(self.seed, 1, users, DRAWS) * n_others).astype(np.int64)
        event += np.where(event >= self.before[targets], self.counts[targets], 0)
        drawn = np.searchsorted(self.before, event, side="right") - 1
        key = np.unique(np.arange(len(users))[:, None] * self.columns + drawn)
        return CandidateList(key // self.columns, key % self.columns, False)

    def _draw_unseen(self, users: np.ndarray) -> CandidateList:
        """Floyd's sampling of 100 different places among the m unseen items, for all users at once."""
        seen_rows, items = self._seen_pairs(users, self.offsets[users + 1])
        n_seen = np.bincount(seen_rows, minlength=len(users))
        m = self.columns - 1 - n_seen
        chance = uniform_numbers(self.seed, 2, users, DRAWS)
        chosen = np.full((len(users), DRAWS), -1)
        for i in range(DRAWS):
            last = m - DRAWS + i  # negative while fewer than 100 are unseen: nothing to draw yet
            place = (chance[:, i] * (last + 1)).astype(np.int64)
            already_drawn = (chosen == place[:, None]).any(1)
            chosen[:, i] = np.where(last < 0, -1, np.where(already_drawn, last, place))
        rows, slots = np.nonzero(chosen >= 0)
        firsts, place = np.cumsum(n_seen) - n_seen, chosen[rows, slots]
        # of the unseen items, the one at a place lies behind as many seen ones as have no more unseen ones than that below them
        below = seen_rows * self.columns + items - 1 - (np.arange(len(seen_rows)) - firsts[seen_rows])
        behind = np.searchsorted(below, rows * self.columns + place, side="right") - firsts[rows]
        return CandidateList(rows, place + 1 + behind, False)


def target_counts(dataset: Dataset) -> np.ndarray:
    """int64 [n_items + 1]: how often each item is anybody's target, that is, everything but everybody's first event."""
    histories = dataset.histories
    firsts = np.bincount(histories.items[histories.offsets[:-1]], minlength=dataset.catalog.n_items + 1)
    return dataset.all_counts() - firsts


def uniform_numbers(seed: int, stream: int, users: np.ndarray, draws: int) -> np.ndarray:
    """float64 [users, draws] in [0, 1): SplitMix64, started for each user from (seed, stream, user)."""
    state = np.array([seed], dtype=np.int64).astype(np.uint64)
    for part in (np.array([stream]), users):
        state = _mix_bits(state + GOLDEN) + part.astype(np.uint64)
    state = _mix_bits(state + GOLDEN)
    steps = np.arange(1, draws + 1, dtype=np.uint64) * GOLDEN
    return (_mix_bits(state[:, None] + steps) >> np.uint64(11)) * 2.0**-53


def _mix_bits(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
