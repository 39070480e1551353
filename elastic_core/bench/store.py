"""What the benches measured: one kind of row, one kind of file, and how rows are asked for.

A file has a line a number: of which bench, system and setting it is, which metric, its middle and quartiles, where and when.
Seconds and bytes are of a whole batch, whatever is printed.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from elastic_core import disk
from elastic_core.disk import write_text
from elastic_core.errors import InputError

MOST_BYTES, LONGEST = 2**22, 200  # of a file; characters of a cell
MOST_ROWS, MOST_SYSTEMS, MOST_COLUMNS = 20_000, 40, 60  # of a file: every system is a line in a chart
MOST_LENGTH = 2**24  # events; and the most of whatever else is counted
WHERE = ("rounds", "device", "threads", "load", "torch", "commit", "date")
COLUMNS = ("bench", "system", "setting", "metric", "value", "low", "high", *WHERE)
SIZES = {"length": 1, "batch": 1, "width": 1, "k": 0, "side": 0, "heads": 0, "layers": 0}  # and the least they may be
TIMES = ("seconds", "processor")
# What is drawn on screens must be there in every row, and be what it says.
SHAPE = ("length", "batch", "width", "k", "side", *TIMES)
NEEDED = {
    "latency": (*SHAPE, "rows", "direction"),
    "events": SHAPE,
    "stages": (*SHAPE, "rows", "direction", "stage", "moved"),
}
GRAPHS = "reduce-overhead"  # compiled so, a pass works in memory of its own, which no peak shows
POSITIVE = {"seconds", "processor", "peak"}  # but of a part of a pass: it may take no time
NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,20})?(e[-+]?\d{1,2})?")


class Figure(NamedTuple):
    """The middle of what was measured, and its quartiles where there are some."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a bench measured of one system in one setting, metric by metric. Settings, middles of metrics, and where it was
    measured (`WHERE`) can be asked for like attributes: `row.length`, `row.processor`, `row.device`."""

    bench: str
    system: str
    setting: Mapping[str, Any]
    figures: Mapping[str, Figure]
    where: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        for part in ("figures", "setting", "where"):
            if name in (held := self.__dict__.get(part, {})):
                return held[name].value if part == "figures" else held[name]
        raise AttributeError(name)

    @property
    def place(self) -> tuple[Any, ...]:
        """Equal for what may be held against each other: the same machine, threads and code."""
        return tuple(getattr(self, name, "") for name in ("device", "threads", "torch", "commit", "dtype"))

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for two measurements of the same thing by the same code on the same machine."""
        return (self.bench, self.system, *sorted(self.setting.items()), *self.place)

    def is_of(self, /, **wanted: Any) -> bool:
        return all(getattr(self, name, None) == value for name, value in wanted.items())

    def spread(self, name: str, times: float = 1e3, form: str = ".2f") -> str:
        """The quartiles of a metric, in words: milliseconds of seconds unless said otherwise."""
        return " … ".join(format(times * end, form) for end in self.figures[name][1:])


def select_rows(rows: Iterable[Row], /, **wanted: Any) -> list[Row]:
    """Return the rows of which all this is so."""
    return [row for row in rows if row.is_of(**wanted)]


def together(rows: Iterable[Row], /, *wanted: Mapping[str, Any], **where: Any) -> list[Row] | None:
    """Return the newest row of each of `wanted`, all measured by the same code, machine and threads; None if there are none.
    `where` is so of all of them."""
    groups: dict[Any, list[Row]] = {}
    for row in select_rows(rows, **where):
        groups.setdefault(row.place, []).append(row)
    found = [[select_rows(group, **one)[-1:] for one in wanted] for group in groups.values()]
    whole = [[row for last in each for row in last] for each in found if all(each)]
    return max(whole, key=lambda each: max(row.date for row in each), default=None)


def figures(rows: Iterable[Row], table: str, /, **where: Any) -> dict[str, float]:
    """Return what the lines of a table come to, `name | metric | of what | over what`: a metric, maybe per another, `a/b`, over
    that of the other, which differs from the one in what it says, or by itself where there is no other. Both sides are from
    one measurement, and `where` is so of both unless they say otherwise. What was not measured is left out. `microseconds` are of
    the processor."""
    rows, found = list(rows), dict[str, float]()
    for line in table.strip().splitlines():
        name, metric, *sides = (cell.strip() for cell in line.split("|"))
        one, *other = map(parse_setting, sides)
        wanted = [{**where, **one}, *({**where, **one, **changed} for changed in other)]
        values = [_measured(row, *metric.split("/")) for row in together(rows, *wanted) or ()]
        if all(values) and values:
            found[name] = values[0] / values[1] if other else values[0]
    return found


def _measured(row: Row, metric: str, *each: str) -> float:
    per = math.prod(getattr(row, name, 0) for name in each)
    value = 1e6 * getattr(row, "processor", 0) if metric == "microseconds" else getattr(row, metric, 0)
    return float(value / per) if per else 0.0


