"""What would this history be recommended, and what does the list answer when something is changed?"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.core.batches import Batch, histories_batch, history_batch, reading_batch
from elastic_core.core.contract import Edit, Retrieved
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.labels import join_names
from elastic_core.models import Met, Recommender, memory_of
from elastic_core.services.person.names import item_table, split_year
from elastic_core.services.person.people import numbered

BATCH = 256  # people that are read together
VERBS = {
    "new": ("{} is new", "{} are new"),
    "up": ("{} moved up", "{} moved up"),
    "down": ("{} moved down", "{} moved down"),
    "same": ("{} kept its place", "{} kept their places"),
}
BELOW = "below"  # what happened to what really came next, where it stands below the list


@dataclass(frozen=True)
class Reading:
    """What a model may read of a person, oldest first, the item that really came next (None if unknown), and when the events
    happened (seconds; None where nobody knows: in data without times, and in histories that somebody has edited)."""

    items: np.ndarray
    truth: int | None = None
    times: np.ndarray | None = None

    def batch(self, length: int) -> Batch:
        """What a model of this length reads of it."""
        return history_batch(self.items, length, self.times)

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
    below: pd.DataFrame  # the same of what really came next, where it is not among them
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
    times = [read.times for read in reads if read.times is not None]
    return histories_batch([read.items for read in reads], length, times if len(times) == len(reads) else None)


def heard(found: Retrieved, silenced: Sequence[Collection[int]]) -> torch.Tensor:
    """bool [B, k]: which of the experts that every history retrieved are not among those `silenced` in it.

    One expert always stays, the best, because a history cannot be read through none."""
    rows = zip(found.experts.tolist(), silenced, strict=True)
    kept = torch.tensor([[expert not in quiet for expert in row] for row, quiet in rows])
    kept[:, 0] |= ~kept.any(1)
    return kept


def silence(*silenced: Collection[int]) -> Edit | None:
    """An edit that takes experts out of what every history of a batch retrieved, where as many are left to each; the others keep
    their gates. None for none."""
    if not any(silenced):
        return None
    return lambda found: found.keep(torch.nonzero(heard(found, silenced))[:, 1].view(len(silenced), -1))


@torch.inference_mode()
def retrieved(model: Recommender, read: Reading) -> Retrieved:
    """What a history retrieves, a batch of one. Raises InputError for a model without a memory."""
    return memory_of(model).retrieve(read.batch(model.length))


@torch.inference_mode()
def scored(model: Recommender, batch: Batch, edit: Edit | None = None) -> torch.Tensor:
    """float32 [B, n_items + 1]; `edit` changes what was retrieved before it is used (models that retrieve)."""
    if edit is None:
        return model.score(batch).float()
    return model.scorer()(memory_of(model).last_state(batch, edit), Met.by(batch)).float()


def running(columns: int, read: Reading, stay: bool) -> np.ndarray:
    """bool [columns]: every item but padding and, unless they `stay`, those of the history; what came next always takes part."""
    free = np.ones(columns, dtype=bool)
    free[[0] if stay else [0, *read.items]] = False
    if read.truth is not None:
        free[read.truth] = True
    return free


def ranked(scores: np.ndarray, read: Reading, stay: bool) -> tuple[np.ndarray, np.ndarray]:
    """The items in the running, best first, and the rank of each item from 1; 0 where it is not. Equal scores rank by item
    number."""
    free = running(len(scores), read, stay)
    order = np.argsort(np.where(free, -scores, np.inf), kind="stable")[: free.sum()]
    ranks = np.zeros(len(scores), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    return order, ranks


def answer(
    model: Recommender, data: Dataset | Catalog, read: Reading, top: int = 10, edit: Edit | None = None, stay: bool = False
) -> Answer:
    """Ranks every item as the next one; do items of the history `stay` in the running?

    `edit`: see `scored`. Raises InputError for an empty history."""
    if not len(read.items):
        raise InputError("the history is empty: at least one event is needed")
    scores = scored(model, read.batch(model.length), edit)[0]
    order, ranks = ranked(scores.numpy(), read, stay)
    shown = order[(ranks[order] <= top) | (order == (read.truth or 0))]
    table = item_table(_catalog(data), shown)
    table = table.assign(score=scores[shown].numpy().astype(float), is_truth=shown == (read.truth or 0))
    table.insert(0, "rank", ranks[shown])
    chances = scores.masked_fill(torch.from_numpy(ranks == 0), -torch.inf).softmax(0).numpy()
    return Answer(table[:top], table[top:], chances, ranks, read.truth)


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
    if not isinstance(who, str | int | np.integer):
        items = np.array([catalog.index(item) if isinstance(item, str) else item for item in who], dtype=np.int64)
        if ((items < 1) | (items > catalog.n_items)).any():
            raise InputError(f"items must lie in 1 to {catalog.n_items}")
        read = Reading(items)
    elif isinstance(data, Dataset):
        read = reading(data, numbered(data, who) if isinstance(who, str) else int(who))
    else:
        raise InputError("a person's history is in the data: give these, or the history as a list of items")
    table = answer(model, data, read, top, edit, not exclude_seen).table
    table.insert(2, "id", [str(catalog.ids[item]) for item in table["item"]])
    return table


def _catalog(data: Dataset | Catalog) -> Catalog:
    return data if isinstance(data, Catalog) else data.catalog


class Moved(NamedTuple):
    """`table`: the list after, with `was` (rank before, 0 = not in the running) and `change` (same, up, down, new)."""

    table: pd.DataFrame
    below: pd.DataFrame  # the same of what really came next, where it is not in the list
    gone: pd.DataFrame  # rows of the list before that are no longer in it, with `now`
    truth_before: int | None
    truth_after: int | None

    @property
    def counts(self) -> dict[str, int]:
        """How many of the list came in, went up, went down, stayed."""
        return self.table["change"].value_counts().reindex([*VERBS], fill_value=0).to_dict()

    @property
    def truth_moved(self) -> str:
        """What became of the item that really came next: `stays at rank 3`, `falls from rank 3 to rank 9`."""
        before, after = self.truth_before, self.truth_after
        if before is None or after is None:
            return "is not known"
        if before == after:
            return f"stays at rank {after}"
        return f"{'rises' if after < before else 'falls'} from rank {before} to rank {after}"

    def summary(self, many: str) -> str:
        """Who left the list and who came in, by name; else what moved in it. `many` is what several items are called."""
        total, counts = len(self.table), self.counts
        if len(self.gone):
            return f"{_first_title(self.gone)} left the list; {_first_title(self.table[self.table['change'] == 'new'])} came in."
        if counts["same"] == total:
            return f"The list did not move: the same {total} {many} in the same order."
        parts = [VERBS[change][count > 1].format(count) for change, count in counts.items() if count]
        return f"Of the {total} {many}, {join_names(parts)}."


def _first_title(rows: pd.DataFrame) -> str:
    more = [f"{len(rows) - 1} more"] if len(rows) > 1 else []
    return join_names([split_year(rows["title"].iloc[0])[0], *more])


def moved(before: Answer, after: Answer) -> Moved:
    """How the list answered a change."""
    table = after.table.assign(was=before.ranks[after.table["item"]])
    rank, was, stayed = table["rank"], table["was"], table["item"].isin(before.table["item"])
    table["change"] = np.select([~stayed, rank == was, rank < was], ["new", "same", "up"], "down")
    below = after.below.assign(was=before.ranks[after.below["item"]], change=BELOW)
    gone = before.table[~before.table["item"].isin(table["item"])]
    return Moved(table, below, gone.assign(now=after.ranks[gone["item"]]), before.truth_rank, after.truth_rank)
