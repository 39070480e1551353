"""The log of a run, metrics.jsonl: what counts as one of its rows. Readers rely on it, and a file may be anybody's."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from elastic_core import disk
from elastic_core.core.config import TrainConfig, bounds_of
from elastic_core.disk import is_count, is_number

Row = dict[str, Any]
Check = Callable[[Any], bool]
MOST_BYTES = 2**23  # ten thousand epochs, the most there may be, are about 7 MB
LONGEST_LINE = 2**16
OVER = ("test", "end")
MOST_EPOCHS = int(bounds_of(TrainConfig)["epochs"].high)


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 500


def _epoch(value: Any) -> bool:
    return is_count(value) and 1 <= value <= MOST_EPOCHS


def _share(value: Any) -> bool:
    return value is None or (is_number(value) and 0 <= value <= 1)


def _named_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_number, value.values()))


def _scores(value: Any) -> bool:
    return _named_numbers(value) and "NDCG@10" in value


def _protocols(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_scores, value.values()))


def _errors(value: Any) -> bool:
    """Standard errors: of a single person there is none (NaN)."""
    tables = value.values() if isinstance(value, dict) else [None]
    return all(isinstance(table, dict) and all(isinstance(x, int | float) for x in table.values()) for table in tables)


# By event: what a row must hold, and what it may hold, in this form only. What is not named here nobody reads.
MUST: Mapping[str, Mapping[str, Check]] = {
    "start": {},
    "epoch": {"epoch": _epoch, "loss": is_number, "seconds": is_number, "valid": _scores},
    "test": {"protocols": _protocols},
    "end": {"reason": _text, "seconds": is_number},
    "reopened": {"epoch": is_count, "reason": _text},
}
MAY: Mapping[str, Mapping[str, Check]] = {
    "start": {
        "time": is_number, "commit": _text, "torch": _text, "device": _text, "threads": is_count, "seed": is_count, "data": _text,
        "data_hash": _text, "parameters": is_count, "processes": is_count, "tied": _share, "from": _text,
    },
    "epoch": {
        "step": is_count, "targets": is_count, "events": is_count, "auxiliary": _named_numbers, "used": _share, "entropy": _share,
        "gini": _share, "cut": _text,
    },
    "test": {"users": is_count, "errors": _errors, "used": _share, "entropy": _share, "gini": _share, "scored": is_count},
    "end": {"best_epoch": is_count},
    "reopened": {"time": is_number},
}  # fmt: skip


def row(line: str) -> Row | None:
    """One line, or None if it is torn or no event: an odd one does not count, whatever else it says."""
    if len(line) > LONGEST_LINE:
        return None
    try:
        found = disk.parse(line)
    except ValueError:
        return None
    kind = found.get("event") if isinstance(found, dict) else None
    if not isinstance(kind, str) or kind not in MUST:
        return None
    must, may = MUST[kind], MAY[kind]
    if not all(name in found and fits(found[name]) for name, fits in must.items()):
        return None
    return found if all(fits(found[name]) for name, fits in may.items() if name in found) else None


def read_log(path: Path, within: Path) -> tuple[Row, ...]:
    """The rows from the last `start` on: an attempt that died does not count. A repeated epoch (after an interruption) counts
    once, the last time; a test and an end only while nobody went on after them, which `reopened` says for good. Shared: never
    change them. Raises InputError for what is no regular file or too large."""
    try:
        return _read_rows(path, within, disk.stamp(path))
    except disk.Absent:
        return ()


@functools.lru_cache(maxsize=512)
def _read_rows(path: Path, within: Path, stamp: tuple[int, ...]) -> tuple[Row, ...]:
    """A page asks for the same log dozens of times."""
    text = disk.read_bytes(path, MOST_BYTES, within).decode("utf-8", errors="replace")
    rows = [found for line in text.splitlines() if (found := row(line)) is not None]
    start, opened = (max((i for i, row in enumerate(rows) if row["event"] == kind), default=0) for kind in ("start", "reopened"))
    void = [row["event"] != "reopened" and (i < start or (i < opened and row["event"] in OVER)) for i, row in enumerate(rows)]
    rows = [found for found, out in zip(rows, void, strict=True) if not out]
    latest = {found["epoch"]: i for i, found in enumerate(rows) if found["event"] == "epoch"}
    return tuple(found for i, found in enumerate(rows) if found["event"] != "epoch" or latest[found["epoch"]] == i)
