"""Every row looked at: no user, item or time missing, ids that are text, times in one unit. What is wrong is said row by row.

A date such as 31.12.2024 or 12/31/2024 is read the way the whole column decides: one 31 tells which of the numbers is the day.
Where no row tells, a date with dots has the day first, for nobody writes it otherwise; with slashes it must be said (`dates`).
"""

import math
import re
from datetime import UTC, datetime
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from elastic_core.data.faults import Faults, weigh
from elastic_core.errors import InputError
from elastic_core.text import calm

MISSING = ["", "nan", "NaN", "null"]
LONGEST_ID = 200
LATEST = 7_258_118_400  # the year 2200, in seconds
Dates = Literal["", "day-first", "month-first"]
ORDERS = [order for order in get_args(Dates) if order]
DAY, CLOCK = r"([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})", r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?"
WRITTEN = re.compile(rf"{DAY}(?:[T, ]+{CLOCK}(?: ?([AaPp])\.?[Mm]\.?)?)?")  # day, mark, month, year, hour, minute, second, half
NO_TIME = "the time is not a number (seconds since 1970) and no date such as 31.12.2024"
NO_NUMBER = "the time is not a number (seconds since 1970), as most rows have it"
NO_DATE = "the time is not a date such as 2024-12-31T20:15:00 or 31.12.2024, as most rows have it"
NONE, BEFORE, AFTER = "the time is missing", "the time is before 1970", "the time is after the year 2200"
UNITS = ((1e17, 1e9, "nanoseconds"), (1e14, 1e6, "microseconds"), (1e11, 1e3, "milliseconds"))


class Undecided(InputError):
    """A column of dates in which no row tells whether the day or the month comes first; `example` is one of them."""

    def __init__(self, example: str, readings: list[datetime]) -> None:
        one, other = (f"{date.day} {date:%B %Y}" for date in readings)
        super().__init__(f"a time such as {example} may be {one} or {other}, and no row tells which")
        self.example, self.readings = example, dict(zip(ORDERS, (one, other), strict=True))


def check_events(
    frame: pd.DataFrame, shown: str, header: int, found: list[tuple[int, str]], notes: list[str], dates: Dates = ""
) -> tuple[pd.DataFrame, Faults]:
    """The rows of `frame` that can be used, user and item as text and time in seconds, and the faults of the others.

    `found` are faults by line that reading met already; `header` is the number of header lines, -1 where rows are counted. Raises
    InputError where too many rows are bad.
    """
    if not len(frame) and not found:
        raise InputError(f"{shown} has no rows below its header")
    wrong = np.full(len(frame), "", dtype=object)
    for name in ("user", "item"):
        mark_ids(name, frame[name], wrong)
    try:
        times = seconds(frame["time"], wrong, notes, dates) if "time" in frame else None
    except Undecided as error:
        raise InputError(f"{shown}: {error}: say it with data.dates={' or '.join(ORDERS)} (--dates)") from None
    good = wrong == ""
    lines = frame.index.to_numpy()[~good] + (1 if header < 0 else 1 + header)
    found = [*found, *zip(map(int, lines), map(str, wrong[~good]), strict=True)]
    faults = weigh(found, len(frame) + len(found) - int((~good).sum()), shown, "row" if header < 0 else "line")
    events = frame[good] if not good.all() else frame
    events = events.assign(**{name: as_text(events[name]) for name in ("user", "item")})
    if times is not None:
        events["time"] = whole(times[good])
    return events, faults


def as_text(column: pd.Series) -> pd.Series:
    """Ids as text; whole numbers that came as floats lose their `.0`."""
    if column.dtype == object and len(column) and isinstance(column.iloc[0], str):
        return column
    if pd.api.types.is_float_dtype(column) and (column == np.floor(column)).all():
        column = column.astype("int64")
    if pd.api.types.is_integer_dtype(column) and not column.isna().any():  # each different one written once
        codes, different = pd.factorize(column)
        return pd.Series(np.array([str(number) for number in different], dtype=object)[codes], index=column.index, dtype=object)
    return column.astype(str)


