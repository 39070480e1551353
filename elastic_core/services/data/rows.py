"""From a sheet of text to checked events: which column is what, and what is wrong with which row."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from elastic_core.data.events import MISSING, Dates, mark_ids, seconds, whole
from elastic_core.data.faults import Faults, weigh
from elastic_core.data.interactions import IN_ORDER, NAMES
from elastic_core.errors import InputError
from elastic_core.services.data.sheets import Sheet
from elastic_core.text import calm, cell

NEEDED, OPTIONAL = ("user", "item", "time"), ("title", "genres")
LONGEST_TITLE = 200


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


def check(sheet: Sheet, mapping: Mapping[str, str], dates: Dates = "") -> Checked:
    """Every row looked at; a time of "" says that the rows are in order. Raises InputError if the mapping cannot be used, or
    if too many rows cannot; Undecided if its dates can be read in two ways and `dates` does not say which.
    """
    _check_mapping(sheet, mapping)
    user, item = (_ids(sheet.columns[mapping[name]]) for name in ("user", "item"))
    wrong = np.full(sheet.rows, "", dtype=object)
    for name, column in (("user", user), ("item", item)):
        mark_ids(name, column, wrong)
    notes = list(sheet.notes)
    timed = IN_ORDER not in mapping.items()
    times = seconds(pd.Series(sheet.columns[mapping["time"]], dtype=object), wrong, notes, dates) if timed else None
    good = wrong == ""
    bad = [(sheet.lines[i], str(wrong[i])) for i in np.flatnonzero(~good)]
    faults = weigh([*sheet.faults, *bad], sheet.rows + len(sheet.faults), sheet.shown, sheet.counted)
    events = pd.DataFrame({"user": user[good], "item": item[good]}, dtype=object)
    if times is not None:
        events["time"] = whole(times[good])
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
    tame = [calm(text).strip() for text in cells]
    counts = (
        (sum(a.strip() != b for a, b in zip(cells, tame, strict=True)), "titles held control characters, which were taken out"),
        (sum(len(text) > LONGEST_TITLE for text in tame), f"titles were cut to {LONGEST_TITLE} characters"),
        (sum(bool(re.search(r"<[a-zA-Z/!]", text)) for text in tame), "titles hold HTML, which is shown as text and never run"),
    )
    notes += [f"{count:,} {what}" for count, what in counts if count]
    formulas = sum(map(is_formula, tame))
    if formulas:
        notes.append(_formula_note(formulas, "titles"))
    return [text[:LONGEST_TITLE] for text in tame]


def _formula_note(count: int, what: str) -> str:
    return f"{count:,} {what} look like formulas (=, +, -, @): they stay text, also in every CSV you download"


def _genres(cells: list[str]) -> list[tuple[str, ...]]:
    """Split at bars; where no cell has any, at semicolons or commas."""
    mark = next((mark for mark in "|;," if any(mark in text for text in cells)), "|")
    parts = ([calm(part).strip()[:60] for part in text.replace("|", mark).split(mark)] for text in cells)
    return [tuple(part for part in row if part)[:20] for row in parts]
