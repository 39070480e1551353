"""The harness: contestants take turns in one process, so that whatever else the machine does falls on all of them alike.

Every contestant is warmed up, then each round times each of them once, starting with another one every round. Reported
are the median and the quartiles over rounds, which no odd round moves, and of a contestant that is held against another the
same of their ratio within a round.
"""

import contextlib
import subprocess
import sys
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from elastic_core.bench.store import Figure, Row
from elastic_core.core.config import TrainConfig
from elastic_core.core.contract import Recommender
from elastic_core.core.objective import Objective
from elastic_core.core.step import Learner
from elastic_core.machine import here

Job = Callable[[], Any]
# What a command measures at a time: in words, how, and the rows without which it is measured again; none: always.
Part = tuple[str, Callable[[], Iterable[Row]], Sequence[dict[str, Any]]]
Also = Mapping[str, float | Figure]
DIGITS = 7  # behind the point, of seconds


class Contestant(NamedTuple):
    """Something to time, and what its row says of it. `each` of what counts is done by one call of `job`; `also` tells what is
    known besides its time, once all are timed."""

    system: str
    setting: Mapping[str, Any]
    job: Job
    each: int = 1
    also: Callable[[], Also] = dict


def measure_rows(bench: str, contestants: Sequence[Contestant], device: torch.device, **harness: Any) -> list[Row]:
    """Return a row a contestant: `seconds`, `processor`, and what is known `also`."""
    taken = in_turns([one.job for one in contestants], device, **harness)
    return [
        row_of(bench, one.system, one.setting, mine / one.each, one.also(), device)
        for one, mine in zip(contestants, taken, strict=True)
    ]


def row_of(bench: str, system: str, setting: Mapping[str, Any], taken: Any, more: Also, device: torch.device) -> Row:
    """Return a row with everything that is known here and now; `taken` are seconds by the clock and of the processor, a round a
    line."""
    clock, processor = np.asarray(taken, float).T
    found = {"seconds": quartiles(clock), "processor": Figure(round(float(np.median(processor)), DIGITS))}
    also = {name: each if isinstance(each, Figure) else Figure(each) for name, each in more.items()}
    where = {"rounds": len(clock), **here(device)}
    return Row(bench=bench, system=system, setting=dict(setting), figures=found | also, where=where)


def quartiles(values: Any, digits: int = DIGITS) -> Figure:
    low, middle, high = (round(float(x), digits) for x in np.quantile(values, [0.25, 0.5, 0.75]))
    return Figure(middle, low, high)


def in_turns(
    jobs: Sequence[Job], device: torch.device, rounds: int = 15, warmup: int = 3, seconds: float = 20.0
) -> list[ndarray]:
    """Time all jobs in turn for `rounds` rounds or about `seconds`, whichever ends first (three rounds at least). Return, of each
    job, its seconds by the clock and of the processor, a round a line."""
    for job in jobs:
        for _ in range(warmup):
            job()
    taken: list[list[ndarray]] = [[] for _ in jobs]
    began = time.perf_counter()
    for turn in range(rounds):
        for place in range(turn, turn + len(jobs)):
            taken[place % len(jobs)].append(once(jobs[place % len(jobs)], device))
        if turn >= 2 and time.perf_counter() - began > seconds:
            break
    return [np.array(each) for each in taken]


def once(job: Job, device: torch.device) -> ndarray:
    """Seconds by the clock and of the processor."""
    began = clocks(device)
    job()
    return clocks(device) - began


def clocks(device: torch.device) -> ndarray:
    """Read the clock and the processor's, once a GPU has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return np.array([time.perf_counter(), time.process_time()])


def peak_bytes(job: Job, device: torch.device) -> int:
    """Most bytes of tensors alive at a time during `job`, beyond what lived before.

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
    alive, peak, known = 0, 0, weakref.WeakSet[Any]()

    def count(size: int) -> None:
        nonlocal alive, peak
        alive += size
        peak = max(peak, alive)

    def see(func: Any, given: list[Tensor], made: list[Tensor]) -> None:
        for storage in _storages(made) - _storages(given):
            if storage not in known:
                known.add(storage)
                count(storage.nbytes())
                weakref.finalize(storage, count, -storage.nbytes())

    with _Watching(see):
        job()
    return peak