def read_rows(path: Path, *benches: str) -> list[Row]:
    """Return the rows of a file, of these benches alone if some are named. None if there is no file.

    Raises InputError if it is not such a file, or of what nobody measured."""
    try:
        head, *lines = csv.reader(io.StringIO(disk.read_text(path, MOST_BYTES, path.parent)))
        if tuple(head) != COLUMNS or len(lines) > MOST_ROWS:
            raise ValueError
        figures: dict[tuple[str, ...], dict[str, Figure]] = {}
        for bench, system, setting, metric, value, low, high, *where in filter(None, lines):
            ends = (_parse_number(end) if end else math.nan for end in (low, high))
            same = figures.setdefault((bench, system, setting[: 10 * LONGEST], *where), {})
            same[metric[:LONGEST]] = Figure(_parse_number(value), *ends)
        rows = [_parse_row(same, found) for same, found in figures.items()]
        if not all(map(_believable, rows)) or len({row.system for row in rows if row.bench in NEEDED}) > MOST_SYSTEMS:
            raise ValueError
    except disk.Absent:
        return []
    except (TypeError, ValueError, csv.Error):
        raise InputError(f"{path} is not a file of benchmark rows; give another --name") from None
    return [row for row in rows if row.bench in benches] if benches else rows


def readable_rows(path: Path, *benches: str) -> list[Row]:
    """As `read_rows`; none of a file that is not one."""
    try:
        return read_rows(path, *benches)
    except InputError:
        return []


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a line a metric; later rows replace earlier ones of the same `key`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in {row.key: row for row in rows}.values():
        setting = "; ".join(f"{name}={value}" for name, value in row.setting.items())
        for metric, figure in row.figures.items():
            numbers = ["" if math.isnan(x) else int(x) if x == int(x) else x for x in figure]
            writer.writerow([row.bench, row.system, setting, metric, *numbers, *(row.where.get(name, "") for name in WHERE)])
    with disk.said(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, out.getvalue())


def read_table(path: Path, texts: Sequence[str]) -> pd.DataFrame:
    """A CSV of anything that was measured; of its columns, `texts` are read as text. Raises ValueError for what is none."""
    data = disk.read_bytes(path, MOST_BYTES, path.parent)
    if data.partition(b"\n")[0].count(b",") >= MOST_COLUMNS:
        raise ValueError("too many columns")  # pandas takes minutes for a million
    table = pd.read_csv(io.BytesIO(data), dtype=dict.fromkeys(texts, str), nrows=MOST_ROWS + 1)
    if len(table) > MOST_ROWS:
        raise ValueError("too many rows")
    return table


def _parse_row(same: tuple[str, ...], figures: dict[str, Figure]) -> Row:
    bench, system, setting, *whereabouts = same
    where: dict[str, Any] = {name: text[:LONGEST] for name, text in zip(WHERE, whereabouts, strict=True)}
    where |= {"rounds": int(where["rounds"]), "threads": int(where["threads"]), "load": _parse_number(where["load"])}
    return Row(bench=bench[:LONGEST], system=system[:LONGEST], setting=parse_setting(setting), figures=figures, where=where)


@cache
def _parse_value(text: str) -> int | float | str:
    if not NUMBER.fullmatch(text):
        return text[:LONGEST]
    return int(text) if text.lstrip("-").isdigit() else float(text)


def parse_setting(text: str) -> dict[str, Any]:
    """`rows=last; k=16` → {rows: last, k: 16}."""
    pairs = [part.partition("=") for part in text.split("; ") if part]
    return {name[:LONGEST]: _parse_value(value) for name, _, value in pairs}


def _parse_number(text: str) -> float:
    value = float(text)
    if not abs(value) < 1e15:
        raise ValueError(text)
    return value


def _believable(row: Row) -> bool:
    """Whether this may have been measured: sizes and times can be divided by, and drawn along logarithms."""
    drawn, sizes = row.bench in NEEDED, {name: row.setting[name] for name in SIZES if name in row.setting}
    return (
        all(hasattr(row, name) for name in NEEDED.get(row.bench, ()))
        and all(isinstance(size, int) and SIZES[name] <= size <= MOST_LENGTH for name, size in sizes.items())
        and drawn <= row.threads <= MOST_LENGTH
        and 1 <= row.rounds <= MOST_LENGTH
        and all(0 <= x <= 1e12 for name in TIMES for x in row.figures.get(name, ()) if x == x)
        and ("stage" in row.setting or not drawn or all(min(row.figures.get(name, (1,))) >= 1e-9 for name in POSITIVE))
        and (not drawn or all(each.value >= 0 for each in row.figures.values()))
        and (row.bench != "latency" or row.rows not in ("last", "all") or row.is_of(compiled=GRAPHS) or hasattr(row, "peak"))
        and row.load >= 0
    )
