"""What people take away from a page: tables as CSV that a spreadsheet will not execute, and whole views as JSON."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from elastic_core import text


def to_csv(table: pd.DataFrame) -> str:
    """The table as CSV. Lists and tuples become texts joined by `|`."""
    plain = table.copy()
    for column in plain.columns:
        if not pd.api.types.is_numeric_dtype(plain[column]):
            plain[column] = [
                text.spreadsheet_cell("|".join(map(str, v)) if isinstance(v, (tuple, list)) else v) for v in plain[column]
            ]
    plain.columns = [text.spreadsheet_cell(str(name)) for name in plain.columns]
    return str(plain.to_csv(index=False, lineterminator="\n"))


def to_json(tables: Mapping[str, pd.DataFrame], settings: Mapping[str, Any]) -> str:
    """A view: its settings and every table it shows, as lists of rows. Valid JSON: what is not a number becomes null."""
    rows = {name: table.rename(columns=str).to_dict("records") for name, table in tables.items()}
    return json.dumps(_plain_values({"settings": dict(settings), "tables": rows}), ensure_ascii=False, indent=1, allow_nan=False)


def _plain_values(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries only."""
    if isinstance(value, Mapping):
        return {str(key): _plain_values(inner) for key, inner in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain_values(value.tolist())
    if isinstance(value, (list, tuple, set)):
        return [_plain_values(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return None if value is pd.NaT or value is pd.NA else str(value)