def mark_ids(name: str, column: pd.Series, wrong: np.ndarray) -> None:
    """Writes into `wrong`, where it is empty, what is the matter with an id. Each different id is looked at once."""
    try:
        different = pd.unique(column)
    except TypeError:
        raise InputError(f"the column for the {name} holds lists or other nested things, not ids") from None
    faults = {text: fault for text in different if (fault := _id_fault(name, text))}
    if faults or pd.isna(different).any():
        found = column.map(faults).astype(object).fillna("").mask(column.isna(), f"the {name} is missing").to_numpy(dtype=object)
        wrong[:] = np.where(wrong == "", found, wrong)


def _id_fault(name: str, text: object) -> str:
    if not isinstance(text, str):
        return ""
    if text in MISSING:
        return f"the {name} is missing"
    if len(text) > LONGEST_ID:
        return f"the {name} is longer than {LONGEST_ID} characters"
    return f"the {name} holds a control character" if calm(text) != text else ""


def seconds(column: pd.Series, wrong: np.ndarray, notes: list[str], dates: Dates = "") -> np.ndarray:
    """Seconds since 1970 from numbers (s, ms, µs or ns, told apart by size) or dates, whichever more rows have.

    Where there is none or an impossible one, `wrong` gets the reason, and the value means nothing. Raises Undecided where the
    dates can be read in two ways and `dates` does not say which.
    """
    expected = NO_NUMBER
    if pd.api.types.is_datetime64_any_dtype(column):
        empty, values = column.isna().to_numpy(), _epoch(pd.to_datetime(column, utc=True))
    elif pd.api.types.is_numeric_dtype(column):
        empty, values = column.isna().to_numpy(), _scaled(column.to_numpy(dtype=np.float64), notes)
    else:
        text = column.astype(object).where(column.notna(), "").astype(str).str.strip()
        empty = text.isin(MISSING).to_numpy()
        numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
        numeric = np.isfinite(numbers)
        said = list[str]()
        try:
            values = numbers if numeric.all() else _dates(text.where(~numeric, None), dates, said)
        except Undecided:
            if 2 * numeric.sum() < (~empty).sum():
                raise
            values = np.full(len(text), np.nan)
        read = np.isfinite(values).sum()
        if numeric.sum() >= read:
            values = _scaled(numbers, notes)
            expected = expected if numeric.any() else NO_TIME
        else:
            notes.extend(said)
            expected = NO_DATE
    for bad, what in ((empty, NONE), (~np.isfinite(values), expected), (values < 0, BEFORE), (values > LATEST, AFTER)):
        if bad.any():
            wrong[:] = np.where(bad & (wrong == ""), what, wrong)
    return values


class Times(NamedTuple):
    """Times of a long column: numbers of some unit (`numbers`) or seconds, NaN where there is none; in which rows it is missing;
    what was `expected` where it is neither."""

    values: np.ndarray
    missing: np.ndarray
    expected: str
    numbers: bool


def weigh_times(read: Times, notes: list[str]) -> tuple[np.ndarray, list[tuple[int, str]]]:
    """Seconds since 1970, and by row what is wrong with those that mean nothing: as `seconds`, without a text for every row."""
    values = _scaled(read.values, notes) if read.numbers else read.values
    bad = np.flatnonzero(~((values >= 0) & (values <= LATEST)))
    missing, wrong = set(read.missing.tolist()), list[tuple[int, str]]()
    for row, value in zip(bad.tolist(), values[bad].tolist(), strict=True):
        unread = NONE if row in missing else read.expected
        wrong.append((row, unread if not math.isfinite(value) else BEFORE if value < 0 else AFTER))
    if len(bad):
        values = values.copy()
        values[bad] = 0
    return whole(values), wrong


