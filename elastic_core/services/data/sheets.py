"""Uploaded bytes become a sheet of text cells with the line each row stands on. Rows that do not fit the header are kept
apart with their line number, so that one bad row does not cost the file.
"""

import csv
import io
import re
import unicodedata
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from elastic_core.errors import InputError
from elastic_core.services.data.unpacking import Unpacked, refuse_bomb

MOST_ROWS = 2_000_000
MOST_COLUMNS = 50
LONGEST_NAME = 100  # characters of a column's name
CHUNK = 50_000
PREVIEW = 20


@dataclass(frozen=True, eq=False)
class Sheet:
    """Cells as text, column by column. `lines[i]` is the line (or, for Parquet, the row) that row i begins on."""

    shown: str
    columns: dict[str, list[str]]
    lines: "array[int]"
    faults: tuple[tuple[int, str], ...]  # rows that are left out: line, what is wrong
    notes: tuple[str, ...]
    counted: str = "line"

    @property
    def rows(self) -> int:
        return len(self.lines)

    def preview(self, rows: int = PREVIEW) -> dict[str, list[str]]:
        return {name: cells[:rows] for name, cells in self.columns.items()}


def sheet(unpacked: Unpacked) -> Sheet:
    """Raises InputError for what is not a table within the limits."""
    return _parquet(unpacked) if unpacked.kind == "parquet" else _text(unpacked)


# --- text ------------------------------------------------------------------------------------------------------------


def _text(unpacked: Unpacked) -> Sheet:
    shown, notes = unpacked.shown, list(unpacked.notes)
    whole = _decode(unpacked.data, shown, notes)
    text = whole.lstrip("\r\n")
    if not text.strip():
        raise InputError(f"{shown} is empty")
    skipped = len(whole[: len(whole) - len(text)].splitlines())  # so that messages name the lines of the file
    if "\r" in text[:65536] and "\n" not in text[:65536]:
        notes.append("the lines end in the old Macintosh way (CR), which was understood")
    separator = _separator(text, notes)
    if separator == "::":
        text, separator = text.replace("::", "\t"), "\t"
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    header = _first(reader, shown)
    names, headless = _names(header, shown, notes)
    first = [header] if headless else []
    return _collect(reader, first, names, skipped, shown, notes)


