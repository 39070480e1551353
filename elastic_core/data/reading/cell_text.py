"""Cells: what says that something is missing, how anything is spelt, how different texts become numbers, lists in one cell."""

import contextlib
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.types import is_integer, is_large_list, is_list, is_nested, is_string

MISSING = frozenset(
    (
        "|na|n/a|n.a.|#n/a|#na|#value!|#ref!|nan|-nan|null|(null)|<null>|[null]|#null!|none|nil|<na>|\\n|undefined|unknown|missing|nat"
        "|?|*|-|--|-1"
    ).split("|")
)


def clean_cell(text: str | None) -> str:
    """Return a cell without the spaces and marks around it; nothing where it says that something is missing."""
    clean = (text or "").strip()
    if clean.isdecimal():
        return clean
    if clean[:2] == '="' and clean[-1] == '"':
        clean = clean[2:-1]
    elif len(clean) > 1 and clean[0] == clean[-1] and clean[0] in "\"'`":
        clean = clean[1:-1].strip()
    return "" if len(clean) < 10 and clean.lower() in MISSING else clean


class Spellings:
    """The different texts of a column that is taken a part at a time, in the order of first appearance."""

    def __init__(self) -> None:
        self.known = pa.array([], pa.large_string())

    def add(self, column: Any) -> np.ndarray:
        """Take a part; return the places [rows] of its cells among the texts. What is missing is an empty one."""
        coded = pc.dictionary_encode(pc.fill_null(to_text(column), ""))
        texts = pc.cast(coded.dictionary, self.known.type)
        self.known = pa.concat_arrays([self.known, texts.filter(pc.invert(pc.is_in(texts, self.known)))])
        result: np.ndarray = pc.index_in(texts, self.known).to_numpy()[coded.indices.to_numpy()]
        return result

    @property
    def texts(self) -> list[str]:
        result: list[str] = self.known.to_numpy(zero_copy_only=False).tolist()
        return result


def to_text(column: Any) -> Any:
    """Return cells of any type as text: whole floats without a point, bytes as the text they are or in hex, lists with bars."""
    if is_string(column.type) or is_integer(column.type):
        return pc.cast(column, pa.string())
    if is_nested(column.type):
        return pa.array(map(format_cell, column.to_pylist()), pa.string())
    coded = pc.dictionary_encode(column)
    return pa.array(map(format_cell, coded.dictionary.to_pylist()), pa.string()).take(coded.indices)


def format_cell(value: Any) -> str | None:
    """Return one cell as text; None where it is none, or no finite number."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            if (text := value.decode()).isprintable():
                return text
        return value.hex()
    if isinstance(value, float | Decimal):
        return None if not np.isfinite(float(value)) else str(int(value)) if value == int(value) else str(value)
    if isinstance(value, list):
        return "|".join(str(format_cell(part)) for part in value)
    return json.dumps(value) if isinstance(value, dict) else str(value)


def share_matching(cells: Any, pattern: str) -> float:
    """Return how many of some cells match, of one."""
    return float(pc.mean(pc.cast(pc.match_substring_regex(to_text(cells), pattern), pa.float64())).as_py() or 0)


def hold_lists(cells: Any) -> bool:
    """Whether these cells are lists, or nearly all are text that holds several ids."""
    if is_list(cells.type) or is_large_list(cells.type):
        return True
    one = r"['\"]?[A-Za-z_]{0,8}[0-9]+['\"]?"
    several = rf"^\[.*\]$|^\{{[^:]*\}}$|^{one}(\s*[,|;\s]\s*{one})+$"
    return is_string(cells.type) and share_matching(cells.slice(0, 1_000), several) > 0.8


def split_lists(cells: Any) -> Any:
    """Return lists of the ids in such cells."""
    if is_nested(cells.type):
        return cells
    bare = pc.replace_substring_regex(cells, r"^[\[{\s]+|[\]}\s]+$|['\"]", "")
    return pc.split_pattern_regex(bare, r"\s*[,|;\s]\s*")
