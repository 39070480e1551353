"""Benchmark rows as a CSV that grows: read, add, replace the same measurement."""

import csv
import dataclasses
import io
from pathlib import Path
from typing import Any

from elastic_core import disk
from elastic_core.bench.latency import Row
from elastic_core.disk import write_text
from elastic_core.errors import InputError

MOST_BYTES, LONGEST = 2**24, 200  # of a file; characters of a cell


def read_rows(path: Path) -> list[Row]:
    """As `read_kind`, of the rows that all of the bench but its memory part keeps."""
    return read_kind(path, Row)


def write_rows(path: Path, rows: list[Row]) -> None:
    """As `write_kind`."""
    write_kind(path, rows, Row)


def read_kind(path: Path, kind: type[Any]) -> list[Any]:
    """The rows of a file, each a `kind`: a dataclass of numbers and texts. None if there is no file.

    Raises InputError if it is not such a file."""
    try:
        text = disk.read_text(path, MOST_BYTES, path.parent)
    except disk.Absent:
        return []
    types = {f.name: f.type for f in dataclasses.fields(kind)}
    try:
        table = list(csv.DictReader(io.StringIO(text)))
        return [kind(**{name: _typed(types[name], text) for name, text in line.items()}) for line in table]
    except (KeyError, TypeError, ValueError, csv.Error):
        raise InputError(f"{path} is not a file of benchmark rows; give another --name") from None


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


def _typed(kind: Any, text: str) -> Any:
    if kind not in (int, float):
        return text[:LONGEST]
    value = kind(text)
    if not abs(value) < 1e15:
        raise ValueError(text)
    return value
