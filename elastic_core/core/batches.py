"""From flat histories to the tensors a model reads."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from elastic_core.core.histories import Dataset, Histories


class Places(NamedTuple):
    """Where a batch has its targets, counted before it goes to a device: whoever asks one waits until it has done all else."""

    rows: Tensor  # [T] int64 the histories of the targets, ascending
    columns: Tensor  # [T] int64 their positions
    items: Tensor  # [T] int64 what they are
    first: int  # column of the first target of all; 0 without any
    events: int  # events of the whole batch

    def gather_targets(self, x: Tensor, columns: int) -> Tensor:
        """What `x [B, n, …]`, the last n of all `columns`, has at the targets: `[T, …]`."""
        return x.flatten(0, 1).index_select(0, self.rows * x.shape[1] + self.columns - (columns - x.shape[1]))

    def map_tensors(self, moved: Callable[[Tensor], Tensor]) -> "Places":
        return Places(moved(self.rows), moved(self.columns), moved(self.items), self.first, self.events)


@dataclass(frozen=True)
class Batch:
    """Left-padded histories: the most recent event is always the last column, 0 is padding; N is at most the model's length."""

    items: Tensor  # [B, N] int64
    retrieval_items: Tensor  # [B, N'] what retrieval may read; the same as `items` when only the last position is scored
    targets: Tensor | None = None  # [B, N] int64, 0 where a position is not a target
    times: Tensor | None = None  # [B, N] int64 seconds, of the events in `items`
    padded: bool = True  # False promises that no row has padding
    prediction_times: Tensor | None = None  # [B] int64 seconds, when the next event is predicted, where that is known
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
    def target_columns(self) -> int:
        """How many of the last columns hold all targets; 0 where nothing is said of them."""
        if self.targets is None or not len(self.places.columns):
            return 0
        return self.targets.shape[1] - self.places.first

    @property
    def real(self) -> Tensor:
        """`[B, N]`, True on events."""
        return self.items > 0

    @property
    def mask(self) -> Tensor | None:
        """The same, or None where nothing is padded."""
        return self.real if self.padded else None

    def to(self, device: str | torch.device) -> "Batch":
        return self.map_tensors(lambda x: x.to(device, non_blocking=True))

    def map_tensors(self, how: Callable[[Tensor], Tensor]) -> "Batch":
        return replace(self.map_fields(how), counted=None if self.targets is None else self.places.map_tensors(how))

    def select_rows(self, chosen: slice | Tensor) -> "Batch":
        """Some of the histories."""
        return self.map_fields(lambda x: x[chosen])

    def map_fields(self, transform: Callable[[Tensor], Tensor]) -> "Batch":
        items = transform(self.items)
        retrieval = items if self.retrieval_items is self.items else transform(self.retrieval_items)
        others = (None if x is None else transform(x) for x in (self.targets, self.times, self.prediction_times))
        targets, times, prediction_times = others
        return Batch(items, retrieval, targets, times, self.padded, prediction_times)


def left_pad(histories: Histories, users: np.ndarray, ends: np.ndarray, length: int, values: np.ndarray | None = None) -> Tensor:
    """The last `length` events before `ends [B]` (positions in the flat array) of each user: int64 `[B, length]`."""
    source = histories.items if values is None else values
    positions = ends[:, None] + np.arange(-length, 0)
    is_inside = positions >= histories.offsets[users][:, None]
    return torch.from_numpy(np.where(is_inside, source[np.maximum(positions, 0)], 0).astype(np.int64))


def left_pad_times(dataset: Dataset, users: np.ndarray, ends: np.ndarray, length: int) -> Tensor | None:
    """The times of the same events, or None where the data has none."""
    return left_pad(dataset.histories, users, ends, length, dataset.histories.times) if dataset.has_times else None


def reading_batch(dataset: Dataset, users: np.ndarray, ends: np.ndarray, length: int) -> Batch:
    """What a model reads to predict the event at `ends [B]`, at its time, where the user has such an event."""
    length = needed_columns(ends - dataset.histories.offsets[users], length)
    items = left_pad(dataset.histories, users, ends, length)
    times = left_pad_times(dataset, users, ends, length)
    prediction_times = None if times is None else torch.from_numpy(_find_prediction_times(dataset.histories, users, ends))
    return Batch(items, items, times=times, padded=bool((items[:, 0] == 0).any()), prediction_times=prediction_times)


