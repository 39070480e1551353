"""What reading a long file of clicks costs, beside pyarrow's own reading of the same file into a table of numbers.

Every contestant has a process of its own, so that its peak memory is what it took. `reader and split` is what a training does
before its first step: read, find the core, order, number, hold out.
"""

import json
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from elastic_core.bench.store import Row
from elastic_core.bench.timing import once, row_of, told_apart
from elastic_core.data import load
from elastic_core.data.reading import read_interactions
from elastic_core.machine import CPU
from elastic_core.run_config import DataConfig

SYSTEMS = ("pyarrow", "reader", "reader and split")
PEOPLE, ITEMS, PIECE = 69_691, 400_000, 2_000_000


def draw(path: Path, rows: int) -> None:
    """Write a CSV of user, item, time, drawn evenly."""
    from pyarrow import csv, table

    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        file.write(b"user,item,time\n")
        for start in range(0, rows, PIECE):
            n = min(PIECE, rows - start)
            people, seconds = min(PEOPLE, rows // 20), rng.integers(1_400_000_000, 1_600_000_000, n)
            columns = (rng.integers(0, people, n), rng.integers(0, ITEMS, n), seconds)
            csv.write_csv(table(list(columns), ["user", "item", "time"]), file, csv.WriteOptions(include_header=False))


def measure_reading(lines: int) -> Iterator[Row]:
    """Yield a row a contestant: seconds of the clock and of the processor, bytes of memory at the peak."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "clicks.csv")
        draw(path, lines)
        for system in SYSTEMS:
            clock, processor, peak = json.loads(told_apart("reading", f"tell({system!r}, {str(path)!r})"))
            setting = {"lines": lines, "bytes": path.stat().st_size}
            yield row_of("reading", system, setting, [(clock, processor)], {"peak": peak}, CPU)


def tell(system: str, path: str) -> None:
    """Print what reading takes in this process. (The first megabyte was read before, so that imports do not count.)"""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small.csv")
        draw(small, 1_000)
        _read_with(system, small)
    taken = once(lambda: _read_with(system, Path(path)), CPU).round(3).tolist()
    sys.stdout.write(json.dumps([*taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]) + "\n")


def _read_with(system: str, path: Path) -> object:
    if system == "pyarrow":
        from pyarrow import csv

        return csv.read_csv(path)
    return read_interactions(path) if system == "reader" else load(DataConfig(source=str(path), k_core=0))


def reading_table(rows: list[Row]) -> str:
    """Return what was measured, a line each."""
    head = "system              rows         size   processor    clock     peak  load  date"
    lines = [
        f"{row.system:<17}{row.lines:>13,}{row.bytes / 2**30:>9.2f} GiB{row.processor:>8.1f} s{row.seconds:>8.1f} s"
        f"{row.peak / 2**30:>6.2f} GiB{row.load:>6.1f}  {row.date}"
        for row in rows
    ]
    return "\n".join([head, *lines])
