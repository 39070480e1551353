"""Everybody's lists as a file: Parquet or CSV, written a stretch of people at a time, whole or not at all."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from elastic_core import disk
from elastic_core.errors import InputError
from elastic_core.lists import Lists

PARQUET, CSV = ".parquet", ".csv"


def write_lists(path: Path, parts: Iterable[Lists]) -> int:
    """Writes person, rank, item, title, score, basis, one row a suggestion, and returns how many people that were.

    Raises InputError for another ending than .parquet or .csv, where the folder is missing, and if the disk does not take it.
    """
    if path.suffix not in (PARQUET, CSV):
        raise InputError(f"{path} must end in {PARQUET} or {CSV}")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write lists in")
    people = 0

    def counted() -> Iterable[pd.DataFrame]:
        nonlocal people
        for part in parts:
            people += len(part.people)
            yield part.table

    disk.write_whole(path, lambda beside: (_parquet if path.suffix == PARQUET else _csv)(beside, counted()))
    return people


def _csv(path: Path, tables: Iterable[pd.DataFrame]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for number, table in enumerate(tables):
            table.to_csv(file, index=False, header=not number, lineterminator="\n")


def _parquet(path: Path, tables: Iterable[pd.DataFrame]) -> None:
    import pyarrow
    from pyarrow import parquet

    writer: Any = None
    try:
        for table in tables:
            found = pyarrow.Table.from_pandas(table, preserve_index=False)
            writer = writer or parquet.ParquetWriter(path, found.schema, compression="zstd")
            writer.write_table(found.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()
