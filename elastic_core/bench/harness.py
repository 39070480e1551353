"""How things are timed: contestants take turns in one process, so that whatever else the machine does falls on all of them alike.

Every contestant is warmed up, then each round times each of them once, starting with another one every round. Reported are
the median and the quartiles over rounds, which no single odd round moves.
"""

import contextlib
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy import ndarray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from elastic_core.bench.rows import as_table
from elastic_core.machine import describe_machine

Job = Callable[[], Any]
DIGITS = 7  # behind the point, of seconds


@dataclass(frozen=True)
class Contestant:
    """Something to time.

    `setting` says in which setting it is measured (columns of a row), `job` does the work, `repeats` times a call. `measure_more`
    returns further columns, once all contestants are timed.
    """

    system: str
    setting: Mapping[str, Any]
    job: Job
    repeats: int = 1
    measure_more: Callable[[], dict[str, Any]] = dict


def measure_contestants(
    bench: str, contestants: Sequence[Contestant], device: torch.device, peer: str = "", **harness: Any
) -> pd.DataFrame:
    """Time all contestants in turns and return a row for each; `harness` goes to `time_in_turns`.

    Where the system `peer` is timed in the same setting, `ratio` says how many times as fast the others are, round by round:
    by the processor's time, on a GPU by the clock.
    """
    times = time_in_turns([contestant.job for contestant in contestants], device, **harness)
    seconds_each = [seconds / contestant.repeats for contestant, seconds in zip(contestants, times, strict=True)]
    clock = 0 if device.type == "cuda" else 1
    rows = []
    for contestant, seconds in zip(contestants, seconds_each, strict=True):
        row = row_of(bench, contestant.system, contestant.setting, seconds, device)
        for other, peer_seconds in zip(contestants, seconds_each, strict=True):
            if other.system == peer != contestant.system and other.setting == contestant.setting:
                row |= name_quartiles("ratio", peer_seconds[:, clock] / seconds[:, clock], 3)
        rows.append(row | contestant.measure_more())
    return as_table(rows)


def row_of(bench: str, system: str, setting: Mapping[str, Any], seconds: ndarray, device: torch.device) -> dict[str, Any]:
    """Return a row of what is known here and now; `seconds` `[rounds, 2]` are by the clock and of the processor."""
    clock, processor = seconds.T
    times = name_quartiles("seconds", clock) | {"processor": round(float(np.median(processor)), DIGITS)}
    return {"bench": bench, "system": system, **setting, **times, "rounds": len(clock), **describe_machine(device)}


def name_quartiles(name: str, values: ndarray, digits: int = DIGITS) -> dict[str, float]:
    """Return the median under this name, and the quartiles beside it."""
    low, middle, high = (round(float(value), digits) for value in np.quantile(values, [0.25, 0.5, 0.75]))
    return {name: middle, f"{name}_low": low, f"{name}_high": high}


def time_in_turns(
    jobs: Sequence[Job], device: torch.device, rounds: int = 15, warmup: int = 3, seconds: float = 20.0
) -> list[ndarray]:
    """Time all jobs in turn for `rounds` rounds or about `seconds`, whichever ends first (three rounds at least).

    Returns for each job its seconds by the clock and of the processor, `[rounds, 2]`.
    """
    for job in jobs:
        for _ in range(warmup):
            job()
    times: list[list[ndarray]] = [[] for _ in jobs]
    began = time.perf_counter()
    for turn in range(rounds):
        for place in range(turn, turn + len(jobs)):
            times[place % len(jobs)].append(time_once(jobs[place % len(jobs)], device))
        if turn >= 2 and time.perf_counter() - began > seconds:
            break
    return [np.array(rounds_of_job) for rounds_of_job in times]


def time_once(job: Job, device: torch.device) -> ndarray:
    """Return the seconds by the clock and of the processor."""
    began = read_clocks(device)
    job()
    return read_clocks(device) - began


def read_clocks(device: torch.device) -> ndarray:
    """Return what the clock and the processor's clock say, once a GPU has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return np.array([time.perf_counter(), time.process_time()])


@contextlib.contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Use so many CPU threads inside; 0 leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def peak_bytes(job: Job, device: torch.device) -> int:
    """Return the most bytes of tensors alive at a time during `job`, beyond what lived before.

    On CUDA the allocator says so. On the CPU every tensor an operator returns is followed until it dies; scratch space
    inside an operator is not seen.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        job()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    with _TensorWatch() as watch:
        job()
    return watch.peak


def saved_bytes(job: Callable[[], Tensor], parameters: Iterator[Tensor]) -> int:
    """Return the bytes that a forward pass keeps for its backward pass: unique storages, parameters not counted."""
    known_storages = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    total = 0

    def count_storage(tensor: Tensor) -> Tensor:
        nonlocal total
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known_storages:
            known_storages.add(storage.data_ptr())
            total += storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count_storage, lambda tensor: tensor):
        result = job()  # keeps the graph, and so the storages, alive: no address is used twice
    del result
    return total


class _TensorWatch(TorchDispatchMode):
    """Follows every tensor that an operator returns from its birth to its death."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = self.peak = 0
        self._known = weakref.WeakSet[Any]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for storage in _tensor_storages(result) - _tensor_storages((args, kwargs)):  # a view has the storage of what it views
            if storage not in self._known:
                self._known.add(storage)
                self._count(storage.nbytes())
                weakref.finalize(storage, self._count, -storage.nbytes())
        return result

    def _count(self, size: int) -> None:
        self.alive += size
        self.peak = max(self.peak, self.alive)


def _tensor_storages(tree: Any) -> set[Any]:
    return {leaf.untyped_storage() for leaf in tree_iter(tree) if isinstance(leaf, Tensor)}
