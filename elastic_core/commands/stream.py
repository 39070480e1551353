"""Follow people event by event with a trained run: read lines of events in order, say what comes next, keep the states.

  python -m elastic_core stream ml-100k-elastic-slots --events new.csv --state states.safetensors
  tail -f log.csv | python -m elastic_core stream ml-100k-elastic --events - --each --top 3

A line is a person's name, any, and the raw id of an item, oldest first, in the form of the training file: comma, tab, semicolon
or bar between them, and the columns where a first line of names says. A file whose names tell of a time is put in its order; the
standard input is taken as it comes. A line that is no event, or of an item that the run does not know, is left out and counted;
with --strict it ends the command. Printed is CSV: the suggestions for everybody who was met, at the end or with --each after
every event. Nothing is read again but what a model that counts positions from the end has no room for, and what --every asks
for: so a step costs the same after ten events and after ten thousand. --state goes on from a file of states, if it is there, and
writes it every half minute and at every end, by Ctrl-C, SIGTERM or an error too; it holds no titles and no weights.
"""

import codecs
import csv
import io
import itertools
import os
import select
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from elastic_core import disk
from elastic_core.commands.arguments import flag, open_items, option, run_argument, say
from elastic_core.commands.progress import Stopped, stop_on_signals
from elastic_core.data import Catalog
from elastic_core.data.reading.columns import USUAL, usual_key
from elastic_core.data.reading.times import read_times
from elastic_core.errors import InputError
from elastic_core.following.people import Followed, Refresh
from elastic_core.run_config import DataConfig

COLUMNS = "event user rank item title score".split()
MARKS = ",\t;|"  # between the cells of a line
MOST_BYTES, TOGETHER = 2**30, 256  # of a file of events; people in one step
EVERY, SHARE = 30.0, 20  # seconds between two savings, or so many times what one took
Event = tuple[str, int]  # person and dense item


def configure(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument("--events", metavar="FILE", required=True, help="lines of user and item in order; - reads standard input")
    parser.add_argument("--state", metavar="FILE", help="states to go on from, and to write")
    flag(parser, "--strict", "end at the first line that would be left out")
    option(parser, "--top", 10, "how many suggestions")
    flag(parser, "--each", "suggest after every event, not at the end")
    flag(parser, "--seen", "also suggest what a person met lately")
    parser.add_argument("--every", type=int, default=0, metavar="R", help="ask the memory anew every R events of a person")
    parser.add_argument(
        "--moved", type=float, default=0.0, metavar="S", help="of these, read again if over S of the experts moved"
    )


def run(arguments: Namespace) -> int:
    if arguments.top < 1:
        raise InputError(f"--top must be at least 1, not {arguments.top}")
    policy = Refresh(arguments.every, arguments.moved)
    found, catalog, model = open_items(arguments.run_name)
    state = None if arguments.state is None else Path(arguments.state)
    if state is not None and not state.parent.is_dir():
        raise InputError(f"there is no folder {state.parent} to keep states in")
    there = state is not None and state.exists()
    followed = Followed.load(state, model, policy) if state and there else Followed(model, policy=policy)
    kept, left_out = (
        FollowedEvents(followed, state, 1 if arguments.each else TOGETHER),
        LeftOut(arguments.events, arguments.strict),
    )
    writer = csv.writer(sys.stdout, lineterminator="\n")
    with stop_on_signals() as stopped:
        try:
            for person, item in events(stopped.until(open_lines(arguments.events)), catalog, found.config.data, left_out):
                kept.add(person, item)
                if arguments.each:
                    if kept.count == 1:
                        writer.writerow(COLUMNS)
                    suggest(writer, followed, catalog, person, kept.count, arguments)
        except Stopped:  # it came in the moment after the last line
            pass
        finally:
            kept.save()
    if not kept.count and not stopped():
        raise InputError(f"{arguments.events} holds no events{left_out.said()}")
    if not arguments.each:
        writer.writerow(COLUMNS)  # not before all lines were good
    for person in () if arguments.each else kept.met:
        suggest(writer, followed, catalog, person, kept.count, arguments)
    how = "stopped after " if stopped() else ""
    met, read = len(kept.met), followed.read
    say(f"{how}{kept.count:,} events of {met:,} people; {read:,} histories were read again{left_out.said()}")
    return 0


def suggest(writer: Any, followed: Followed, catalog: Catalog, person: str, count: int, said: Namespace) -> None:
    scores, items = followed.scores([person], said.seen)[0].topk(min(said.top, catalog.n_items))
    for rank, (score, item) in enumerate(zip(scores.tolist(), items.tolist(), strict=True), start=1):
        if score > -float("inf"):
            writer.writerow([count, person, rank, catalog.ids[item], catalog.title(item), f"{score:.4f}"])
    if said.each:  # somebody may be waiting at the other end
        sys.stdout.flush()


class FollowedEvents:
    """Events, followed as many people at a time as come without one of them coming twice, and at most so many; their states are
    saved now and then, so that a kill costs half a minute of events, and at every end."""

    def __init__(self, followed: Followed, path: Path | None, together: int) -> None:
        self.followed, self.path, self.together = followed, path, together
        self.due, self.new, self.whole = time.monotonic() + EVERY, False, True
        self.met, self.count = dict[str, None](), 0
        self.group: dict[str, int] = {}

    def add(self, person: str, item: int) -> None:
        if person in self.group:
            self._step()
        self.group[person] = item
        self.met[person] = None
        self.count += 1
        if len(self.group) >= self.together or time.monotonic() >= self.due:
            self._step()
        if time.monotonic() >= self.due:
            began = time.monotonic()
            try:
                self._write()
            except InputError as error:
                say(f"Not saved: {error}.")
            self.due = time.monotonic() + max(EVERY, SHARE * (time.monotonic() - began))

    def save(self) -> None:
        if self.whole:  # what broke off in the middle of a step is not kept
            self._step()
            self._write()

    def _write(self) -> None:
        if self.path is not None and self.new:
            self.followed.save(self.path)
            self.new = False

    def _step(self) -> None:
        if self.group:
            self.whole = False
            self.followed.step(list(self.group), list(self.group.values()))
            self.whole, self.new, self.group = True, True, {}


class LeftOut:
    """Lines that are no event of these items: counted, or refused at once."""

    def __init__(self, name: str, strict: bool) -> None:
        self.name, self.strict = name, strict
        self.odd, self.unknown, self.first = 0, 0, ""

    def add(self, line: int, reason: str, unknown: bool = False) -> None:
        sentence = f"line {line} of {self.name}: {reason}"
        if self.strict:
            raise InputError(sentence)
        self.unknown, self.odd, self.first = self.unknown + unknown, self.odd + (not unknown), self.first or sentence

    def said(self) -> str:
        kinds = ((self.unknown, "of items that this run does not know"), (self.odd, "that are no event"))
        parts = [f"{count:,} {what}" for count, what in kinds if count]
        return f"; lines left out: {' and '.join(parts)}, the first: {self.first}" if parts else ""


def open_lines(name: str) -> Iterable[str]:
    if name == "-":
        try:
            return arriving_lines(sys.stdin.fileno()) if os.name == "posix" else sys.stdin
        except io.UnsupportedOperation:
            return sys.stdin
    path = Path(name)
    return io.StringIO(disk.read_text(path, MOST_BYTES, path.parent).removeprefix("\ufeff"), newline=None)


def arriving_lines(source: int) -> Iterator[str]:
    """Yield the lines of a pipe as they come. It looks up twice a second: a signal that comes just before one waits is else heard
    with the next line only."""
    decoder, rest, more = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True), "", True
    while more:
        while not select.select([source], [], [], 0.5)[0]:
            pass
        more = bool(piece := os.read(source, 65_536))
        *lines, rest = (rest + decoder.decode(piece, final=not more)).split("\n")
        yield from lines
    if rest:
        yield rest


