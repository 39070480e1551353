"""Times as they are written: numbers of any unit and dates of any usual form become seconds since 1970.

The whole column decides. Numbers: the unit in which nearly all of them lie between 1995 and 2035. Dates: 31.12.2024 somewhere
tells which part is the day; where no row tells, a date with dots has the day first, and with slashes it must be said (`dates`).
"""

import contextlib
import re
import unicodedata
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray
from pandas import DataFrame
from pyarrow.types import is_large_string, is_string

from elastic_core.data.reading.cell_text import Spellings, clean_cell
from elastic_core.data.reading.time_units import LATEST, scale_numbers, seconds_since_1970
from elastic_core.errors import InputError

Dates = Literal["", "day-first", "month-first"]
ORDERS = [order for order in get_args(Dates) if order]
Y2000 = 946_684_800.0
UNREAD = "no date or number that is understood"
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
ZONES = dict(
    pair.split("=") for pair in
    "cet=+1 cest=+2 bst=+1 est=-5 edt=-4 cdt=-5 mst=-7 mdt=-6 pst=-8 pdt=-7 msk=+3 ist=+0530 jst=+9".split()
)  # fmt: skip
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
GROUPS = re.compile(r"[-+]?[0-9]{1,3}([,'. \u00a0\u202f][0-9]{3}){2,}")
NO_YEAR = re.compile(r"([0-9]{1,2}[-/.][0-9]{1,2}[ t]+|[a-z]{3}\s+[0-9]{1,2}\s+)[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?([.,][0-9]+)?")


class Undecided(InputError):
    """A column of dates in which no row tells whether the day or the month comes first; `example` is one of them."""

    def __init__(self, example: str, readings: list[datetime]) -> None:
        one, other = (f"{date.day} {date:%B %Y}" for date in readings)
        super().__init__(f"a time such as {example} may be {one} or {other}, and no row tells which")
        self.example, self.readings = example, dict(zip(ORDERS, (one, other), strict=True))


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
        self.parts.append(("spelling", self.spellings.add(column)))

    def finish(self, dates: Dates, notes: list[str], wrong: dict[int, str]) -> ndarray:
        """Return the seconds [rows], whole where nothing is lost; why rows have none goes to `wrong`. Raises Undecided where the
        dates have two readings and `dates` does not say which."""
        kinds = {kind for kind, _ in self.parts}
        if kinds in ({"number"}, {"second"}):
            values = np.concatenate([part for _, part in self.parts])
            self.parts.clear()
            return check_times(scale_numbers(values, notes) if kinds == {"number"} else values, lambda row: NONE, wrong)
        codes, different = pd.factorize(np.array([clean_cell(text) or None for text in self.spellings.texts], dtype=object))
        texts, date_notes = different.tolist(), list[str]()

        def of_all_rows(kind: str, of_texts: ndarray) -> ndarray:
            """Return values [rows]: of the texts that rows hold, else of the parts of this kind."""
            values = {"spelling": np.append(of_texts, np.nan)[codes]}
            return np.concatenate(
                [
                    values[one][part] if one in values else part if one == kind else np.full(len(part), np.nan)
                    for one, part in self.parts
                ]
            )

        places = of_all_rows("", np.arange(len(texts), dtype=float))
        numbers = of_all_rows("number", _parse_numbers(texts))
        seconds, count = np.full(len(places), np.nan), np.isfinite(numbers).sum()
        try:
            seconds = of_all_rows("second", read_dates(texts, dates, date_notes))
        except Undecided:
            if 2 * count < np.isfinite(places).sum():
                raise
        dated = np.isfinite(seconds).sum()
        what = "number" if count and count >= dated else "date"
        expected = f"no {what}, as most rows have it" if count or dated else UNREAD
        if what == "number":
            seconds = scale_numbers(numbers, notes)
        else:
            notes += date_notes

        def say(row: int) -> str:
            return NONE if np.isnan(places[row]) else f"the time {texts[int(places[row])][:40]!r} is {expected}"

        return check_times(seconds, say, wrong)


