"""Numbers that are times: the whole column tells its unit, the one in which nearly all of it lies between 1995 and 2035."""

import numpy as np
import pandas as pd
from numpy import ndarray

from elastic_core.errors import InputError

LATEST, SMALLEST, DAY = 7_258_118_400.0, 1e8, 86_400.0  # 2200; below this numbers are no seconds of any log
UNITS = (  # of numbers: name, how many make a second, and the year 1970 in them
    ("seconds", 1.0, 0.0),
    ("milliseconds", 1e3, 0.0),
    ("microseconds", 1e6, 0.0),
    ("nanoseconds", 1e9, 0.0),
    ("minutes since 1970", 1 / 60, 0.0),
    ("days of Excel (since 1900)", 1 / DAY, 25_569.0),
    ("days since 1970", 1 / DAY, 0.0),
)
EARLY, LATE = 788_918_400.0, 2_051_222_400.0  # 1995 and 2035
CALENDAR = {14: "YYYYMMDDhhmmss", 12: "YYYYMMDDhhmm", 10: "YYYYMMDDhh", 8: "YYYYMMDD"}


def scale_numbers(numbers: ndarray, notes: list[str]) -> ndarray:
    """Return seconds since 1970. Raises InputError where the numbers tell no more than a month, or no order."""
    sample = numbers[:: max(1, len(numbers) // 100_000)]
    real = sample[np.isfinite(sample) & (sample > 0)]
    low, high = np.quantile(real, [0.12, 0.88]) if len(real) else (0.0, 0.0)
    digits, seconds, name = len(str(int(high))), numbers, "seconds"
    fits = [unit for unit in UNITS if (low - unit[2]) / unit[1] >= EARLY and (high - unit[2]) / unit[1] <= LATE]
    dated = digits in CALENDAR and low / 10 ** (digits - 4) >= 1980 and high / 10 ** (digits - 4) < 2036
    if dated and np.isfinite(_parse_calendar(real, digits)).mean() >= 0.88:
        name = CALENDAR[digits]
        seconds = np.where(numbers <= 0, 0.0, _parse_calendar(numbers, digits))
    elif len(real) > 20 and digits in (4, 6) and np.isfinite(_parse_calendar(real, digits)).all():
        raise InputError(
            "the time tells only the year or month, not what came first: name another column, or say time= if rows are in order"
        )
    elif len(real) > 20 and digits in (7, 8) and np.isin(real % 10_000, np.arange(1980, 2036)).mean() > 0.98:
        raise InputError(f"times such as {int(real[0]):08} have their year at the end: write them as 2023-12-31")
    elif len(real) and not (fits[:1] == [UNITS[0]] and real.min() >= EARLY and real.max() <= LATE):
        fits = fits or [unit for unit in UNITS[:2] if high / unit[1] <= LATEST]
        if not fits:
            raise InputError(
                f"times such as {real[0]:.0f} do not count seconds or parts of them since 1970: write them as 2023-12-31T18:50:22"
            )
        name, per, zero = fits[0]
        seconds = numbers if (per, zero) == (1.0, 0.0) else (numbers - zero) / per
    if name != "seconds":
        notes.append(f"times were taken for {name}, because of their size")
    elif high < SMALLEST:
        notes.append("times are too small for seconds since 1970: only their order can be trusted")
    elif len(real) and not EARLY <= low <= high <= LATE:
        notes.append("most times are not of 1995 to 2035, if they are seconds since 1970: only their order can be trusted")
    return seconds


def _parse_calendar(numbers: ndarray, digits: int) -> ndarray:
    """Return the seconds of numbers such as 20190107; NaN where one is no date of 1980 to 2035."""
    clipped = np.clip(np.nan_to_num(numbers), 0, 10**digits - 1).astype(np.int64)
    different, places = np.unique(clipped, return_inverse=True)
    form = "%Y%m%d%H%M%S"[: digits - 2]
    moments = pd.to_datetime(pd.Series(different).astype(str), format=form, errors="coerce")
    seconds = seconds_since_1970(moments.where(moments.dt.year.between(1980, 2035)).to_numpy())
    return np.where(numbers == np.floor(numbers), seconds[places], np.nan)


def seconds_since_1970(moments: ndarray) -> ndarray:
    """Return float64 seconds of moments of NumPy, NaN for none."""
    seconds: ndarray = (moments.astype("datetime64[us]") - np.datetime64(0, "us")) / np.timedelta64(1, "s")
    return seconds
