"""Numbers that are times: the whole column tells its unit, the one in which nearly all of it lies between 1995 and 2035."""

import numpy as np
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
    ("hours since 1970", 1 / 3600, 0.0),
)
EARLY, LATE = 788_918_400.0, 2_051_222_400.0  # 1995 and 2035
CALENDAR = {14: "YYYYMMDDhhmmss", 12: "YYYYMMDDhhmm", 10: "YYYYMMDDhh", 8: "YYYYMMDD"}


def scaled(numbers: ndarray, notes: list[str]) -> ndarray:
    """Return seconds since 1970. Raises InputError where the numbers tell no more than a month."""
    some = numbers[:: max(1, len(numbers) // 100_000)]
    real = some[np.isfinite(some) & (some > 0)]
    low, high = np.quantile(real, [0.12, 0.88]) if len(real) else (0.0, 0.0)
    digits, seconds, name, many = len(str(int(high))), numbers, "seconds", len(real) > 20
    fits = [unit for unit in UNITS if (low - unit[2]) / unit[1] >= EARLY and (high - unit[2]) / unit[1] <= LATE]
    if digits in CALENDAR and np.isfinite(_calendar(real, digits)).mean() >= 0.88:
        name = CALENDAR[digits]
        seconds = np.where(numbers <= 0, 0.0, _calendar(numbers, digits))
    elif many and digits in (4, 6) and np.isfinite(_calendar(real * 10 ** (8 - digits) + (101 if digits == 4 else 1), 8)).all():
        raise InputError(
            "the time tells only the year or month, not what came first: name another column, or say time= if rows are in order"
        )
    elif many and digits in (6, 10) and np.isfinite(_calendar(real + 20 * 10**digits, digits + 2)).mean() >= 0.98:
        name, seconds = CALENDAR[digits + 2][2:], _calendar(numbers + 20 * 10**digits, digits + 2)
    elif many and digits in (7, 8) and (year_last := _year_last(real)):
        name, seconds = year_last, _year_first(numbers, year_last)
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


def _year_first(numbers: ndarray, form: str) -> ndarray:
    """Return the seconds of numbers such as 3012023, of the form DDMMYYYY or MMDDYYYY; NaN for no date of 1980 to 2035."""
    whole = np.clip(np.nan_to_num(numbers), 0, 10**8 - 1).astype(np.int64)
    first, second, year = whole // 10**6, whole // 10**4 % 100, whole % 10**4
    day, month = (first, second) if form == "DDMMYYYY" else (second, first)
    return np.where((year >= 1980) & (year <= 2035), moment(year, month, day), np.nan)


def _year_last(numbers: ndarray) -> str:
    """Return which form such numbers have; nothing where they are no dates. Raises InputError where they could be both."""
    forms = [form for form in ("DDMMYYYY", "MMDDYYYY") if np.isfinite(_year_first(numbers, form)).mean() >= 0.98]
    if len(forms) == 2:
        raise InputError(f"times such as {int(numbers[0]):08} do not tell the day from the month: write them as 2023-12-31")
    return forms[0] if forms else ""


def _calendar(numbers: ndarray, digits: int) -> ndarray:
    """Return the seconds of numbers such as 20190107; NaN where one is no date of 1980 to 2035."""
    whole = numbers if numbers.dtype.kind == "i" else np.clip(np.nan_to_num(numbers), -9e18, 9e18).astype(np.int64)
    whole = whole * 10 ** (14 - digits)
    year, month, day, hour, minute, second = (whole // 10**at % (100 if at < 10 else 10_000) for at in (10, 8, 6, 4, 2, 0))
    good = (year >= 1980) & (year <= 2035) & (hour < 24) & (minute < 60) & (second < 61) & (numbers == np.floor(numbers))
    return np.where(good, moment(year, month, day) + hour * 3600.0 + minute * 60.0 + second, np.nan)


def moment(year: ndarray, month: ndarray, day: ndarray) -> ndarray:
    """Return the seconds at which days begin, NaN for a day that no calendar has."""
    fits = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (year >= 1) & (year <= 9999)
    months = (np.where(fits, year, 1970) - 1970) * 12 + np.where(fits, month, 1) - 1
    days = months.astype("datetime64[M]").astype("datetime64[D]") + (np.where(fits, day, 1) - 1)
    fits &= days.astype("datetime64[M]").astype(np.int64) == months
    return np.where(fits, days.astype(np.int64) * DAY, np.nan)
