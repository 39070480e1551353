"""Benchmark rows as a CSV that grows: read, add, replace the same measurement."""

import csv
import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from elastic_core import disk
from elastic_core.bench.latency import ROWS, Row
from elastic_core.disk import write_text
from elastic_core.errors import InputError

MOST_BYTES, LONGEST = 2**22, 200  # of a file; characters of a cell
MOST_ROWS, MOST_SYSTEMS, MOST_COLUMNS = 10_000, 40, 60  # of a file: every system is a line in a chart
MOST_LENGTH = 2**24  # events; and the most of whatever else is counted


def read_rows(path: Path) -> list[Row]:
    """As `read_kind`, of the rows that all of the bench but its memory part keeps."""
    return read_kind(path, Row)


def write_rows(path: Path, rows: list[Row]) -> None:
    """As `write_kind`."""
    write_kind(path, rows, Row)


def read_kind(path: Path, kind: type[Any]) -> list[Any]:
    """The rows of a file, each a `kind`: a dataclass of numbers and texts. None if there is no file.

    Raises InputError if it is not such a file, or of what nobody measured."""
    try:
        text = disk.read_text(path, MOST_BYTES, path.parent)
    except disk.Absent:
        return []
    types = {f.name: f.type for f in dataclasses.fields(kind)}
    try:
        table = list(csv.DictReader(io.StringIO(text)))
        rows = [kind(**{name: _typed(types[name], text) for name, text in line.items()}) for line in table]
        if len(rows) > MOST_ROWS or (kind is Row and not _believable(rows)):
            raise ValueError
    except (KeyError, TypeError, ValueError, csv.Error):
        raise InputError(f"{path} is not a file of benchmark rows; give another --name") from None
    return rows


def read_table(path: Path, texts: Sequence[str]) -> pd.DataFrame:
    """A CSV of anything that was measured; of its columns, `texts` are read as text. Raises ValueError for what is none."""
    data = disk.read_bytes(path, MOST_BYTES, path.parent)
    if data.partition(b"\n")[0].count(b",") >= MOST_COLUMNS:
        raise ValueError("too many columns")  # pandas takes minutes for a million
    table = pd.read_csv(io.BytesIO(data), dtype=dict.fromkeys(texts, str), nrows=MOST_ROWS + 1)
    if len(table) > MOST_ROWS:
        raise ValueError("too many rows")
    return table


def write_kind(path: Path, rows: list[Any], kind: type[Any]) -> None:
    """Later rows replace earlier ones of the same `key`."""
    latest = {row.key: row for row in rows}
    out = io.StringIO()
    writer = csv.DictWriter(out, [f.name for f in dataclasses.fields(kind)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(row) for row in latest.values())
    with disk.said(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, out.getvalue())


def _believable(rows: list[Row]) -> bool:
    return all(map(_measured, rows)) and len({row.system for row in rows}) <= MOST_SYSTEMS


def _measured(row: Row) -> bool:
    """Whether this may have been measured: sizes and times can be divided by, and drawn along logarithms."""
    sizes = (row.length, row.batch, row.width, row.threads, row.rounds)
    times = (row.median, row.low, row.high, row.processor)
    return (
        all(1 <= size <= MOST_LENGTH for size in sizes)
        and all(0 <= size <= MOST_LENGTH for size in (row.k, row.side, row.heads, row.layers))
        and all(1e-9 <= time <= 1e9 for time in times)
        and row.peak >= (row.rows in ROWS)
        and row.load >= 0
    )


def _typed(kind: Any, text: str) -> Any:
    if kind not in (int, float):
        return text[:LONGEST]
    value = kind(text)
    if not abs(value) < 1e15:
        raise ValueError(text)
    return value
