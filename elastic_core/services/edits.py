"""A person with something changed: one linear list of edits, the same on every screen, in an address and on the command line.

Written as text (the parameter `edits` of an address), edits stand in the order in which they were made, with commas between them:

    -12         event 12 is removed; events are counted from 1, the oldest first, and added items go on counting
    -12..20     events 12 to 20 are removed
    +50         item 50 is added at the end; +50.181 adds two items
    x7          expert 7 is silenced
    x7*2        expert 7 counts twice as much as it would; x7*1 puts it back

For example `?edits=-12,+50,x7,x9*2`. A browser reads a bare + of an address as a blank, so a blank means the same. To undo is to
take the last edit off the list. Nothing happens where an event is not there (any more), or where none would be left to read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from elastic_core.errors import InputError

LONGEST_TEXT = 2_000  # characters of a list of edits
MOST_EDITS = 100
LARGEST_FACTOR = 4.0  # by which an expert can be turned up
EDIT_TEXT = re.compile(
    r"-(?P<first>\d{1,6})(\.\.(?P<last>\d{1,6}))?"
    r"|[+ ](?P<items>\d{1,9}(\.\d{1,9})*)"
    r"|x(?P<expert>\d{1,9})(\*(?P<factor>\d(\.\d{1,2})?))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Remove:
    """The events `first` to `last`, both included and counted from 1, never happened."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"-{self.first}" if self.first == self.last else f"-{self.first}..{self.last}"


@dataclass(frozen=True)
class Add:
    """These items (dense ids) happened after everything else, the oldest first."""

    items: tuple[int, ...]

    def __str__(self) -> str:
        return f"+{'.'.join(map(str, self.items))}"


@dataclass(frozen=True)
class Silence:
    """This expert is taken out of what the history retrieves."""

    expert: int

    def __str__(self) -> str:
        return f"x{self.expert}"


@dataclass(frozen=True)
class Scale:
    """This expert counts `factor` times as much as it would; 0 silences it."""

    expert: int
    factor: float

    def __str__(self) -> str:
        return f"x{self.expert}*{self.factor:g}"


Edit = Remove | Add | Silence | Scale
Edits = tuple[Edit, ...]


class EditedUser(NamedTuple):
    """What a list of edits makes of a person's events.

    `events`: dense ids of the person's own events, then of every added item; event n is `events[n - 1]`. `numbers`: those of the
    events that are left, in order. `scales`: the factor of every expert that was changed, 0 for a silenced one."""

    events: np.ndarray
    numbers: np.ndarray
    n_own: int
    scales: dict[int, float]

    @property
    def items(self) -> np.ndarray:
        """The edited history, dense ids, the oldest first."""
        return self.events[self.numbers - 1]

    @property
    def removed_numbers(self) -> list[int]:
        """Numbers of the events that were removed."""
        return np.setdiff1d(np.arange(1, len(self.events) + 1), self.numbers).tolist()

    @property
    def n_added(self) -> int:
        """How many of the events that are left were added."""
        return int((self.numbers > self.n_own).sum())

    @property
    def own_indices(self) -> np.ndarray:
        """Indices, from 0, of the person's own events that are left."""
        return self.numbers[self.numbers <= self.n_own] - 1

    @property
    def silenced_experts(self) -> list[int]:
        """The silenced experts, in the order in which they were."""
        return [expert for expert, factor in self.scales.items() if factor == 0]

    def limit_events(self, n_events: int) -> "EditedUser":
        """The same before the person's own event `n_events` + 1."""
        in_reach = (self.numbers <= n_events) | (self.numbers > self.n_own)
        return self._replace(numbers=self.numbers[in_reach])


def apply_edits(items: np.ndarray, edits: Sequence[Edit]) -> EditedUser:
    """The edited history and expert scales of somebody whose events are `items`."""
    events, remains = np.asarray(items, dtype=np.int64), np.ones(len(items), dtype=bool)
    scales: dict[int, float] = {}
    for edit in edits:
        if isinstance(edit, Remove):
            remaining = remains.copy()
            remaining[edit.first - 1 : edit.last] = False
            remains = remaining if remaining.any() else remains
        elif isinstance(edit, Add):
            events = np.concatenate([events, np.array(edit.items, dtype=np.int64)])
            remains = np.concatenate([remains, np.ones(len(edit.items), dtype=bool)])
        else:
            scales.pop(edit.expert, None)  # the latest edit of an expert counts, and stands last
            factor = edit.factor if isinstance(edit, Scale) else 0.0
            if factor != 1:
                scales[edit.expert] = factor
    return EditedUser(events, np.flatnonzero(remains) + 1, len(items), scales)


# --- as text --------------------------------------------------------------------------------------------------------------


def format_edits(edits: Sequence[Edit]) -> str:
    """Edits as an address carries them; empty for none."""
    return ",".join(map(str, edits))


