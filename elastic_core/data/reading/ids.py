"""Ids of people and items: text becomes numbers at once, in the order of first appearance, cleaned and checked once each."""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from elastic_core.data.reading.times import plain
from elastic_core.errors import InputError
from elastic_core.text import calm

LONGEST_ID = 200


class Ids:
    """Text → number in the order of first appearance, and the numbers of all rows. What cannot be used has a fault."""

    def __init__(self, name: str) -> None:
        self.name, self.numbers, self.texts, self.faults = name, dict[str, int](), list[str](), dict[int, str]()
        self.rows = list[np.ndarray]()

    def add(self, column: Any) -> np.ndarray:
        """Take the ids of a part; returns their numbers, int32."""
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_nested(column.type):
            raise InputError(f"the column for the {self.name} holds lists or other nested things, not ids")
        numbers = _whole_numbers(column)
        if numbers is not None:
            places, different = pd.factorize(numbers)
            self.rows.append(np.array([self._number(str(number)) for number in different.tolist()], dtype=np.int32)[places])
            return self.rows[-1]
        coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        own = [self._number(_spelled(value)) for value in coded.dictionary.to_pylist()]
        own.append(self._number("") if coded.null_count else 0)
        codes = np.array(own, dtype=np.int32)[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        self.rows.append(codes)
        return codes

    def _number(self, raw: str) -> int:
        digits = raw.isdecimal()
        clean = raw if digits else plain(raw)
        number = self.numbers.get(clean)
        if number is None:
            number = self.numbers[clean] = len(self.texts)
            self.texts.append(clean)
            if digits and len(raw) <= LONGEST_ID:
                return number
            fault = "is missing" if not clean else f"is longer than {LONGEST_ID} characters" if len(clean) > LONGEST_ID else ""
            fault = fault or ("holds a control character" if calm(clean) != clean else "")
            if fault:
                self.faults[number] = f"the {self.name} {fault}"
        return number

    def column(self, good: np.ndarray | None, notes: list[str]) -> pd.Categorical:
        codes = joined(self.rows)
        self.rows = []
        codes = codes if good is None else codes[good]
        texts = self.texts
        if any(one.endswith(".0") for one in texts) and all(re.fullmatch(r"-?[0-9]+(\.0+)?|", t) for t in texts):
            notes.append(f"ids of the {self.name} such as 12.0 were taken for 12")
            short = pd.Index([re.sub(r"\.0+$", "", one) for one in texts])
            places, known = pd.factorize(short)
            return pd.Categorical.from_codes(places[codes].astype(np.int32), categories=pd.Index(known, dtype=object))
        return pd.Categorical.from_codes(codes, categories=pd.Index(texts, dtype=object))


def _whole_numbers(column: Any) -> np.ndarray | None:
    """Return int64 where all cells are spelt as numbers are (not 007), which is the usual case and several times faster."""
    if not pa.types.is_string(column.type) or column.null_count:
        return None
    try:
        numbers = pc.cast(column, pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    most = int(np.abs(numbers).max(initial=0))
    digits = (
        len(numbers) + sum(int((np.abs(numbers) >= 10**at).sum()) for at in range(1, len(str(most)))) + int((numbers < 0).sum())
    )
    return numbers if digits == pc.sum(pc.binary_length(column)).as_py() else None


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


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """Join arrays, letting each go as it is taken."""
    out = np.empty(sum(map(len, parts)), dtype=parts[0].dtype if parts else np.int32)
    at = 0
    while parts:
        part = parts.pop(0)
        out[at : at + len(part)] = part
        at += len(part)
    return out
