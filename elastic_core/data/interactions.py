"""Readers: whatever lies on disk becomes one `Table` of user, item, time (and titles, genres where there are any).

Known layouts: MovieLens 100K (`u.data`), 1M (`ratings.dat`), latest-small (`ratings.csv`), the RecBole form (`*.inter`),
the two-column sequence form (`user item` per line, in time order), and any CSV, TSV or Parquet with named columns.
Every complaint is one InputError sentence that names the line (1-based, in the file) or the column.
"""

import contextlib
import csv
import io
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from elastic_core.data import files, stretches
from elastic_core.data.events import MISSING, Dates, as_text, check_events
from elastic_core.data.faults import Faults
from elastic_core.data.files import Bundle, blob_id, open_bundle
from elastic_core.data.titles import read_titles
from elastic_core.errors import InputError

NAMES = {
    "user": (
        "user",
        "user_id",
        "userid",
        "uid",
        "reviewerid",
        "customer_id",
        "session_id",
        "customer",
        "person",
        "kunde",
        "nutzer",
    ),
    "item": (
        "item",
        "item_id",
        "itemid",
        "iid",
        "movieid",
        "movie_id",
        "asin",
        "parent_asin",
        "product_id",
        "sid",
        "product",
        "artikel",
        "produkt",
    ),
    "time": ("time", "timestamp", "ts", "date", "datetime", "unixreviewtime", "created_at", "datum", "zeit"),
    "title": ("title", "name", "movie_title"),
    "genres": ("genres", "genre", "tags", "categories"),
}
IN_ORDER = ("time", "")  # of a column mapping: there are no times, the rows are in order
PARQUET = (".parquet", ".pq")
FIRST = ("ratings.dat", "ratings.csv", "u.data")
TABLES = (".csv", ".tsv", ".txt", ".dat", ".data", ".inter", ".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Table:
    """`events` has user, item (text; categories, of a long file) and time (seconds; absent in the sequence form), in file order.

    `items` has item, title, genres (tuples), one row an item, or is None. `blob` is git's id of the events file, nothing of a
    long one. `notes` say what was odd about it, `faults` which rows were left out.
    """

    events: pd.DataFrame
    items: pd.DataFrame | None
    blob: str
    faults: Faults = Faults()
    notes: tuple[str, ...] = ()

    @property
    def timed(self) -> bool:
        return "time" in self.events


def read(path: Path, columns: Mapping[str, str] | None = None, dates: Dates = "") -> Table:
    """Read a file, a .gz, a .zip or a folder. `columns` maps user, item, time, title, genres to the file's own names.

    A time of "" says that there is none: the rows are in order. `dates` says what 03/04/2024 means where no row tells.
    """
    bundle = open_bundle(path)
    name = _choose(bundle)
    shown, notes = bundle.describe(name), list[str]()
    named = {ours: theirs for ours, theirs in (columns or {}).items() if (ours, theirs) != IN_ORDER}
    ordered = len(named) < len(columns or {})

    def parse(data: bytes, found: list[tuple[int, str]]) -> tuple[pd.DataFrame, int]:
        frame, header = _parse(data, name, shown, named, ordered, found)
        return frame.drop(columns="time", errors="ignore") if ordered else frame, header

    most = min(files.MOST_BYTES + 1, stretches.STRETCH)
    with bundle.open(name) as file:
        data = file.read(most)
        if len(data) == most and not name.endswith(PARQUET):
            with contextlib.suppress(stretches.NotInStretches):
                events, rows, faults = stretches.read_in_stretches(file, data, shown, parse, notes)
                return Table(events, _titles(rows, bundle, name), "", faults, tuple(notes))
            notes.clear()
    data = bundle.read(name) if len(data) == most else data
    if not data.strip():
        raise InputError(f"{shown} is empty")
    found = list[tuple[int, str]]()
    frame, header = parse(data, found)
    frame, faults = check_events(frame, shown, header, found, notes, dates)
    events = frame[[column for column in ("user", "item", "time") if column in frame]].reset_index(drop=True)
    return Table(events, _titles(frame, bundle, name), blob_id(data), faults, tuple(notes))


def _titles(rows: pd.DataFrame, bundle: Bundle, name: str) -> pd.DataFrame | None:
    """What is known of items: from the events' own rows, or from a file beside them."""
    return _own_titles(rows) if "title" in rows or "genres" in rows else read_titles(bundle, name)


def _choose(bundle: Bundle) -> str:
    """The member that holds the events: the one named, a known layout's, or the only table there is."""
    if bundle.main:
        return bundle.main
    for name in FIRST:
        if name in bundle.members:
            return name
    inter = [name for name in bundle.members if name.endswith(".inter")]
    tables = inter or [name for name in bundle.members if Path(name).suffix.lower() in TABLES]
    if len(tables) != 1:
        found = ", ".join(sorted(bundle.members)) or "nothing"
        raise InputError(f"{bundle.path.name} holds no single table of interactions (found: {found}): name the file itself")
    return tables[0]


def _parse(
    data: bytes, name: str, shown: str, columns: Mapping[str, str], ordered: bool, found: list[tuple[int, str]]
) -> tuple[pd.DataFrame, int]:
    """The columns that matter, under our names, as text; and how many header lines there were (-1: a Parquet row).

    Where the rows are said to be `ordered`, a time need not be there. Lines that are no rows are added to `found`.
    """
    if name.endswith(PARQUET):
        return _pick(_parquet(data, shown), columns, shown, ordered), -1
    data = data.removeprefix(b"\xef\xbb\xbf")
    _check_encoding(data, shown)
    first = data[:65536].lstrip(b"\r\n").split(b"\n", 1)[0].decode("utf-8", "replace").strip("\r")
    if first.count("::") == 3:
        return _rated(data.replace(b"::", b"\t"), shown, found), 0
    tabs = first.split("\t")
    if len(tabs) == 4 and all(re.fullmatch(r"-?[0-9.]+", part) for part in tabs) and not columns:
        return _rated(data, shown, found), 0
    if re.fullmatch(r"[^\s,;]+[ \t][^\s,;]+ ?", first) and not columns and _match(first.split()) == {}:
        return _numbered(_table(data, "\t" if "\t" in first else " ", shown, found, header=False), 2, shown), 0
    separator = max("\t,;|", key=first.count)  # a name may hold spaces: they separate only where nothing else does
    separator = separator if separator in first else " "
    there = [re.sub(r":(token|token_seq|float|float_seq)$", "", name.strip()) for name in first.split(separator)]
    chosen = {**_match(there), **columns}
    places = {place for place, name in enumerate(there) if name in chosen.values()}
    frame = None if {"title", "genres"} & set(chosen) else _whole_numbers(data, separator, places, header=True)
    frame = _table(data, separator, shown, found, header=True) if frame is None else frame
    frame.columns = [re.sub(r":(token|token_seq|float|float_seq)$", "", str(column).strip()) for column in frame.columns]
    return _pick(frame, columns, shown, ordered), 1


def _check_encoding(data: bytes, shown: str) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{shown}, line {line}: not UTF-8 text; save the file as UTF-8") from None
    if b"\0" in data[:65536]:
        raise InputError(f"{shown}, line 1: not a text file")


def _table(data: bytes, separator: str, shown: str, found: list[tuple[int, str]], *, header: bool) -> pd.DataFrame:
    """pandas' C parser, everything as text. The row index still counts the file's lines, blank ones included."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.BytesIO(data),
                sep=separator,
                header=0 if header else None,
                dtype=str,
                index_col=False,
                engine="c",
                quoting=0 if header else 3,
                keep_default_na=False,
                na_values=MISSING,
                skip_blank_lines=False,
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        opened = re.search(r"EOF inside string starting at row (\d+)", str(error))
        if opened:
            raise InputError(f"{shown}, line {int(opened[1]) + 1}: a quotation mark is never closed") from None
        return _by_line(data.decode(), separator, shown, found, header=header)
    except pd.errors.EmptyDataError:
        raise InputError(f"{shown} is empty") from None
    return frame.dropna(how="all")


def _by_line(text: str, separator: str, shown: str, found: list[tuple[int, str]], *, header: bool) -> pd.DataFrame:
    """The same line by line, several times slower: the rows that fit the first line, and into `found` the lines that do not."""
    how: Any = {"quoting": csv.QUOTE_MINIMAL if header else csv.QUOTE_NONE, "strict": True}
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, **how)
    names: list[str] = []
    rows, lines = list[list[str]](), list[int]()
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            if "end of data" in str(error):
                raise InputError(f"{shown}, line {line}: a quotation mark is never closed") from None
            found.append((line, "a quotation mark inside a cell, or one that is far too long"))
            continue
        if not names and any(row):
            names = row
            if header:
                continue
        if names and len(row) == len(names):
            rows.append(row)
            lines.append(line)
        elif any(row):
            found.append((line, f"not the number of fields the first line has ({len(row)}, not {len(names)})"))
    at = np.array(lines, dtype=int) - 1 - header
    frame = pd.DataFrame(rows, index=at, columns=names if header else range(len(names)), dtype=object)
    return frame.mask(frame.isin(MISSING)).dropna(how="all")


def _rated(data: bytes, shown: str, found: list[tuple[int, str]]) -> pd.DataFrame:
    """user, item, rating, time without a header."""
    frame = _whole_numbers(data, "\t", {0, 1, 3}, header=False)
    frame = _table(data, "\t", shown, found, header=False) if frame is None else frame
    return _numbered(frame, 4, shown)


def _whole_numbers(data: bytes, separator: str, places: set[int], *, header: bool) -> pd.DataFrame | None:
    """The same as `_table` with the columns at these places read as whole numbers, which is several times faster. None unless all
    of them are, and are spelt as numbers are (not 007): then the lengths of all cells add up to the file."""
    first = data.split(b"\n", 1)[0]
    body = data[data.find(b"\n") + 1 :] if header else data
    if not places or b'"' in first or body.translate(None, b"0123456789-.\r\n" + separator.encode()):
        return None  # of what is left no spelling is shorter than the number's own (1e3 would be)
    kinds: Any = {place: np.int64 if place in places else str for place in range(first.count(separator.encode()) + 1)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            warnings.simplefilter("ignore", RuntimeWarning)  # a number that is too large, which its length gives away
            frame = pd.read_csv(
                io.BytesIO(body), sep=separator, header=None, dtype=kinds, index_col=False, engine="c", quoting=3,
                keep_default_na=False, skip_blank_lines=False,
            )  # fmt: skip
    except (ValueError, OverflowError, pd.errors.ParserWarning):  # as all that its parser raises is one
        return None
    if set(frame.columns) != set(kinds):
        return None
    cells = sum(_digits(frame[place].to_numpy()) if place in places else int(frame[place].str.len().sum()) for place in kinds)
    ends = body.count(b"\n") + body.count(b"\r")
    if cells + len(frame) * (len(kinds) - 1) + ends != len(body):
        return None
    if header:
        frame.columns = first.strip(b"\r").decode().split(separator)
    return frame


def _digits(numbers: np.ndarray) -> int:
    """How many characters these are when written out."""
    size, most = np.abs(numbers), int(np.abs(numbers).max(initial=0))
    powers = [10**power for power in range(1, 19) if 10**power <= most]
    return len(numbers) + int((numbers < 0).sum()) + sum(int((size >= power).sum()) for power in powers)


def _numbered(frame: pd.DataFrame, width: int, shown: str) -> pd.DataFrame:
    """Name the columns of a layout without a header: user, item[, rating, time]. A blank tail column is a stray space."""
    frame = frame.loc[:, [column for column in frame.columns if column < width or frame[column].notna().any()]]
    if frame.shape[1] != width:
        raise InputError(f"{shown}, line 1: {frame.shape[1]} fields where {width} belong")
    return frame.rename(columns={0: "user", 1: "item", 3: "time"}).drop(columns=2, errors="ignore")


def _parquet(data: bytes, shown: str) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(io.BytesIO(data), engine="pyarrow")
        return frame.reset_index(drop=isinstance(frame.index, pd.RangeIndex))
    except ImportError:
        raise InputError(f"{shown} is Parquet, which needs the package pyarrow: install it, or save the table as CSV") from None
    except Exception as error:  # pyarrow has its own exceptions, and cannot be imported to name them
        if not type(error).__module__.startswith("pyarrow") and not isinstance(error, OSError | ValueError):
            raise
        raise InputError(f"{shown} is not a complete Parquet file: write or download it again") from None


def _match(there: list[str]) -> dict[str, str]:
    lower = {name.lower(): name for name in reversed(there)}
    found = {ours: next((lower[name] for name in names if name in lower), None) for ours, names in NAMES.items()}
    return {ours: name for ours, name in found.items() if name is not None}


def _pick(frame: pd.DataFrame, columns: Mapping[str, str], shown: str, ordered: bool) -> pd.DataFrame:
    there = [str(column) for column in frame.columns]
    for ours, name in columns.items():
        if ours not in NAMES:
            raise InputError(f"data.columns maps {ours!r}, which is none of {', '.join(NAMES)}")
        if name not in there:
            raise InputError(f"{shown} has no column {name!r} (for {ours}); it has: {', '.join(there)}")
    chosen = {**_match(there), **columns}
    for ours in ("user", "item", "time"):
        if ours not in chosen and not (ordered and ours == "time"):
            hint = f"name it in data.columns, as {{{ours!r}: ...}}; the first line must hold the names"
            hint += '; a time of "" says that the rows are in order' if ours == "time" else ""
            raise InputError(f"{shown} has no column for {ours}; it has: {', '.join(there)} ({hint})")
    return pd.DataFrame({ours: frame[name] for ours, name in chosen.items()})


def _own_titles(frame: pd.DataFrame) -> pd.DataFrame:
    """Titles that stand in the events file itself: each item's first row speaks for it."""
    first = frame.drop_duplicates("item")
    items = pd.DataFrame({"item": as_text(first["item"])})
    if "title" in first:
        items["title"] = first["title"].fillna("").astype(str)
    if "genres" in first:
        items["genres"] = [split_genres(text) for text in first["genres"].fillna("").astype(str)]
    return items


def split_genres(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|") if part.strip())
