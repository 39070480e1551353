"""One reader of interactions, for files named on the command line, for uploads and for what is longer than memory.

A source becomes a `RawTable` (what it is, its columns, a sample), columns are chosen, and its rows are taken a part at a time:
ids become numbers at once, so that a row costs 16 bytes and not its text. What was understood is always said.
"""

import contextlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from pandas import DataFrame

from elastic_core.data.reading.archives import NO_LIMITS, Limits, Source, list_members, refuse_large
from elastic_core.data.reading.bad_rows import Faults, weigh_faults
from elastic_core.data.reading.cell_text import Spellings, hold_lists
from elastic_core.data.reading.column_question import ask_columns
from elastic_core.data.reading.column_roles import Choice
from elastic_core.data.reading.delimited_text import Part, to_batch
from elastic_core.data.reading.ids import Ids
from elastic_core.data.reading.raw_table import RawTable, open_table
from elastic_core.data.reading.structured_files import explode_lists
from elastic_core.data.reading.time_columns import ORDERS, Dates, Times, Undecided, read_clocks
from elastic_core.data.reading.titles import BESIDE, Titles, extract_items
from elastic_core.errors import InputError


@dataclass(frozen=True, eq=False)
class Table:
    """`events` has user, item (categories of text) and time (seconds; absent where the rows are in order), in the source's order.

    `items` has item, title, genres (tuples), one row an item, or is None. `blob` is git's id of the bytes, nothing of several
    files or a long one. `understood` says what was taken for what, `notes` what was odd, `faults` which rows were left out.
    """

    events: DataFrame
    items: DataFrame | None
    blob: str
    faults: Faults = Faults()
    notes: tuple[str, ...] = ()
    understood: tuple[tuple[str, str], ...] = ()

    @property
    def timed(self) -> bool:
        return "time" in self.events


def read_interactions(
    source: Source, columns: Mapping[str, str] | None = None, dates: Dates = "", titles: str = "", limits: Limits = NO_LIMITS,
    skip_torn: bool = False,
) -> Table:  # fmt: skip
    """Read whatever holds interactions. `columns` maps user, item, time, title, genres to the source's own names or places (1 …);
    a time of "" says that the rows are in order. `dates` says what 03/04/2024 means where no row tells, `titles` is a file of
    titles; `skip_torn` reads a folder or an archive without the files in it that are torn.

    Raises InputError with one sentence: what it is, where it fails, what to do next."""
    table = open_table(source, columns, limits, skip_torn)
    choice = table.choose()
    try:
        if choice.missing:
            raise InputError(ask_columns(table, choice, lambda again, likely: read_rows(again, likely, dates)))
        return read_rows(table, choice, dates, titles)
    except Undecided as error:
        raise InputError(f"{table.label}: {error}: say it with data.dates={' or '.join(ORDERS)} (--dates)") from None


