"""Which items the target is ranked against: the four protocols, as lists or as boolean masks over the catalog.

full        every item, less those the person has seen before the target in the whole history (not only the last N)
full-seen   every item (RecBole's full ranking of sequential models)
pop100, uniform100  100 others, drawn (data/candidates.py)
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elastic_core.core.histories import Dataset, Split
from elastic_core.errors import InputError

PROTOCOLS = ("full", "full-seen", "pop100", "uniform100")
SEED = 0  # of the draws that every test is ranked by


class Listed(NamedTuple):
    """Items by row, each once; they are what the target is ranked against, or, if `out`, what is left out of all items."""

    rows: np.ndarray  # int64 [E]
    items: np.ndarray  # int64 [E]
    out: bool


class Candidates:
    """`listed(protocol, users)` names items; `mask(protocol, users)` is the same as bool [users, n_items + 1], of which column 0
    (padding) is False and the target's value is free."""

    def __init__(self, dataset: Dataset, split: Split, seed: int) -> None:
        if split not in ("valid", "test"):
            raise InputError(f"only the splits valid and test have targets, not {split!r}")
        self.items, self.offsets = dataset.histories.items, dataset.histories.offsets
        self.ends, self.targets = dataset.ends(split), dataset.targets(split)
        self.columns = dataset.catalog.n_items + 1
        self.seed = seed

    def listed(self, protocol: str, users: np.ndarray) -> Listed:
        if protocol not in ("full", "full-seen"):
            raise InputError(f"unknown protocol {protocol!r}; known are {', '.join(PROTOCOLS)}")
        rows, items = self._met(users, self.ends[users]) if protocol == "full" else (np.empty(0, np.int64),) * 2
        return Listed(rows, items, True)

    def mask(self, protocol: str, users: np.ndarray) -> Tensor:
        rows, items, out = self.listed(protocol, users)
        mask = np.full((len(users), self.columns), out)
        mask[rows, items] = not out
        mask[:, 0] = False
        return torch.from_numpy(mask)

    def _met(self, users: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Row and item, each pair once and in order, of the events at the positions offsets[user] … end - 1."""
        starts = self.offsets[users]
        lengths = ends - starts
        rows = np.repeat(np.arange(len(users)), lengths)
        skipped = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)  # from a running index to a position
        key = np.unique(rows * self.columns + self.items[np.arange(len(rows)) + skipped])
        return key // self.columns, key % self.columns