def check_times(values: ndarray, say: Callable[[int], str], wrong: dict[int, str]) -> ndarray:
    """Return the times that can be, to the microsecond; what is wrong with the others goes to `wrong`."""
    sample = values[:: max(1, len(values) // 100_000)]
    modern = bool(np.isfinite(sample).any()) and float(np.nanmedian(sample)) > Y2000
    good = (values >= (365 * 86_400.0 if modern else 0.0)) & (values <= LATEST)
    if not good.all():
        for row in np.flatnonzero(~good).tolist():
            odd = BEFORE if values[row] < 0 else AFTER if values[row] > LATEST else ODD_1970
            wrong.setdefault(row, odd if np.isfinite(values[row]) else say(row))
        values = np.where(good, values, 0)
    if values.dtype.kind == "f":
        values = values.astype(np.int64) if (values == np.floor(values)).all() else np.round(values, 6)
    return values


def _typed_times(column: Any) -> tuple[str, ndarray]:
    """Return what cells are that have a type of their own: `second` since 1970, or `number`; NaN for no time."""
    if pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.float64(), safe=False)
    values = column.to_numpy(False)  # dates, and with times of a zone those of UTC
    if values.dtype.kind == "M":
        return "second", seconds_since_1970(values)
    if values.dtype.kind == "m":
        values = values / np.timedelta64(1, "s")
    if values.dtype.kind in "iu":
        return "number", values
    values = values.astype(np.float64) if values.dtype.kind == "f" else np.full(len(values), np.nan)
    return "number", np.where(np.isinf(values), np.nan, values)


def _parse_numbers(texts: list[str]) -> ndarray:
    """Return float64 [texts]: numbers, also 1,546,885,815 and 1546885815,5; NaN for what is none."""
    bare = [
        re.sub(r"[^-+0-9]", "", text) if GROUPS.fullmatch(text) else re.sub(r"^/Date\((-?[0-9]+).*", r"\1", text)
        for text in texts
    ]
    column = pc.replace_substring_regex(pa.array(bare, pa.string()), r"^([-+]?[0-9]+),([0-9]+)$", r"\1.\2")
    numbers: ndarray = pc.cast(pc.if_else(pc.match_substring_regex(column, NUMBER), column, None), pa.float64()).to_numpy(False)
    return numbers


def read_clocks(texts: list[str]) -> ndarray:
    """Return the seconds after midnight of 18:30, 6:30:15 PM, 1830, 183015 (0:30:15 is 3015) or 18; NaN for no clock."""
    clean = [clean_cell(text) for text in texts]
    numbers = [text for text in clean if text.isdecimal()]
    width = 6 if any(len(text) > 4 for text in numbers) else 4
    if all(len(text) < 3 for text in numbers):  # hours
        clean = [text + "00" if text.isdecimal() else text for text in clean]
    marked = [":".join(re.findall("..", text.zfill(width))) if text.isdecimal() else text for text in clean]
    return read_dates(["1970-01-01 " + text if ":" in text else "" for text in marked], "", [])


def read_dates(texts: list[str], order: Dates, date_notes: list[str]) -> ndarray:
    """Return float64 [texts]: the seconds of written dates, NaN for what is none."""
    out, rows_left = np.full(len(texts), np.nan), np.arange(len(texts))
    lower = [text.lower() if text.isascii() else _strip_accents(text.lower()) for text in texts]
    if any(text.endswith("]") for text in lower[:200]):  # of Java: …+00:00[Europe/London]
        lower = [re.sub(r"(?<=[0-9z])\s?\[[a-z_/+-]+\]$", "", text) for text in lower]
    if lower and sum(bool(NO_YEAR.fullmatch(text)) for text in lower[:200]) > 0.8 * min(len(lower), 200):
        raise InputError(f"times such as {texts[0]} have no year: write it before them, as in 2023-12-31 18:50:22")
    for pattern in WRITTEN:
        groups = pc.extract_regex(pa.array([lower[row] for row in rows_left], pa.string()), pattern)
        there = groups.is_valid().to_numpy(False)
        parts = DataFrame({group.name: groups.field(group.name).filter(there).to_pylist() for group in groups.type}, dtype=object)
        rows, rows_left = rows_left[there], rows_left[~there]
        if len(rows):
            out[rows] = _convert_dates(parts.fillna(""), [texts[row] for row in rows], order, date_notes)
    return out


def _strip_accents(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def _convert_dates(parts: DataFrame, texts: list[str], order: Dates, date_notes: list[str]) -> ndarray:
    """Return the seconds of dates that were taken apart. Raises Undecided where no row tells day from month."""
    a, c = parts["a"].to_numpy(int), parts["c"].to_numpy(int)
    if "mon" in parts:
        month = np.array([MONTHS.get(name[:4], MONTHS.get(name[:3], 0)) for name in parts["mon"]])
        year, day = np.where(a > 31, a, c), np.where(a > 31, c, a)
    else:
        b, lead = parts["b"].to_numpy(int), (parts["a"].str.len() == 4).to_numpy()
        dates = DataFrame({"a": a, "b": b, "c": c, "text": texts})[~lead]
        first = dates.empty or _decide_day_first(dates, parts["mark"], order, date_notes)
        year, month, day = np.where(lead, a, c), np.where(lead | first, b, a), np.where(lead, c, a if first else b)
        if not lead.any() and len(c) > 19 and c.max() <= 31 and len(np.unique(a)) < len(np.unique(c)) / 2:
            year, month, day = a, b, c  # 19-01-31: the year comes first
    year = np.where(year < 70, year + 2000, np.where(year < 100, year + 1900, year))
    hour, half = parts["h"].replace("", "0").astype(int), parts["half"]
    hour = hour.mask(half != "", (hour % 12 + 12 * (half == "p")).where(hour.between(1, 12), 99))
    zones = {zone: _format_offset(zone) for zone in set(parts["zone"])}
    moments = zip(year, month, day, hour, parts["i"], parts["s"], parts["f"], parts["zone"], strict=True)
    stamps = [f"{y:04}-{m:02}-{d:02}T{h:02}:{i:0>2}:{s:0>2}.{f[:6]}0{zones[zone]}" for y, m, d, h, i, s, f, zone in moments]
    dates = pd.to_datetime(pd.Series(stamps), format="ISO8601", errors="coerce", utc=True)
    return seconds_since_1970(dates.dt.tz_localize(None).to_numpy())


def _decide_day_first(dates: DataFrame, marks: "pd.Series[Any]", order: Dates, date_notes: list[str]) -> bool:
    """Return whether the day (`a` or `b`) comes before the month, as most of the dates that tell have it."""
    first, second = int((dates["a"] > 12).sum()), int((dates["b"] > 12).sum())
    unclear = dates[dates["a"].between(1, 12) & dates["b"].between(1, 12) & (dates["a"] != dates["b"])][:1]
    if order:
        day, why = order == ORDERS[0], "as was said"
    elif first != second:
        day, why = first > second, "because other rows have a number above 12 there"
    elif unclear.empty or (not first and (marks == ".").all()):
        day, why = True, "because of the dots; no row has a number above 12 that would tell"
    else:
        one, other, year, text = unclear.iloc[0]
        year += 0 if year > 99 else 2000
        raise Undecided(text, [datetime(year, other, one), datetime(year, one, other)])
    for text in unclear["text"]:
        date_notes.append(f"dates such as {text} were read with the {'day' if day else 'month'} first, {why}")
    return day


def _format_offset(zone: str) -> str:
    """Return `+05:30` for `ist`, `utc+5:30`, `+0530`; for nothing, `z` and `utc` `+00:00`."""
    digits = re.sub("[^0-9]", "", ZONES.get(zone, zone)) or "0"
    digits = (digits if len(digits) > 2 else digits + "00").zfill(4)
    return f"{'-' if '-' in ZONES.get(zone, zone) else '+'}{digits[:2]}:{digits[2:]}"