def events(lines: Iterable[str], catalog: Catalog, data: DataConfig, left_out: LeftOut) -> Iterator[Event]:
    """Person and dense item of every line, in the form of the file that the run learned from. One of names is known by them."""
    rows = cells(lines)
    try:
        first = next(rows, (0, []))
        named = {what: place_of(what, first[1], data) for what in ("user", "item", "time")}
        user, item, at = named["user"], named["item"], named["time"]
        if user is None or item is None:
            rows, user, item, at = itertools.chain([first], rows), 0, 1, None
        if at is not None and left_out.name != "-":
            rows = in_order(rows, at, data, left_out)
        for number, row in rows:
            person, raw = (row[place].strip() if place < len(row) else "" for place in (user, item))
            if row and not (person and raw):
                left_out.add(number, "it holds no user and item")
            elif row:
                try:
                    found = catalog.index(raw)
                except InputError as error:
                    left_out.add(number, str(error), unknown=True)
                else:
                    yield person, found
    except UnicodeDecodeError:
        raise InputError(f"{left_out.name} is not a UTF-8 text") from None


def cells(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The cells of every line, each line by itself; the first that holds something tells what stands between them."""
    mark = ""
    for number, line in enumerate(lines, start=1):
        mark = mark or (max(MARKS, key=line.count) if line.strip() else "")
        try:
            yield number, next(csv.reader([line.rstrip("\r\n")], delimiter=mark or ","), [])
        except csv.Error:  # a cell that is too long
            yield number, [""]


def place_of(what: str, names: list[str], data: DataConfig) -> int | None:
    """Which of a first line's cells is the column's name, as the run's settings or our reader know it."""
    said = data.columns.get(what)
    if said:
        return names.index(said) if said in names else None
    keys = [usual_key(name.strip().split(":")[0]) for name in names]
    return next((keys.index(name) for name in USUAL[what] if name in keys), None)


def in_order(
    rows: Iterable[tuple[int, list[str]]], place: int, data: DataConfig, left_out: LeftOut
) -> Iterator[tuple[int, list[str]]]:
    """The lines by their times, those of one moment as they stand; a line without one is left out."""
    there = [(number, row) for number, row in rows if row]
    seconds, wrong = read_times([row[place] if place < len(row) else "" for _, row in there], data.dates)
    for at, reason in wrong.items():
        left_out.add(there[at][0], reason)
    return (there[i] for i in np.argsort(seconds, kind="stable").tolist() if i not in wrong)
