"""The items of a run, items.csv: dense id, raw id, how many training events, and title and genres where they may come along, so
that a folder says by itself what its numbers mean, and what is popular. Older runs did not count events."""

import csv
import io
from pathlib import Path

import numpy as np

from elastic_core import files
from elastic_core.core.histories import Catalog
from elastic_core.errors import InputError

FILE, MOST_BYTES = "items.csv", 2**28
BETWEEN = "|"  # genres
EVENTS = "events"


def write_items(catalog: Catalog, path: Path, titled: bool, counts: np.ndarray | None = None) -> None:
    """One line an item; `titled`: with what is known of it beside its raw id. `counts`: training events, int `[n_items + 1]`."""
    columns = {"raw": catalog.ids} | ({} if counts is None else {EVENTS: counts})
    if titled and catalog.titles is not None:
        columns["title"] = catalog.titles
    if titled and catalog.genres is not None:
        columns["genres"] = np.array([BETWEEN.join(genres) for genres in catalog.genres], dtype=object)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["id", *columns])
    writer.writerows(zip(range(1, catalog.n_items + 1), *(column[1:] for column in columns.values()), strict=True))
    files.write_text(path, buffer.getvalue())


def read_items(path: Path, folder: Path) -> Catalog:
    """Raises InputError for what is no such table, and where it is cut short."""
    columns = _read_columns(path, folder)
    genres = columns.get("genres")
    genre_tuples = None if genres is None else tuple(tuple(filter(None, cell.split(BETWEEN))) for cell in genres)
    return Catalog(columns["raw"], columns.get("title"), genre_tuples)


def read_counts(path: Path, folder: Path) -> np.ndarray | None:
    """Training events of every item, int64 `[n_items + 1]`; None where the run does not say. Raises as `read_items` does."""
    cells = _read_columns(path, folder).get(EVENTS)
    if cells is None:
        return None
    if not all(cell.isascii() and cell.isdecimal() and len(cell) < 16 for cell in cells[1:]):
        raise InputError(f"{files.file_name(path, folder)} counts events that are no numbers")
    return np.array([0, *map(int, cells[1:])], dtype=np.int64)


def _read_columns(path: Path, folder: Path) -> dict[str, np.ndarray]:
    file_name = files.file_name(path, folder)
    try:
        rows = list(csv.reader(io.StringIO(files.read_text(path, MOST_BYTES, folder))))
    except csv.Error as error:
        raise InputError(f"{file_name} is no table of items ({error})") from None
    header, rows = rows[0] if rows else [], rows[1:]
    if not rows or header[:2] != ["id", "raw"] or len(set(header)) < len(header):
        raise InputError(f"{file_name} must start with the header id,raw and list the items")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header) or row[0] != str(number):
            raise InputError(f"{file_name}, line {number + 1}: not item {number} with {len(header)} fields; it may be cut short")
    return {name: np.array(["", *cells], dtype=object) for name, cells in zip(header, zip(*rows, strict=True), strict=True)}
