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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from elastic_core import disk
from elastic_core.commands.arguments import open_items, options, say
from elastic_core.commands.progress import stop_on_signals
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
UNKNOWN, ODD = "of items that this run does not know", "that are no event"  # lines that are left out
Lines = Iterator[tuple[int, list[str]]]  # number and cells


def configure(parser: ArgumentParser) -> None:
    options(parser, "run_name RUN | text | a run folder, or its name below checkpoints/")
    parser.add_argument("--events", metavar="FILE", required=True, help="lines of user and item in order; - reads standard input")
    options(parser, """
        --state FILE | text | states to go on from, and to write
        --strict | flag | end at the first line that would be left out
        --top | int 10 | how many suggestions
        --each | flag | suggest after every event, not at the end
        --seen | flag | also suggest what a person met lately
        --every R | int (0) | ask the memory anew every R events of a person
        --moved S | float (0) | of these, read again if over S of the experts moved
    """)  # fmt: skip


def run(arguments: Namespace) -> int:
    if arguments.top < 1:
        raise InputError(f"--top must be at least 1, not {arguments.top}")
    policy = Refresh(arguments.every, arguments.moved)
    found, catalog, model = open_items(arguments.run_name)
    state = None if arguments.state is None else Path(arguments.state)
    if state is not None and not state.parent.is_dir():
        raise InputError(f"there is no folder {state.parent} to keep states in")
    followed = Followed.load(state, model, policy) if state and state.exists() else Followed(model, policy=policy)
    kept = FollowedEvents(followed, state, 1 if arguments.each else TOGETHER)
    left_out = LeftOut(arguments.events, arguments.strict)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    with stop_on_signals() as stopped:
        try:
            lines = itertools.takewhile(lambda _: not stopped(), open_lines(arguments.events, stopped))
            for person, item in events(lines, catalog, found.config.data, left_out):
                kept.add(person, item)
                if arguments.each:
                    if kept.count == 1:
                        writer.writerow(COLUMNS)
                    suggest(writer, kept, catalog, person, arguments)
                    sys.stdout.flush()  # somebody may be waiting at the other end
        finally:
            kept.save()
    if not kept.count and not stopped():
        raise InputError(f"{arguments.events} holds no events{left_out.said()}")
    if not arguments.each:
        writer.writerow(COLUMNS)  # not before all lines were good
        for person in kept.met:
            suggest(writer, kept, catalog, person, arguments)
    how = "stopped after " if stopped() else ""
    people = f"{len(kept.met):,} people; {followed.read:,} histories were read again"
    say(f"{how}{kept.count:,} events of {people}{left_out.said()}")
    return 0


def suggest(writer: Any, kept: "FollowedEvents", catalog: Catalog, person: str, said: Namespace) -> None:
    scores, items = kept.followed.scores([person], said.seen)[0].topk(min(said.top, catalog.n_items))
    for rank, (score, item) in enumerate(zip(scores.tolist(), items.tolist(), strict=True), start=1):
        if score > -float("inf"):
            writer.writerow([kept.count, person, rank, catalog.ids[item], catalog.title(item), f"{score:.4f}"])


class FollowedEvents:
    """Events, followed as many people at a time as come without one of them coming twice, and at most so many; their states are
    saved now and then, so that a kill costs half a minute of events, and at every end."""

    def __init__(self, followed: Followed, path: Path | None, together: int) -> None:
        self.followed, self.path, self.together = followed, path, together
        self.due, self.new, self.count = time.monotonic() + EVERY, False, 0
        self.met, self.group = dict[str, None](), dict[str, int]()

    def add(self, person: str, item: int) -> None:
        if person in self.group:
            self._step()
        self.group[person] = item
        self.met[person] = None
        self.count += 1
        due = time.monotonic() >= self.due
        if due or len(self.group) >= self.together:
            self._step()
        if due:
            began = time.monotonic()
            try:
                self._write()
            except InputError as error:
                say(f"Not saved: {error}.")
            self.due = time.monotonic() + max(EVERY, SHARE * (time.monotonic() - began))

    def save(self) -> None:
        self._step()
        self._write()

    def _write(self) -> None:
        if self.path is not None and self.new:
            self.followed.save(self.path)
            self.new = False

    def _step(self) -> None:
        group, self.group = self.group, {}
        if group:
            path, self.path = self.path, None  # what breaks off in the middle of a step is not kept
            self.followed.step(list(group), list(group.values()))
            self.path, self.new = path, True


class LeftOut:
    """Lines that are no event of these items: counted by what they are, or refused at once."""

    def __init__(self, name: str, strict: bool) -> None:
        self.name, self.strict, self.counts, self.first = name, strict, dict.fromkeys((UNKNOWN, ODD), 0), ""

    def add(self, line: int, reason: str, what: str = ODD) -> None:
        sentence = f"line {line} of {self.name}: {reason}"
        if self.strict:
            raise InputError(sentence)
        self.counts[what] += 1
        self.first = self.first or sentence

    def said(self) -> str:
        parts = [f"{count:,} {what}" for what, count in self.counts.items() if count]
        return f"; lines left out: {' and '.join(parts)}, the first: {self.first}" if parts else ""


def open_lines(name: str, stopped: Callable[[], bool]) -> Iterable[str]:
    if name == "-":
        try:
            return arriving_lines(sys.stdin.fileno(), stopped) if os.name == "posix" else sys.stdin
        except io.UnsupportedOperation:
            return sys.stdin
    path = Path(name)
    return io.StringIO(disk.read_text(path, MOST_BYTES, path.parent).removeprefix("\ufeff"), newline=None)


def arriving_lines(source: int, stopped: Callable[[], bool]) -> Iterator[str]:
    """Yield the lines of a pipe as they come, until it ends or somebody has `stopped` it, which is asked twice a second."""
    decoder, rest, more = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True), "", True
    while more:
        while not select.select([source], [], [], 0.5)[0]:
            if stopped():
                return
        more = bool(piece := os.read(source, 65_536))
        *lines, rest = (rest + decoder.decode(piece, final=not more)).split("\n")
        yield from lines
    if rest:
        yield rest


def events(lines: Iterable[str], catalog: Catalog, data: DataConfig, left_out: LeftOut) -> Iterator[tuple[str, int]]:
    """Person and dense item of every line, in the form of the file that the run learned from. One of names is known by them."""
    rows = cells(lines)
    try:
        first = next(rows, (0, []))
        user, item, at = (place_of(what, first[1], data) for what in ("user", "item", "time"))
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
                    left_out.add(number, str(error), UNKNOWN)
                else:
                    yield person, found
    except UnicodeDecodeError:
        raise InputError(f"{left_out.name} is not a UTF-8 text") from None


def cells(lines: Iterable[str]) -> Lines:
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
    if said := data.columns.get(what):
        return names.index(said) if said in names else None
    keys = [usual_key(name.strip().split(":")[0]) for name in names]
    return next((keys.index(name) for name in USUAL[what] if name in keys), None)


def in_order(rows: Lines, place: int, data: DataConfig, left_out: LeftOut) -> Lines:
    """The lines by their times, those of one moment as they stand; a line without one is left out."""
    there = [(number, row) for number, row in rows if row]
    seconds, wrong = read_times([row[place] if place < len(row) else "" for _, row in there], data.dates)
    for at, reason in wrong.items():
        left_out.add(there[at][0], reason)
    return (there[i] for i in np.argsort(seconds, kind="stable").tolist() if i not in wrong)