def _decode(data: bytes, shown: str, notes: list[str]) -> str:
    """UTF-8, UTF-16 with its mark, or else Latin-1 if it looks like text at all."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError:
            raise InputError(f"{shown} is not a text file: save the table as CSV in UTF-8") from None
        notes.append("the file is UTF-16 text, which was understood")
        return _without_nul(text, shown)
    if data.startswith(b"\xef\xbb\xbf"):
        notes.append("the file starts with a byte order mark, which was left out")
    try:
        return _without_nul(data.decode("utf-8-sig"), shown)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
    odd = len(re.findall(rb"[\x00-\x08\x0e-\x1f]", data[:1_000_000]))
    if odd:
        raise InputError(f"{shown} is not a text file: save the table as CSV in UTF-8")
    notes.append(f"the file is not UTF-8 (line {line}); it was read as Latin-1, so check the accents")
    windows = re.search(rb"[\x80-\x9f]", data) is not None
    return data.decode("cp1252" if windows else "latin-1", errors="replace")


def _without_nul(text: str, shown: str) -> str:
    if "\0" in text:
        raise InputError(f"{shown} is not a text file (it holds NUL bytes): save the table as CSV in UTF-8")
    return text


def _separator(text: str, notes: list[str]) -> str:
    first = re.split(r"[\r\n]", text[:1_000_000], maxsplit=1)[0]
    if first.count("::") in (2, 3):
        return "::"
    found = max(",\t;|", key=first.count)
    if not first.count(found) and first.count(" ") in (1, 2, 3):
        found = " "
    if found != ",":
        notes.append({"\t": "tabs", ";": "semicolons", "|": "bars", " ": "spaces"}[found] + " separate the columns")
    return found


def _first(reader: Iterator[list[str]], shown: str) -> list[str]:
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                return row
    except csv.Error:
        raise InputError(f"{shown}, line 1: the column names cannot be read (a quotation mark, or a very long cell)") from None
    raise InputError(f"{shown} is empty")


def _names(header: list[str], shown: str, notes: list[str]) -> tuple[list[str], bool]:
    """Unique, printable column names, and whether the first line holds data instead of names."""
    if len(header) > MOST_COLUMNS:
        raise InputError(f"{shown} has {len(header):,} columns; at most {MOST_COLUMNS} are read")
    if len(header) > 1 and all(re.fullmatch(r"\s*-?[0-9][0-9.eE+:T Z-]*\s*", cell) for cell in header):
        notes.append("the first line holds numbers, so it was taken for data and the columns were numbered")
        return [f"column {i}" for i in range(1, len(header) + 1)], True
    names: list[str] = []
    for i, cell in enumerate(header, 1):
        plain = "".join(c for c in cell if unicodedata.category(c)[0] != "C").strip()[:LONGEST_NAME]
        name = re.sub(r":(token|token_seq|float|float_seq)$", "", plain) or f"column {i}"
        if name in names:
            notes.append(f"two columns are called {name!r}; the later one is now {name!r} with its number")
            name = f"{name} ({i})"
        names.append(name)
    return names, False


def _collect(reader: Any, first: list[list[str]], names: list[str], skipped: int, shown: str, notes: list[str]) -> Sheet:
    """All rows with as many cells as the header. Equal cells of a column share one string, which keeps it small."""
    columns: list[list[str]] = [[] for _ in names]
    known: list[dict[str, str]] = [{} for _ in names]
    lines, faults = array("q", [1 + skipped] * len(first)), []
    pending, width = first, len(names)

    def settle() -> None:
        for cells, seen, values in zip(columns, known, zip(*pending, strict=True), strict=False):
            cells.extend(map(seen.setdefault, values, values))
        pending.clear()

    while True:
        start = reader.line_num + 1 + skipped
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            if "end of data" in str(error):
                raise InputError(f"{shown}, line {start}: a quotation mark is never closed") from None
            faults.append((start, "a cell is far too long" if "limit" in str(error) else "a quotation mark inside a cell"))
            continue
        if len(row) == width:
            pending.append(row)
            lines.append(start)
            if len(pending) >= CHUNK:
                settle()
        elif row:
            faults.append((start, f"{len(row)} cells where the first line has {width}"))
        if len(lines) + len(faults) > MOST_ROWS:
            raise InputError(f"{shown} has more than {MOST_ROWS:,} rows, which is the limit")
    settle()
    if not lines:
        raise InputError(f"{shown} has no rows below its header" if not faults else _all_ragged(shown, faults))
    return Sheet(shown, dict(zip(names, columns, strict=True)), lines, tuple(faults), tuple(notes))


def _all_ragged(shown: str, faults: list[tuple[int, str]]) -> str:
    line, what = faults[0]
    return f"{shown}: none of its {len(faults):,} rows fits the first line (line {line}: {what})"


# --- Parquet ---------------------------------------------------------------------------------------------------------


def _parquet(unpacked: Unpacked) -> Sheet:
    """Counts rows and columns before reading; text stays dictionary-coded, so a few bytes cannot become gigabytes."""
    shown = unpacked.shown
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError(f"{shown} is Parquet, which needs the package pyarrow: save the table as CSV instead") from None
    try:
        file = parquet.ParquetFile(io.BytesIO(unpacked.data))
        _refuse_large(file.metadata.num_rows, len(file.schema_arrow), shown)
        groups = (file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
        refuse_bomb(sum(groups), len(unpacked.data), shown)
        plain, nested = _plain_columns(file.schema_arrow, pyarrow)
        file = parquet.ParquetFile(io.BytesIO(unpacked.data), read_dictionary=[n for n, is_text in plain.items() if is_text])
        columns: dict[str, list[str]] = {name: [] for name in plain}
        for batch in file.iter_batches(CHUNK, columns=list(plain)):
            for name in plain:
                columns[name].extend(_cells(batch.column(name), pyarrow))
            _refuse_large(max(map(len, columns.values()), default=0), 0, shown)
    except InputError:
        raise  # ours already; it is a ValueError, as some of pyarrow's are
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError):
        raise InputError(f"{shown} is not a complete Parquet file: write it again, or save the table as CSV") from None
    rows = max(map(len, columns.values()), default=0)
    if not rows:
        raise InputError(f"{shown} has no rows" if plain else f"{shown} has no plain columns, only nested ones")
    notes = [*unpacked.notes]
    if nested:
        notes.append(f"{len(nested)} columns hold lists or other nested things and were left out: {', '.join(nested[:5])}")
    return Sheet(shown, columns, array("q", range(1, rows + 1)), (), tuple(notes), counted="row")


def _refuse_large(rows: int, columns: int, shown: str) -> None:
    if rows > MOST_ROWS:
        raise InputError(f"{shown} has {rows:,} rows; at most {MOST_ROWS:,} are read")
    if columns > MOST_COLUMNS:
        raise InputError(f"{shown} has {columns:,} columns; at most {MOST_COLUMNS} are read")


def _plain_columns(schema: Any, pyarrow: Any) -> tuple[dict[str, bool], list[str]]:
    """Name -> whether it is text; and the names of nested or binary columns."""
    types, plain, nested = pyarrow.types, {}, []
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        is_text = types.is_string(kind) or types.is_large_string(kind)
        number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_temporal(kind)
        if (is_text or number) and schema.names.count(field.name) == 1:
            plain[field.name] = is_text
        else:
            nested.append(field.name[:LONGEST_NAME])
    return plain, nested


def _cells(column: Any, pyarrow: Any) -> list[str]:
    """Text, with whole floats written as whole numbers (an id column with gaps comes as floats) and nulls as nothing."""
    if pyarrow.types.is_temporal(column.type):
        column = column.cast(pyarrow.string())
    if pyarrow.types.is_dictionary(column.type):
        spelled = ["" if value is None else str(value) for value in column.dictionary.to_pylist()]
        return ["" if i is None else spelled[i] for i in column.indices.to_pylist()]
    values = column.to_pylist()
    return ["" if v is None else str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in values]
