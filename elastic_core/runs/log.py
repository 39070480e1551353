"""The log of a run, metrics.jsonl: one event a line, in the order in which things happened."""

import functools
import json
from pathlib import Path
from typing import Any

from elastic_core import files

Row = dict[str, Any]
KINDS = ("start", "epoch", "test", "end", "reopened")
MOST_BYTES = 2**23  # ten thousand epochs, the most there may be, are about 7 MB


def read_log(path: Path, folder: Path) -> tuple[Row, ...]:
    """The rows that count; none where there is no log. Shared: never change them.

    Raises InputError for what is no regular file or too large.
    """
    try:
        return _read_log(path, folder, files.file_stamp(path))
    except files.FileAbsent:
        return ()


@functools.lru_cache(maxsize=512)
def _read_log(path: Path, folder: Path, stamp: tuple[int, ...]) -> tuple[Row, ...]:
    text = files.read_bytes(path, MOST_BYTES, folder).decode("utf-8", errors="replace")
    return tuple(valid_rows([row for line in text.splitlines() if (row := parse_row(line)) is not None]))


def parse_row(line: str) -> Row | None:
    """One line; None for a torn one, which a kill in the middle of writing leaves."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and row.get("event") in KINDS else None


def valid_rows(rows: list[Row]) -> list[Row]:
    """The rows of the last attempt.

    An attempt that died before it could be resumed does not count: rows begin with the last `start`. A test and an end count
    until a `reopened` says that the training went on; that itself counts for good, as it tells that a test was scored. Of an
    epoch that was gone through twice, after an interruption, the last time counts.
    """
    start, reopen_events = (
        max((place for place, row in enumerate(rows) if row["event"] == kind), default=0) for kind in ("start", "reopened")
    )
    last = {row["epoch"]: place for place, row in enumerate(rows) if row["event"] == "epoch"}

    def counts(place: int, row: Row) -> bool:
        if row["event"] == "reopened":
            return True
        if place < start or (row["event"] in ("test", "end") and place < reopen_events):
            return False
        return row["event"] != "epoch" or last[row["epoch"]] == place

    return [row for place, row in enumerate(rows) if counts(place, row)]
