"""What is no delimited text: JSON, lines of Python literals, Parquet, Arrow and Excel."""

import ast
import contextlib
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastic_core.data.reading.archives import AS_CSV, IncompleteFile, Member, refuse_large
from elastic_core.data.reading.cell_text import hold_lists, split, text_of
from elastic_core.data.reading.delimited_text import Part
from elastic_core.errors import InputError

BATCH = 2**18
RECORDS = re.compile(rb"\s*(\[\s*[\[{]|\{\s*(u?[\"']|\}))")
TIMELY = re.compile(r"(?i)time|date|stamp|^ts$")


def records(pieces: Iterator[bytes], member: Member, wanted: list[str] | None) -> Iterator[Part]:
    """Yield the rows of JSON (a list, lists, or an object a line) or of Python literals. Raises InputError."""
    first, line, document = next(pieces), 1, False
    if not re.match(rb"\s*\{.*\}\s*\n\s*[\{u]", first[:BATCH]):  # not an object a line
        whole = b"".join([first, *pieces])
        with contextlib.suppress(ValueError, RecursionError):
            yield _rows_part([(at, row) for at, row in enumerate(flat_rows(json.loads(whole)), 1)], [], member, wanted)
            return
        first, pieces = whole, iter(())
    for piece in chain([first], pieces):
        rows, bad = list[tuple[int, dict[str, Any]]](), list[tuple[int, str]]()
        for line, text in enumerate(piece.decode("utf-8", "replace").removesuffix("\n").split("\n"), line):  # noqa: B020
            text = text.strip().rstrip(",")
            try:
                rows += [(line, row) for row in flat_rows(_parsed(text))] if text not in ("", "[", "]") else []
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                bad.append((line, "no whole JSON object"))
        line += 1
        document = document or bool(rows)
        if not document:
            line = bad[0][0] if bad else 1
            raise InputError(f"{member.shown} is not complete JSON (line {line}): write it again, an object a line")
        yield _rows_part(rows, bad, member, wanted)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)


