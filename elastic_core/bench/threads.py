"""How many threads pay? Whole passes with 1, 2 and all, in turns, on an idle machine and beside a process that works.

`person`: one history, as a service reads it; `batch`: 64 of them. Many of a pass's operations are small, and threads that wait
for each other lose more than they share, the more so where another process wants the same cores.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from elastic_core.bench.timing import interleaved, threads
from elastic_core.data import Catalog
from elastic_core.lists import Lister
from elastic_core.machine import Measured, here, thread_counts
from elastic_core.models import Recommender

PARTS = {"person": 1, "batch": 64}


@dataclass(frozen=True)
class ThreadsRow(Measured):
    part: str
    model: str
    length: int
    beside: int  # processes of ours that work all the time; what others do is in `load`
    count: int  # threads of an operation
    median: float  # milliseconds
    low: float
    high: float
    rounds: int
    slower: float  # times the best of this part, model and `beside`

    @property
    def key(self) -> tuple[object, ...]:
        return self.part, self.model, self.length, self.beside, self.count, self.device, self.commit


def measure(model: Recommender, seconds: float) -> Iterator[ThreadsRow]:
    """Rows of both parts, alone and beside one process."""
    lister, rng = Lister(model, Catalog.numbered(model.n_items)), np.random.default_rng(0)
    everything, about = lister.running(), here(torch.device("cpu"))
    for beside in (0, 1):
        with _working(beside):
            for part, people in PARTS.items():
                histories = [rng.integers(1, model.n_items + 1, model.length) for _ in range(people)]
                jobs = {str(count): _with(count, lister, histories, everything) for count in thread_counts()}
                found = interleaved(jobs, torch.device("cpu"), seconds=seconds)
                best = min(timing.median for timing in found.values())
                for count, timing in found.items():
                    median, low, high, _ = (round(1_000 * value, 3) for value in timing[:4])
                    slower = round(timing.median / best, 2)
                    yield ThreadsRow(
                        part,
                        model.config.name,
                        model.length,
                        beside,
                        int(count),
                        median,
                        low,
                        high,
                        timing.rounds,
                        slower,
                        **about,
                    )


def _with(count: int, lister: Lister, histories: list[np.ndarray], running: torch.Tensor) -> Callable[[], Any]:
    def job() -> None:
        with threads(count):
            lister.rank(histories, None, 10, running)

    return job


@contextmanager
def _working(processes: int) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_work, args=(os.getpid(),), daemon=True) for _ in range(processes)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.join()


def _work(parent: int) -> None:
    while os.getppid() == parent:
        sum(range(100_000))


def as_table(rows: list[ThreadsRow]) -> str:
    lines = [f"{'part':<8}{'model':<16}{'N':>6}{'beside':>8}{'threads':>9}{'ms':>10}{'of the best':>13}"]
    lines += [
        f"{r.part:<8}{r.model:<16}{r.length:>6}{r.beside:>8}{r.count:>9}{r.median:>10.2f}{r.slower:>12.2f}×  load {r.load:g}"
        for r in rows
    ]
    return "\n".join(lines)
