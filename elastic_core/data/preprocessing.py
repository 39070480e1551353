"""From a table to histories: the stable k-core, ties, duplicates, dense ids.

Events are sorted stably by (user, time); between events of one time a rule decides (`Ties`): the file's order, its reverse or a
hash.
"""

import functools
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy import ndarray

from elastic_core.core.histories import Catalog, Dataset, Histories, count_numbers
from elastic_core.errors import InputError
from elastic_core.text import natural_order

if TYPE_CHECKING:
    from elastic_core.data.reading.reader import Table

Rule = Literal["", "file", "reversed", "random"]  # of the order among events of one person and time
RULES = [rule for rule in get_args(Rule) if rule]
SHORTEST = 3  # one event to read, one to validate on, one to test on
FEW_PEOPLE, FEW_ITEMS = 50, 30  # a list of ten holds a third of thirty
NEARLY, FEWEST = 0.95, 20  # such a share of all pairs shows an order, if there are so many
FREQUENT_TIES = 0.01  # share of events from which ties are worth a note


class Ties(NamedTuple):
    """How many events share their time with the one before, of the same person, and what decided their order."""

    rule: Rule
    events: float  # share, of all but everybody's first
    valid: float  # share of people whose validation target is one
    test: float
    by_item: bool  # the file has them in the order of their items' ids
    newest_first: bool  # the file has everybody's latest events first

    def __str__(self) -> str:
        shares = f"{_format_percent(self.events)} of events have the same time as the same person’s event before"
        return (
            f"{shares} ({_format_percent(self.test)} in the test, {_format_percent(self.valid)} in validation); {self._decides}"
        )

    @property
    def are_frequent(self) -> bool:
        return self.events > FREQUENT_TIES

    @property
    def note(self) -> str:
        """What is worth saying wherever these data are: an order that is no order of events."""
        if not self.are_frequent or self.rule == "random" or not (self.by_item or self.newest_first):
            return ""
        remedy = " (data.ties=random draws it by chance)" if self.by_item else ""
        return f"{_format_percent(self.events)} of neighbouring events of a person share a time; {self._decides}{remedy}"

    @property
    def _decides(self) -> str:
        if self.rule == "random":
            return "a hash decides"
        text = "they stand in the order of the file" + ", from its end" * (self.rule == "reversed")
        if self.newest_first:
            text += " as it is newest first" if self.rule == "reversed" else ", though it is newest first"
        return text + ", and it is by item id" * self.by_item


def _format_percent(share: float) -> str:
    return f"{share:.2%}" if 0 < share < 0.01 else f"{share:.0%}"


def k_core_mask(users: ndarray, items: ndarray, k: int) -> ndarray:
    """bool [events]: the largest part in which every item has k events and every user max(k, 3).

    Items, then users, with too few events are dropped until nothing changes; the result does not depend on that order.
    """
    keep = np.ones(len(users), dtype=bool)
    n_before, n_left = -1, len(users)
    while n_left != n_before:
        n_before = n_left
        for numbers, least in ((items, k), (users, max(k, SHORTEST))):
            counts = count_numbers(numbers, int(numbers.max(initial=0)) + 1, lambda piece: keep[piece])
            keep[(counts < least)[numbers]] = False
            n_left = int(counts[counts >= least].sum())
    return keep


def preprocess(
    table: "Table", *, name: str, label: str, licence: str, k_core: int, ties: Rule = "", titles_may_be_shared: bool = False
) -> Dataset:
    """Turn a table into a Dataset: exact duplicates out, k-core, stable sort, dense ids.

    `ties` orders events of one person and time; "" takes them as they are in the file, and from its end if it is newest first.
    """
    if k_core < 0:
        raise InputError(f"data.k_core must not be negative, not {k_core}")
    if ties and not table.timed:
        raise InputError(f"{label} has no times, its rows are in order: data.ties has nothing to say")
    (users, user_ids), (items, item_ids) = (_number_ids(table.events[name]) for name in ("user", "item"))
    _at_least_two(user_ids, item_ids, label, "")
    times = table.events["time"].to_numpy() if table.timed else np.zeros(len(users), dtype=np.int8)
    order = _by_user_and_time(users, times)
    users, items, times = users[order], items[order], times[order]
    notes, newest_first, by_item = tuple[str, ...](), False, False
    if table.timed:
        tied = np.append(False, (users[1:] == users[:-1]) & (times[1:] == times[:-1]))  # with the event before
        newest_first, by_item = _order_of_file(order, users, items, tied)
        ties = ties or ("reversed" if newest_first else "file")
        tied_events = np.flatnonzero(tied | np.append(tied[1:], False))  # with another
        moments = np.cumsum(~tied, dtype=np.int32)[tied_events]
        if ties != "file":
            key = -order if ties == "reversed" else _hash_rows(users, user_ids, items, item_ids, times)
            items[tied_events] = items[tied_events[np.lexsort((key[tied_events], moments))]]
        # Rows alike in user, item and time are one event written twice. (Without times a repeat is a real event.)
        repeated_events = tied_events[pd.Series((moments.astype(np.int64) << 32) | items[tied_events]).duplicated().to_numpy()]
        if len(repeated_events):
            notes = (f"{len(repeated_events):,} rows that repeat user, item and time exactly were dropped",)
            users, items, times = (np.delete(column, repeated_events) for column in (users, items, times))
    keep = k_core_mask(users, items, k_core)
    if not keep.any():
        raise InputError(
            f"{label}: nothing is left after the {k_core}-core filter; every user needs {max(k_core, SHORTEST)} events"
        )
    n_all_users = len(user_ids)
    users, user_ids = _renumber_present(users[keep], user_ids)
    items, item_ids = _renumber_present(items[keep], item_ids)
    _at_least_two(user_ids, item_ids, label, f" after the {k_core}-core filter")

    offsets = np.concatenate([[0], np.cumsum(count_numbers(users, len(user_ids)))])
    times = times[keep] if table.timed else np.arange(len(users)) - np.repeat(offsets[:-1], np.diff(offsets))
    tie_summary = Ties(ties, *_tied_shares(times, offsets), by_item, newest_first) if ties else None
    return Dataset(
        name=name,
        label=label,
        catalog=build_catalog(item_ids, table.items),
        histories=Histories(items + np.int32(1), np.floor(times).astype(np.int64, copy=False), offsets, user_ids),
        licence=licence,
        titles_may_be_shared=titles_may_be_shared,
        has_times=table.timed,
        people_left_out=n_all_users - len(user_ids),
        ties=tie_summary,
        notes=(*notes, tie_summary.note) if tie_summary and tie_summary.note else notes,
    )


