"""Ids of people and items: text becomes numbers at once, in the order of first appearance; at the end each is cleaned once."""

import re
import unicodedata
from operator import ne
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray

from elastic_core.data.reading.cell_text import Spellings, clean_cell
from elastic_core.errors import InputError
from elastic_core.text import strip_controls

LONGEST_ID = 200
INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))


class Ids:
    """Ids of all rows, a part at a time. Whole numbers stay as they are, where all ids are and nobody asks for texts."""

    def __init__(self, name: str, as_text: bool) -> None:
        self.name, self.spellings, self.rows = name, Spellings(), list[ndarray]()
        self.are_numbers = not as_text  # the rows hold whole numbers, not those of spellings
        self.texts = list[str]()  # of all numbers, clean, once all is there

    def add(self, column: Any) -> ndarray:
        """Take the ids of a part; returns their numbers."""
        if pa.types.is_nested(column.type):
            raise InputError(f"the column for the {self.name} holds lists or other nested things, not ids")
        numbers = _parse_whole_numbers(column) if self.are_numbers else None
        if numbers is None:
            if self.are_numbers:
                self.are_numbers, self.rows = False, [self.spellings.add(pa.array(part)) for part in self.rows]
            numbers = self.spellings.add(column)
        self.rows.append(numbers)
        return numbers

    def finish(self, notes: list[str], wrong: dict[int, str]) -> pd.Categorical:
        """Return the ids [rows]; what is wrong with those of some rows goes to `wrong`."""
        rows = np.concatenate([np.empty(0, np.int32), *self.rows])
        self.rows.clear()
        if self.are_numbers and len(rows):
            places, numbers = pd.factorize(rows)
            return _build_categorical(places, pc.cast(pa.array(numbers), pa.string()).to_pylist())
        cleaned = [clean_cell(text) for text in self.spellings.texts]
        texts = [text if text.isascii() else unicodedata.normalize("NFC", text.translate(INVISIBLE)).strip() for text in cleaned]
        if differ := sum(map(ne, texts, cleaned)):
            notes.append(f"{differ:,} ids of the {self.name} were read without invisible characters and with one code a letter")
        if any(text.endswith(".0") for text in texts) and all(re.fullmatch(r"-?[0-9]+(\.0+)?|", text) for text in texts):
            texts = [re.sub(r"\.0+$", "", text) for text in texts]
            notes.append(f"ids of the {self.name} such as 12.0 were taken for 12")
        if sum(bool(re.fullmatch(r"[0-9][.,][0-9]+E\+[0-9]+", text)) for text in texts) > len(texts) / 2:
            notes.append(f"ids of the {self.name} such as {texts[0]} were rounded by a spreadsheet: export them as text")
        self.texts = texts
        places, different = pd.factorize(np.array(texts, dtype=object))
        self._note_capitals(different.tolist(), notes)
        ids = _build_categorical(places[rows], different.tolist())
        faults = {at: f"the {self.name} {what}" for at, text in enumerate(different) if (what := _describe_fault(text))}
        for row in np.flatnonzero(np.isin(ids.codes, list(faults))).tolist() if faults else ():
            wrong.setdefault(row, faults[ids.codes[row]])
        return ids

    def _note_capitals(self, texts: list[str], notes: list[str]) -> None:
        first = dict[str, str]()
        pairs = [(first[text.casefold()], text) for text in texts if first.setdefault(text.casefold(), text) != text]
        for one, other in pairs[:1]:
            notes.append(
                f"{len(pairs):,} ids of the {self.name} differ from another in capitals alone ({one[:40]}, {other[:40]}) and "
                "count as others: write them alike if they are the same"
            )


def _build_categorical(places: ndarray, texts: list[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(places.astype(np.int32), pd.Index(texts, dtype=object))


def _parse_whole_numbers(column: Any) -> ndarray | None:
    """Return the numbers where all cells are spelt as those from 0 are (not 007), which is usual and several times faster."""
    if column.null_count or not len(column) or not (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
        return None
    try:
        numbers = pc.cast(column, pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    low, high = int(numbers.min()), int(numbers.max())
    if low < 0:
        return None
    digits = len(numbers) + sum(np.count_nonzero(numbers >= 10**at) for at in range(1, len(str(high))))
    if pa.types.is_string(column.type) and digits != pc.sum(pc.binary_length(column)).as_py():
        return None
    return numbers.astype(np.int32) if high < 2**31 else numbers


def _describe_fault(text: str) -> str:
    if not text:
        return "is missing"
    if len(text) > LONGEST_ID:
        return f"is longer than {LONGEST_ID} characters"
    return "" if strip_controls(text) == text else "holds a control character"
