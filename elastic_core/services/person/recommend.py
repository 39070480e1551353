"""What would this history be recommended, and what does the list answer when something is changed?"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.core.batches import Batch, needed_columns, reading_batch
from elastic_core.core.contract import Edit, Retrieved
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.labels import join_names
from elastic_core.lists import history_batch
from elastic_core.models import Met, Recommender, memory_of
from elastic_core.services.person.names import split_year
from elastic_core.services.person.people import numbered

BATCH = 256  # people that are read together
VERBS = {
    "new": ("{} is new", "{} are new"),
    "up": ("{} moved up", "{} moved up"),
    "down": ("{} moved down", "{} moved down"),
    "same": ("{} kept its place", "{} kept their places"),
}


@dataclass(frozen=True)
class Reading:
    """What a model may read of a person, oldest first, the item that really came next (None if unknown), and when the events
    happened (seconds; None where nobody knows: in data without times, and in histories that somebody has edited)."""

    items: np.ndarray
    truth: int | None = None
    times: np.ndarray | None = None

    def without_last(self, count: int = 1) -> "Reading":
        """The same person before their last `count` events; at least one event stays."""
        return self.only(np.arange(max(len(self.items) - max(count, 0), 1)))

    def only(self, places: Sequence[int] | np.ndarray) -> "Reading":
        """The same person as if only these events, places from 0, had happened."""
        return Reading(self.items[places], self.truth, None if self.times is None else self.times[places])

    def without(self, place: int) -> "Reading":
        """The same person without one event."""
        return self.only(np.delete(np.arange(len(self.items)), place))


Change = int | None  # of a person: None takes away the last event that is left, -n the n-th event, n >= 0 silences expert n


def places_left(events: int, changes: Sequence[Change]) -> list[int]:
    """Places, from 0, of the events that changes leave of a history; one event always stays."""
    left = list(range(events))
    for change in changes:
        place = left[-1] if change is None else -change - 1
        if len(left) > 1 and place in left:
            left.remove(place)
    return left


def experts_silenced(changes: Sequence[Change]) -> tuple[int, ...]:
    """The experts that changes silence, in their order, each once."""
    return tuple(dict.fromkeys(change for change in changes if change is not None and change >= 0))


class Answer(NamedTuple):
    """`table`: rank, item, title, genres, score, is_truth. The arrays have one entry per item, 0 = padding."""

    table: pd.DataFrame
    chances: np.ndarray  # softmax over the items in the running; 0 for the others
    ranks: np.ndarray  # from 1; 0 for an item that is not in the running
    truth: int | None

    @property
    def running(self) -> int:
        """How many items were ranked."""
        return int(self.ranks.max())

    @property
    def truth_rank(self) -> int | None:
        """Rank of the item that really came next."""
        return None if self.truth is None else int(self.ranks[self.truth])


def reading(dataset: Dataset, user: int) -> Reading:
    """A person's history as a test reads it, and its target."""
    dataset.histories.of(user)  # raises for a user who is not there
    start, end = dataset.histories.offsets[user], dataset.ends("test")[user]
    times = dataset.histories.times[start:end] if dataset.has_times else None
    return Reading(dataset.histories.items[start:end], int(dataset.targets("test")[user]), times)


def batch_of(model: Recommender, dataset: Dataset, users: np.ndarray) -> Batch:
    """What a model reads of people before their test."""
    return reading_batch(dataset, users, dataset.ends("test")[users], model.length)


def batches(model: Recommender, dataset: Dataset, users: np.ndarray) -> Iterator[tuple[np.ndarray, Batch]]:
    """The same, some at a time, with their places among the users."""
    for at in range(0, len(users), BATCH):
        rows = np.arange(at, min(at + BATCH, len(users)))
        yield rows, batch_of(model, dataset, users[rows])


