"""What is answered: lists after histories, and for people who are followed event by event.

A person's list rests on a state. It is read anew from the last `length` events whenever `every` more have come, which asks the
memory anew, and takes one event at a time in between, at a constant price. So a state is a function of the last events alone: one
that is not in memory, after a restart or of somebody who was away for long, is made again from what events.py keeps.

People of the data who did nothing since get what the command `recommend` gives after their whole history. So does everybody where
`every` is 1, and with models that cannot be followed: their histories are read each time.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elastic_core.errors import InputError
from elastic_core.following.stream import Kept, open_stream
from elastic_core.lists import HISTORY, POPULAR, Lister, batch_of, best
from elastic_core.machine import SpareCores
from elastic_core.models import Met, can_stream
from elastic_core.serving.events import Events

IN_MEMORY = 5_000  # people whose states are kept in memory
MANY = 8  # requests at once from which on a second thread pays
MET = 1_000  # so many of a person's last events are not suggested again


class Conflict(InputError):
    """Somebody has another number of events than the caller thinks."""


@dataclass(eq=False)
class Request:
    """One of: a list for a `person` or after a `history`; `events` of a person, with a list if `k`; `count` what there is of a
    person, or `forget` it."""

    person: str | None = None
    history: Sequence[str] | None = None
    events: Sequence[str] | None = None
    after: int | None = None  # the number of events that the caller thinks were kept before
    k: int = 0
    exclude: Sequence[str] = ()
    only: Sequence[str] | None = None
    seen: bool = False
    count: bool = False
    forget: bool = False
    answer: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None


@dataclass(eq=False)
class Person:
    """Somebody in memory."""

    name: str
    total: int = 0  # events so far
    recent: list[int] = field(default_factory=list)  # the last of them, dense ids; 0: an item that the run does not know
    times: list[int] | None = None  # of somebody of the data who did nothing since
    stored: bool = False  # whether events.py has them
    state: Kept | None = None
    upto: int = 0  # the event that the state has taken last

    @property
    def known(self) -> np.ndarray:
        items = np.array(self.recent, dtype=np.int64)
        return items[items > 0]


class Answers:
    """Answers requests by the batch; for one thread."""

    def __init__(
        self, lister: Lister, events: Events | None = None, every: int = 8, with_data: bool = True, in_memory: int = IN_MEMORY,
        spare: SpareCores | None = None,
    ) -> None:  # fmt: skip
        """`with_data`: people of the data are known by their ids; `spare`: the cores that many requests at once may take up.
        Raises InputError for an `every` that leaves no history."""
        self.lister, self.every, self.with_data, self.in_memory, self.spare = lister, every, with_data, in_memory, spare
        model = lister.model
        if not 1 <= every < model.length:
            raise InputError(f"a state is read anew every 1 to {model.length - 1} events, not {every}")
        self.stream = open_stream(model, every) if can_stream(model) and every > 1 else None
        self.events = events or Events(None, self.keep(lister, every))
        self.people: OrderedDict[str, Person] = OrderedDict()
        self.everything = lister.running()

    @staticmethod
    def keep(lister: Lister, every: int) -> int:
        """How many events of everybody to keep: what a state may need, and what is not to be suggested again."""
        return max(lister.model.length + every, MET)

    # --- requests ----------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def answer(self, requests: Sequence[Request]) -> None:
        """Fills in every request's answer, or its error. Events come first, in the order of the requests, in one transaction."""
        self._take([one for one in requests if one.events is not None])
        for one in requests:
            if one.forget:
                self._forget(one)
            elif one.count and one.person is not None:
                one.answer |= {"person": one.person, "events": self._person(one.person).total}
        asked = [one for one in requests if one.k and one.error is None]
        running = [self._running(one) for one in asked]
        if self.spare is not None:
            torch.set_num_threads(self.spare.now() if len(asked) >= MANY else 1)
        if asked:
            self._lists(asked, running)
        while len(self.people) > self.in_memory:
            self.people.popitem(last=False)

    def _running(self, one: Request) -> Tensor:
        return self.lister.running(one.exclude, one.only) if one.exclude or one.only is not None else self.everything

    def _take(self, requests: list[Request]) -> None:
        rows, before = list[tuple[str, int, str]](), dict[str, tuple[int, list[int]]]()
        for one in requests:
            assert one.person is not None and one.events is not None
            person = self._person(one.person)
            if one.after is not None and one.after != person.total:
                one.error = Conflict(f"there are {person.total:,} events of this person, not {one.after:,}")
                continue
            before.setdefault(person.name, (person.total, list(person.recent)))
            if not person.stored:  # what the data know of them
                person.recent = person.recent[-self.events.keep :]
                ids, first = self.lister.catalog.ids, person.total - len(person.recent) + 1
                rows += [(person.name, first + i, str(ids[item])) for i, item in enumerate(person.recent)]
                person.stored, person.times = True, None
            found = [self.lister.catalog.find(raw) for raw in one.events]
            rows += [(person.name, person.total + 1 + i, raw) for i, raw in enumerate(one.events)]
            person.total += len(found)
            person.recent = [*person.recent, *found][-self.events.keep :]
            unknown = found.count(0)
            one.answer |= {"person": person.name, "events": person.total, "unknown": unknown}
        try:
            if rows:
                self.events.add(rows)
        except Exception as error:
            for name in before:  # they are read again from what was kept
                self.people.pop(name, None)
            for one in requests:
                one.error = one.error or error

    def _forget(self, one: Request) -> None:
        assert one.person is not None
        self.people.pop(one.person, None)
        one.answer |= {"person": one.person, "forgotten": self.events.forget(one.person)}

    def _lists(self, asked: list[Request], running: list[Tensor]) -> None:
        """Best items of requests that may differ in what they ask for."""
        followed, read = list[tuple[int, Person]](), list[tuple[int, np.ndarray, list[int] | None, int]]()
        for place, one in enumerate(asked):
            if one.person is None:
                known, unknown = self.lister.known_items(one.history or ())
                read.append((place, known, None, unknown))
            elif (person := self._person(one.person)).stored and self.stream is not None and person.known.size:
                followed.append((place, person))
            else:
                read.append((place, person.known, person.times, 0))
        if followed:
            states = self._advance([person for _, person in followed])
            histories = [person.known for _, person in followed]
            self._rank_states(asked, running, [place for place, _ in followed], states, histories)
        if read:
            places, histories, times = [row[0] for row in read], [row[1] for row in read], [row[2] for row in read]
            self._rank_read(asked, running, places, histories, times)
            for place, history, _, unknown in read:
                asked[place].answer["basis"] = HISTORY if len(history) else POPULAR
                if asked[place].person is None:
                    asked[place].answer["unknown"] = unknown
                    asked[place].answer["known"] = len(history)

    def _rank_states(
        self, asked: list[Request], running: list[Tensor], places: list[int], states: Tensor, histories: list[np.ndarray]
    ) -> None:
        batch = batch_of(histories, self.lister.model.length)
        assert self.lister.reading is not None
        scores = self.lister.reading[1](states, Met.by(batch)).float()
        sizes = [0 if asked[place].seen else len(history) for place, history in zip(places, histories, strict=True)]
        row = torch.repeat_interleave(torch.tensor(sizes))
        out = [torch.from_numpy(history) for history, size in zip(histories, sizes, strict=True) if size]
        k = max(asked[place].k for place in places)
        masks = _stacked([running[place] for place in places])
        values, items = best(scores, k, masks, row, torch.cat([row[:0], *out]))
        for place, line, found in zip(places, values.numpy(), items.numpy(), strict=True):
            self._fill(asked[place], found, line)
            asked[place].answer["basis"] = HISTORY

    def _rank_read(
        self, asked: list[Request], running: list[Tensor], places: list[int], histories: list[np.ndarray],
        times: list[list[int] | None],
    ) -> None:  # fmt: skip
        """Requests that are alike in `seen`, in whether times are known, and in whether anything is known, go together."""
        alike: dict[tuple[bool, bool, bool], list[int]] = {}
        for i, place in enumerate(places):
            alike.setdefault((asked[place].seen, times[i] is not None, not len(histories[i])), []).append(i)
        for (seen, timed, _), some in alike.items():
            k = max(asked[places[i]].k for i in some)
            masks = _stacked([running[places[i]] for i in some])
            when = [np.array(times[i]) for i in some] if timed else None
            try:
                items, values = self.lister.rank([histories[i] for i in some], when, k, masks, seen)
            except InputError as error:
                for i in some:
                    asked[places[i]].error = error
                continue
            for i, line, found in zip(some, values, items, strict=True):
                self._fill(asked[places[i]], found, line)

    def _fill(self, one: Request, items: np.ndarray, scores: np.ndarray) -> None:
        catalog = self.lister.catalog
        one.answer["items"] = [
            {"item": str(catalog.ids[item]), "title": catalog.title(int(item)), "score": float(score)}
            for item, score in zip(items[: one.k].tolist(), scores[: one.k].tolist(), strict=True)
            if item
        ]

    # --- people ------------------------------------------------------------------------------------------------------

    def _person(self, name: str) -> Person:
        """Somebody, from memory, what was kept, or the data; a stranger has no events."""
        found = self.people.get(name)
        if found is not None:
            self.people.move_to_end(name)
            return found
        kept = self.events.of(name)
        if kept.total:
            recent = [self.lister.catalog.find(raw) for raw in kept.items]
            found = Person(name, kept.total, recent[-self.events.keep :], stored=True)
        elif self.with_data and name in self.lister.numbers:
            data, user = self.lister.dataset, self.lister.numbers[name]
            cut = slice(*data.histories.offsets[user : user + 2])
            recent, times = data.histories.items[cut].tolist(), data.histories.times[cut].tolist() if data.has_times else None
            found = Person(name, len(recent), recent, times)
        else:
            found = Person(name)
        self.people[name] = found
        return found

    def _advance(self, people: Sequence[Person]) -> Tensor:
        """States `[B, D]` after everybody's last event; somebody may be among them twice."""
        assert self.stream is not None
        distinct = list({person.name: person for person in people}.values())
        begins = {p.name: self._begins(p) for p in distinct}
        fresh = [p for p in distinct if p.state is None or begins[p.name] > p.upto]
        going = [p for p in distinct if p not in fresh]
        stream = self.stream.at([])
        if fresh:
            histories = [self._before(p, begins[p.name]) for p in fresh]
            padded = batch_of(histories, self.stream.reads).items
            states = stream.refresh(padded)
            for person in fresh:
                person.upto = begins[person.name]
        if going:
            kept = [p.state for p in going if p.state is not None]
            names = [name for name in kept[0] if name not in ("used", "state")]
            there = self.stream.at([])
            there.restore(
                {name: torch.stack([one[name] for one in kept]) for name in names}, torch.stack([k["used"] for k in kept])
            )
            stream.merge(there)
            before = torch.stack([one["state"] for one in kept])
            states = torch.cat([states, before]) if fresh else before
        order = [*fresh, *going]
        ahead = [[item for item in _last(p.recent, p.total - p.upto) if item] for p in order]
        for turn in range(max(map(len, ahead), default=0)):
            rows = [i for i, items in enumerate(ahead) if len(items) > turn]
            part = stream.at(rows)
            states[rows] = part.step(torch.tensor([ahead[i][turn] for i in rows]))
            stream.put(rows, part)
        stored = stream.stored()
        for i, person in enumerate(order):
            person.upto = person.total
            person.state = {name: part[i].clone() for name, part in stored.items()}
            person.state |= {"used": stream.used[i].clone(), "state": states[i].clone()}
        place = {person.name: i for i, person in enumerate(order)}
        return states[[place[person.name] for person in people]]

    def _begins(self, person: Person) -> int:
        """The number of the event up to which a state is read at once: every so many, and not before an item that is known."""
        first = next(i for i, item in enumerate(person.recent) if item)
        return max(person.total // self.every * self.every, person.total - len(person.recent) + first + 1)

    def _before(self, person: Person, upto: int) -> np.ndarray:
        """Known items among the last `length` events up to number `upto`."""
        end = len(person.recent) - (person.total - upto)
        window = np.array(person.recent[max(end - self.lister.model.length, 0) : end], dtype=np.int64)
        return window[window > 0]


def _last(items: list[int], count: int) -> list[int]:
    return items[len(items) - count :]


def _stacked(masks: list[Tensor]) -> Tensor:
    """One mask where all are the same, else one a row."""
    return masks[0] if all(mask is masks[0] for mask in masks) else torch.stack(masks)
