"""A source looked at but not read: which of its files hold events, how they lie, the first rows, all rows a part at a time."""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from elastic_core.data.reading import records, text
from elastic_core.data.reading.columns import choose
from elastic_core.data.reading.packing import NO_LIMITS, Limits, Member, Source, files_beside, members
from elastic_core.data.reading.text import Part
from elastic_core.data.reading.titles import BESIDE
from elastic_core.errors import InputError

SAMPLE = 5_000
FIRST = ("ratings.dat", "ratings.csv", "u.data")


@dataclass(eq=False)
class Sheet:
    """One or more files of the same columns, looked at but not read."""

    files: list[Member]
    given: Mapping[str, str]
    notes: list[str] = field(default_factory=list)
    how: list[str] = field(default_factory=list)  # what the layout is
    near: list[Member] = field(default_factory=list)  # among which may be titles
    headed: bool = False
    blob: str = ""

    @property
    def shown(self) -> str:
        return self.files[0].shown if len(self.files) == 1 else f"{self.files[0].shown} and {len(self.files) - 1} more"

    @property
    def counted(self) -> str:
        return "line" if self.files[0].kind == "text" else "row"

    @property
    def limits(self) -> Limits:
        return self.files[0].limits

    @cached_property
    def sample(self) -> Any:
        """The first rows, all columns. Raises InputError for what cannot be understood."""
        found = next(iter(self.parts(first=True)), None)
        if found is None or not found.table.num_columns:
            raise InputError(f"{self.shown} {'has no rows below its header' if found is None and self.headed else 'is empty'}")
        return found.table.slice(0, SAMPLE)

    def parts(self, wanted: list[str] | None = None, first: bool = False) -> Iterator[Part]:
        """Yield the rows, or the first of them, with the columns that are wanted (all)."""
        for member in self.files:
            if member.kind != "text":
                self.headed = True
                self.how.append(member.kind)
                yield from records.tables(member, wanted)
            else:
                with member.open() as file:
                    yield from self._text(text.pieces(file, self.notes), member, wanted, first)

    def _text(self, pieces: Iterator[bytes], member: Member, wanted: list[str] | None, first: bool) -> Iterator[Part]:
        start = next(pieces, b"")
        if not start or start.isspace():
            raise InputError(f"{member.shown} is empty")
        if len(self.files) == 1 and len(start) < text.STRETCH and not first:
            self.blob = hashlib.sha1(b"blob %d\0" % len(start) + start, usedforsecurity=False).hexdigest()  # `git hash-object`
        head = start[: text.HEAD]
        pieces = chain([start], pieces)
        if records.RECORDS.match(head):
            self.headed = True
            self.how.append("JSON")
            yield from records.records(pieces, member, wanted)
            return
        blocks = bool(records.HEADING.match(head))
        if blocks:
            pieces = records.netflix(pieces)
            self.how.append("rows below headings such as 12:")
            start = next(pieces)
            pieces, head = chain([start], pieces), start[: text.HEAD]
        layout = text.look(head, member, self.given, self.how)
        if layout is None:
            lines = None if blocks else records.sequences(b"".join(pieces).decode())
            if lines is None:
                raise InputError(
                    f"{member.shown} has no columns that a comma, tab, semicolon, bar or space separates: "
                    "write one event a line, as in user,item,time"
                )
            self.how.append("lines of a person and their items, in order")
            yield lines
            return
        if blocks:
            layout = text.Layout(layout.separator, layout.quote, ("user", "rating", "time", "item"), True, layout.above)
        self.headed = self.headed or layout.headed
        line, above = 1, layout.above
        for piece in pieces:
            below = _below(piece, above)
            body = piece[below : piece.rfind(b"\n", below, below + text.HEAD) + 1 or None] if first else piece[below:]
            if body and not body.isspace():
                yield text.parse(body, layout, wanted or list(layout.names), line + above)
            if first:
                return
            line, above = line + piece.count(b"\n"), 0


def _below(piece: bytes, lines: int) -> int:
    """Return where so many lines end."""
    at = 0
    for _ in range(lines):
        at = piece.find(b"\n", at) + 1 or len(piece)
    return at


def open_sheet(source: Source, given: Mapping[str, str] | None = None, limits: Limits = NO_LIMITS) -> Sheet:
    """Look at a file, an upload, an archive or a folder. Raises InputError when it holds no table of interactions."""
    columns = dict(given or {})
    found = members(source, limits)
    if not found:
        raise InputError(f"{source.name} holds no table that can be read")
    near = [*found, *(files_beside(source) if isinstance(source, Path) and source.is_file() else [])]
    several = len(found) > 1
    if any(BESIDE.fullmatch(member.base) for member in near):  # as MovieLens comes
        found = [member for name in FIRST for member in found if member.base.lower() == name] or found
    found = [member for member in found if member.base.endswith(".inter")] or found
    if len(found) == 1:
        return Sheet(found, columns, how=[found[0].name] if several else [], near=near)
    groups = dict[tuple[str, ...], list[Member]]()
    for member in found:
        with contextlib.suppress(InputError):
            sheet = Sheet([member], columns)
            if not choose(sheet.sample, columns, member.shown, sheet.headed).missing:
                groups.setdefault(tuple(sheet.sample.column_names), []).append(member)
    if len(groups) != 1:
        listed = ", ".join(member.name for member in found[:8])
        raise InputError(f"{source.name} holds no single table of interactions (found: {listed}): name the file itself")
    (files,) = groups.values()
    notes = [f"{len(files)} files of the same columns were read as one, in the order of their names"] if len(files) > 1 else []
    return Sheet(files, columns, notes, near=near)
