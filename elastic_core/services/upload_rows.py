"""From a sheet of text to checked events: which column is what, and what is wrong with which row."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from elastic_core.data.interactions import IN_ORDER, MISSING, NAMES
from elastic_core.errors import InputError
from elastic_core.services.upload_bytes import DIRECTIONS
from elastic_core.services.upload_sheets import Sheet
from elastic_core.text import cell

NEEDED, OPTIONAL = ("user", "item", "time"), ("title", "genres")
SHOWN_FAULTS = 20
LONGEST_ID, LONGEST_TITLE = 200, 200
LATEST = 7_258_118_400  # the year 2200, in seconds
UNITS = ((1e17, 1e9, "nanoseconds"), (1e14, 1e6, "microseconds"), (1e11, 1e3, "milliseconds"))


@dataclass(frozen=True)
class Faults:
    """Rows that cannot be used: the first ones by line, how many in all, and how many of each kind."""

    first: tuple[tuple[int, str], ...]
    count: int
    kinds: dict[str, int]
    counted: str

    def table(self) -> pd.DataFrame:
        return pd.DataFrame(self.first, columns=[self.counted, "what is wrong"])

    @property
    def rest(self) -> int:
        return self.count - len(self.first)


@dataclass(frozen=True, eq=False)
class Checked:
    """`events`: user, item (text), time (seconds), in file order; `items`: item, title, genres, or None.

    Without times the order of the rows is what counts, and `events` has none.
    """

    shown: str
    events: pd.DataFrame
    items: pd.DataFrame | None
    rows: int  # in the file, with those that cannot be used
    faults: Faults
    notes: tuple[str, ...]


def guess(columns: Mapping[str, list[str]]) -> dict[str, str]:
    """Which of the file's columns is the user, item, time, title, genres, as far as their names tell.

    Numbered columns are those of a file without names: two are `user item`, four with seconds at the end MovieLens' u.data.
    """
    names = list(columns)
    if names == [f"column {i}" for i in range(1, len(names) + 1)]:
        if len(names) == 4 and all(map(_is_recent, columns[names[3]][:100])):
            return {"user": names[0], "item": names[1], "time": names[3]}
        return {"user": names[0], "item": names[1]} if len(names) == 2 else {}
    plain = {re.sub(r"[\s-]+", "_", name.strip().lower()): name for name in reversed(names)}
    matched = {ours: next((plain[name] for name in usual if name in plain), None) for ours, usual in NAMES.items()}
    return {ours: name for ours, name in matched.items() if name is not None}


def _is_recent(text: str) -> bool:
    """Can this be a time of the last decades, in seconds or a finer unit? A rating cannot."""
    return bool(re.fullmatch(r"\s*[0-9]{9,19}(\.[0-9]*)?\s*", text))


def check(sheet: Sheet, mapping: Mapping[str, str]) -> Checked:
    """Every row looked at; a time of "" says that the rows are in order. Raises InputError if the mapping cannot be used, or
    if hardly a row can.
    """
    _check_mapping(sheet, mapping)
    user, item = (_ids(sheet.columns[mapping[name]]) for name in ("user", "item"))
    wrong = np.full(sheet.rows, "", dtype=object)
    for name, column in (("user", user), ("item", item)):
        _mark_ids(wrong, name, column)
    notes = list(sheet.notes)
    timed = IN_ORDER not in mapping.items()
    seconds = _seconds(pd.Series(sheet.columns[mapping["time"]], dtype=object), wrong, notes) if timed else None
    good = wrong == ""
    faults = _faults(sheet, wrong)
    _enough(sheet, faults, int(good.sum()))
    events = pd.DataFrame({"user": user[good], "item": item[good]}, dtype=object)
    if seconds is not None:
        kept = seconds[good]
        events["time"] = kept.astype(np.int64) if (kept == np.floor(kept)).all() else np.round(kept, 6)
    items = _items(sheet, mapping, events["item"], good, notes)
    formulas = sum(is_formula(text) for text in pd.unique(events["item"])) + sum(map(is_formula, pd.unique(events["user"])))
    if formulas:
        notes.append(_formula_note(formulas, "ids"))
    return Checked(sheet.shown, events.reset_index(drop=True), items, sheet.rows + len(sheet.faults), faults, tuple(notes))


def is_formula(text: str) -> bool:
    """Would a spreadsheet run this cell? Plain numbers such as -5 are no formulas."""
    return cell(text) != text and not re.fullmatch(r"[+-]?[0-9][0-9., ]*", text)


# --- rules -----------------------------------------------------------------------------------------------------------


def _check_mapping(sheet: Sheet, mapping: Mapping[str, str]) -> None:
    there = ", ".join(list(sheet.columns)[:12])
    for ours in NEEDED:
        if not mapping.get(ours) and (ours, mapping.get(ours)) != IN_ORDER:
            raise InputError(f"{sheet.shown} needs a column for the {ours}; it has: {there}")
    for ours, name in mapping.items():
        if ours not in NAMES or (name not in sheet.columns and (ours, name) != IN_ORDER):
            raise InputError(f"{sheet.shown} has no column {name!r} (for {ours}); it has: {there}")
    repeated = [name for name, times in Counter(mapping.values()).items() if times > 1]
    if repeated:
        raise InputError(f"the column {repeated[0]!r} cannot be two things at once: choose another for one of them")


def _ids(cells: list[str]) -> pd.Series:
    return pd.Series(cells, dtype=object).str.strip()


def _mark_ids(wrong: np.ndarray, name: str, column: pd.Series) -> None:
    different = {text: _id_fault(name, text) for text in pd.unique(column)}
    found = column.map(different).to_numpy(dtype=object)
    wrong[:] = np.where(wrong == "", found, wrong)


def _id_fault(name: str, text: str) -> str:
    if text in MISSING:
        return f"the {name} is missing"
    if len(text) > LONGEST_ID:
        return f"the {name} is longer than {LONGEST_ID} characters"
    return f"the {name} holds a control character" if _calm(text) != text else ""


def _seconds(column: pd.Series, wrong: np.ndarray, notes: list[str]) -> np.ndarray:
    """Seconds since 1970, from numbers (unit told by their size) or ISO dates: whichever more rows have."""
    text = column.str.strip()
    empty = text.isin(MISSING).to_numpy()
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    numeric = np.isfinite(numbers)
    dates = _dates(text.where(~numeric, None))
    values = numbers if numeric.sum() >= np.isfinite(dates).sum() else dates
    if values is numbers:
        values = _scaled(numbers, notes)
        expected = "the time is not a number (seconds since 1970), as most rows have it"
    else:
        expected = "the time is not an ISO date such as 2024-01-31T20:15:00, as most rows have it"
    rules = (
        (empty, "the time is missing"),
        (~np.isfinite(values), expected),
        (values < 0, "the time is before 1970"),
        (values > LATEST, "the time is after the year 2200"),
    )
    for bad, what in rules:
        wrong[:] = np.where(bad & (wrong == ""), what, wrong)
    return values


def _dates(text: pd.Series) -> np.ndarray:
    """Seconds since 1970 of ISO dates, NaN elsewhere; each different spelling is read once."""
    codes, different = pd.factorize(text)
    if not len(different):
        return np.full(len(text), np.nan)
    read = pd.to_datetime(pd.Series(different, dtype=object), errors="coerce", utc=True, format="ISO8601")
    seconds = ((read - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)).to_numpy(dtype=np.float64)
    return np.where(codes < 0, np.nan, seconds[codes])


def _scaled(numbers: np.ndarray, notes: list[str]) -> np.ndarray:
    finite = numbers[np.isfinite(numbers)]
    middle = float(np.median(finite)) if len(finite) else 0.0
    for limit, scale, unit in UNITS:
        if middle > limit:
            notes.append(f"times were taken for {unit}, because of their size")
            return numbers / scale
    return numbers


def _faults(sheet: Sheet, wrong: np.ndarray) -> Faults:
    places = np.flatnonzero(wrong != "")
    found = [*sheet.faults, *((sheet.lines[i], str(wrong[i])) for i in places)]
    kinds = Counter(what for _, what in found)
    return Faults(tuple(sorted(found)[:SHOWN_FAULTS]), len(found), dict(kinds.most_common()), sheet.counted)


def _enough(sheet: Sheet, faults: Faults, good: int) -> None:
    if faults.count and good < faults.count:
        line, what = faults.first[0]
        raise InputError(
            f"{sheet.shown}: {faults.count:,} of {sheet.rows + len(sheet.faults):,} rows cannot be used "
            f"(the first: {sheet.counted} {line}, {what}); perhaps other columns were meant"
        )


# --- titles ----------------------------------------------------------------------------------------------------------


def _items(sheet: Sheet, mapping: Mapping[str, str], item: pd.Series, good: np.ndarray, notes: list[str]) -> pd.DataFrame | None:
    """Each item's first row speaks for it. Titles stay text: no markup is read in them, and no formula."""
    chosen = [name for name in OPTIONAL if mapping.get(name)]
    if not chosen:
        return None
    first = ~item.duplicated()
    found = pd.DataFrame({"item": item[first]}, dtype=object)
    for name in chosen:
        cells = pd.Series(sheet.columns[mapping[name]], dtype=object)[good][first.to_numpy()]
        text = ["" if cell in MISSING else cell for cell in cells]
        found[name] = pd.Series(_titles(text, notes) if name == "title" else _genres(text), index=found.index, dtype=object)
    return found.reset_index(drop=True)


