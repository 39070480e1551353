"""Benchmark rows as a CSV that grows: read, add, replace the same measurement."""

import csv
import dataclasses
import io
from pathlib import Path
from typing import Any

from elastic_core.bench.latency import Row
from elastic_core.errors import InputError
from elastic_core.runs import write_text


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, none if it does not exist. Raises InputError if it is not such a file."""
    if not path.exists():
        return []
    types = {f.name: f.type for f in dataclasses.fields(Row)}
    try:
        table = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
        return [Row(**{name: _typed(types[name], text) for name, text in line.items()}) for line in table]
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path} is not a file of benchmark rows; give another --name") from None


def write_rows(path: Path, rows: list[Row]) -> None:
    """Later rows replace earlier ones of the same key."""
    latest = {row.key: row for row in rows}
    out = io.StringIO()
    writer = csv.DictWriter(out, [f.name for f in dataclasses.fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(row) for row in latest.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, out.getvalue())


def _typed(kind: Any, text: str) -> Any:
    return kind(text) if kind in (int, float) else text