def _find_prediction_times(histories: Histories, users: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """When the events at `ends [B]` happened, int64 seconds; beyond the end of a history, the last time there is in the data."""
    has_event = ends < histories.offsets[users + 1]
    return np.where(has_event, histories.times[np.minimum(ends, len(histories.times) - 1)], histories.times.max(initial=0))


def needed_columns(events: np.ndarray, length: int) -> int:
    """Columns that a batch needs: its longest history, rounded up to eights, at most `length`. Padding is invisible, so
    this changes no score."""
    return int(min(length, -(-max(int(events.max()), 1) // 8) * 8))


def history_batch(items: Sequence[int] | np.ndarray, length: int, times: Sequence[int] | np.ndarray | None = None) -> Batch:
    """One history of dense item ids, oldest first, in all `length` columns; times in seconds, where known."""
    row = _pad_left([np.asarray(items)], length)
    return Batch(row, row, times=None if times is None else _pad_left([np.asarray(times)], length))


def histories_batch(histories: Sequence[np.ndarray], length: int, times: Sequence[np.ndarray] | None = None) -> Batch:
    """Histories of dense item ids, oldest first, in as many columns as the longest needs; one may be empty."""
    columns = needed_columns(np.array([len(history) for history in histories]), length)
    items = _pad_left(histories, columns)
    padded = bool((items[:, 0] == 0).any())
    return Batch(items, items, times=None if times is None else _pad_left(times, columns), padded=padded)


def _pad_left(rows: Sequence[np.ndarray], columns: int) -> Tensor:
    """The last `columns` numbers of every row, int64 `[B, columns]`, after zeros."""
    padded_rows = np.zeros((len(rows), columns), dtype=np.int64)
    for padded, row in zip(padded_rows, rows, strict=True):
        recent = row[-columns:]
        padded[columns - len(recent) :] = recent
    return torch.from_numpy(padded_rows)


# --- what was met before ----------------------------------------------------------------------------------------------

# What people have met before: for scorers that add a learned number to it, and for judging what is new.


class SeenItems(NamedTuple):
    """What every row has met: row r of the states the items in `items[row[r]]`, up to column `upto[r]` where that is given."""

    items: Tensor  # [B, N] 0 pads; numbers beyond the catalogue are no items
    row: Tensor  # [M]
    upto: Tensor | None = None  # [M]
    counted: bool = False  # whether it matters how often (`weigh_repeats`), or only whether

    @classmethod
    def from_batch(cls, batch: Batch) -> "SeenItems":
        """What is read of every history, for the state after it."""
        return cls(batch.items, torch.arange(len(batch.items), device=batch.items.device))

    def seen_mask(self, n_items: int, part: slice = slice(None)) -> Tensor:
        """How well a row knows an item, float `[M, n_items + 1]`: 0 where it has not met it, 1 where it has met it (once, where
        it is `counted`); column 0 is 0."""
        items = self.seen_items(n_items, part)
        weights = self.weigh(items, n_items + 1)
        weights[:, 0] = 0
        return weights

    def weigh(self, columns: Tensor, width: int) -> Tensor:
        """Columns `[M, N]` that events fall into → `[M, width]`, their weight in every column."""
        weights = torch.zeros(len(columns), width, device=columns.device)
        if not self.counted:
            return weights.scatter_(1, columns, 1.0)
        return weigh_repeats(weights.scatter_add_(1, columns, torch.ones_like(columns, dtype=weights.dtype)))

    def seen_items(self, n_items: int, part: slice = slice(None)) -> Tensor:
        """The items `[M, N]` that rows have met, 0 in all other places."""
        items = self.items[self.row[part]]
        if self.upto is not None:
            is_later = torch.arange(items.shape[1], device=items.device) > self.upto[part].unsqueeze(1)
            items = items.masked_fill(is_later, 0)
        return items.masked_fill(items > n_items, 0)


def weigh_repeats(times: Tensor) -> Tensor:
    """What having met an item so many times weighs, 1 for once: log(1 + 10 n) / log 11. On groceries' validation this grows as
    slowly as what people buy again does; whether alone, or the number itself, ranks worse."""
    return torch.log1p(10 * times) / math.log(11)


# --- who shares a batch ----------------------------------------------------------------------------------------------

T = TypeVar("T")


class SingleProcess:
    """The process of a training that is alone: what several do together (scale/distributed.py), it does."""

    rank, count = 0, 1

    def choose_device(self, device: torch.device) -> torch.device:
        """The device of this process."""
        return device

    def run_on_first(self, do: Callable[..., T], *arguments: Any) -> T:
        """What rank 0 does, and nobody else."""
        return do(*arguments)

    def run_on_each(self, do: Callable[[], T]) -> T:
        """What each does for itself."""
        return do()

    def run_alike(self, do: Callable[[], T]) -> T:
        """What follows from the same numbers everywhere."""
        return do()

    def add_numbers(self, numbers: list[float]) -> list[float]:
        """Of everybody's numbers, one by one."""
        return numbers

    def add_tensors(self, numbers: Tensor) -> Tensor:
        """The same of numbers on a device, which stay there."""
        return numbers

    def find_largest(self, number: int) -> int:
        return number

    def batch_mean(self, x: Tensor) -> Tensor:
        """The mean over the rows of the whole batch, of which `x [B, ...]` is this process's share, with its gradient."""
        return x.mean(0)

    def add_gradients(self, model: nn.Module) -> None:
        """Every parameter's gradient becomes the sum of everybody's."""

    def even_out(self, tensors: Iterable[Tensor]) -> None:
        """All have what rank 0 has."""

    @contextmanager
    def share_loss(self) -> Iterator[None]:
        """Around the loss of a batch of which this process has a share."""
        before = _sharing.set(self)
        try:
            yield
        finally:
            _sharing.reset(before)


ALONE = SingleProcess()
_sharing: ContextVar[SingleProcess] = ContextVar("sharing", default=ALONE)


def batch_mean(x: Tensor) -> Tensor:
    """The mean over the rows of a step's whole batch, of which `x [B, ...]` is this process's share."""
    if torch.compiler.is_compiling():  # then there is one process (step.py)
        return x.mean(0)
    return _sharing.get().batch_mean(x)


def same_draw(drawn: Tensor) -> Tensor:
    """What rank 0 drew, for all that share a batch."""
    _sharing.get().even_out([drawn])
    return drawn
