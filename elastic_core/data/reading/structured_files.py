"""What is no delimited text: JSON, lines of Python literals, Parquet and Arrow."""

import ast
import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pandas import DataFrame

from elastic_core.data.reading.archives import AS_CSV, IncompleteFile, Member, refuse_large
from elastic_core.data.reading.cell_text import format_cell, hold_lists, split_lists
from elastic_core.data.reading.column_roles import NAMES, usual_key
from elastic_core.data.reading.delimited_text import Part
from elastic_core.errors import InputError

BATCH = 2**18
RECORDS = re.compile(rb"\s*(\[\s*[\[{]|\{\s*(u?[\"']|\}))")
RECORD_LINES = re.compile(rb"\s*\{.*\}\s*\n\s*[\{u]")
TIMELY = re.compile(r"(?i)time|date|stamp|^ts$")


def read_records(pieces: Iterator[bytes], member: Member, wanted: list[str] | None) -> Iterator[Part]:
    """Yield the rows of JSON (a list, lists, or an object a line) or of Python literals. Raises InputError."""
    first, line, begun = next(pieces), 1, False
    if not RECORD_LINES.match(first[:BATCH]):
        document = b"".join([first, *pieces])
        with contextlib.suppress(ValueError, RecursionError):
            yield _build_part(list(enumerate(flatten_rows(json.loads(document)), 1)), [], member, wanted)
            return
        first, pieces = document, iter(())
    for piece in chain([first], pieces):
        rows, bad = list[tuple[int, dict[str, Any]]](), list[tuple[int, str]]()
        for line, text in enumerate(piece.decode("utf-8", "replace").removesuffix("\n").split("\n"), line):  # noqa: B020
            text = text.strip().rstrip(",")
            try:
                rows += [(line, row) for row in flatten_rows(_parse_line(text))] if text not in ("", "[", "]") else []
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                bad.append((line, "no whole JSON object"))
        line += 1
        begun = begun or bool(rows)
        if not begun:
            line = bad[0][0] if bad else 1
            raise InputError(f"{member.label} is not complete JSON (line {line}): write it again, an object a line")
        yield _build_part(rows, bad, member, wanted)


def _parse_line(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)