def flat_rows(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the flat rows inside: of lists of objects or of cells, of an object of columns, of rows, or of people."""
    if isinstance(document, list) and document and all(isinstance(one, list) for one in document):
        yield from ({f"column {at}": cell for at, cell in enumerate(row, 1)} for row in document)
        return
    if isinstance(document, list) and document and isinstance(document[0], dict):
        yield from (row for one in document if isinstance(one, dict) for row in flat_rows(one))
        return
    if not isinstance(document, dict):
        raise ValueError
    nested = [name for name, value in document.items() if isinstance(value, list) and value and isinstance(value[0], dict)]
    maps = [value for value in document.values() if isinstance(value, dict) and value]
    if {"columns", "data"} <= document.keys():  # pandas' orient="split"
        yield from (dict(zip(document["columns"], row, strict=True)) for row in document["data"])
    elif len(nested) > 1 and len(nested) == len(document):  # person → events
        yield from ({"key": key, **row} for key, events in document.items() for one in events for row in flat_rows(one))
    elif nested:
        events = next((name for name in nested if any(TIMELY.search(key) for key in document[name][0])), nested[0])
        around = {name: value for name, value in document.items() if name not in nested}
        yield from (around | row for row in flat_rows(document[events]))
    elif deep := next((name for name, value in document.items() if isinstance(value, dict) and _holds_rows(value)), ""):
        around = {name: value for name, value in document.items() if name != deep}
        yield from (around | row for row in flat_rows(document[deep]))
    elif len(maps) > 1 and all("0" in value for value in maps):  # pandas' to_json: column → row → cell
        yield from ({name: column.get(row) for name, column in document.items()} for row in maps[0])
    elif len(maps) > 1 and len(maps) == len(document) and all(value.keys() == maps[0].keys() for value in maps[:9]):
        yield from ({"key": key, **row} for key, row in document.items())  # and its orient="index"
    elif len(document) > 1 and all(isinstance(value, list) for value in document.values()):
        yield from (dict(zip(document, row, strict=True)) for row in zip(*document.values(), strict=False))
    else:
        flat = dict[str, Any]()
        for name, value in document.items():
            inside = value if isinstance(value, dict) and "$oid" not in value else {"": value}
            flat |= {f"{name}.{key}" if key else name: cell for key, cell in inside.items()}
        yield flat


def _holds_rows(document: dict[str, Any]) -> bool:
    """Whether a list of objects lies somewhere inside."""
    lists = any(isinstance(value, list) and value and isinstance(value[0], dict) for value in document.values())
    return lists or any(isinstance(value, dict) and _holds_rows(value) for value in document.values())


def _rows_part(
    rows: list[tuple[int, dict[str, Any]]], bad: list[tuple[int, str]], member: Member, wanted: list[str] | None
) -> Part:
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    refuse_large(len(rows), len(names), member)
    columns = {name: pa.array([text_of(row.get(name)) for _, row in rows], pa.string()) for name in wanted or names}
    return Part(pa.RecordBatch.from_pydict(columns), 1, np.array([line for line, _ in rows], dtype=np.int64), tuple(bad))


def tables(member: Member, wanted: list[str] | None, notes: list[str]) -> Iterator[Part]:
    """Yield the rows of Parquet, Arrow or Excel, counted from 1. Raises InputError for what is torn or too large."""
    kind, batches = {"parquet": ("Parquet", _parquet), "arrow": ("Arrow", _arrow), "xlsx": ("Excel", _excel)}[member.kind]
    row = 1
    try:
        for batch in batches(member, wanted, notes):
            batch.validate(full=True)  # as Arrow asks of files of strangers
            decoded = [pc.cast(c, c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in batch.columns]
            yield Part(pa.record_batch(decoded, names=batch.column_names), row + (kind == "Excel"))
            row += batch.num_rows
    except InputError:
        raise
    except Exception:  # what the libraries raise of torn files is of every kind
        raise IncompleteFile(f"{member.shown} is not a complete {kind} file: write it again, or {AS_CSV}") from None


def _parquet(member: Member, wanted: list[str] | None, notes: list[str]) -> Iterator[Any]:
    from pyarrow import parquet

    data = member.read()
    file = parquet.ParquetFile(pa.BufferReader(data))
    schema = file.schema_arrow
    if len(set(schema.names)) < len(schema.names):
        raise InputError(f"{member.shown} has two columns of one name: give each its own")
    refuse_large(file.metadata.num_rows, len(schema), member)
    member.check(sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)), len(data))
    yield from file.iter_batches(BATCH, columns=wanted)


def _arrow(member: Member, wanted: list[str] | None, notes: list[str]) -> Iterator[Any]:
    data = member.read()
    if data.startswith(b"FEA1"):
        raise InputError(f"{member.shown} is a Feather file of version 1: save it as Feather 2, Parquet or CSV")
    table = (pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream)(pa.BufferReader(data)).read_all()
    refuse_large(table.num_rows, table.num_columns, member)
    yield from (table.select(wanted) if wanted else table).to_batches(BATCH)


def _excel(member: Member, wanted: list[str] | None, notes: list[str]) -> Iterator[Any]:
    """All sheets with the names of the one that holds most."""
    import openpyxl

    data = member.read()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        member.check(sum(info.file_size for info in archive.infolist()), len(data))
    book, tables = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True), list[Any]()
    for sheet in book.worksheets:
        most = min(sheet.max_column or 200, member.limits.columns + 1)
        cells = islice(sheet.iter_rows(values_only=True, max_col=most), member.limits.rows + 2)
        rows = [[text_of(cell) for cell in row] for row in cells if any(cell is not None for cell in row)]
        filled = [sum(cell is not None for cell in row) for row in rows]
        usual = float(np.median(filled)) if filled else 0.0
        above = next((at for at, count in enumerate(filled) if count >= max(2, 0.6 * usual)), 0)
        if above:
            notes.append(f"{above} rows above the names of the columns were left out ({str(rows[0][0])[:40]!r} …)")
        rows = rows[above:]
        columns = list(zip_longest(*rows))
        while columns and not any(cell is not None for cell in columns[-1]):
            columns.pop()
        if len(rows) > 1:
            refuse_large(len(rows) - 1, len(columns), member)
            names = [column[0] or f"column {i}" for i, column in enumerate(columns, 1)]
            tables.append(pa.record_batch([pa.array(column[1:], pa.string()) for column in columns], names=names))
    if not tables:
        raise InputError(f"{member.shown} holds no sheet with rows")
    names = max(tables, key=lambda table: table.num_rows * table.num_columns).column_names
    yield from (table.select(wanted or names) for table in tables if table.column_names == names)


def exploded(table: Any, roles: Mapping[str, str], shown: str) -> Any:
    """Return a row for every item of the lists in cells (`[1, 2]`, `1 2`, `1,2`, a list), with its person and time."""
    item, user = split(table[roles["item"]]), table[roles["user"]]
    if len(pc.unique(user)) < len(user):
        raise InputError(f"{shown} holds lists of items, and several rows of one person: keep each person's longest list alone")
    parents = pc.list_parent_indices(item)
    out = {roles["user"]: user.take(parents), roles["item"]: pc.list_flatten(item)}
    when = roles.get("time")
    if when:
        times = table[when]
        times = split(times) if hold_lists(times) else times
        several = pa.types.is_list(times.type) and pc.list_value_length(times).equals(pc.list_value_length(item))
        out[when] = pc.list_flatten(times) if several else times.take(parents)
    return pa.RecordBatch.from_pydict(out)