def packed(reads: Sequence[Reading], length: int) -> Batch:
    """Several histories as one batch, the last `length` events of each, and their times, where all are known."""
    wide = needed_columns(np.array([len(read.items) for read in reads]), length)
    rows = [history_batch(read.items, wide, read.times) for read in reads]
    items, when = torch.cat([row.items for row in rows]), [row.times for row in rows if row.times is not None]
    times = torch.cat(when) if len(when) == len(rows) else None
    return Batch(items, items, times=times, padded=bool((items[:, 0] == 0).any()))


class Uneven(Exception):
    """Not as many experts are left to every history, so they are no rectangle: here are the rows that go together."""

    def __init__(self, left: torch.Tensor) -> None:
        super().__init__()
        self.groups = [torch.nonzero(left == count)[:, 0].tolist() for count in left.unique()]


def silence(*silenced: Collection[int]) -> Edit | None:
    """An edit that takes experts out of what every history of a batch retrieved; the others keep their gates. None for none.

    One expert always stays, the best, because a history cannot be read through none. The edit raises Uneven.
    """
    if not any(silenced):
        return None

    def edit(found: Retrieved) -> Retrieved:
        rows = zip(found.experts.tolist(), silenced, strict=True)
        kept = torch.tensor([[expert not in quiet for expert in row] for row, quiet in rows])
        kept[:, 0] |= ~kept.any(1)
        left = kept.sum(1)
        if len(left.unique()) > 1:
            raise Uneven(left)
        return found.keep(torch.nonzero(kept)[:, 1].view(len(kept), -1))

    return edit


@torch.inference_mode()
def retrieved(model: Recommender, read: Reading) -> Retrieved:
    """What a history retrieves, a batch of one. Raises InputError for a model without a memory."""
    return memory_of(model).retrieve(history_batch(read.items, model.length, read.times))


def running(columns: int, read: Reading, stay: bool) -> np.ndarray:
    """bool [columns]: every item but padding and, unless they `stay`, those of the history; what came next always takes part."""
    free = np.ones(columns, dtype=bool)
    free[[0] if stay else [0, *read.items]] = False
    if read.truth is not None:
        free[read.truth] = True
    return free