def flatten_rows(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the flat rows inside: of lists of objects or of cells, of an object of columns, of rows, or of people."""
    if isinstance(document, list) and document:
        for at, one in enumerate(document):
            if isinstance(one, dict):
                yield from flatten_rows(one)
            elif isinstance(one, list) and isinstance(document[0], list):
                yield {f"column {place}": cell for place, cell in enumerate(one, 1)}
            elif not at:
                raise ValueError
        return
    if not isinstance(document, dict):
        raise ValueError
    columns = [value for value in document.values() if isinstance(value, dict | list)]
    if not columns:
        yield document
        return
    events = [name for name, value in document.items() if _is_rows(value)]
    alike = len(columns) == len(document) > 1 and len({(type(one), len(one)) for one in columns}) == 1
    if {"columns", "data"} <= document.keys():  # pandas' orient="split"
        yield from DataFrame(document["data"], columns=document["columns"], dtype=object).to_dict("records")
    elif len(events) > 1 and len(events) == len(document):  # person → events
        yield from ({"key": key, **row} for key, rows in document.items() for row in flatten_rows(rows))
    elif events or any(map(_holds_rows, columns)):
        events = events or [name for name, value in document.items() if _holds_rows(value)]
        inside = max(events, key=lambda name: _rate_names(document[name]))
        around = _flatten_row({name: value for name, value in document.items() if name not in (*events, inside)})
        yield from (around | row for row in flatten_rows(document[inside]))
    elif alike and (isinstance(columns[0], list) or "0" in columns[0]):  # column → row → cell
        yield from DataFrame(document, dtype=object).to_dict("records")
    elif alike and len(columns) > 20:  # pandas' orient="index"
        yield from ({"key": key, **row} for key, row in document.items())
    else:
        yield _flatten_row(document)


def _flatten_row(row: dict[str, Any]) -> dict[str, Any]:
    flat = dict[str, Any]()
    for name, value in row.items():
        nested = value if isinstance(value, dict) else {"": value}
        if len(nested) == 1 and re.fullmatch(r"\$(oid|date|number.+)", next(iter(nested))):  # of MongoDB
            nested = {"": next(iter(nested.values()))}
        flat |= {f"{name}.{key}" if key else name: cell for key, cell in nested.items()}
    return flat


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _rate_names(rows: Any) -> tuple[bool, bool]:
    """Return how likely rows are events: by certain names of an item in them, and by names of a time."""
    names = rows[0] if _is_rows(rows) else ()
    return any(usual_key(name) in NAMES["item"] for name in names), any(map(TIMELY.search, names))


def _holds_rows(value: Any) -> bool:
    """Whether a list of objects lies somewhere inside."""
    return isinstance(value, dict) and any(_is_rows(one) or _holds_rows(one) for one in value.values())


def _build_part(
    rows: list[tuple[int, dict[str, Any]]], bad: list[tuple[int, str]], member: Member, wanted: list[str] | None
) -> Part:
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    refuse_large(len(rows), len(names), member)
    columns = {name: pa.array([format_cell(row.get(name)) for _, row in rows], pa.string()) for name in wanted or names}
    return Part(pa.RecordBatch.from_pydict(columns), 1, np.array([line for line, _ in rows], dtype=np.int64), tuple(bad))


def read_tables(member: Member, wanted: list[str] | None) -> Iterator[Part]:
    """Yield the rows of Parquet or Arrow, counted from 1. Raises InputError for what is torn or too large."""
    kind, batches = ("Parquet", _read_parquet) if member.kind == "parquet" else ("Arrow", _read_arrow)
    row, data = 1, member.read()
    try:
        for batch in batches(member, data, wanted):
            batch.validate(full=True)  # as Arrow asks of files of strangers
            decoded = [pc.cast(c, c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in batch.columns]
            yield Part(pa.record_batch(decoded, names=batch.column_names), row)
            row += batch.num_rows
    except InputError:
        raise
    except Exception:  # what the libraries raise of torn files is of every kind
        raise IncompleteFile(f"{member.label} is not a complete {kind} file: write it again, or {AS_CSV}") from None


def _read_parquet(member: Member, data: bytes, wanted: list[str] | None) -> Iterator[Any]:
    from pyarrow import parquet

    file = parquet.ParquetFile(pa.BufferReader(data))
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        raise InputError(f"{member.label} has two columns of one name: give each its own")
    refuse_large(file.metadata.num_rows, len(names), member)
    member.check(sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)), len(data))
    yield from file.iter_batches(BATCH, columns=wanted)


def _read_arrow(member: Member, data: bytes, wanted: list[str] | None) -> Iterator[Any]:
    if data.startswith(b"FEA1"):
        raise InputError(f"{member.label} is a Feather file of version 1: save it as Feather 2, Parquet or CSV")
    table = (pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream)(pa.BufferReader(data)).read_all()
    refuse_large(table.num_rows, table.num_columns, member)
    yield from (table.select(wanted) if wanted else table).to_batches(BATCH)


def explode_lists(table: Any, roles: Mapping[str, str], label: str) -> Any:
    """Return a row for every item of the lists in cells (`[1, 2]`, `1 2`, `1,2`, a list), with its person and time."""
    item, user = split_lists(table[roles["item"]]), table[roles["user"]]
    if len(pc.unique(user)) < len(user):
        raise InputError(f"{label} holds lists of items, and several rows of one person: keep each person's longest list alone")
    parents = pc.list_parent_indices(item)
    out = {roles["user"]: user.take(parents), roles["item"]: pc.list_flatten(item)}
    when = roles.get("time")
    if when:
        times = table[when]
        times = split_lists(times) if hold_lists(times) else times
        several = pa.types.is_list(times.type) and pc.list_value_length(times).equals(pc.list_value_length(item))
        out[when] = pc.list_flatten(times) if several else times.take(parents)
    return pa.RecordBatch.from_pydict(out)
