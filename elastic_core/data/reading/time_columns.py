"""Times as they are written: numbers of any unit and dates of any usual form become seconds since 1970.

The whole column decides. Numbers: the unit in which nearly all of them lie between 1995 and 2035. Dates: 31.12.2024 somewhere
tells which part is the day; where no row tells, a date with dots has the day first, and with slashes it must be said (`dates`).
"""

import contextlib
import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray
from pandas import DataFrame
from pyarrow.types import is_date, is_decimal, is_duration, is_floating, is_integer, is_large_string, is_string, is_timestamp

from elastic_core.data.reading.cell_text import Spellings, clean_cell
from elastic_core.data.reading.time_units import DAY, LATEST, moment, scaled
from elastic_core.errors import InputError

Dates = Literal["", "day-first", "month-first"]
ORDERS = [order for order in get_args(Dates) if order]
Y2000 = 946_684_800.0
NONE, BEFORE, AFTER = "the time is missing", "the time is before 1970", "the time is after the year 2200"
ODD_1970 = "the time is in 1970 where most rows are after 2000"
MONTHS = {
    name: number
    for number, names in enumerate(
        "jan ene gen|feb fev|mar mrz maa|apr avr abr|may mai mag mei|jun giu|jul lug|aug ago aou|sep set|"
        "oct okt ott out|nov|dec dez dic".split("|"), 1
    )
    for name in names.split()
} | {"juin": 6, "juil": 7}  # fmt: skip
ZONES = {
    name: float(hours)
    for name, hours in zip(
        "cet cest bst est edt cdt mst mdt pst pdt msk ist jst".split(),
        "1 2 1 -5 -4 -5 -7 -6 -8 -7 3 5.5 9".split(),
        strict=True,
    )
}
_CLOCK = (
    r"(?:(?:[t,:_-]|\s+at)?\s*(?P<h>[0-9]{1,2})[:.h](?P<i>[0-9]{2})(?:[:.](?P<s>[0-9]{2})(?:[.,:](?P<f>[0-9]{1,9}))?)?"
    r"(?:\s?(?P<half>[ap])\.?m?\.?)?)?"
)
_ZONE = (
    rf"(?:\s?(?P<zone>z|utc|gmt|{'|'.join(ZONES)}|(?:utc|gmt)?[+-][0-9]{{1,2}}:?(?:[0-9]{{2}})?))?"
    r"(?:\s(?:\([^)]*\)|uhr|utc))?"
)
_MONTH, _TAIL = r"(?P<mon>[a-z]{3,10})\.?", _CLOCK + _ZONE
WRITTEN = [
    rf"^\[?(?:[^\s0-9,.]{{2,12}}[.,]?\s+)?(?:{date})\s*{tail}\]?$"
    for date, tail in (
        (r"(?P<a>[0-9]{1,4})(?P<mark>[-./_\s年])\s?(?P<b>[0-9]{1,2})[-./_\s月,],?\s?(?P<c>[0-9]{1,4})日?", _TAIL),
        (rf"(?P<a>[0-9]{{1,4}})(?:st|nd|rd|th|\.)?[-/\s.]*(?:de\s)?{_MONTH}[-/\s.,]*(?:de\s)?(?P<c>[0-9]{{1,4}})", _TAIL),
        (rf"{_MONTH}[-\s]*(?P<a>[0-9]{{1,2}})(?:st|nd|rd|th)?,?[-\s]+(?P<c>[0-9]{{4}}|[0-9]{{2}}),?", _TAIL),
        (rf"{_MONTH}\s+(?P<a>[0-9]{{1,2}})\s*", _TAIL + r"\s+(?P<c>[0-9]{4})"),
    )
]
NUMBER = r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
CLOCK_FIRST = re.compile(r"([0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?:\s?[ap]\.?m\.?)?),?\s+(\S.*)")
GROUPS = re.compile(r"[-+]?[0-9]{1,3}([,'. \u00a0\u202f][0-9]{3}){2,}")


