"""From flat histories to the tensors a model reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elastic_core.core.histories import Dataset, Histories


class Places(NamedTuple):
    """Where a batch has its targets, counted before it goes to a device: whoever asks one waits until it has done all else."""

    rows: Tensor  # [T] int64 the histories of the targets, ascending
    columns: Tensor  # [T] int64 their positions
    items: Tensor  # [T] int64 what they are
    first: int  # column of the first target of all; 0 without any
    events: int  # events of the whole batch

    @property
    def asked(self) -> tuple[Tensor, Tensor]:
        """The histories of the targets and the targets, `[T]` each."""
        return self.rows, self.items

    def of(self, x: Tensor, columns: int) -> Tensor:
        """What `x [B, n, …]`, the last n of all `columns`, has at the targets: `[T, …]`."""
        return x.flatten(0, 1).index_select(0, self.rows * x.shape[1] + self.columns - (columns - x.shape[1]))

    def each(self, moved: Callable[[Tensor], Tensor]) -> "Places":
        return Places(moved(self.rows), moved(self.columns), moved(self.items), self.first, self.events)


@dataclass(frozen=True)
class Batch:
    """Left-padded histories: the most recent event is always the last column, 0 is padding; N is at most the model's length."""

    items: Tensor  # [B, N] int64
    retrieval_items: Tensor  # [B, N'] what retrieval may read; the same as `items` when only the last position is scored
    targets: Tensor | None = None  # [B, N] int64, 0 where a position is not a target
    times: Tensor | None = None  # [B, N] int64 seconds, of the events in `items`
    padded: bool = True  # False promises that no row has padding
    counted: Places | None = None  # what `places` says, found before the batch went to a device

    @property
    def places(self) -> Places:
        """Where the targets are. Raises ValueError where there are none to be learned from."""
        if self.counted is not None:
            return self.counted
        if self.targets is None:
            raise ValueError("a training batch needs targets")
        rows, columns = (self.targets > 0).nonzero(as_tuple=True)
        first = int(columns.min()) if len(columns) else 0
        return Places(rows, columns, self.targets[rows, columns], first, int(self.real.sum()))

    @property
    def real(self) -> Tensor:
        """`[B, N]`, True on events."""
        return self.items > 0

    def to(self, device: str | torch.device) -> "Batch":
        return self._each(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> "Batch":
        """In memory that a GPU reads without the processor."""
        return self._each(Tensor.pin_memory)

    def _each(self, moved: Callable[[Tensor], Tensor]) -> "Batch":
        def move(x: Tensor | None) -> Tensor | None:
            return None if x is None else moved(x)

        items = moved(self.items)
        retrieval = items if self.retrieval_items is self.items else moved(self.retrieval_items)
        counted = None if self.targets is None else self.places.each(moved)
        return Batch(items, retrieval, move(self.targets), move(self.times), self.padded, counted)

    def rows(self, chosen: slice | Tensor) -> "Batch":
        """Some of the histories."""

        def cut(x: Tensor | None) -> Tensor | None:
            return None if x is None else x[chosen]

        items = self.items[chosen]
        retrieval = items if self.retrieval_items is self.items else self.retrieval_items[chosen]
        return Batch(items, retrieval, cut(self.targets), cut(self.times), self.padded)


def left_pad(histories: Histories, users: np.ndarray, ends: np.ndarray, length: int, values: np.ndarray | None = None) -> Tensor:
    """The last `length` events before `ends [B]` (positions in the flat array) of each user: int64 `[B, length]`."""
    source = histories.items if values is None else values
    where = ends[:, None] + np.arange(-length, 0)
    inside = where >= histories.offsets[users][:, None]
    return torch.from_numpy(np.where(inside, source[np.maximum(where, 0)], 0).astype(np.int64))


def left_pad_times(dataset: Dataset, users: np.ndarray, ends: np.ndarray, length: int) -> Tensor | None:
    """The times of the same events, or None where the data has none."""
    return left_pad(dataset.histories, users, ends, length, dataset.histories.times) if dataset.has_times else None


def reading_batch(dataset: Dataset, users: np.ndarray, ends: np.ndarray, length: int) -> Batch:
    """What a model reads to predict the event at `ends [B]`."""
    length = needed_columns(ends - dataset.histories.offsets[users], length)
    items = left_pad(dataset.histories, users, ends, length)
    times = left_pad_times(dataset, users, ends, length)
    return Batch(items, items, times=times, padded=bool((items[:, 0] == 0).any()))


def history_batch(items: list[int] | np.ndarray, length: int, times: list[int] | np.ndarray | None = None) -> Batch:
    """One history given as dense item ids, oldest first, and when they were met (seconds), where that is known."""

    def padded(values: list[int] | np.ndarray) -> Tensor:
        row = torch.zeros(1, length, dtype=torch.int64)
        recent = torch.as_tensor(np.asarray(values, dtype=np.int64)[-length:])
        if len(recent):
            row[0, -len(recent) :] = recent
        return row

    row = padded(items)
    return Batch(row, row, times=None if times is None else padded(times))


def needed_columns(events: np.ndarray, length: int) -> int:
    """Columns that a batch needs: its longest history, rounded up to eights, at most `length`. Padding is invisible, so
    this changes no score."""
    return int(min(length, -(-max(int(events.max()), 1) // 8) * 8))
