"""A DataFrame of events: it becomes the bytes of a Parquet file, which the one reader of files reads like any other."""

import io
import re
from collections.abc import Mapping
from typing import TypeAlias

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from elastic_core import text
from elastic_core.errors import InputError

FILE = "data/DataFrame.parquet"  # in the folder of a run that learned from a frame
NO_ARROW = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, pa.ArrowKeyError)

Titles: TypeAlias = pd.DataFrame | pd.Series | Mapping[object, str]


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """The columns of a frame, and the levels of its index that have a name. Cells that Arrow has no one type for become text.

    Raises InputError for two columns of one name."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index(allow_duplicates=True)
    names = [str(name) for name in frame.columns]
    if repeated_name := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"the DataFrame has two columns {repeated_name!r}: give each its own name")
    columns = [_arrow_column(frame.iloc[:, place]) for place in range(len(names))]
    target = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays(columns, names), target, compression="zstd")
    return target.getvalue()


def add_titles(frame: pd.DataFrame, item: str, titles: Titles) -> pd.DataFrame:
    """The events with the columns title and genres, looked up by item in a frame with such columns, a Series or a mapping.

    Raises InputError where the events have no column `item`, or a frame of titles lacks item or title."""
    if not item or item not in frame:
        raise InputError("titles of a DataFrame are looked up by its items: name their column, as in item='page'")
    if not isinstance(titles, pd.DataFrame):
        titles = pd.Series(titles, dtype=object).rename("title").rename_axis("item").reset_index()
    key = next((name for name in ("item", item) if name in titles), None)
    if key is None or "title" not in titles:
        raise InputError(f"the titles need the columns item and title, and have {', '.join(map(str, titles.columns))}")
    known_titles = titles.assign(key=titles[key].astype(str)).drop_duplicates("key").set_index("key")
    items = frame[item].astype(str)
    return frame.assign(**{name: items.map(known_titles[name]) for name in ("title", "genres") if name in known_titles})


def _arrow_column(values: pd.Series) -> pa.Array:
    """The values with Arrow's own type, or as text: of several kinds, or of a kind that only pandas knows."""
    try:
        column = pa.array(values, from_pandas=True)
    except NO_ARROW:
        column = None
    if column is None or isinstance(column.type, pa.BaseExtensionType):
        return pa.array([None if value is None or value is pd.NA or value != value else str(value) for value in values])
    return column


def advice_in_python(sentence: str) -> str:
    """What the reader advises for the command line, as arguments of `load`."""

    def arguments(match: re.Match[str]) -> str:
        pairs = (pair.partition("=") for pair in "".join(text.shell_words(match[1])).split(","))
        return ", ".join(f"{ours}={theirs!r}" for ours, _, theirs in pairs)

    sentence = re.sub(r"--columns ('[^']*'|[^\s;)]+)", arguments, sentence)
    return re.sub(r"--dates (\S+) \(or (\S+)\)", r"and dates='\1' (or '\2')", sentence).replace(
        "say it with data.dates=day-first or month-first (--dates)", "say dates='day-first' or dates='month-first'"
    )
