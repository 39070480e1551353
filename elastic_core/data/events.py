"""Every row looked at: no user, item or time missing, ids that are text, times in one unit. What is wrong is said row by row."""

import numpy as np
import pandas as pd

from elastic_core.data.faults import Faults, weigh
from elastic_core.errors import InputError
from elastic_core.text import calm

MISSING = ["", "nan", "NaN", "null"]
LONGEST_ID = 200
LATEST = 7_258_118_400  # the year 2200, in seconds
UNITS = ((1e17, 1e9, "nanoseconds"), (1e14, 1e6, "microseconds"), (1e11, 1e3, "milliseconds"))


def check_events(
    frame: pd.DataFrame, shown: str, header: int, found: list[tuple[int, str]], notes: list[str]
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
    times = seconds(frame["time"], wrong, notes) if "time" in frame else None
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


def seconds(column: pd.Series, wrong: np.ndarray, notes: list[str]) -> np.ndarray:
    """Seconds since 1970 from numbers (s, ms, µs or ns, told apart by size) or ISO dates, whichever more rows have.

    Where there is none or an impossible one, `wrong` gets the reason, and the value means nothing.
    """
    expected = "the time is not a number (seconds since 1970), as most rows have it"
    if pd.api.types.is_datetime64_any_dtype(column):
        empty, values = column.isna().to_numpy(), _epoch(pd.to_datetime(column, utc=True))
    elif pd.api.types.is_numeric_dtype(column):
        empty, values = column.isna().to_numpy(), _scaled(column.to_numpy(dtype=np.float64), notes)
    else:
        text = column.astype(object).where(column.notna(), "").astype(str).str.strip()
        empty = text.isin(MISSING).to_numpy()
        numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
        numeric = np.isfinite(numbers)
        values = numbers if numeric.all() else _dates(text.where(~numeric, None))
        if numeric.sum() >= np.isfinite(values).sum():
            values = _scaled(numbers, notes)
        else:
            expected = "the time is not an ISO date such as 2024-01-31T20:15:00, as most rows have it"
    rules = (
        (empty, "the time is missing"),
        (~np.isfinite(values), expected),
        (values < 0, "the time is before 1970"),
        (values > LATEST, "the time is after the year 2200"),
    )
    for bad, what in rules:
        if bad.any():
            wrong[:] = np.where(bad & (wrong == ""), what, wrong)
    return values


def whole(values: np.ndarray) -> np.ndarray:
    """int64 where nothing is lost, else to the microsecond."""
    return values.astype(np.int64) if (values == np.floor(values)).all() else np.round(values, 6)


def _dates(text: pd.Series) -> np.ndarray:
    """Seconds since 1970 of ISO dates, NaN elsewhere; each different spelling is read once."""
    codes, different = pd.factorize(text)
    if not len(different):
        return np.full(len(text), np.nan)
    read = pd.to_datetime(pd.Series(different, dtype=object), errors="coerce", utc=True, format="ISO8601")
    return np.where(codes < 0, np.nan, _epoch(read)[codes])


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