def whole(values: np.ndarray) -> np.ndarray:
    """int64 where nothing is lost, else to the microsecond."""
    return values.astype(np.int64) if (values == np.floor(values)).all() else np.round(values, 6)


def _dates(text: pd.Series, order: Dates, notes: list[str]) -> np.ndarray:
    """Seconds since 1970 of dates, NaN elsewhere; each different spelling is read once."""
    codes, different = pd.factorize(text)
    if not len(different):
        return np.full(len(text), np.nan)
    read = _iso(different)
    other = {place: found for place in np.flatnonzero(np.isnan(read)) if (found := WRITTEN.fullmatch(different[place]))}
    if other:
        day = _day_first(list(other.values()), order, notes)
        for place, found in other.items():
            date = _read_date(found[0], 0 if day else 1)
            read[place] = np.nan if date is None else date.timestamp()
    return np.where(codes < 0, np.nan, read[codes])


def iso_dates(text: pd.Series) -> np.ndarray | None:
    """Seconds since 1970 of ISO 8601 dates, NaN elsewhere; None where one is written in another way that is known here."""
    codes, different = pd.factorize(text)
    read = _iso(different)
    if any(WRITTEN.fullmatch(different[place]) for place in np.flatnonzero(np.isnan(read))):
        return None
    return np.where(codes < 0, np.nan, np.append(read, np.nan)[codes])


def _iso(different: np.ndarray | pd.Index) -> np.ndarray:
    dates = pd.to_datetime(pd.Series(different, dtype=object), errors="coerce", utc=True, format="ISO8601")
    return np.array(_epoch(dates))


def _day_first(found: list[re.Match[str]], order: Dates, notes: list[str]) -> bool:
    """Whether the day comes before the month, as most of the rows that tell have it. Raises Undecided if none does."""
    first, second = (sum(int(date[part]) > 12 for date in found) for part in (1, 3))
    either = _either([date[0] for date in found])
    if order:
        day, why = order == ORDERS[0], "as was said"
    elif first != second:
        day, why = first > second, "because other rows have a number above 12 there"
    elif first == 0 and all(date[2] == "." for date in found):
        day, why = True, "because of the dots; no row has a number above 12 that would tell"
    elif either is not None:
        raise Undecided(*either)
    else:
        return True
    if either is not None:  # of a date that has but one reading there is nothing to say
        notes.append(f"dates such as {either[0]} were read with the {'day' if day else 'month'} first, {why}")
    return day


def _either(texts: list[str]) -> tuple[str, list[datetime]] | None:
    """The first that means one day or another, and both."""
    for text in texts:
        both = [date for month_first in (0, 1) if (date := _read_date(text, month_first)) is not None]
        if len(both) == 2 and both[0] != both[1]:
            return text, both
    return None


def _read_date(text: str, month_first: int) -> datetime | None:
    """A written date, in UTC as all times are; None for one that no calendar has."""
    found = WRITTEN.fullmatch(text)
    if found is None:
        return None
    day, month = (int(found[3]), int(found[1])) if month_first else (int(found[1]), int(found[3]))
    hour, half = int(found[5] or 0), (found[8] or "").lower()
    if half and not 1 <= hour <= 12:
        return None
    hour = hour % 12 + 12 * (half == "p") if half else hour
    try:
        return datetime(int(found[4]), month, day, hour, int(found[6] or 0), int(found[7] or 0), tzinfo=UTC)
    except ValueError:
        return None


def _epoch(dates: pd.Series) -> np.ndarray:
    return ((dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)).to_numpy(dtype=np.float64)


def _scaled(numbers: np.ndarray, notes: list[str]) -> np.ndarray:
    finite = numbers[np.isfinite(numbers)]
    middle = float(np.median(finite)) if len(finite) else 0.0
    for limit, scale, unit in UNITS:
        if middle > limit:
            notes.append(f"times were taken for {unit}, because of their size")
            return numbers / scale
    return numbers