def order_of(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The items in the running (of finite score), best first, and the rank of each item from 1; 0 where it is not."""
    order = np.argsort(-scores, kind="stable")[: int(np.isfinite(scores).sum())]
    ranks = np.zeros(len(scores), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    return order, ranks


def rank_of_target(scores: np.ndarray, free: np.ndarray, target: int) -> int:
    """Rank of `target` among what is in the running; equal scores rank by item number."""
    own, numbers = scores[target], np.arange(len(scores))
    return int((((scores > own) | ((scores == own) & (numbers < target))) & free).sum()) + 1


@torch.inference_mode()
def answer(
    model: Recommender, data: Dataset | Catalog, read: Reading, top: int = 10, edit: Edit | None = None, stay: bool = False
) -> Answer:
    """Ranks every item as the next one; do items of the history `stay` in the running?

    `edit` changes what was retrieved before it is used (models that retrieve). Raises InputError for an empty history.
    """
    if not len(read.items):
        raise InputError("the history is empty: at least one event is needed")
    batch = history_batch(read.items, model.length, read.times)
    changed: dict[str, Any] = {"edit": edit} if edit else {}
    scores = model.scorer()(model.last_state(batch, **changed), Met.by(batch))[0] if edit else model.score(batch)[0]
    scores = scores.float().masked_fill(~torch.from_numpy(running(len(scores), read, stay)), -torch.inf)
    values = scores.numpy()
    order, ranks = order_of(values)
    catalog, first = _catalog(data), order[:top]
    genres, is_truth = [catalog.genres[i] if catalog.genres else () for i in first], [int(i) == read.truth for i in first]
    table = {
        "rank": ranks[first],
        "item": first,
        "title": catalog.called(first),
        "genres": genres,
        "score": values[first].astype(float),
    }
    return Answer(pd.DataFrame(table).assign(is_truth=is_truth), scores.softmax(0).numpy(), ranks, read.truth)


def recommend(
    model: Recommender,
    data: Dataset | Catalog,
    who: int | str | Sequence[int] | Sequence[str] | np.ndarray,
    top: int = 10,
    edit: Edit | None = None,
    exclude_seen: bool = True,
) -> pd.DataFrame:
    """The `top` next items: for a person, or after a history, oldest first; `id` is an item's id in the data's own files.

    Text is an id of the data's own files (`"cust-075"`, `["50", "181"]`), a number is ours: people from 0, items from 1. For a
    history the items are enough (`run.catalog()`) in place of the data. Raises InputError for what is not there."""
    catalog = _catalog(data)
    if isinstance(who, str | int | np.integer):
        if not isinstance(data, Dataset):
            raise InputError("a person's history is in the data: give these, or the history as a list of items")
        read = reading(data, numbered(data, who) if isinstance(who, str) else int(who))
    else:
        items = np.array([catalog.index(item) if isinstance(item, str) else item for item in who], dtype=np.int64)
        if len(items) and (items.min() < 1 or items.max() > catalog.n_items):
            raise InputError(f"items must lie in 1 to {catalog.n_items}")
        read = Reading(items)
    table = answer(model, data, read, top, edit, not exclude_seen).table
    table.insert(2, "id", [str(catalog.ids[item]) for item in table["item"]])
    return table


def _catalog(data: Dataset | Catalog) -> Catalog:
    return data if isinstance(data, Catalog) else data.catalog


class Moved(NamedTuple):
    """`table`: the list after, with `was` (rank before, 0 = not in the running) and `change` (same, up, down, new)."""

    table: pd.DataFrame
    gone: pd.DataFrame  # rows of the list before that are no longer in it, with `now`
    truth_before: int | None
    truth_after: int | None

    @property
    def counts(self) -> dict[str, int]:
        """How many of the list came in, went up, went down, stayed."""
        found = self.table["change"].value_counts()
        return {change: int(found.get(change, 0)) for change in ("new", "up", "down", "same")}

    @property
    def truth_moved(self) -> str:
        """What became of the item that really came next: `stays at rank 3`, `falls from rank 3 to rank 9`."""
        before, after = self.truth_before, self.truth_after
        if before is None or after is None:
            return "is not known"
        if before == after:
            return f"stays at rank {after}"
        return f"{'rises' if after < before else 'falls'} from rank {before} to rank {after}"

    def summary(self, many: str, most: int = 1) -> str:
        """Who left the list and who came in, by name, at most so many of each."""
        if not len(self.gone):
            return self.sentence(many)
        came = self.table[self.table["change"] == "new"]
        return f"{_some_titles(self.gone, most)} left the list; {_some_titles(came, most)} came in."

    def sentence(self, many: str) -> str:
        """What moved, in words; `many` is what several items are called."""
        total, counts = len(self.table), self.counts
        if counts["same"] == total:
            return f"The list did not move: the same {total} {many} in the same order."
        if counts["new"] == total:
            return f"None of the {total} {many} is the same: all are new."
        parts = [VERBS[change][count > 1].format(count) for change, count in counts.items() if count]
        return f"Of the {total} {many}, {join_names(parts)}."


def _some_titles(rows: pd.DataFrame, most: int) -> str:
    names = [split_year(title)[0] for title in rows["title"]]
    return join_names([*names[:most], f"{len(names) - most} more"] if len(names) > most else names)


def moved(before: Answer, after: Answer) -> Moved:
    """How the list answered a change."""
    table = after.table.assign(was=before.ranks[after.table["item"]])
    rank, was, stayed = table["rank"], table["was"], table["item"].isin(before.table["item"])
    table["change"] = np.select([~stayed, rank == was, rank < was], ["new", "same", "up"], "down")
    gone = before.table[~before.table["item"].isin(table["item"])]
    return Moved(table, gone.assign(now=after.ranks[gone["item"]]), before.truth_rank, after.truth_rank)
