"""Every row looked at: no user, item or time missing, times in one unit. The first bad row is named by its line."""

import numpy as np
import pandas as pd

from elastic_core.errors import InputError


def check_events(frame: pd.DataFrame, shown: str, header: int) -> pd.DataFrame:
    """user and item as text, time in seconds. `header` is the number of header lines; -1 where messages should count rows."""
    if not len(frame):
        raise InputError(f"{shown} has no rows below its header")
    for name in ("user", "item"):
        _refuse(frame[name].isna().to_numpy(), f"the {name} is missing", frame, shown, header)
    events = pd.DataFrame({name: as_text(frame[name]) for name in ("user", "item")})
    if "time" in frame:
        events["time"] = _seconds(frame, shown, header)
    return events


def as_text(column: pd.Series) -> pd.Series:
    """Ids as text; whole numbers that came as floats lose their `.0`."""
    if column.dtype == object and isinstance(column.iloc[0], str):
        return column
    if pd.api.types.is_float_dtype(column) and (column == np.floor(column)).all():
        column = column.astype("int64")
    return column.astype(str)


def _refuse(bad: np.ndarray, what: str, frame: pd.DataFrame, shown: str, header: int) -> None:
    if bad.any():
        row = int(frame.index[int(bad.argmax())])
        where = f"row {row + 1}" if header < 0 else f"line {row + 1 + header}"
        raise InputError(f"{shown}, {where}: {what}")


def _seconds(frame: pd.DataFrame, shown: str, header: int) -> np.ndarray:
    """Seconds since 1970 from numbers (s, ms, µs or ns, told apart by size) or ISO dates; int64 where nothing is lost."""
    column = frame["time"]
    _refuse(column.isna().to_numpy(), "the time is missing", frame, shown, header)
    if pd.api.types.is_datetime64_any_dtype(column):
        values = _epoch(pd.to_datetime(column, utc=True))
    else:
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
        if np.isfinite(numbers[0]) or not _is_date(column.iloc[0]):
            _refuse(~np.isfinite(numbers), "the time is not a number", frame, shown, header)
            _refuse(numbers > 1e19, "the time is later than any calendar", frame, shown, header)
            values = numbers
            largest = float(values.max())
            values = values / next((scale for limit, scale in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)) if largest > limit), 1.0)
        else:
            dates = pd.to_datetime(column, errors="coerce", utc=True, format="ISO8601")
            _refuse(dates.isna().to_numpy(), "the time is not an ISO date", frame, shown, header)
            values = _epoch(dates)
    _refuse(values < 0, "the time is negative (before 1970)", frame, shown, header)
    return values.astype(np.int64) if (values == np.floor(values)).all() else values


def _is_date(value: object) -> bool:
    return not pd.isna(pd.to_datetime(pd.Series([value]), errors="coerce", utc=True, format="ISO8601")).any()


def _epoch(dates: pd.Series) -> np.ndarray:
    return ((dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)).to_numpy(dtype=np.float64)
