"""Which items does a model rank first after a history, and how does the list change when the history or its experts do?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.core.batches import Batch, histories_batch, reading_batch
from elastic_core.core.contract import Edit, Retrieved
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender, SeenItems, as_retrieving_model
from elastic_core.results.systems import join_names
from elastic_core.services.edits import EditedUser
from elastic_core.services.person.names import item_table, split_year

BATCH = 256  # people that are read together
VERBS = {
    "new": ("{} is new", "{} are new"),
    "up": ("{} moved up", "{} moved up"),
    "down": ("{} moved down", "{} moved down"),
    "same": ("{} kept its place", "{} kept their places"),
}
BELOW = "below"  # what happened to what really came next, where it stands below the list
Scales = Mapping[int, float]  # by which factor experts count more or less than they would; 0: silenced
UNSCALED: Scales = MappingProxyType({})


# --- what a model reads ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class History:
    """What a model may read of a person, oldest first, the item that really came next (None if unknown), and when the events
    happened (seconds; None where nobody knows: in data without times, and where items were added). `basket`: all that came
    next, that item among it, where a whole basket did. `prediction_time`: when it came (seconds)."""

    items: np.ndarray
    truth: int | None = None
    times: np.ndarray | None = None
    basket: tuple[int, ...] = ()
    prediction_time: int | None = None

    @property
    def next_is_seen(self) -> bool:
        """Whether what really came next is in the history, too."""
        return self.truth is not None and self.truth in self.items

    def batch(self, length: int) -> Batch:
        """What a model of this length reads of it."""
        return stack_histories([self], length)

    def select_events(self, indices: Sequence[int] | np.ndarray) -> "History":
        """The same person as if only these events, counted from 0, had happened."""
        return replace(self, items=self.items[indices], times=None if self.times is None else self.times[indices])

    def remove_event(self, index: int) -> "History":
        """The same person without one event."""
        return self.select_events(np.delete(np.arange(len(self.items)), index))

    def apply_edits(self, edited_user: EditedUser) -> "History":
        """The same person after edits. Nobody knows what comes next where none of their own events is left."""
        if not len(edited_user.own_indices):
            return History(edited_user.items)
        times = None if self.times is None or edited_user.n_added else self.times[edited_user.own_indices]
        return replace(self, items=edited_user.items, times=times)


def user_history(dataset: Dataset, user: int, n_events: int | None = None) -> History:
    """A person's history before the event after `n_events` (before their test, without it), and that event's item.

    Raises InputError for a user who is not there, and for a number of events that leaves nothing to read or nothing to come."""
    items = dataset.histories.user_items(user)
    start, end, truth = dataset.histories.offsets[user], dataset.split_ends("test")[user], dataset.target_items("test")[user]
    basket = dataset.next_items(user)
    if n_events is not None:
        if not 1 <= n_events < len(items):
            raise InputError(f"this history can be read up to event 1 … {len(items) - 1}, not {n_events}")
        end, truth, basket = start + n_events, items[n_events], items[n_events : n_events + 1]
    times = dataset.histories.times[start : end + 1] if dataset.has_times else None
    past, now = (None, None) if times is None else (times[:-1], int(times[-1]))
    return History(dataset.histories.items[start:end], int(truth), past, tuple(basket.tolist()), now)


def batch_of(model: Recommender, dataset: Dataset, users: np.ndarray) -> Batch:
    """What a model reads of people before their test."""
    return reading_batch(dataset, users, dataset.split_ends("test")[users], model.length)


def read_batches(model: Recommender, dataset: Dataset, users: np.ndarray) -> Iterator[tuple[np.ndarray, Batch]]:
    """The same, some at a time, with their indices among the users."""
    for at in range(0, len(users), BATCH):
        rows = np.arange(at, min(at + BATCH, len(users)))
        yield rows, batch_of(model, dataset, users[rows])


def stack_histories(histories: Sequence[History], length: int) -> Batch:
    """Several histories as one batch, the last `length` events of each, and their times, where all are known."""
    times = [history.times for history in histories if history.times is not None]
    batch = histories_batch([history.items for history in histories], length, times if len(times) == len(histories) else None)
    moments = [history.prediction_time for history in histories if history.prediction_time is not None]
    known = batch.times is not None and len(moments) == len(histories)
    return replace(batch, prediction_times=torch.tensor(moments)) if known else batch


# --- experts that count more or less --------------------------------------------------------------------------------------


def scale_factors(retrieved: Retrieved, scales: Sequence[Scales]) -> torch.Tensor:
    """float [B, k]: by which factor every retrieved expert counts, under the scales of its row.

    One expert always counts, the best, because a history cannot be read through none."""
    rows = zip(retrieved.experts.tolist(), scales, strict=True)
    factors = torch.tensor([[scale.get(expert, 1.0) for expert in experts] for experts, scale in rows])
    is_silent = (factors == 0).all(1)
    factors[is_silent, 0] = 1.0
    return factors


def scale_ranks(retrieved: Retrieved, factors: torch.Tensor) -> Retrieved:
    """Take out the experts whose factor is 0, and scale the others: `factors` [B, k], with as many zeros in every row."""
    active = torch.nonzero(factors)[:, 1].view(len(factors), -1)
    retrieved = retrieved.select_ranks(active)
    factors = factors.gather(1, active)
    if (factors == 1).all():  # the others keep their gates to the last bit
        return retrieved
    return retrieved._replace(turned=factors.to(retrieved.gates))


def scale_experts(*scales: Scales) -> Edit | None:
    """An edit of what every history of a batch retrieves, where as many experts are left to each; None where all are as they
    are."""
    if not any(scales):
        return None
    return lambda retrieved: scale_ranks(retrieved, scale_factors(retrieved, scales))


@torch.inference_mode()
def retrieve_experts(model: Recommender, history: History) -> Retrieved:
    """What a history retrieves, a batch of one. Raises InputError for a model without a memory."""
    return as_retrieving_model(model).retrieve(history.batch(model.length))


# --- lists ----------------------------------------------------------------------------------------------------------------


class Recommendation(NamedTuple):
    """`table`: rank, item, title, genres, score, is_truth. The arrays have one entry per item, 0 = padding."""

    table: pd.DataFrame
    below: pd.DataFrame  # the same of what really came next, where it is not among them
    chances: np.ndarray  # softmax over the candidates; 0 for the others
    ranks: np.ndarray  # from 1; 0 for an item that is no candidate
    truth: int | None

    @property
    def n_candidates(self) -> int:
        """How many items were ranked."""
        return int(self.ranks.max())

    @property
    def truth_rank(self) -> int | None:
        """Rank of the item that really came next."""
        return None if self.truth is None else int(self.ranks[self.truth])


@torch.inference_mode()
def score_batch(model: Recommender, batch: Batch, edit: Edit | None = None) -> torch.Tensor:
    """float32 [B, n_items + 1]; `edit` changes what was retrieved before it is used (models that retrieve)."""
    if edit is None:
        return model.score(batch).float()
    return model.scorer()(as_retrieving_model(model).last_state(batch, edit), SeenItems.from_batch(batch)).float()


def candidate_mask(n_columns: int, history: History, keep_seen: bool, allowed: np.ndarray | None = None) -> np.ndarray:
    """bool [n_columns]: every item but padding and, unless `keep_seen`, those of the history; what came next always takes part.
    `allowed [n_columns]`: of these alone."""
    candidates = np.ones(n_columns, dtype=bool)
    candidates[[0] if keep_seen else [0, *history.items]] = False
    if history.truth is not None:
        candidates[history.truth] = True
    return candidates if allowed is None else candidates & allowed


def rank_scores(
    scores: np.ndarray, history: History, keep_seen: bool, allowed: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The candidates, best first, and the rank of each item from 1; 0 where it is none. Equal scores rank by item number."""
    candidates = candidate_mask(len(scores), history, keep_seen, allowed)
    order = np.argsort(np.where(candidates, -scores, np.inf), kind="stable")[: candidates.sum()]
    ranks = np.zeros(len(scores), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    return order, ranks


def rank_items(
    model: Recommender,
    data: Dataset | Catalog,
    history: History,
    top: int = 10,
    edit: Edit | None = None,
    keep_seen: bool = False,
    allowed: np.ndarray | None = None,
) -> Recommendation:
    """Rank every item as the next one, those of the history with `keep_seen` alone. `edit`: see `score_batch`; `allowed`: see
    `candidate_mask`.

    Raises InputError for an empty history."""
    if not len(history.items):
        raise InputError("the history is empty: at least one event is needed")
    scores = score_batch(model, history.batch(model.length), edit)[0]
    order, ranks = rank_scores(scores.numpy(), history, keep_seen, allowed)
    items_listed = order[(ranks[order] <= top) | (order == (history.truth or 0))]
    table = item_table(_catalog_of(data), items_listed)
    table = table.assign(
        score=scores[items_listed].numpy().astype(float), is_truth=np.isin(items_listed, [history.truth or 0, *history.basket])
    )
    table.insert(0, "rank", ranks[items_listed])
    chances = scores.masked_fill(torch.from_numpy(ranks == 0), -torch.inf).softmax(0).numpy()
    return Recommendation(table[:top], table[top:], chances, ranks, history.truth)


def _catalog_of(data: Dataset | Catalog) -> Catalog:
    return data if isinstance(data, Catalog) else data.catalog


# --- how a list changes ---------------------------------------------------------------------------------------------------


class ListChange(NamedTuple):
    """`table`: the list after, with `was` (rank before, 0 = no candidate) and `change` (same, up, down, new)."""

    table: pd.DataFrame
    below: pd.DataFrame  # the same of what really came next, where it is not in the list
    lost_rows: pd.DataFrame  # rows of the list before that are no longer in it, with `now`
    truth_before: int | None
    truth_after: int | None

    @property
    def counts(self) -> dict[str, int]:
        """How many of the list came in, went up, went down, stayed."""
        return self.table["change"].value_counts().reindex([*VERBS], fill_value=0).to_dict()

    @property
    def n_true(self) -> tuple[int, int]:
        """How many of the list really came next, before and after."""
        stayed = self.table["change"] != "new"
        before = self.table["is_truth"][stayed].sum() + self.lost_rows["is_truth"].sum()
        return int(before), int(self.table["is_truth"].sum())

    @property
    def basket_guessed(self) -> str:
        """How much of the next basket is in the list: `Of the ten suggestions, 4 were in the next basket; now it is 3.`"""
        before, after = self.n_true
        if before == after:
            count_text = f"{after or 'none'} of the ten {'were' if after > 1 else 'was'} in the next basket"
            return f"With and without your changes, {count_text}."
        began = f"{before or 'none'} {'were' if before > 1 else 'was'} in the next basket"
        return f"Of the ten suggestions, {began}; now it is {after or 'none'}."

    @property
    def truth_moved(self) -> str:
        """What became of the item that really came next: `stays at rank 3`, `falls from rank 3 to rank 9`."""
        before, after = self.truth_before, self.truth_after
        if before is None or after is None:
            return "is not known"
        if before == after:
            return f"stays at rank {after}"
        return f"{'rises' if after < before else 'falls'} from rank {before} to rank {after}"

    def summary(self, plural: str) -> str:
        """Who left the list and who came in, by name; else what moved in it. `plural` is what several items are called."""
        total, counts = len(self.table), self.counts
        if len(self.lost_rows):
            new_rows = self.table[self.table["change"] == "new"]
            return f"{_first_title(self.lost_rows)} left the list; {_first_title(new_rows)} came in."
        if counts["same"] == total:
            return f"The list did not move: the same {total} {plural} in the same order."
        parts = [VERBS[change][count > 1].format(count) for change, count in counts.items() if count]
        return f"Of the {total} {plural}, {join_names(parts)}."


def _first_title(rows: pd.DataFrame) -> str:
    """The first of those that really came next, with a star, or else the first; and how many others there are."""
    n_others = len(rows) - 1
    more_text, first = [f"{n_others} other{'s' * (n_others > 1)}"] if n_others else [], rows.loc[rows["is_truth"].idxmax()]
    return join_names([f"{'★ ' if first['is_truth'] else ''}{split_year(first['title'])[0]}", *more_text])


def compare_lists(before: Recommendation, after: Recommendation) -> ListChange:
    """How a list changed."""
    table = after.table.assign(was=before.ranks[after.table["item"]])
    rank, rank_before, was_listed = table["rank"], table["was"], table["item"].isin(before.table["item"])
    table["change"] = np.select([~was_listed, rank == rank_before, rank < rank_before], ["new", "same", "up"], "down")
    below = after.below.assign(was=before.ranks[after.below["item"]], change=BELOW)
    lost_rows = before.table[~before.table["item"].isin(table["item"])]
    return ListChange(table, below, lost_rows.assign(now=after.ranks[lost_rows["item"]]), before.truth_rank, after.truth_rank)
