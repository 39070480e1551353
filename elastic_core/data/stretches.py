"""A long table of text, read a stretch at a time: ids become numbers at once, so that a row costs 16 bytes and not its text.

What comes out is what reading it whole gives (interactions.py), faults and their lines included. Left to that are tables that
cannot be cut at a line (a quoted cell goes on over many), and times that are neither numbers nor ISO 8601 dates: what 03/04/2024
means hangs on all rows.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO

import numpy as np
import pandas as pd

from elastic_core.data.events import MISSING, NO_DATE, NO_NUMBER, Times, iso_dates, mark_ids, weigh_times
from elastic_core.data.faults import SHARE, Faults, weigh
from elastic_core.errors import InputError

STRETCH = 2**26  # bytes that are read at a time
MOST_ROWS, MOST_FAULTS = 2**28, 1_000_000  # and after so many faults it is asked whether that is too many already
Found = list[tuple[int, str]]  # line, what is wrong
Parse = Callable[[bytes, Found], tuple[pd.DataFrame, int]]


class NotInStretches(Exception):
    """This table has to be read whole."""


def read_in_stretches(
    file: IO[bytes], data: bytes, shown: str, parse: Parse, notes: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame, Faults]:
    """`data` is what was read of `file` already, `parse` makes a table of text of some lines. Returns the events (user and item
    as categories), the first row of every item with all its columns, and the faults.

    Raises NotInStretches, and InputError as reading it whole does."""
    rows, found, line = _Rows(shown), list[tuple[int, str]](), 1
    head = data.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0] + b"\n"
    if not head.strip() or b'"' in head or b"\n" not in data:
        raise NotInStretches
    for text in _stretches(file, data):
        own, first = list[tuple[int, str]](), line == 1
        by = 0 if first else line - 2  # the lines of other stretches follow the first line of the file, so that they look alike
        try:
            frame, header = parse(text if first else head + text, own)
        except InputError as error:
            raise InputError(_moved(str(error), shown, by)) from None
        if not first and not header:
            frame, own = frame[frame.index != 0], [fault for fault in own if fault[0] != 1]
        found += [(at + by, what) for at, what in own]
        rows.add(frame, 1 + header + by, found)
        line += text.count(b"\n")
        if len(found) > MOST_FAULTS:
            weigh(found, rows.count + len(found), shown)
    return rows.done(found, notes)


@dataclass
class _Ids:
    """Text → number, in the order of first appearance, and the numbers of all rows. None is missing: those rows are left out."""

    numbers: dict[str, int] = field(default_factory=dict)
    rows: list[np.ndarray] = field(default_factory=list)

    def add(self, column: pd.Series) -> np.ndarray:
        """Takes the ids of a stretch; returns the rows in which new ones stand for the first time."""
        codes, different = pd.factorize(column)
        before = len(self.numbers)
        own = np.array([self.numbers.setdefault(str(text), len(self.numbers)) for text in different], dtype=np.int32)
        self.rows.append(own[codes])
        _, first = np.unique(codes, return_index=True)
        return first[own[codes[first]] >= before]

    def column(self, good: np.ndarray) -> pd.Categorical:
        codes = _joined(self.rows)
        known = pd.Index(list(self.numbers), dtype=object)
        return pd.Categorical.from_codes(codes if good.all() else codes[good], categories=known)


class _Rows:
    """The rows so far."""

    def __init__(self, shown: str) -> None:
        self.shown, self.count = shown, 0
        self.users, self.items, self.firsts = _Ids(), _Ids(), list[pd.DataFrame]()
        self.times, self.missing, self.kind = list[np.ndarray](), list[np.ndarray](), ""
        self.lines = list[tuple[int, int | np.ndarray]]()  # from a row on: the line of it and of those that follow, or of each

    def add(self, frame: pd.DataFrame, line: int, found: Found) -> None:
        """The rows of a stretch; `line` is that of the row with index 0."""
        wrong = np.full(len(frame), "", dtype=object)
        for name in ("user", "item"):
            mark_ids(name, frame[name], wrong)
        at, good = frame.index.to_numpy() + line, wrong == ""
        found += zip(map(int, at[~good]), map(str, wrong[~good]), strict=True)
        values, empty, kind = _times(frame["time"]) if "time" in frame and len(frame) else (wrong[:0], wrong[:0], "")
        self.kind = self.kind or kind
        if kind not in ("", self.kind):  # which of them is meant hangs on all rows
            raise NotInStretches
        if not good.all():
            frame, at, values, empty = frame[good], at[good], values[good[: len(values)]], empty[good[: len(values)]]
        if not len(frame):
            return
        even = int(at[-1]) - int(at[0]) == len(at) - 1
        self.lines.append((self.count, int(at[0]) if even else at))
        if len(values):
            self.times.append(values)
            self.missing.append(np.flatnonzero(empty) + self.count)
        self.users.add(frame["user"])
        self.firsts.append(frame.iloc[self.items.add(frame["item"])])
        self.count += len(frame)
        if self.count > MOST_ROWS:
            raise InputError(f"{self.shown} has more than {MOST_ROWS:,} rows, which are read at most")

    def done(self, found: Found, notes: list[str]) -> tuple[pd.DataFrame, pd.DataFrame, Faults]:
        if not self.count and not found:
            raise InputError(f"{self.shown} has no rows below its header")
        rows, good, times = self.count + len(found), np.ones(self.count, dtype=bool), None
        if self.times:
            dates = self.kind == "dates"
            read = Times(_joined(self.times), _joined(self.missing), NO_DATE if dates else NO_NUMBER, not dates)
            times, wrong = weigh_times(read, notes)
            found += [(self._line(row), what) for row, what in wrong]
            good[[row for row, _ in wrong]] = False
        faults = weigh(found, rows, self.shown)
        events = pd.DataFrame({"user": self.users.column(good), "item": self.items.column(good)})
        if times is not None:
            events["time"] = times if good.all() else times[good]
        return events, pd.concat(self.firsts), faults

    def _line(self, row: int) -> int:
        first, lines = next((first, lines) for first, lines in reversed(self.lines) if first <= row)
        return lines + row - first if isinstance(lines, int) else int(lines[row - first])


def _times(column: pd.Series) -> tuple[np.ndarray, np.ndarray, str]:
    """Numbers or seconds since 1970, NaN where there is none; where it is missing; and what they are, `numbers` or `dates`."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64), column.isna().to_numpy(), "numbers"
    text = column.astype(object).where(column.notna(), "").astype(str).str.strip()
    empty = text.isin(MISSING).to_numpy()
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    others = int((np.isnan(numbers) & ~empty).sum())
    if not others:
        return numbers, empty, "numbers"
    read = iso_dates(text.where(np.isnan(numbers), None))
    if read is None:
        raise NotInStretches
    dates, rows = int(np.isfinite(read).sum()), len(text) - int(empty.sum())
    if min(others, rows - dates) > SHARE * rows:  # which of them is meant hangs on all rows
        raise NotInStretches
    return (numbers, empty, "numbers") if others < rows - dates else (read, empty, "dates")


def _stretches(file: IO[bytes], data: bytes) -> Iterator[bytes]:
    """Whole lines."""
    while data:
        end, more = data.rfind(b"\n") + 1, file.read(STRETCH)
        if more and (not end or data.count(b'"', 0, end) % 2):
            raise NotInStretches
        yield data[:end] if more else data
        data = data[end:] + more if more else b""


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """End to end; the parts are let go on the way."""
    whole = np.empty(sum(map(len, parts)), dtype=parts[0].dtype)
    at = len(whole)
    while parts:
        part = parts.pop()
        whole[at - len(part) : at] = part
        at -= len(part)
    return whole


def _moved(sentence: str, shown: str, by: int) -> str:
    return re.sub(rf"(?<={re.escape(shown)}, line )\d+", lambda number: str(int(number[0]) + by), sentence)