NO_YEAR = re.compile(r"([0-9]{1,2}[-/.][0-9]{1,2}[ t]+|[a-z]{3}\s+[0-9]{1,2}\s+)[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?([.,][0-9]+)?")


class Undecided(InputError):
    """A column of dates in which no row tells whether the day or the month comes first; `example` is one of them."""

    def __init__(self, example: str, readings: list[datetime]) -> None:
        one, other = (f"{date.day} {date:%B %Y}" for date in readings)
        super().__init__(f"a time such as {example} may be {one} or {other}, and no row tells which")
        self.example, self.readings = example, dict(zip(ORDERS, (one, other), strict=True))


Read = tuple[ndarray, dict[int, str]]  # seconds [rows], whole where nothing is lost; which rows have none, and why


class Times:
    """A column of times, taken a part at a time and understood at the end."""

    def __init__(self) -> None:
        self.parts = list[tuple[str, ndarray]]()  # "number", "second" or "spelling" (a place in `spellings`)
        self.spellings = Spellings()

    def add(self, column: Any) -> None:
        written = is_string(column.type) or is_large_string(column.type)
        for to in (pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")) if written else (column.type,):
            with contextlib.suppress(pa.ArrowInvalid):
                self.parts.append(_typed_times(pc.cast(column, to)))
                return
        self.parts.append(("spelling", self.spellings.numbers(column)))

    def finish(self, dates: Dates = "", notes: list[str] | None = None) -> Read:
        """Return the seconds. Raises Undecided where the dates have two readings and `dates` does not say which."""
        notes = [] if notes is None else notes
        kinds = {kind for kind, _ in self.parts}
        if kinds in ({"number"}, {"second"}):
            values = np.concatenate([part for _, part in self.parts])
            self.parts.clear()
            return check_times(scaled(values, notes) if kinds == {"number"} else values, lambda row: NONE)
        clean, different = pd.factorize(np.array([clean_cell(text) or None for text in self.spellings.texts], dtype=object))
        texts, date_notes = different.tolist(), list[str]()
        numbers, seconds, places = (
            np.concatenate([part if kind == wanted else np.full(len(part), none) for kind, part in self.parts])
            for wanted, none in (("number", np.nan), ("second", np.nan), ("spelling", -1))
        )
        places = np.append(clean, -1).astype(np.int32)[places]  # -1: missing, or no spelling
        numbers = np.where(places >= 0, np.append(_parse_numbers(texts), np.nan)[places], numbers)
        count = np.isfinite(numbers).sum()
        try:
            seconds = np.where(places >= 0, np.append(read_dates(texts, dates, date_notes), np.nan)[places], seconds)
        except Undecided:
            if 2 * count < (places >= 0).sum():
                raise
        dated = np.isfinite(seconds).sum()
        what = "number" if count and count >= dated else "date"
        expected = f"no {what}, as most rows have it" if count or dated else "no date or number that is understood"
        if what == "number":
            seconds = scaled(numbers, notes)
        else:
            notes += date_notes
        return check_times(
            seconds, lambda row: NONE if places[row] < 0 else f"the time {texts[places[row]][:40]!r} is {expected}"
        )


def check_times(values: ndarray, unread: Callable[[int], str]) -> Read:
    """Return the times that can be, to the microsecond, and what is wrong with the others."""
    some = values[:: max(1, len(values) // 100_000)]
    modern = bool(np.isfinite(some).any()) and float(np.nanmedian(some)) > Y2000
    least = 365 * DAY if modern else 0.0
    good, wrong = (values >= least) & (values <= LATEST), dict[int, str]()
    if not good.all():
        for row in np.flatnonzero(~good).tolist():
            value = values[row]
            odd = BEFORE if value < 0 else AFTER if value > LATEST else ODD_1970
            wrong[row] = odd if np.isfinite(value) else unread(row)
        values = np.where(good, values, 0)
    if values.dtype.kind == "f":
        values = values.astype(np.int64) if (values == np.floor(values)).all() else np.round(values, 6)
    return values, wrong


def _typed_times(column: Any) -> tuple[str, ndarray]:
    kind, per = column.type, 1.0
    if is_date(kind):
        column = pc.cast(column, pa.timestamp("s"))
    timely = is_timestamp(column.type)
    if timely or is_duration(kind):
        per = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
        column = pc.cast(column, pa.int64())
    elif not (is_integer(kind) or is_floating(kind) or is_decimal(kind)):
        return "number", np.full(len(column), np.nan)
    if is_integer(column.type) and not column.null_count:
        values = column.to_numpy(False)
    else:
        values = _floats(pc.cast(column, pa.float64(), safe=False))
        values = np.where(np.isinf(values), np.nan, values)  # a copy: Arrow's own memory cannot be written to
    return "second" if timely else "number", values if per == 1.0 else values / per


def _floats(column: Any) -> ndarray:
    return np.asarray(column.to_numpy(False), dtype=np.float64)


def _parse_numbers(texts: list[str]) -> ndarray:
    """Return float64 [texts]: numbers, also 1,546,885,815 and 1546885815,5; NaN for what is none."""
    bare = [
        re.sub(r"[^-+0-9]", "", text) if GROUPS.fullmatch(text) else re.sub(r"^/Date\((-?[0-9]+).*", r"\1", text)
        for text in texts
    ]
    column = pc.replace_substring_regex(pa.array(bare, pa.string()), r"^([-+]?[0-9]+),([0-9]+)$", r"\1.\2")
    return _floats(pc.cast(pc.if_else(pc.match_substring_regex(column, NUMBER), column, None), pa.float64()))


def clock(texts: list[str]) -> ndarray:
    """Return the seconds after midnight of 18:30, 6:30:15 PM, 1830, 183015 (0:30:15 is 3015) or 18; NaN for no clock."""
    clean = [clean_cell(text) for text in texts]
    numbers = [text for text in clean if text.isdecimal()]
    width = 6 if any(len(text) > 4 for text in numbers) else 4
    if all(len(text) < 3 and int(text) < 24 for text in numbers):  # hours
        clean = [text + "00" if text.isdecimal() else text for text in clean]
    marked = [
        ":".join(re.findall("..", text.zfill(width))) if text.isdecimal() and len(text) <= width else text for text in clean
    ]
    _, found = _taken_apart([text.lower() for text in marked], f"^{_CLOCK}$")
    return np.where(np.isfinite(_numbers(found["h"])), _clock_seconds(found), np.nan)


def _taken_apart(texts: list[str], pattern: str) -> tuple[ndarray, DataFrame]:
    """Return bool [texts], which of them match, and what each group found in every text ("" for nothing)."""
    found = pc.extract_regex(pa.array(texts, pa.string()), pattern)
    groups = DataFrame({group.name: found.field(group.name).to_pylist() for group in found.type}, dtype=object)
    return np.asarray(found.is_valid().to_numpy(False)), groups.fillna("")


def read_dates(texts: list[str], order: Dates, date_notes: list[str]) -> ndarray:
    """Return float64 [texts]: the seconds of written dates, NaN for what is none."""
    out, rows_left = np.full(len(texts), np.nan), np.arange(len(texts))
    lower = [text.lower() if text.isascii() else _unaccented(text.lower()) for text in texts]
    if any(text.endswith("]") for text in lower[:200]):  # of Java: …+00:00[Europe/London]
        lower = [re.sub(r"(?<=[0-9z])\s?\[[a-z_/+-]+\]$", "", text) for text in lower]
    lower = [CLOCK_FIRST.sub(r"\2 \1", text) if text[1:3].count(":") else text for text in lower]
    if lower and sum(bool(NO_YEAR.fullmatch(text)) for text in lower[:200]) > 0.8 * min(len(lower), 200):
        raise InputError(f"times such as {texts[0]} have no year: write it before them, as in 2023-12-31 18:50:22")
    for pattern in WRITTEN:
        there, found = _taken_apart([lower[row] for row in rows_left], pattern)
        rows, rows_left = rows_left[there], rows_left[~there]
        if len(rows):
            out[rows] = _seconds(found[there], [texts[row] for row in rows], order, date_notes)
    for row in rows_left.tolist():  # 2019-W05-3, 2019-035
        for read in (datetime.fromisoformat, lambda text: datetime.strptime(text + " " * (len(text) < 8), "%Y-%j")):
            with contextlib.suppress(ValueError, OverflowError):
                date = read(texts[row])
                out[row] = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
                break
    return out


def _unaccented(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def _seconds(found: DataFrame, texts: list[str], order: Dates, date_notes: list[str]) -> ndarray:
    """Return the seconds of dates that were taken apart. Raises Undecided where no row tells day from month."""
    a, c = _numbers(found["a"]), _numbers(found["c"])
    if "mon" in found:
        month = np.array([MONTHS.get(name[:4], MONTHS.get(name[:3], 0)) for name in found["mon"]])
        year, day = np.where(a > 31, a, c), np.where(a > 31, c, a)
    else:
        b, lead = _numbers(found["b"]), np.array([len(text) == 4 for text in found["a"]])
        year, month, day = a, b, c
        if not lead.all():
            dotted = bool((found["mark"] == ".").all())
            first = _day_first(a[~lead], b[~lead], c[~lead], np.array(texts)[~lead], dotted, order, date_notes)
            year, month, day = np.where(lead, a, c), np.where(lead, b, b if first else a), np.where(lead, c, a if first else b)
        if not lead.any() and len(c) > 19 and c.max() <= 31 and len(np.unique(a)) < len(np.unique(c)) / 2:
            year, month, day = a, b, c  # 19-01-31: the year comes first
    year = np.where(year < 70, year + 2000, np.where(year < 100, year + 1900, year))
    begun = moment(*(part.astype(np.int64) for part in (year, month, day)))
    return begun + _clock_seconds(found) - found["zone"].map({zone: _offset(zone) for zone in set(found["zone"])}).to_numpy()


def _day_first(a: ndarray, b: ndarray, c: ndarray, texts: ndarray, dotted: bool, order: Dates, date_notes: list[str]) -> bool:
    """Return whether the day comes before the month, as most of the rows that tell have it."""
    first, second = int((a > 12).sum()), int((b > 12).sum())
    unclear = np.flatnonzero((np.minimum(a, b) >= 1) & (np.maximum(a, b) <= 12) & (a != b))
    either = int(unclear[0]) if len(unclear) else None
    if order:
        day, why = order == ORDERS[0], "as was said"
    elif first != second:
        day, why = first > second, "because other rows have a number above 12 there"
    elif either is None or (not first and dotted):
        day, why = True, "because of the dots; no row has a number above 12 that would tell"
    else:
        year, one, other = (int(part[either]) for part in (c, a, b))
        year += 0 if year > 99 else 2000
        raise Undecided(str(texts[either]), [datetime(year, other, one), datetime(year, one, other)])
    if either is not None:
        date_notes.append(f"dates such as {texts[either]} were read with the {'day' if day else 'month'} first, {why}")
    return day


def _clock_seconds(found: DataFrame) -> ndarray:
    hour, minute, second = (np.nan_to_num(_numbers(found[name])) for name in ("h", "i", "s"))
    half = found["half"].to_numpy()
    bad = ((half != "") & ((hour < 1) | (hour > 12))) | (hour > 23) | (minute > 59) | (second > 60)
    hour = np.where(half != "", hour % 12 + 12 * (half == "p"), hour)
    return np.where(bad, np.nan, hour * 3600 + minute * 60 + second + _numbers("0." + found["f"] + "0"))


def _offset(zone: str) -> float:
    digits = re.sub("[^0-9]", "", zone)
    if not digits:
        return ZONES.get(zone, 0) * 3600.0
    hours, minutes = (int(digits[:-2]), int(digits[-2:])) if len(digits) > 2 else (int(digits), 0)
    return (-1 if "-" in zone else 1) * (hours * 3600.0 + minutes * 60.0)


def _numbers(texts: "pd.Series[Any]") -> ndarray:
    """Return a group as numbers, NaN where it is empty."""
    return np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)