LOOKUPS = ("aten::embedding", "aten::index_select", "aten::gather", "aten::index.", "aten::select")


@contextlib.contextmanager
def moved_by(whose: Callable[[], str]) -> Iterator[Mapping[str, int]]:
    """Count the bytes of tensors that the operators inside read and write, by what `whose` says at each: what a pass over
    memory costs before caches. A view moves nothing; of a table only the rows that are looked up are read. Scratch space inside
    an operator is not seen."""
    moved = Counter[str]()

    def see(func: Any, given: list[Tensor], made: list[Tensor]) -> None:
        name, changes = func.name(), func._schema.is_mutable
        if name.startswith("aten::empty") or not (changes or _storages(made) - _storages(given)):
            return  # nothing written: room that is still empty, or a view
        written = sum(map(_size, made))
        moved[whose()] += written + (written if name.startswith(LOOKUPS) else sum(map(_size, given)))

    with _Watching(see):
        yield moved


def saved_bytes(job: Callable[[], Tensor], parameters: Iterator[Tensor]) -> int:
    """Bytes that a forward pass keeps for its backward pass: unique storages, parameters not counted."""
    with saved_by(lambda: "", parameters) as kept:
        result = job()  # keeps the graph, and so the storages, alive: no address is used twice
    del result
    return sum(kept.values())


@contextlib.contextmanager
def saved_by(whose: Callable[[], str], parameters: Iterator[Tensor]) -> Iterator[Mapping[str, int]]:
    """As `saved_bytes`, of what is kept inside and alive to its end, by what `whose` says when a storage is kept first."""
    known, kept = {p.untyped_storage().data_ptr() for p in parameters}, Counter[str]()

    def keep(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in known:
            known.add(storage.data_ptr())
            kept[whose()] += storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        yield kept


class PartClock:
    """Whose turn it is, and how long everybody's were by the clock and of the processor: time goes to the innermost part."""

    def __init__(self, device: torch.device, nobody: str = "") -> None:
        self.taken: dict[tuple[str, bool], ndarray] = defaultdict(lambda: np.zeros(2))  # of a part, on the way there or back
        self.part, self.back, self._device, self._since = nobody, False, device, clocks(device)

    def turn(self, part: str) -> str:
        """The part begins, or goes on; who had the turn before?"""
        self.taken[self.part, self.back] += clocks(self._device) - self._since
        before, self.part = self.part, part
        self._since = clocks(self._device)
        return before

    def timed(self, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, which takes its turn."""

        def run(*args: Any, **options: Any) -> Any:
            before = self.turn(part)
            try:
                return call(*args, **options)
            finally:
                self.turn(before)

        return run


class _Watching(TorchDispatchMode):
    """Shows every operator, with the tensors that it is given and those that it returns."""

    def __init__(self, see: Callable[[Any, list[Tensor], list[Tensor]], None]) -> None:
        super().__init__()
        self._see = see

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given, made = ([x for x in tree_iter(some) if isinstance(x, Tensor)] for some in ((args, kwargs), result))
        self._see(func, given, made)
        return result


def _storages(tensors: list[Tensor]) -> set[Any]:
    return {x.untyped_storage() for x in tensors}


def _size(x: Tensor) -> int:
    """Bytes that `x` shows of its storage."""
    return min(x.numel() * x.element_size(), x.untyped_storage().nbytes())


def learning(model: Recommender, objective: Objective, train: TrainConfig, device: torch.device, drawn: int | None = None) -> Job:
    """One step of training after the other, over the batches of an epoch, or the first so many."""
    learner = Learner(model.to(device).train(), objective, train, device)
    batches = cycle([batch.to(device) for batch in islice(objective.epoch(0, 0, train.batch), drawn)])
    return lambda: learner.step(next(batches))


def told_apart(module: str, call: str) -> str:
    """The last line that a call in this module of the bench writes, in a process of its own, whose memory then is the call's."""
    code = f"from elastic_core.bench import {module}; {module}.{call}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()[-1]


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """So many CPU threads inside; 0 leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