def read_rows(table: RawTable, choice: Choice, dates: Dates = "", titles: str = "") -> Table:
    """Return the events under a choice of columns. Raises InputError for too many bad rows, Undecided as times do."""
    holds_lists = hold_lists(table.sample[choice.roles["item"]])
    roles = {ours: name for ours, name in choice.roles.items() if name and not (holds_lists and ours in ("title", "genres"))}
    item_texts = Titles([ours for ours in ("title", "genres") if ours in roles])
    ids = {name: Ids(name, as_text=bool(item_texts.names)) for name in ("user", "item")}
    times, clocks, hours = Times(), Spellings(), list[np.ndarray]()
    parts, starts = list[Part](), [0]
    for part in _explode_parts(table, roles) if holds_lists else table.read_parts(list(dict.fromkeys(roles.values()))):
        column = {ours: part.table[name] for ours, name in roles.items()}
        ids["user"].add(column["user"])
        item_texts.add(ids["item"].add(column["item"]), column)
        if "time" in column:
            times.add(column["time"])
        if "clock" in column:
            hours.append(clocks.add(column["clock"]))
        parts.append(part._replace(table=None))
        starts.append(starts[-1] + len(part.table))
        refuse_large(starts[-1], 0, table)
    bad = [one for part in parts for one in part.bad]
    rows = starts[-1] + len(bad)
    if not rows:
        raise InputError(f"{table.label} has no rows below its header")

    notes, wrong = list[str](), dict[int, str]()
    columns: dict[str, Any] = {name: ids[name].finish(notes, wrong) for name in ids}
    if table.headed:  # two files put together
        again = (columns["user"] == roles["user"]) & (columns["item"] == roles["item"])
        wrong |= dict.fromkeys(np.flatnonzero(again).tolist(), "the names of the columns stand here once more")
    if "time" in roles:
        columns["time"] = times.finish(dates, notes, wrong)
    if hours:
        after = read_clocks(clocks.texts)[np.concatenate(hours)]
        for row in np.flatnonzero(np.isnan(after)).tolist():
            wrong.setdefault(row, "the clock beside the date is none that is understood")
        columns["time"] = columns["time"] + np.nan_to_num(after)
    for row, what in wrong.items():
        at = bisect_right(starts, row) - 1
        bad.append((parts[at].line(row - starts[at]), what))
    faults = weigh_faults(bad, rows, table.label, table.unit)
    events = DataFrame(columns, copy=False)
    if wrong:
        events = events.drop(index=list(wrong)).reset_index(drop=True)
    items = item_texts.build_table(ids["item"].texts, notes)
    if items is None or titles:
        items = read_titles(Path(titles), "", notes) if titles else _read_titles_beside(table, notes)
    notes = [*table.notes, *notes, *_note_heavy_user(events)]

    understood = {ours: f"{name} ({choice.why.get(ours, 'by its name')})" for ours, name in roles.items() if ours != "clock"}
    if table.layout_notes:
        understood["layout"] = "; ".join(dict.fromkeys(table.layout_notes))
    understood["rows"] = f"{len(events):,} of {rows:,}" + (f"; {faults.sentence()}" if faults.count else "")
    if "time" in events and len(events):
        first, last = (np.datetime64(int(edge), "s") for edge in (events["time"].min(), events["time"].max()))
        understood["from, to"] = f"{first} to {last}".replace("T", " ")
    return Table(events, items, table.blob, faults, tuple(dict.fromkeys(notes)), tuple(understood.items()))


def _explode_parts(table: RawTable, roles: Mapping[str, str]) -> Iterator[Part]:
    parts = list(table.read_parts(list(dict.fromkeys(roles.values()))))
    table.notes.append("the cells for the item hold lists, in order: an event for every item of them")
    rows = explode_lists(to_batch(pa.Table.from_batches([part.table for part in parts])), roles, table.label)
    yield Part(rows, 1, bad=tuple(chain.from_iterable(part.bad for part in parts)))


def _note_heavy_user(events: DataFrame) -> list[str]:
    """Say who has so many rows that it may be a word for nobody."""
    counts = events["user"].value_counts()
    counts = counts[counts > 0]
    if len(events) < 100 or counts.iloc[0] < max(0.04 * len(events), 3 * counts.median()):
        return []
    name, share = counts.index[0], counts.iloc[0] / len(events)
    return [f"the person {name!r} has {share:.0%} of all rows: if that is nobody, leave these cells empty"]


def read_titles(source: Source, inside: str, notes: list[str], limits: Limits = NO_LIMITS) -> DataFrame:
    """Return item, title, genres of a file of items, or of the one of this name inside. Raises InputError where it is none."""
    members = [member for member in list_members(source, limits) if inside in ("", member.base)]
    items = _extract_titles(RawTable(members[:1], {}), notes) if members else None
    if items is None:
        raise InputError(f"{source.name} needs a column for the item and one for its title (or genres), named so")
    return items


def _extract_titles(table: RawTable, notes: list[str]) -> DataFrame | None:
    batches = [part.table for part in table.read_parts()]
    return extract_items(to_batch(pa.Table.from_batches(batches)), table.headed, notes) if batches else None


def _read_titles_beside(table: RawTable, notes: list[str]) -> DataFrame | None:
    """Return what a file near the events says of their items; one that cannot be understood costs the titles alone."""
    own = PurePosixPath(table.files[0].name)
    for member in table.near:
        likely = BESIDE.fullmatch(member.base) or member.base == own.name.removesuffix(".inter") + ".item"
        if likely and PurePosixPath(member.name).parent == own.parent:
            with contextlib.suppress(InputError):
                if (items := _extract_titles(RawTable([member], {}), [])) is not None:
                    return items
            notes.append(f"{member.base} beside it is no table of item and title that is understood, so items have no titles")
    return None
