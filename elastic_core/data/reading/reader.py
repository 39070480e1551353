"""One reader of interactions, for files named on the command line, for uploads and for what is longer than memory.

A source becomes a `Sheet` (what it is, its columns, a sample), columns are chosen, and its rows are taken a part at a time: ids
become numbers at once, so that a row costs 16 bytes and not its text. What was understood is always said.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from elastic_core.data.reading import records, text
from elastic_core.data.reading.columns import IN_ORDER, Choice, choose, is_usual
from elastic_core.data.reading.faults import Faults, weigh
from elastic_core.data.reading.packing import NO_LIMITS, Limits, Member, Source, beside, members, refuse_large
from elastic_core.data.reading.text import Part
from elastic_core.data.reading.times import ORDERS, Dates, Times, Undecided, clock, plain
from elastic_core.data.reading.titles import BESIDE, Titles, of_items
from elastic_core.errors import InputError
from elastic_core.text import calm

LONGEST_ID, SAMPLE = 200, 5_000
FIRST = ("ratings.dat", "ratings.csv", "u.data")


@dataclass(frozen=True, eq=False)
class Table:
    """`events` has user, item (categories of text) and time (seconds; absent where the rows are in order), in the source's order.

    `items` has item, title, genres (tuples), one row an item, or is None. `blob` is git's id of the bytes, nothing of several
    files or a long one. `understood` says what was taken for what, `notes` what was odd, `faults` which rows were left out.
    """

    events: pd.DataFrame
    items: pd.DataFrame | None
    blob: str
    faults: Faults = Faults()
    notes: tuple[str, ...] = ()
    understood: tuple[tuple[str, str], ...] = ()

    @property
    def timed(self) -> bool:
        return "time" in self.events


@dataclass(eq=False)
class Sheet:
    """One or more files of the same columns, looked at but not read."""

    files: list[Member]
    limits: Limits
    given: Mapping[str, str]
    notes: list[str] = field(default_factory=list)
    how: list[str] = field(default_factory=list)  # what the layout is
    layouts: list[text.Layout | None] = field(default_factory=list)
    form: str = ""  # records, sequences, netflix, delimited or tables
    blob: str = ""
    near: list[Member] = field(default_factory=list)  # among which may be titles

    @property
    def shown(self) -> str:
        return self.files[0].shown if len(self.files) == 1 else f"{self.files[0].shown} and {len(self.files) - 1} more"

    @property
    def counted(self) -> str:
        return "row" if self.form == "tables" else "line"

    @property
    def headed(self) -> bool:
        return self.form in ("tables", "records") or any(layout is not None and layout.headed for layout in self.layouts)

    @cached_property
    def sample(self) -> Any:
        """The first rows, all columns. Raises InputError for what cannot be understood."""
        found = next(iter(self.parts(first=True)), None)
        if found is None or not found.table.num_columns:
            raise InputError(f"{self.shown} has no rows below its header" if self.layouts else f"{self.shown} is empty")
        return found.table.slice(0, SAMPLE).combine_chunks()

    def parts(self, wanted: list[str] | None = None, first: bool = False) -> Iterator[Part]:
        """Yield the rows, or the first of them, with the columns that are wanted (all)."""
        for at, member in enumerate(self.files):
            if member.kind != "text":
                self.form = "tables"
                self.how.append(member.kind)
                yield from records.tables(member, self.limits, wanted)
            else:
                with member.open(self.limits) as file:
                    yield from self._text(text.pieces(file, self.notes), member, at, wanted, first)

    def _text(self, pieces: Iterator[bytes], member: Member, at: int, wanted: list[str] | None, first: bool) -> Iterator[Part]:
        start = next(pieces, b"")
        if not start[: text.HEAD].strip() and not start.strip():
            raise InputError(f"{member.shown} is empty")
        if len(self.files) == 1 and len(start) < text.STRETCH:
            self.blob = _blob(start)
        head = start[: text.HEAD]
        pieces = chain([start], pieces)
        if records.is_records(head):
            self.form = "records"
            self.how.append("JSON")
            for part in records.records(pieces, member.shown, self.limits):
                rows = part.table
                for name in wanted or ():
                    if name not in rows.column_names:
                        rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.string()))
                yield replace(part, table=rows.select(wanted) if wanted else rows)
            return
        if records.HEADING.match(head):
            self.form, pieces = "netflix", records.netflix(pieces)
            self.how.append("rows below headings such as 12:")
            start = next(pieces)
            pieces, head = chain([start], pieces), start[: text.HEAD]
        layout = text.look(head, member, self.limits, self.given, is_usual, self.how)
        if layout is None:
            lines = records.sequences(b"".join(pieces).decode()) if self.form != "netflix" else None
            if lines is None:
                raise InputError(
                    f"{member.shown} has no columns that a comma, tab, semicolon, bar or space separates: "
                    "write one event a line, as in user,item,time"
                )
            self.form = "sequences"
            self.how.append("lines of a person and their items, in order")
            yield lines
            return
        if self.form == "netflix":
            layout = text.Layout(layout.separator, layout.quote, ("user", "rating", "time", "item"), True, layout.above)
        self.form = self.form or "delimited"
        self.layouts = [*self.layouts[:at], layout]
        line = 1
        for piece in pieces:
            body = piece if line > 1 else piece.split(b"\n", layout.above)[-1] if piece.count(b"\n") >= layout.above else b""
            if first:
                body = body[: body.rfind(b"\n", 0, text.HEAD) + 1] or body
            if body[: text.HEAD].strip() or body.strip():
                yield text.parse(body, layout, wanted or list(layout.names), line + layout.above if line == 1 else line)
            if first:
                return
            line += piece.count(b"\n")


def open_sheet(source: Source, given: Mapping[str, str] | None = None, limits: Limits = NO_LIMITS) -> Sheet:
    """Look at a file, an upload, an archive or a folder. Raises InputError when it holds no table of interactions."""
    columns = dict(given or {})
    found = members(source, limits)
    if not found:
        raise InputError(f"{source.name} holds no table that can be read")
    several = len(found) > 1
    near = [*found, *(beside(source) if isinstance(source, Path) and source.is_file() else [])]
    if any(BESIDE.fullmatch(member.base) for member in near):  # as MovieLens comes
        found = [member for name in FIRST for member in found if member.base.lower() == name] or found
    found = [member for member in found if member.base.endswith(".inter")] or found
    if len(found) == 1:
        return Sheet(found, limits, columns, how=[found[0].name] if several else [], near=near)
    groups: dict[tuple[str, ...], list[Member]] = {}
    for member in found:
        try:
            sheet = Sheet([member], limits, columns)
            names = tuple(sheet.sample.column_names)
            if not choose(sheet.sample, columns, member.shown, sheet.headed).missing:
                groups.setdefault(names, []).append(member)
        except InputError:
            continue
    if len(groups) != 1:
        listed = ", ".join(member.name for member in found[:8])
        raise InputError(f"{source.name} holds no single table of interactions (found: {listed}): name the file itself")
    (files,) = groups.values()
    notes = [f"{len(files)} files of the same columns were read as one, in the order of their names"] if len(files) > 1 else []
    return Sheet(files, limits, columns, notes, near=near)


def read_interactions(
    source: Source, columns: Mapping[str, str] | None = None, dates: Dates = "", titles: str = "", limits: Limits = NO_LIMITS
) -> Table:
    """Read whatever holds interactions. `columns` maps user, item, time, title, genres to the source's own names or places (1 …);
    a time of "" says that the rows are in order. `dates` says what 03/04/2024 means where no row tells, `titles` is a file of
    titles.

    Raises InputError with one sentence: what it is, where it fails, what to do next."""
    sheet = open_sheet(source, columns, limits)
    choice = choose(sheet.sample, sheet.given, sheet.shown, sheet.headed)
    for ours in choice.missing:
        raise InputError(_asks(sheet, choice, ours))
    try:
        return read_rows(sheet, choice, dates, titles)
    except Undecided as error:
        raise InputError(f"{sheet.shown}: {error}: say it with data.dates={' or '.join(ORDERS)} (--dates)") from None


def _asks(sheet: Sheet, choice: Choice, ours: str) -> str:
    names = list(sheet.sample.column_names)
    if sheet.headed:
        hint = "; --columns time= says that the rows are in order" if ours == "time" else ""
        return (
            f"{sheet.shown} has no column that is known for the {ours}; it has: {', '.join(names[:30])}: say which it is, as in "
            f"--columns {ours}={next((name for name in names if name not in choice.roles.values()), '…')}{hint}"
        )
    cells = ", ".join(f"{at} = {str(sheet.sample[name][0].as_py())[:24]!r}" for at, name in enumerate(names[:12], 1))
    return f"{sheet.shown} does not name its columns ({cells}): say which is which, as in --columns user=1,item=2,time=3"


def read_rows(sheet: Sheet, choice: Choice, dates: Dates = "", titles: str = "") -> Table:
    """Return the events under a choice of columns. Raises InputError for too many bad rows, Undecided as times do."""
    roles = {
        ours: name for ours, name in choice.roles.items() if not (ours in ("time", "clock") and IN_ORDER in sheet.given.items())
    }
    sheet.blob = ""
    rows = _Rows(sheet, roles)
    for part in _exploded(sheet, roles):
        rows.add(part)
    return rows.done(choice, dates, titles)


def titles_of(source: Source, inside: str = "", notes: list[str] | None = None, limits: Limits = NO_LIMITS) -> pd.DataFrame:
    """Return item, title, genres of a file of items, or of the one of this name inside. Raises InputError where it is none."""
    chosen = [member for member in members(source, limits) if inside in ("", member.base)]
    found = _items(Sheet(chosen[:1], limits, {}), notes if notes is not None else []) if chosen else None
    if found is None:
        raise InputError(f"{source.name} needs a column for the item and one for its title (or genres), named so")
    return found


def _items(sheet: Sheet, notes: list[str]) -> pd.DataFrame | None:
    table = pa.concat_tables([part.table for part in sheet.parts()])
    return of_items(table, choose(table.slice(0, SAMPLE), {}, sheet.shown, sheet.headed).roles, sheet.headed, notes)


def _beside(sheet: Sheet, notes: list[str]) -> pd.DataFrame | None:
    """Return what a file near the events says of their items; one that cannot be understood costs the titles alone."""
    own = sheet.files[0]
    for member in sheet.near:
        if member.name.rpartition("/")[0] == own.name.rpartition("/")[0] and (
            BESIDE.fullmatch(member.base) or member.base == own.base.removesuffix(".inter") + ".item"
        ):
            try:
                found = _items(Sheet([member], sheet.limits, {}), [])
            except InputError:
                found = None
            if found is not None:
                return found
            notes.append(f"{member.base} beside it is no table of item and title that is understood, so items have no titles")
    return None


def _exploded(sheet: Sheet, roles: Mapping[str, str]) -> Iterator[Part]:
    wanted = list(dict.fromkeys(roles.values()))
    item = sheet.sample[roles["item"]].combine_chunks()
    if not pa.types.is_nested(item.type) and not records.lists(item):
        yield from sheet.parts(wanted)
        return
    found = list(sheet.parts(wanted))
    whole = pa.concat_tables([part.table for part in found])
    table = records.exploded(whole, roles, sheet.shown)
    if table is not whole:
        sheet.notes.append("the cells for the item hold lists, in order: an event for every item of them")
    yield Part(table, 1, bad=tuple(chain.from_iterable(part.bad for part in found)))


class _Ids:
    """Text → number in the order of first appearance, and the numbers of all rows. What cannot be used has a fault."""

    def __init__(self, name: str) -> None:
        self.name, self.numbers, self.texts, self.faults = name, dict[str, int](), list[str](), dict[int, str]()
        self.rows = list[np.ndarray]()

    def add(self, column: Any) -> np.ndarray:
        """Take the ids of a part; returns their numbers, int32."""
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_nested(column.type):
            raise InputError(f"the column for the {self.name} holds lists or other nested things, not ids")
        numbers = _whole_numbers(column)
        if numbers is not None:
            places, different = pd.factorize(numbers)
            self.rows.append(np.array([self._number(str(number)) for number in different.tolist()], dtype=np.int32)[places])
            return self.rows[-1]
        coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        own = [self._number(_spelled(value)) for value in coded.dictionary.to_pylist()]
        own.append(self._number("") if coded.null_count else 0)
        codes = np.array(own, dtype=np.int32)[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        self.rows.append(codes)
        return codes

    def _number(self, raw: str) -> int:
        digits = raw.isdecimal()
        clean = raw if digits else plain(raw)
        number = self.numbers.get(clean)
        if number is None:
            number = self.numbers[clean] = len(self.texts)
            self.texts.append(clean)
            if digits and len(raw) <= LONGEST_ID:
                return number
            fault = "is missing" if not clean else f"is longer than {LONGEST_ID} characters" if len(clean) > LONGEST_ID else ""
            fault = fault or ("holds a control character" if calm(clean) != clean else "")
            if fault:
                self.faults[number] = f"the {self.name} {fault}"
        return number

    def column(self, good: np.ndarray | None, notes: list[str]) -> pd.Categorical:
        codes = _joined(self.rows)
        self.rows = []
        codes = codes if good is None else codes[good]
        texts = self.texts
        if any(one.endswith(".0") for one in texts) and all(re.fullmatch(r"-?[0-9]+(\.0+)?|", t) for t in texts):
            notes.append(f"ids of the {self.name} such as 12.0 were taken for 12")
            short = pd.Index([re.sub(r"\.0+$", "", one) for one in texts])
            places, known = pd.factorize(short)
            return pd.Categorical.from_codes(places[codes].astype(np.int32), categories=pd.Index(known, dtype=object))
        return pd.Categorical.from_codes(codes, categories=pd.Index(texts, dtype=object))


class _Rows:
    """The rows so far."""

    def __init__(self, sheet: Sheet, roles: Mapping[str, str]) -> None:
        self.sheet, self.roles, self.count = sheet, roles, 0
        self.ids = {name: _Ids(name) for name in ("user", "item")}
        self.times = Times() if "time" in roles else None
        self.clocks = _Ids("clock") if "clock" in roles else None
        self.titles = Titles([ours for ours in ("title", "genres") if ours in roles])
        self.parts, self.bad = list[tuple[int, Part]](), list[tuple[int, str]]()

    def add(self, part: Part) -> None:
        table = part.table
        user, item = (self.ids[name].add(table[self.roles[name]]) for name in ("user", "item"))
        if self.times is not None:
            self.times.add(table[self.roles["time"]])
        if self.clocks is not None:
            self.clocks.add(table[self.roles["clock"]])
        self.titles.add(item, {ours: table[self.roles[ours]] for ours in self.titles.names})
        lines = Part(None, part.start, part.lines)
        self.parts.append((self.count, lines))
        self.bad += part.bad
        self.count += len(user)
        refuse_large(self.count, 0, self.sheet.shown, self.sheet.limits)

    def done(self, choice: Choice, dates: Dates, titles: str) -> Table:
        sheet, notes = self.sheet, list[str]()
        if not self.count and not self.bad:
            raise InputError(f"{sheet.shown} has no rows below its header")
        wrong = dict[int, str]()
        for ids in self.ids.values():
            for row in _where(ids) if ids.faults else ():
                wrong.setdefault(row, ids.faults[int(_at(ids.rows, row))])
        seconds = self._seconds(dates, notes, wrong)
        found = [*self.bad, *((self._line(row), what) for row, what in sorted(wrong.items()))]
        faults = weigh(found, self.count + len(self.bad), sheet.shown, sheet.counted)
        good = None
        if wrong:
            good = np.ones(self.count, dtype=bool)
            good[list(wrong)] = False
        items = self.titles.table(self.ids["item"].texts, notes)
        events = pd.DataFrame({name: self.ids[name].column(good, notes) for name in ("user", "item")})
        if seconds is not None:
            events["time"] = seconds if good is None else seconds[good]
        if items is None or titles:
            items = titles_of(Path(titles), "", notes) if titles else _beside(sheet, notes)
        notes += _heavy(events)
        notes = list(dict.fromkeys([*sheet.notes, *notes]))
        return Table(events, items, sheet.blob, faults, tuple(notes), self._understood(choice, events, faults))

    def _seconds(self, dates: Dates, notes: list[str], wrong: dict[int, str]) -> np.ndarray | None:
        if self.times is None:
            return None
        read = self.times.done(dates, notes)
        for row, what in read.wrong:
            wrong.setdefault(row, what)
        if self.clocks is None:
            return read.values
        after = clock(self.clocks.texts)[_joined(self.clocks.rows)]
        for row in np.flatnonzero(np.isnan(after)).tolist():
            wrong.setdefault(row, "the clock beside the date is none that is understood")
        return read.values + np.nan_to_num(after)

    def _line(self, row: int) -> int:
        at = max(i for i, (start, _) in enumerate(self.parts) if start <= row)
        start, part = self.parts[at]
        return part.line(row - start)

    def _understood(self, choice: Choice, events: pd.DataFrame, faults: Faults) -> tuple[tuple[str, str], ...]:
        said = [(ours, f"{name} ({choice.why.get(ours, 'by its name')})") for ours, name in self.roles.items() if ours != "clock"]
        said += [("layout", "; ".join(dict.fromkeys(self.sheet.how)))] if self.sheet.how else []
        rows = f"{len(events):,} of {self.count + len(self.bad):,}"
        said.append(("rows", rows + (f"; {faults.sentence()}" if faults.count else "")))
        if "time" in events and len(events):
            first, last = (np.datetime64(int(edge), "s") for edge in (events["time"].min(), events["time"].max()))
            said.append(("from, to", f"{first} to {last}".replace("T", " ")))
        return tuple(said)


def _whole_numbers(column: Any) -> np.ndarray | None:
    """Return int64 where all cells are spelt as numbers are (not 007), which is the usual case and several times faster."""
    if not pa.types.is_string(column.type) or column.null_count:
        return None
    try:
        numbers = pc.cast(column, pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    most = int(np.abs(numbers).max(initial=0))
    digits = (
        len(numbers) + sum(int((np.abs(numbers) >= 10**at).sum()) for at in range(1, len(str(most)))) + int((numbers < 0).sum())
    )
    return numbers if digits == pc.sum(pc.binary_length(column)).as_py() else None


def _spelled(value: Any) -> str:
    """Return an id as text: whole floats without a point, bytes as the text they are or in hex."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            found = value.decode()
            return found if found.isprintable() else value.hex()
        except UnicodeDecodeError:
            return value.hex()
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return ""
    return str(int(value)) if isinstance(value, float | Decimal) and value == int(value) else str(value)


