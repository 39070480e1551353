"""Lists of the next items for many people at once: by their ids, or after histories that are given.

    run = elastic_core.open_run("checkpoints/ml-100k-elastic")
    run.recommend(["196", "22"], k=5).table                        people of the run's data, by their ids there
    run.recommend([["50", "181"], ["172"]]).table                  after histories of item ids, oldest first
    run.recommend({"anna": ["50", "181"]}, exclude=["172"])        the same, with names
    run.recommend()                                                everybody in the data

People need the data that the run learned from, histories only the run's folder. Items that the run does not know are left out and
counted. Somebody of whom nothing is known gets what is popular, where the run knows that: see `Lister.popular`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy import ndarray
from torch import Tensor

from elastic_core.core.batches import Batch, needed_columns
from elastic_core.core.evaluate import LARGE, MOST_SCORES
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.models import Met, Recommender
from elastic_core.scale.stretches import Stretches

Who = str | Sequence[str] | Sequence[Sequence[str]] | Mapping[str, Sequence[str]] | None
TOGETHER = 256  # people in one pass, at most
MOST = 10_000  # items of one list
HISTORY, POPULAR = "history", "popularity"


@dataclass(frozen=True, eq=False)
class Lists:
    """One list a person, best first. Where fewer than k items are left for somebody, the last places are item 0 and -inf."""

    catalog: Catalog
    people: list[str]  # ids or names; of histories without names their numbers, from 0
    items: ndarray  # int64 [B, k] dense ids
    scores: ndarray  # float32 [B, k]; of those who got what is popular, training events
    known: ndarray  # int64 [B] events that were read
    unknown: ndarray  # int64 [B] events that were left out, as the run does not know their items
    bases: list[str]  # what a list rests on: the person's history, or popularity

    @cached_property
    def table(self) -> pd.DataFrame:
        """person, rank, item (its id in the data), title, score, basis; one row a suggestion."""
        rows, ranks = np.nonzero(self.items)
        items = self.items[rows, ranks]
        return pd.DataFrame(
            {
                "person": np.array(self.people, dtype=object)[rows],
                "rank": ranks + 1,
                "item": self.catalog.ids[items].astype(str).astype(object),
                "title": np.array([self.catalog.title(int(item)) for item in items], dtype=object),
                "score": self.scores[rows, ranks],
                "basis": np.array(self.bases, dtype=object)[rows],
            }
        )


class Lister:
    """A model that is asked for lists again and again; `data` gives the data when somebody first asks for what is in them."""

    def __init__(
        self, model: Recommender, catalog: Catalog, data: Callable[[], Dataset] | None = None, counts: ndarray | None = None
    ) -> None:
        self.model, self.catalog, self._data, self._counts = model.eval(), catalog, data, counts
        with torch.inference_mode():
            self.reading = model.reading() if model.trained else None

    @cached_property
    def dataset(self) -> Dataset:
        """With titles that could not come along with the run. Raises InputError where the data cannot be had, or hold other items
        than the run learned."""
        if self._data is None:
            raise InputError("people by their ids need the data that the run learned from; give histories of items")
        found = self._data()
        if found.catalog.ids.astype(str).tolist() != self.catalog.ids.astype(str).tolist():
            raise InputError(f"the run learned other items than {found.label} holds now")
        self.catalog = found.catalog if self.catalog.titles is None else self.catalog
        return found

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The people of the data by their ids."""
        return {str(raw): number for number, raw in enumerate(self.dataset.histories.user_ids)}

    @cached_property
    def popular(self) -> Tensor:
        """Training events of every item, float `[n_items + 1]`: for those of whom nothing is known. From the run's items.csv,
        else from the data; raises InputError where neither tells."""
        if self._counts is not None:
            return torch.from_numpy(self._counts).float()
        if self._data is None:
            raise InputError("nothing is known of this person, and this run does not know what is popular")
        return torch.from_numpy(self.dataset.counts()).float()

    def recommend(self, who: Who = None, k: int = 10, **which: Any) -> Lists:
        """The `k` best next items of everybody in `who`: an id or ids of people of the data (None: all of them), or histories
        (lists of item ids, oldest first), which may have names.

        `which`: as in `stretches`.
        Raises InputError for a person who is not in the data, and where no item is left.
        """
        parts = list(self.stretches(who, k, **which))
        if not parts:
            nobody = np.zeros(0, dtype=np.int64)
            return Lists(self.catalog, [], np.zeros((0, k), np.int64), np.zeros((0, k), np.float32), nobody, nobody, [])
        items, scores, known, unknown = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("items", "scores", "known", "unknown")
        )
        people, bases = [one for part in parts for one in part.people], [one for part in parts for one in part.bases]
        return Lists(self.catalog, people, items, scores, known, unknown, bases)

    def stretches(
        self, who: Who = None, k: int = 10, *, exclude: Iterable[str] = (), only: Iterable[str] | None = None, seen: bool = False,
        before_test: bool = False,
    ) -> Iterator[Lists]:  # fmt: skip
        """As `recommend`, some hundred people at a time, so that what is kept does not grow with their number.

        `exclude` are ids of items that nobody gets, `only` of those that may be had at all; ids that the run does not know
        change nothing there. `seen`: also items of the history. `before_test`: people before the event that tests ask for, as
        the command `recommend --user` reads them."""
        if not 1 <= k <= MOST:
            raise InputError(f"a list has 1 to {MOST:,} items, not {k}")
        running, together = self.running(exclude, only), max(1, min(TOGETHER, MOST_SCORES // (self.catalog.n_items + 1)))
        if not running.any():
            raise InputError("no item is left to suggest: the run knows none that `only` allows and `exclude` does not take away")
        people, given = self._asked(who)
        for start in range(0, len(people), together):
            some = people[start : start + together]
            if given is None:
                (histories, times), unknown = self._of_data(some, before_test), [0] * len(some)
            else:
                read = [self._known(given[name]) for name in some]
                histories, unknown, times = [items for items, _ in read], [count for _, count in read], None
            items, scores = self.rank(histories, times, k, running, seen)
            known, bases = [len(history) for history in histories], [HISTORY if len(one) else POPULAR for one in histories]
            yield Lists(self.catalog, some, items, scores, np.array(known), np.array(unknown), bases)

    def running(self, exclude: Iterable[str] = (), only: Iterable[str] | None = None) -> Tensor:
        """Which items may be suggested, bool `[n_items + 1]`."""
        found = torch.ones(self.catalog.n_items + 1, dtype=torch.bool)
        if only is not None:
            found[:] = False
            found[self.known_items(only)[0]] = True
        found[self.known_items(exclude)[0]] = False
        found[0] = False
        return found

    def known_items(self, ids: Iterable[str]) -> tuple[ndarray, int]:
        """Dense numbers int64 of those items that the run knows, and how many it does not."""
        given = [str(raw) for raw in ids]
        found = [number for raw in given if (number := self.catalog.find(raw))]
        return np.array(found, dtype=np.int64), len(given) - len(found)

    def _asked(self, who: Who) -> tuple[list[str], Mapping[str, Sequence[str]] | None]:
        """Whose lists these are, and the histories that were given; None for people of the data."""
        if isinstance(who, Mapping):
            return [str(name) for name in who], {str(name): history for name, history in who.items()}
        listed = list(self.numbers) if who is None else [who] if isinstance(who, str) else list(who)
        people = [one for one in listed if isinstance(one, str)]
        if listed and len(people) == len(listed):
            if missing := [one for one in people if one not in self.numbers]:
                raise InputError(f"{self.dataset.label} has no person {missing[0]!r} ({len(missing):,} of these are not in it)")
            return people, None
        return self._asked({str(i): history for i, history in enumerate(listed)})

    def _known(self, history: Sequence[str]) -> tuple[ndarray, int]:
        if isinstance(history, str) or not isinstance(history, Iterable):
            raise InputError("a history is a list of item ids, as in [['50', '181']]; a list of texts is one of people")
        return self.known_items(history)

    def _of_data(self, people: list[str], before_test: bool) -> tuple[list[ndarray], list[ndarray] | None]:
        data, users = self.dataset, [self.numbers[one] for one in people]
        starts, ends = data.histories.offsets[:-1], data.ends("test") if before_test else data.histories.offsets[1:]
        cuts = [slice(starts[user], ends[user]) for user in users]
        times = [data.histories.times[cut] for cut in cuts] if data.has_times else None
        return [data.histories.items[cut] for cut in cuts], times

    @torch.inference_mode()
    def rank(
        self, histories: Sequence[ndarray], times: Sequence[ndarray] | None, k: int, running: Tensor, seen: bool = False
    ) -> tuple[ndarray, ndarray]:
        """Dense items int64 and scores float32 `[B, k]` after histories of dense items, of those that are in the `running`,
        `[n_items + 1]` or `[B, n_items + 1]`."""
        batch = batch_of(histories, self.model.length, times)
        full = [torch.from_numpy(np.asarray(one, dtype=np.int64)) for one in histories]
        row = torch.repeat_interleave(torch.tensor([0 if seen else len(one) for one in full]))
        out = torch.cat([full[0][:0], *([] if seen else full)])
        if self.reading is None or self.catalog.n_items < LARGE:
            values, items = best(self._scores(batch, full), k, running, row, out)
        else:
            values, items = self._stretched(batch, k, running, row, out, [not len(one) for one in full])
        return items.numpy(), values.numpy()

    def _scores(self, batch: Batch, full: list[Tensor]) -> Tensor:
        """`[B, n_items + 1]`, training events for those without a history."""
        if self.reading is None:
            found = self.model.score(batch).float()
        else:
            state, scorer = self.reading
            found = scorer(state(batch), Met.by(batch)).float()
        if empty := [i for i, one in enumerate(full) if not len(one)]:
            found = found.clone()
            found[empty] = self.popular
        return found

    def _stretched(
        self, batch: Batch, k: int, running: Tensor, row: Tensor, out: Tensor, empty: list[bool]
    ) -> tuple[Tensor, Tensor]:
        """As `best`, a stretch of a large catalogue at a time."""
        assert self.reading is not None
        state, scorer = self.reading
        found: tuple[Tensor, Tensor] | None = None
        scores, nobody = Stretches(scorer, state(batch), Met.by(batch)), torch.tensor(empty)
        for part in scores:
            values = scores[part].float()
            if nobody.any():
                values[nobody] = self.popular[part]
            inside = (out >= part.start) & (out < part.stop)
            some = best(values, k, running[..., part], row[inside], out[inside] - part.start)
            some = (some[0], torch.where(some[0] > -torch.inf, some[1] + part.start, 0))
            found = some if found is None else merged(found, some, k)
        assert found is not None
        return found


def best(scores: Tensor, k: int, running: Tensor, row: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Scores `[B, n]` → values and columns `[B, k]`, best first, equal ones by their number; -inf and 0 where none is left.

    `running`, `[n]` or `[B, n]`, are the columns in the running, `row`, `out` `[E]` what else is out of it. Raises InputError
    for NaN and +inf.
    """
    scores = scores.masked_fill(~running, -torch.inf)
    scores[row, out] = -torch.inf
    if not bool((scores.amax(1) < torch.inf).all()):  # NaN wins every maximum
        raise InputError("the model gives scores that are no numbers: it has diverged")
    size = min(k, scores.shape[1])
    values, columns = scores.topk(size)
    tied = ((scores >= values[:, -1:]).sum(1) > size) & (values[:, -1] > -torch.inf)
    for i in tied.nonzero().flatten().tolist():  # which of the equal ones at the end came in is up to nobody
        columns[i] = scores[i].argsort(descending=True, stable=True)[:size]
    columns = columns.sort(1).values
    values, order = scores.gather(1, columns).sort(dim=1, descending=True, stable=True)
    columns = columns.gather(1, order).masked_fill(values == -torch.inf, 0)
    short = (0, k - size)
    return torch.nn.functional.pad(values, short, value=-torch.inf), torch.nn.functional.pad(columns, short)


def merged(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor], k: int) -> tuple[Tensor, Tensor]:
    """The best `k` of both; of equal ones those of the first."""
    values, order = torch.cat([first[0], second[0]], 1).sort(dim=1, descending=True, stable=True)
    return values[:, :k], torch.cat([first[1], second[1]], 1).gather(1, order)[:, :k]


def batch_of(histories: Sequence[ndarray], length: int, times: Sequence[ndarray] | None = None) -> Batch:
    """Histories of dense ids, oldest first, as a model of this length reads them; one may be empty."""
    columns = needed_columns(np.array([len(one) for one in histories]), length)

    def padded(values: Sequence[ndarray]) -> Tensor:
        found = np.zeros((len(values), columns), dtype=np.int64)
        for row, one in zip(found, values, strict=True):
            recent = one[-columns:]
            row[columns - len(recent) :] = recent
        return torch.from_numpy(found)

    items = padded(histories)
    padding = bool((items[:, 0] == 0).any())
    return Batch(items, items, times=None if times is None else padded(times), padded=padding)


def history_batch(items: list[int] | np.ndarray, length: int, times: list[int] | np.ndarray | None = None) -> Batch:
    """One history given as dense item ids, oldest first, and when they were met (seconds), where that is known."""

    def padded(values: list[int] | np.ndarray) -> Tensor:
        row = torch.zeros(1, length, dtype=torch.int64)
        recent = torch.as_tensor(np.asarray(values, dtype=np.int64)[-length:])
        if len(recent):
            row[0, -len(recent) :] = recent
        return row

    row = padded(items)
    return Batch(row, row, times=None if times is None else padded(times))
