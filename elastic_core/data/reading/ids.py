"""Ids of people and items: text becomes numbers at once, in the order of first appearance, cleaned once each."""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from elastic_core.data.reading.times import MISSING, plain
from elastic_core.errors import InputError
from elastic_core.text import calm

LONGEST_ID = 200
ORDINARY = r"^[0-9A-Za-z](.*[0-9A-Za-z])?$"  # nothing to clean, if it is no word for what is missing


class Ids:
    """Ids of all rows, a part at a time. Text becomes numbers at once; whole numbers are kept as they are, where all ids are."""

    def __init__(self, name: str, numbered: bool = False) -> None:
        self.name, self.numbers, self.rows = name, dict[str, int](), list[np.ndarray]()
        self.whole = not numbered  # the rows hold whole numbers, not those of texts

    def add(self, column: Any) -> np.ndarray:
        """Take the ids of a part; returns their numbers."""
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_nested(column.type):
            raise InputError(f"the column for the {self.name} holds lists or other nested things, not ids")
        whole = _whole_numbers(column) if self.whole else None
        if whole is None:
            if self.whole:
                self.whole, self.rows = False, [self._numbered(*_texts_of(part)) for part in self.rows]
            whole = self._numbered(*_different(column))
        self.rows.append(whole)
        return whole

    def _numbered(self, places: np.ndarray, texts: list[str]) -> np.ndarray:
        numbers = self.numbers
        return np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int32)[places]

    def done(self, notes: list[str]) -> tuple[np.ndarray, list[str], dict[int, str]]:
        """Return places [rows] among the different ids, these, and what is wrong with some, by their places."""
        rows = _joined(self.rows)
        if self.whole and len(rows):
            return *_texts_of(rows), {}
        texts = self.texts
        if texts != list(self.numbers):
            notes.append(f"ids of the {self.name} such as 12.0 were taken for 12")
            short, known = pd.factorize(np.array(texts, dtype=object))
            rows, texts = short.astype(np.int32)[rows], known.tolist()
        if "" in self.numbers or max(map(len, texts), default=0) > LONGEST_ID or not "".join(texts).isprintable():
            return rows, texts, {at: f"the {self.name} {what}" for at, text in enumerate(texts) if (what := _fault(text))}
        return rows, texts, {}

    @property
    def texts(self) -> list[str]:
        """The ids by their numbers; where all are numbers, 12.0 is 12."""
        texts = list(self.numbers)
        if any(text.endswith(".0") for text in texts) and all(re.fullmatch(r"-?[0-9]+(\.0+)?|", text) for text in texts):
            return [re.sub(r"\.0+$", "", text) for text in texts]
        return texts


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Join arrays, letting each go as it is taken."""
    out = np.empty(sum(map(len, parts)), dtype=np.result_type(*parts) if parts else np.int32)
    at = 0
    while parts:
        part = parts.pop(0)
        out[at : at + len(part)] = part
        at += len(part)
    return out


def _whole_numbers(column: Any) -> np.ndarray | None:
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


def _texts_of(numbers: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return places and different texts of whole numbers."""
    high = int(numbers.max())
    if high < 4 * len(numbers):
        there = np.bincount(numbers) > 0
        places, different = (np.cumsum(there, dtype=np.int32) - np.int32(1))[numbers], np.flatnonzero(there)
    else:
        places, different = pd.factorize(numbers)
    texts: list[str] = pc.cast(pa.array(different), pa.string()).to_numpy(zero_copy_only=False).tolist()
    return places.astype(np.int32, copy=False), texts


def _different(column: Any) -> tuple[np.ndarray, list[str]]:
    """Return places and different texts, clean."""
    coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    texts = coded.dictionary
    if not pa.types.is_string(texts.type):
        texts = pa.array([_spelled(value) for value in texts.to_pylist()], pa.string())
    clean = pc.and_not(pc.match_substring_regex(texts, ORDINARY), pc.is_in(pc.utf8_lower(texts), pa.array(MISSING)))
    cleaned: list[str] = texts.to_numpy(zero_copy_only=False).tolist()
    for place in np.flatnonzero(~clean.to_numpy(zero_copy_only=False)).tolist():
        cleaned[place] = plain(cleaned[place])
    cleaned += [""] if column.null_count else []  # the last place, which is -1
    return coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), cleaned


def _fault(text: str) -> str:
    if not text:
        return "is missing"
    if len(text) > LONGEST_ID:
        return f"is longer than {LONGEST_ID} characters"
    return "" if calm(text) == text else "holds a control character"


def _spelled(value: Any) -> str:
    """Return an id as text: whole floats without a point, bytes as the text they are or in hex."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            found = value.decode()
            return found if found.isprintable() else value.hex()
        except UnicodeDecodeError:
            return value.hex()
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return ""
    return str(int(value)) if isinstance(value, float | Decimal) and value == int(value) else str(value)