def parse_edits(text: str) -> Edits:
    """The edits of a text. Raises InputError where one cannot be read."""
    if len(text) > LONGEST_TEXT:
        raise InputError(f"a list of edits has at most {LONGEST_TEXT:,} characters, not {len(text):,}")
    return tuple(_parse_edit(part) for part in text.split(",")) if text else ()


def _parse_edit(text: str) -> Edit:
    match = EDIT_TEXT.fullmatch(text)
    if match is None:
        raise InputError(f"{text[:40]!r} is no edit; edits look like -12, -12..20, +50, x7 and x7*2")
    if match["first"]:
        return Remove(int(match["first"]), int(match["last"] or match["first"]))
    if match["items"]:
        return Add(tuple(map(int, match["items"].split("."))))
    if match["factor"]:
        return Scale(int(match["expert"]), float(match["factor"]))
    return Silence(int(match["expert"]))


def check_edits(edits: Sequence[Edit], n_events: int, n_items: int, n_experts: int) -> None:
    """Raise InputError for an event, item or expert that is not there, and for more edits than a list holds."""
    if len(edits) > MOST_EDITS:
        raise InputError(f"a list holds at most {MOST_EDITS} edits, not {len(edits)}")
    for edit in edits:
        if isinstance(edit, Add):
            n_events += len(edit.items)
            if unknown_items := [item for item in edit.items if not 1 <= item <= n_items]:
                raise InputError(f"there is no item number {unknown_items[0]}: the catalogue has 1 to {n_items}")
        elif isinstance(edit, Remove):
            if not 1 <= edit.first <= edit.last <= n_events:
                raise InputError(f"there are no events {edit.first} to {edit.last} here: this history has 1 to {n_events}")
        elif not 0 <= edit.expert < n_experts:
            range_text = f" (0 to {n_experts - 1})" if n_experts else ""
            raise InputError(f"there is no expert {edit.expert} in this run{range_text}")
        elif isinstance(edit, Scale) and not 0 <= edit.factor <= LARGEST_FACTOR:
            raise InputError(f"an expert can count 0 to {LARGEST_FACTOR:g} times as much, not {edit.factor:g}")


# --- a history in the person's place --------------------------------------------------------------------------------------


def replace_history(items: Sequence[int], n_own: int) -> Edits:
    """Only these items are read, none of the person's `n_own` events. They come first, so that something is left all the time."""
    return Add(tuple(items)), Remove(1, n_own)


def own_items(edits: Edits, n_own: int) -> tuple[int, ...]:
    """The items of a list that begins with `replace_history`; none of any other."""
    if len(edits) > 1 and isinstance(edits[0], Add) and edits[1] == Remove(1, n_own):
        return edits[0].items
    return ()


def initial_history(edits: Edits, n_own: int) -> Edits:
    """What a list of edits is compared with: the person as they are, or a history in their place as it was given."""
    return edits[:2] if own_items(edits, n_own) else ()


def undo_edit(edits: Edits, n_own: int) -> Edits:
    """The list without its last edit; to replace a history is one edit, although it takes two."""
    return () if len(edits) == 2 and own_items(edits, n_own) else edits[:-1]


# --- buttons that go both ways --------------------------------------------------------------------------------------------


def toggle_event(edits: Edits, number: int) -> Edits:
    """The same list with one event removed, or, where the list removes it, without that."""
    toggled: list[Edit] = []
    for edit in edits:
        if isinstance(edit, Remove) and edit.first <= number <= edit.last:
            parts = (Remove(edit.first, number - 1), Remove(number + 1, edit.last))
            toggled += [part for part in parts if part.first <= part.last]
        else:
            toggled.append(edit)
    return tuple(toggled) if toggled != [*edits] else (*edits, Remove(number, number))


def toggle_expert(edits: Edits, expert: int) -> Edits:
    """The same list with an expert silenced, or, where it is, with that expert as it was before any edit."""
    others = tuple(edit for edit in edits if isinstance(edit, Remove | Add) or edit.expert != expert)
    silenced = apply_edits(np.empty(0), edits).scales.get(expert) == 0
    return others if silenced else (*edits, Silence(expert))


def set_scale(edits: Edits, expert: int, factor: float) -> Edits:
    """The same list with an expert's factor changed; a slider that is moved again changes the last edit of the list."""
    edit = Silence(expert) if factor == 0 else Scale(expert, factor)
    if edits and isinstance(edits[-1], Silence | Scale) and edits[-1].expert == expert:
        edits = edits[:-1]
    unchanged = apply_edits(np.empty(0), edits).scales.get(expert, 1.0) == factor
    return edits if unchanged else (*edits, edit)


def history_edits(edits: Edits) -> Edits:
    """Those of the history alone: numbers of experts mean something else in another run."""
    return tuple(edit for edit in edits if isinstance(edit, Remove | Add))