def size_notes(data: Dataset) -> tuple[str, ...]:
    """Say where data are too small for what is measured on them: few people, or few items beside a list of ten."""
    n_users = data.histories.n_users
    few_users_note = f"only {n_users} people are left: with fewer than {FEW_PEOPLE}, differences between models are mostly chance"
    return tuple(filter(None, (few_users_note if n_users < FEW_PEOPLE else "", list_note(data.catalog.n_items))))


def list_note(items: int) -> str:
    """Say where a list of ten holds a third of the items or more; nothing where it does not."""
    if items > FEW_ITEMS:
        return ""
    held = "all" if items <= 10 else f"{10 / items:.0%}"
    return f"a list of ten holds {held} of the {items} items, so NDCG@10 and HR@10 tell next to nothing"


def _number_ids(ids: pd.Series) -> tuple[ndarray, ndarray]:
    """int32 [events]: the place of every id in the natural order of all, and these."""
    known = ids.astype("category").cat
    codes, texts = known.codes.to_numpy(), np.array([str(text) for text in known.categories.to_list()], dtype=object)
    order = natural_order(texts)
    places = np.empty(len(order), dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return _renumber_present(places[codes], texts[order])


def _by_user_and_time(users: ndarray, times: ndarray) -> ndarray:
    """Rows by user and time; those of one time, or without one, as they stand."""
    first, last = times.min(), times.max()
    bits = int(last - first).bit_length()
    if times.dtype.kind == "i" and bits + int(users.max()).bit_length() < 63:  # one key sorts twice as fast as two
        order = np.argsort((users.astype(np.int64) << bits) | (times - first), kind="stable")
    else:
        order = np.lexsort((times, users))
    return order.astype(np.int32) if len(order) < 2**31 else order


def _renumber_present(numbers: ndarray, ids: ndarray) -> tuple[ndarray, ndarray]:
    """Renumber so that only those that are there count, in the order that they have."""
    is_present = count_numbers(numbers, len(ids)) > 0
    return (np.cumsum(is_present, dtype=np.int32) - np.int32(1))[numbers], ids[is_present]


def _order_of_file(order: ndarray, users: ndarray, items: ndarray, tied: ndarray) -> tuple[bool, bool]:
    """Return whether the file has everybody's latest events first, and whether it has those of one time by item."""
    item_steps = np.sign(np.diff(items)[tied[1:]])
    steps = int(np.count_nonzero(item_steps))
    firsts = np.flatnonzero(~tied)  # of every time of a person; shuffled rows go back in half of all turns
    turns = np.diff(order[firsts])[users[firsts[1:]] == users[firsts[:-1]]]
    n_backward = int(np.count_nonzero(turns < 0))
    return (
        len(turns) >= FEWEST and n_backward >= NEARLY * len(turns),
        steps >= FEWEST and abs(int(item_steps.sum())) >= (2 * NEARLY - 1) * steps,
    )


def _hash_rows(users: ndarray, user_ids: ndarray, items: ndarray, item_ids: ndarray, times: ndarray) -> ndarray:
    """Return a number for every row that hangs on its user's and item's ids, its time and nothing else."""
    mixed = functools.partial(pd.util.hash_array, categorize=False)
    hashes = mixed(times.astype(np.float64).view(np.uint64))
    for ids, places in ((user_ids, users), (item_ids, items)):
        hashes = mixed(hashes ^ mixed(ids)[places])
    return hashes


def _tied_shares(times: ndarray, offsets: ndarray) -> tuple[float, float, float]:
    """Shares of the events that follow another, of validation and of test targets, whose time is that of the event before."""
    tied = np.zeros(len(times), dtype=bool)
    np.equal(times[1:], times[:-1], out=tied[1:])
    tied[offsets[:-1]] = False
    ends = offsets[1:]
    return float(tied.sum() / (len(tied) - len(ends))), float(tied[ends - 2].mean()), float(tied[ends - 1].mean())


def _at_least_two(users: pd.Index | ndarray, items: pd.Index | ndarray, label: str, when: str) -> None:
    for kind, ids in (("user", users), ("item", items)):
        if len(ids) < 2:
            raise InputError(f"{label}: only one {kind} ({ids[0]}){when}; at least two are needed")


def build_catalog(ids: ndarray, items: pd.DataFrame | None) -> Catalog:
    """A catalogue of `ids` (dense order, without padding) with what `items` (item, title, genres) knows about them."""
    padded = np.array(["", *ids], dtype=object)
    if items is None:
        return Catalog(padded)
    known = items.set_index("item").reindex(padded)
    titles = known["title"].fillna("").to_numpy(dtype=object) if "title" in known else None
    genres = tuple(tags if isinstance(tags, tuple) else () for tags in known["genres"]) if "genres" in known else None
    return Catalog(padded, titles, genres)
