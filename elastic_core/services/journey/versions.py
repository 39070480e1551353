"""What if this history were different? Every change of a person's history is a version, and versions form a tree.

Nothing is ever overwritten: an edit adds a version below the current one, undo goes to its parent, and any version can be gone
to. A tree knows how to check itself, so a tree that came from an address or a file is as sound as one made by hand.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
import pandas as pd

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.services.person.recommend import Reading

MOST_VERSIONS = 200
MOST_EVENTS = 5_000


@dataclass(frozen=True)
class Add:
    """Item `item` becomes event `at` (from 0); `at` = number of events puts it last."""

    item: int
    at: int


@dataclass(frozen=True)
class Cut:
    """Events `start` … `stop` - 1 (from 0) never happened."""

    start: int
    stop: int


@dataclass(frozen=True)
class Move:
    """Event `at` happens at place `to` instead."""

    at: int
    to: int


@dataclass(frozen=True)
class Replace:
    """Another history altogether: a list of one's own, oldest first; may be empty to start from nothing."""

    items: tuple[int, ...]


Edit = Add | Cut | Move | Replace


@dataclass(frozen=True)
class Contents:
    """One version: dense item ids, oldest first, and where each stood in the original (-1 = it was added)."""

    items: tuple[int, ...]
    origins: tuple[int, ...]
    own: bool = False  # somebody else's history altogether, so nobody knows what came next

    @property
    def added(self) -> frozenset[int]:
        """Positions (from 0) of events that the original does not have."""
        return frozenset(i for i, origin in enumerate(self.origins) if origin < 0)

    @property
    def moved(self) -> frozenset[int]:
        """Positions of events that stand after one that they used to precede."""
        highest = accumulate(self.origins, max)
        return frozenset(i for i, (origin, most) in enumerate(zip(self.origins, highest, strict=True)) if 0 <= origin < most)

    def after(self, edit: Edit, n_items: int) -> "Contents":
        """The contents after `edit`. Raises InputError where it does not fit."""
        events, count, own = list(zip(self.items, self.origins, strict=True)), len(self.items), self.own
        if isinstance(edit, Replace):
            events, own = [(_exists(item, n_items), -1) for item in edit.items], True
        elif isinstance(edit, Add):
            event = (_exists(edit.item, n_items), -1)
            events.insert(_check_place(edit.at, count + 1), event)
        elif isinstance(edit, Cut):
            if not 0 <= edit.start < edit.stop <= count:
                raise InputError(f"there are no events {edit.start + 1} to {edit.stop} here: this history has {count}")
            del events[edit.start : edit.stop]
        else:
            event = events.pop(_check_place(edit.at, count))
            events.insert(_check_place(edit.to, count), event)
        if len(events) > MOST_EVENTS:
            raise InputError(f"a history may have at most {MOST_EVENTS:,} events here, not {len(events):,}")
        return Contents(tuple(item for item, _ in events), tuple(origin for _, origin in events), own)


def _exists(item: int, n_items: int) -> int:
    if not 1 <= item <= n_items:
        raise InputError(f"there is no item number {item}: the catalogue has 1 to {n_items}")
    return item


def _check_place(place: int, count: int) -> int:
    if not 0 <= place < count:
        raise InputError(f"there is no place {place + 1} here: this history has {count}")
    return place


@dataclass(frozen=True)
class Base:
    """Whose history is changed, and up to where it is read: the data's hash, the person from 0, the number of events."""

    data: str
    user: int
    events: int

    @property
    def digest(self) -> str:
        """Six characters that tell one starting point from another."""
        return hashlib.sha256(f"{self.data}/{self.user}/{self.events}".encode()).hexdigest()[:6]


@dataclass(frozen=True)
class Version:
    """One edit of version `parent`. A version's number is its place in the tree, from 1; 0 is the original."""

    parent: int
    edit: Edit


