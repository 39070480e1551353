"""Follow people event by event with a trained run: read `user,item` lines in order, say what comes next, keep the states.

  python -m elastic_core stream ml-100k-elastic-slots --events new.csv --state states.safetensors
  tail -f log.csv | python -m elastic_core stream ml-100k-elastic --events - --each --top 3

A line is a person's name, any, and the raw id of an item, oldest first; a first line `user,item` is skipped. Printed is CSV: the
suggestions for everybody who was met, at the end or with --each after every event. Nothing is read again but what a model that
counts positions from the end has no room for, and what --every asks for: so a step costs the same after ten events and after
ten thousand. --state goes on from a file of states, if it is there, and writes it at the end; it holds no titles and no weights.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from elastic_core import disk
from elastic_core.commands.finding import load_run, say
from elastic_core.data import Catalog
from elastic_core.errors import InputError
from elastic_core.streaming import Followed, Refresh

COLUMNS = ("event", "user", "rank", "item", "title", "score")
MOST_BYTES, TOGETHER = 2**30, 256  # of a file of events; people in one step


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_name", metavar="RUN", help="a run folder, or its name below checkpoints/")
    parser.add_argument("--events", metavar="FILE", required=True, help="user,item lines in order; - reads the standard input")
    parser.add_argument("--state", metavar="FILE", help="states to go on from, and to write at the end")
    parser.add_argument("--top", type=int, default=10, help="how many suggestions (default: 10)")
    parser.add_argument("--each", action="store_true", help="suggest after every event, not at the end")
    parser.add_argument("--seen", action="store_true", help="also suggest what a person met lately")
    parser.add_argument("--every", type=int, default=0, metavar="R", help="ask the memory anew every R events of a person")
    parser.add_argument(
        "--moved", type=float, default=0.0, metavar="S", help="of these, read again if over S of the experts moved"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.top < 1:
        raise InputError(f"--top must be at least 1, not {arguments.top}")
    policy = Refresh(arguments.every, arguments.moved)
    _, dataset, model = load_run(arguments.run_name)
    state = None if arguments.state is None else Path(arguments.state)
    there = state is not None and state.exists()
    followed = Followed.load(state, model, policy) if state and there else Followed(model, policy=policy)
    writer, met, count = csv.writer(sys.stdout, lineterminator="\n"), dict[str, None](), 0
    for people, items in together(events(arguments.events, dataset.catalog), 1 if arguments.each else TOGETHER):
        followed.step(people, items)
        if arguments.each and not count:
            writer.writerow(COLUMNS)
        count += len(people)
        met |= dict.fromkeys(people)
        if arguments.each:
            suggest(writer, followed, dataset.catalog, people[0], count, arguments)
    if not count:
        raise InputError(f"{arguments.events} holds no events")
    if not arguments.each:
        writer.writerow(COLUMNS)  # not before all lines were good
    for person in () if arguments.each else met:
        suggest(writer, followed, dataset.catalog, person, count, arguments)
    if state is not None:
        followed.save(state)
    say(f"{count:,} events of {len(met):,} people; {followed.read:,} histories were read again")
    return 0


def suggest(writer: Any, followed: Followed, catalog: Catalog, person: str, count: int, said: argparse.Namespace) -> None:
    scores, items = followed.scores([person], said.seen)[0].topk(min(said.top, catalog.n_items))
    for rank, (score, item) in enumerate(zip(scores.tolist(), items.tolist(), strict=True), start=1):
        if score > -float("inf"):
            writer.writerow([count, person, rank, catalog.ids[item], catalog.title(item), f"{score:.4f}"])
    if said.each:  # somebody may be waiting at the other end
        sys.stdout.flush()


def events(name: str, catalog: Catalog) -> Iterator[tuple[str, int]]:
    """Person and dense item of every line. Raises InputError naming the first line that is no event."""
    lines: Iterable[str] = sys.stdin
    if name != "-":
        path = Path(name)
        lines = disk.read_text(path, MOST_BYTES, path.parent).splitlines()
    try:
        for number, line in enumerate(csv.reader(lines), start=1):
            if (line == ["user", "item"] and number == 1) or not line:
                continue
            if len(line) != 2 or not line[0]:
                raise InputError(f"line {number} of {name} is not a user and an item, separated by a comma")
            try:
                yield line[0], catalog.index(line[1].strip())
            except InputError as error:
                raise InputError(f"line {number} of {name}: {error}") from None
    except (csv.Error, UnicodeDecodeError):
        raise InputError(f"{name} is not a UTF-8 text of user,item lines") from None


def together(found: Iterable[tuple[str, int]], most: int) -> Iterator[tuple[list[str], list[int]]]:
    """Events in order, as many people at a time as come without one of them coming twice."""
    group: dict[str, int] = {}
    for person, item in found:
        if person in group or len(group) == most:
            yield list(group), list(group.values())
            group = {}
        group[person] = item
    if group:
        yield list(group), list(group.values())
