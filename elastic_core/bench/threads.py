"""How many threads pay? Whole passes with 1, 2 and all, and with the cores that are free then (0), in turns, on an idle machine
and beside a process that works.

`person`: one history, as a service reads it; `batch`: 64 of them. Many of a pass's operations are small, and threads that wait
for each other lose more than they share, the more so where another process wants the same cores.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from elastic_core.bench.store import Row
from elastic_core.bench.timing import Contestant, measure_rows, threads
from elastic_core.data import Catalog
from elastic_core.machine import CPU, SpareCores, thread_counts
from elastic_core.models import Recommender
from elastic_core.recommendations import ItemRanker, Query

PARTS = {"person": 1, "batch": 64}
WORK = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"  # until the bench ends
AUTO = 0  # as the service chooses for a batch; for one person it takes one


def measure_threads(model: Recommender, seconds: float) -> Iterator[Row]:
    """Yield rows of both parts, alone and `beside` a process of ours that works all the time."""
    ranker, rng = ItemRanker(model, Catalog.numbered(model.n_items)), np.random.default_rng(0)
    for beside in (0, 1):
        other = subprocess.Popen([sys.executable, "-c", WORK]) if beside else None
        try:
            for part, people in PARTS.items():
                histories = [rng.integers(1, model.n_items + 1, model.length) for _ in range(people)]
                told = {"part": part, "length": model.length, "beside": beside}
                jobs = [
                    Contestant(model.config.name, told | {"count": count}, _with(count, ranker, histories))
                    for count in (*thread_counts(), *([AUTO] if people > 1 else []))
                ]
                yield from measure_rows("threads", jobs, CPU, seconds=seconds)
        finally:
            if other:
                other.kill()
                other.wait()


def _with(count: int, ranker: ItemRanker, histories: list[np.ndarray]) -> Callable[[], Any]:
    spare, allowed = SpareCores(), ranker.allowed_items()

    def job() -> None:
        with threads(spare.now() if count == AUTO else count):
            ranker.rank([Query(history, allowed) for history in histories], 10)

    return job


def threads_table(rows: list[Row]) -> str:
    """Milliseconds by the clock, and how many times those of the best number of threads."""
    best: dict[Any, float] = {}
    for row in rows:
        best[_same(row)] = min(row.seconds, best.get(_same(row), row.seconds))
    head = f"{'part':<8}{'model':<16}{'N':>6}{'beside':>8}{'threads':>9}{'ms':>10}{'of the best':>13}"
    lines = [
        f"{row.part:<8}{row.system:<16}{row.length:>6}{row.beside:>8}{row.count or 'free':>9}{1e3 * row.seconds:>10.2f}"
        f"{row.seconds / best[_same(row)]:>12.2f}×  load {row.load:g}"
        for row in rows
    ]
    return "\n".join([head, *lines])


def _same(row: Row) -> tuple[Any, ...]:
    return row.system, row.part, row.length, row.beside, row.place
