"""A source that is looked at but not read: which of its files hold events, how they lie, some rows, all rows a part at a time."""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from elastic_core.data.reading import delimited_text, structured_files
from elastic_core.data.reading.archives import (
    NO_LIMITS,
    IncompleteFile,
    IncompletePart,
    Limits,
    Member,
    Source,
    list_members,
    list_neighbours,
)
from elastic_core.data.reading.column_roles import Choice, choose_columns, find_time_kind
from elastic_core.data.reading.delimited_text import Part
from elastic_core.data.reading.titles import BESIDE
from elastic_core.errors import InputError

SAMPLE, WINDOW = 5_000, 2**16  # rows that are looked at; bytes of each place in a long text
FIRST = ("ratings.dat", "ratings.csv", "u.data")


@dataclass(eq=False)
class RawTable:
    """One or more files of the same columns, looked at but not read."""

    files: list[Member]
    mapping: Mapping[str, str]  # the columns that were said
    notes: list[str] = field(default_factory=list)
    layout_notes: list[str] = field(default_factory=list)
    near: list[Member] = field(default_factory=list)  # among which may be titles
    names: tuple[str, ...] = ()  # of files that give none, as the first file has them
    headed: bool = False
    blob: str = ""

    @property
    def label(self) -> str:
        return self.files[0].label if len(self.files) == 1 else f"{self.files[0].label} and {len(self.files) - 1} more"

    @property
    def unit(self) -> str:
        return "line" if self.files[0].kind == "text" else "row"

    @property
    def limits(self) -> Limits:
        return self.files[0].limits

    @cached_property
    def sample(self) -> Any:
        """Rows of the beginning and of three other places, all columns. Raises InputError for what cannot be understood."""
        typed = self.files[0].kind in ("parquet", "arrow")
        parts = list(islice(self.read_parts(first=True), 1 if typed else None))
        if not parts or not parts[0].table.num_columns:
            raise InputError(f"{self.label} {'has no rows below its header' if not parts and self.headed else 'is empty'}")
        rows = pa.Table.from_batches([part.table for part in parts])
        if len(rows) > SAMPLE:
            rest = SAMPLE // 5
            starts = [len(rows) * place // 4 for place in (1, 2, 3)]
            rows = pa.concat_tables([rows.slice(0, SAMPLE - 3 * rest), *(rows.slice(start, rest) for start in starts)])
        return delimited_text.to_batch(rows)

    @cached_property
    def proposal(self) -> Choice:
        """The columns that are chosen where nothing is said."""
        return self.choose({})

    def choose(self, mapping: Mapping[str, str] | None = None) -> Choice:
        return choose_columns(self.sample, self.mapping if mapping is None else mapping, self.label, self.headed)

    def read_parts(self, wanted: list[str] | None = None, first: bool = False) -> Iterator[Part]:
        """Yield the rows, or some of the first file's, with the columns that are wanted (all)."""
        for member in self.files[: 1 if first else None]:
            try:
                if member.kind in ("parquet", "arrow"):
                    self.headed = True
                    self.layout_notes.append(member.kind)
                    yield from structured_files.read_tables(member, wanted)
                else:
                    with member.open() as file:
                        yield from self._read_text(delimited_text.read_pieces(file, self.notes), member, wanted, first)
            except IncompleteFile as fault:
                raise IncompletePart(fault) if len(self.files) > 1 else fault from None

    def _read_text(self, pieces: Iterator[bytes], member: Member, wanted: list[str] | None, first: bool) -> Iterator[Part]:
        start = next(pieces, b"")
        if not start or start.isspace():
            raise InputError(f"{member.label} is empty")
        if len(self.files) == 1 and len(start) < delimited_text.STRETCH and not first:
            self.blob = hashlib.sha1(b"blob %d\0" % len(start) + start, usedforsecurity=False).hexdigest()  # `git hash-object`
        head, pieces = start[: delimited_text.HEAD], chain([start], pieces)
        if structured_files.RECORDS.match(head):
            self.headed = True
            self.layout_notes.append("JSON")
            if first and structured_files.RECORD_LINES.match(head):
                pieces = iter([b"".join(_cut_windows(start))])
            yield from structured_files.read_records(pieces, member, wanted)
            return
        layout = delimited_text.detect_layout(head, member, self.mapping, self.layout_notes)
        if self.names and not layout.headed:
            layout = layout._replace(names=self.names)
        self.headed = self.headed or layout.headed
        line, above = 1, layout.above
        for piece in pieces:
            body = b"".join(piece.split(b"\n", above)[above:])
            for at, rows in enumerate(_cut_windows(body) if first else [body]):
                if rows and not rows.isspace():
                    with contextlib.suppress(InputError) if at else contextlib.nullcontext():  # a quotation may begin before
                        yield delimited_text.parse_lines(rows, layout, wanted or list(layout.names), line + above)
            if first:
                return
            line, above = line + piece.count(b"\n"), 0


def _cut_windows(text: bytes) -> Iterator[bytes]:
    """Yield lines of the beginning and, where it is long, of three other places: many files are sorted by person."""
    yield text[: text.rfind(b"\n", 0, delimited_text.HEAD) + 1 or None]
    for place in (1, 2, 3) if len(text) > 4 * delimited_text.HEAD else ():
        start = text.find(b"\n", len(text) * place // 4) + 1
        yield text[start : text.rfind(b"\n", start, start + WINDOW) + 1]


# --- which files -------------------------------------------------------------------------------------------------------


def open_table(
    source: Source, mapping: Mapping[str, str] | None = None, limits: Limits = NO_LIMITS, skip_torn: bool = False
) -> RawTable:
    """Look at a file, an upload, an archive or a folder; without the files in it that are torn, if these are to be skipped.
    Raises InputError when it holds no table of interactions."""
    columns, notes = dict(mapping or {}), list[str]()
    all_members = list_members(source, limits)
    torn = [member for member in all_members if member.kind == "torn" or (skip_torn and _is_torn(member))]
    if torn and not skip_torn:
        raise IncompletePart(f"{torn[0].label} is not a complete archive: download or pack it again")
    if torn:
        notes.append(f"{', '.join(member.label for member in torn)} is torn and was left out, as you said")
    tables = [member for member in all_members if member.kind != "other" and member not in torn]
    if not tables:
        raise InputError(f"{source.name} holds no table that can be read")
    near = [*tables, *(list_neighbours(source) if isinstance(source, Path) and source.is_file() else [])]
    if any(BESIDE.fullmatch(member.base) for member in near):  # as MovieLens comes
        tables = [member for name in FIRST for member in tables if member.base.lower() == name] or tables
    tables = [member for member in tables if member.base.endswith(".inter")] or tables
    if len(tables) == 1:
        how = [tables[0].name] if len(all_members) > 1 else []
        return RawTable(tables, columns, notes, how, near)
    table = _join_parts(tables, columns, source)
    rest = [one.name for one in all_members if one not in (*table.files, *torn) and not BESIDE.fullmatch(one.base)]
    if rest:
        more = f" and {len(rest) - 4} more" if len(rest) > 4 else ""
        notes.append(f"left out, without such rows: {', '.join(rest[:4])}{more}")
    table.notes += notes
    table.near = near
    return table


def _is_torn(member: Member) -> bool:
    """Whether a file breaks off somewhere: it is read from beginning to end."""
    with contextlib.suppress(InputError):
        try:
            for _ in RawTable([member], {}).read_parts() if member.kind != "other" else ():
                pass
        except IncompleteFile:
            return True
    return False


def _join_parts(tables: list[Member], columns: dict[str, str], source: Source) -> RawTable:
    """Return the one table of which several files are parts: of the same names in any order, or without names after the first."""
    groups = dict[frozenset[str], list[RawTable]]()
    for member in tables:
        table = RawTable([member], columns)
        try:
            groups.setdefault(frozenset(table.sample.column_names), []).append(table)
        except IncompleteFile as fault:
            raise IncompletePart(fault) from None
        except InputError:
            continue
    headed = [parts for parts in groups.values() if parts[0].headed] or list(groups.values())
    complete = [parts for parts in headed if not parts[0].choose().missing] or headed
    if len(complete) != 1:
        names = ", ".join(member.name for member in tables[:8])
        raise InputError(f"{source.name} holds no single table of interactions (found: {names}): give one alone, or join them")
    parts, others = complete[0], [table for parts in groups.values() for table in parts if parts is not complete[0]]
    more = [table for table in others if not table.headed and _continues_table(parts[0], table)]
    first, files = parts[0].files, [table.files[0] for table in (*parts, *more)]
    result = RawTable(first + [member for member in tables if member in files and member not in first], columns)
    if len(files) > 1:
        result.notes.append(f"{len(files)} files of the same columns were read as one, in the order of their names")
    if more:
        result.names = tuple(parts[0].sample.column_names)
        result.notes.append(f"{len(more)} of them have no line of names and were read with those of {parts[0].label}")
    return result


def _continues_table(first: RawTable, other: RawTable) -> bool:
    """Whether a file without names has the columns of the first: as many, whose values are of the same kinds."""
    kinds, others = ([find_time_kind(column) for column in table.sample] for table in (first, other))
    return kinds == others