@dataclass(frozen=True)
class Tree:
    """All versions of one history and the one that is looked at. Immutable: every act answers with another tree, and none is
    unsound."""

    base: Base
    original: tuple[int, ...]
    n_items: int
    versions: tuple[Version, ...] = ()
    current: int = 0

    def __post_init__(self) -> None:
        """Raise InputError for a tree that does not hold together."""
        _ = self.contents

    @cached_property
    def contents(self) -> tuple[Contents, ...]:
        """Every version's contents, the original first."""
        if len(self.versions) > MOST_VERSIONS:
            raise InputError(f"at most {MOST_VERSIONS} versions are kept, not {len(self.versions)}; start anew from the original")
        made = [Contents(self.original, tuple(range(len(self.original))))]
        for number, version in enumerate(self.versions, start=1):
            if not 0 <= version.parent < number:
                raise InputError(f"version {number} cannot follow version {version.parent}: that one comes later")
            made.append(made[version.parent].after(version.edit, self.n_items))
        if not 0 <= self.current < len(made):
            raise InputError(f"there is no version {self.current}: the last one is version {len(made) - 1}")
        return tuple(made)

    @property
    def here(self) -> Contents:
        return self.contents[self.current]

    def then(self, edit: Edit) -> "Tree":
        """The tree with `edit` done to the current version; the same edit twice from one place is the same version."""
        step = Version(self.current, edit)
        if step in self.versions:
            return self.go(self.versions.index(step) + 1)
        return replace(self, versions=(*self.versions, step), current=len(self.versions) + 1)

    def go(self, number: int) -> "Tree":
        """The same tree, looking at version `number`."""
        return replace(self, current=number)

    def undo(self) -> "Tree":
        """Back to the version before, the original's is itself; nothing is lost."""
        return self.go(self.path(self.current)[-2:][0])

    def path(self, number: int) -> list[int]:
        """The versions that lead from the original to `number`, both included."""
        found = [number]
        while found[-1]:
            found.append(self.versions[found[-1] - 1].parent)
        return found[::-1]

    def chain(self) -> "Tree":
        """Only what leads to the current version, renumbered."""
        steps = self.path(self.current)[1:]
        versions = tuple(Version(i, self.versions[number - 1].edit) for i, number in enumerate(steps))
        return replace(self, versions=versions, current=len(versions))


def start(dataset: Dataset, user: int, events: int) -> Tree:
    """A person's history up to event `events` (at least one, and never the last, which is what came next), unchanged."""
    items = dataset.histories.of(user)
    if not 1 <= events < len(items):
        raise InputError(f"this history can be read up to event 1 … {len(items) - 1}, not {events}")
    return Tree(Base(dataset.hash, user, events), tuple(items[:events].tolist()), dataset.catalog.n_items)


def read_version(dataset: Dataset, tree: Tree, number: int | None = None) -> Reading:
    """A version as the models read it; what came next is known unless the history is one's own."""
    return reading(dataset, tree.base, tree.contents[tree.current if number is None else number])


def reading(dataset: Dataset, base: Base, found: Contents) -> Reading:
    """The same of any contents."""
    truth = None if found.own else int(dataset.histories.of(base.user)[base.events])
    return Reading(np.array(found.items, dtype=np.int64), truth)


def in_words(dataset: Dataset, edit: Edit, before: Contents) -> str:
    """What an edit did, to be read by people."""
    title = dataset.catalog.title
    if isinstance(edit, Replace):
        return f"another history of {len(edit.items)} events" if edit.items else "an empty history"
    if isinstance(edit, Add):
        return f"added {title(edit.item)} as event {edit.at + 1}"
    if isinstance(edit, Move):
        return f"moved {title(before.items[edit.at])} from place {edit.at + 1} to {edit.to + 1}"
    first, count = title(before.items[edit.start]), edit.stop - edit.start
    return f"removed {first}" if count == 1 else f"removed {count} events from {first} on"


def versions_table(dataset: Dataset, tree: Tree) -> pd.DataFrame:
    """version, follows, what, events, steps (edits since the original), seen (whether it is looked at)."""
    rows: list[tuple[int | None, str]] = [(None, "the original")]
    rows += [(each.parent, in_words(dataset, each.edit, tree.contents[each.parent])) for each in tree.versions]
    table = pd.DataFrame(rows, columns=["follows", "what"]).astype({"follows": "Int64"}).rename_axis("version").reset_index()
    steps = [len(tree.path(number)) - 1 for number in table["version"]]
    return table.assign(events=[len(each.items) for each in tree.contents], steps=steps, seen=table["version"] == tree.current)