def _where(ids: _Ids) -> Iterator[int]:
    """Yield the rows whose id has a fault."""
    bad, start = np.array(sorted(ids.faults), dtype=np.int32), 0
    for rows in ids.rows:
        yield from (start + np.flatnonzero(np.isin(rows, bad))).tolist()
        start += len(rows)


def _at(parts: Sequence[np.ndarray], row: int) -> int:
    for part in parts:
        if row < len(part):
            return int(part[row])
        row -= len(part)
    raise IndexError(row)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Join arrays, letting each go as it is taken."""
    out = np.empty(sum(map(len, parts)), dtype=parts[0].dtype if parts else np.int32)
    at = 0
    while parts:
        part = parts.pop(0)
        out[at : at + len(part)] = part
        at += len(part)
    return out


def _heavy(events: pd.DataFrame) -> list[str]:
    """Say who has so many rows that it may be a word for nobody."""
    counts = np.bincount(events["user"].cat.codes, minlength=1)
    top, middle = int(counts.argmax()), float(np.median(counts[counts > 0])) if counts.any() else 0.0
    if len(events) < 100 or counts[top] < max(0.04 * len(events), 3 * middle):
        return []
    return [f"the person {events['user'].cat.categories[top]!r} has {counts[top] / len(events):.0%} of all rows: is it nobody?"]


def _blob(data: bytes) -> str:
    """Return git's id of these bytes, by which published files are recognised (`git hash-object`)."""
    digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()