def _titles(cells: list[str], notes: list[str]) -> list[str]:
    calm = [_calm(text).strip() for text in cells]
    counts = (
        (sum(a.strip() != b for a, b in zip(cells, calm, strict=True)), "titles held control characters, which were taken out"),
        (sum(len(text) > LONGEST_TITLE for text in calm), f"titles were cut to {LONGEST_TITLE} characters"),
        (sum(bool(re.search(r"<[a-zA-Z/!]", text)) for text in calm), "titles hold HTML, which is shown as text and never run"),
    )
    notes += [f"{count:,} {what}" for count, what in counts if count]
    formulas = sum(map(is_formula, calm))
    if formulas:
        notes.append(_formula_note(formulas, "titles"))
    return [text[:LONGEST_TITLE] for text in calm]


def _formula_note(count: int, what: str) -> str:
    return f"{count:,} {what} look like formulas (=, +, -, @): they stay text, also in every CSV you download"


def _genres(cells: list[str]) -> list[tuple[str, ...]]:
    """Split at bars; where no cell has any, at semicolons or commas."""
    mark = next((mark for mark in "|;," if any(mark in text for text in cells)), "|")
    parts = ([_calm(part).strip()[:60] for part in text.replace("|", mark).split(mark)] for text in cells)
    return [tuple(part for part in row if part)[:20] for row in parts]


def _calm(text: str) -> str:
    """Without control characters (line ends become spaces) and reading-direction marks."""
    spaced = re.sub(r"[\t\r\n]+", " ", text)
    return "".join(c for c in spaced if unicodedata.category(c) not in ("Cc", "Cs") and c not in DIRECTIONS)
