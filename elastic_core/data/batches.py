"""From flat histories to the tensors a model reads, and the samplers of the three training objectives.

* `all`: each history is cut into tiles of `length` events; every position predicts its successor (causal models).
* `last`: random prefixes; only the last position is a target, so the encoder may read all of it (the paper's setting).
* `window`: tiles of `window` targets; what is retrieved comes from before the first of them, so nothing peeks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from elastic_core.config import TrainConfig
from elastic_core.data.histories import Dataset, Histories


@dataclass(frozen=True)
class Batch:
    """Left-padded histories: the most recent event is always the last column, 0 is padding; N is at most the model's length."""

    items: Tensor  # [B, N] int64
    recall: Tensor  # [B, N] what retrieval may read; the same as `items` when only the last position is scored
    targets: Tensor | None = None  # [B, N] int64, 0 where a position is not a target
    times: Tensor | None = None  # [B, N] int64 seconds
    padded: bool = True  # False promises that no row has padding

    @property
    def real(self) -> Tensor:
        """`[B, N]`, True on events."""
        return self.items > 0

    def to(self, device: str | torch.device) -> "Batch":
        def move(x: Tensor | None) -> Tensor | None:
            return None if x is None else x.to(device, non_blocking=True)

        items = self.items.to(device, non_blocking=True)
        recall = items if self.recall is self.items else self.recall.to(device, non_blocking=True)
        return Batch(items, recall, move(self.targets), move(self.times), self.padded)


def left_pad(histories: Histories, users: np.ndarray, ends: np.ndarray, length: int, values: np.ndarray | None = None) -> Tensor:
    """The last `length` events before `ends [B]` (positions in the flat array) of each user: int64 `[B, length]`."""
    source = histories.items if values is None else values
    where = ends[:, None] + np.arange(-length, 0)
    inside = where >= histories.offsets[users][:, None]
    return torch.from_numpy(np.where(inside, source[np.maximum(where, 0)], 0).astype(np.int64))


def reading_batch(dataset: Dataset, users: np.ndarray, ends: np.ndarray, length: int) -> Batch:
    """What a model reads to predict the event at `ends [B]`."""
    length = _needed(ends - dataset.histories.offsets[users], length)
    items = left_pad(dataset.histories, users, ends, length)
    times = left_pad(dataset.histories, users, ends, length, dataset.histories.times) if dataset.has_times else None
    return Batch(items, items, times=times, padded=bool((items[:, 0] == 0).any()))


def history_batch(items: list[int] | np.ndarray, length: int) -> Batch:
    """One history given as dense item ids, oldest first."""
    row = torch.zeros(1, length, dtype=torch.int64)
    recent = torch.as_tensor(np.asarray(items, dtype=np.int64)[-length:])
    if len(recent):
        row[0, -len(recent) :] = recent
    return Batch(row, row)


def _needed(events: np.ndarray, length: int) -> int:
    """Columns that a batch needs: its longest history, rounded up to eights, at most `length`. Padding is invisible, so
    this changes no score."""
    return int(min(length, -(-max(int(events.max()), 1) // 8) * 8))


class Sampler:
    """The training batches of one epoch, decided by (seed, epoch) alone, so that an interrupted run can repeat them."""

    def __init__(self, dataset: Dataset, train: TrainConfig, length: int) -> None:
        self.dataset, self.train, self.length = dataset, train, length
        self.starts = dataset.histories.offsets[:-1]
        self.ends = dataset.ends("train")

    def epoch(self, number: int) -> Iterator[Batch]:
        rng = np.random.default_rng([self.train.seed, number])
        users, last, wide = self._samples(rng)
        for rows in self._alike(rng, np.minimum(last - self.starts[users], self.length)):
            yield self._batch(users[rows], last[rows], wide[rows])

    def _alike(self, rng: np.random.Generator, lengths: np.ndarray) -> list[np.ndarray]:
        """Shuffled batches of rows with like lengths (sorted inside random pools), so that little is spent on padding."""
        size, order = self.train.batch, rng.permutation(len(lengths))
        pools = [order[at : at + 16 * size] for at in range(0, len(order), 16 * size)]
        pools = [pool[np.argsort(lengths[pool], kind="stable")] for pool in pools]
        batches = [pool[at : at + size] for pool in pools for at in range(0, len(pool), size)]
        return [batches[i] for i in rng.permutation(len(batches))]

    def steps(self) -> int:
        """About how many batches an epoch has."""
        return -(-len(self._samples(np.random.default_rng(0))[0]) // self.train.batch)

    def _samples(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Users, the flat position of the last target, and how many targets end there."""
        span = {"all": self.length, "window": min(self.train.window, self.length), "last": 1}[self.train.objective]
        lengths = self.ends - self.starts - 1  # targets per user: every train event but the first
        able = np.flatnonzero(lengths > 0)
        if self.train.objective == "last" and self.train.cuts:
            users = np.repeat(able, np.minimum(self.train.cuts, lengths[able]))
            return users, self.ends[users] - 1 - rng.integers(0, lengths[users]), np.ones(len(users), np.int64)
        # tiles counted back from the last target, with a random phase so that borders move between epochs
        phase = rng.integers(0, span, len(able)) % np.maximum(lengths[able], 1) if span > 1 else np.zeros(len(able), np.int64)
        tiles = -(-(lengths[able] - phase) // span) + (phase > 0)
        users = np.repeat(able, tiles)
        index = np.arange(len(users)) - np.repeat(np.cumsum(tiles) - tiles, tiles)
        shift = np.repeat(phase, tiles)
        back = np.where(shift > 0, np.where(index == 0, 0, shift + (index - 1) * span), index * span)
        wide = np.where((shift > 0) & (index == 0), shift, np.minimum(span, lengths[users] - back))
        return users, self.ends[users] - 1 - back, wide

    def _batch(self, users: np.ndarray, last: np.ndarray, wide: np.ndarray) -> Batch:
        histories = self.dataset.histories
        length = _needed(last - self.starts[users], self.length)
        items = left_pad(histories, users, last, length)
        targets = left_pad(histories, users, last + 1, length)
        column = torch.arange(length)
        targets = targets * ((column >= length - torch.from_numpy(wide)[:, None]) & (items > 0))
        recall = left_pad(histories, users, last + 1 - wide, length) if self.train.objective == "window" else items
        times = left_pad(histories, users, last, length, histories.times) if self.dataset.has_times else None
        return Batch(items, recall, targets, times, padded=bool((items[:, 0] == 0).any()))
