"""Baskets: events of one person at one time are a set, and the last set is held out instead of the last event.

In a shop's data most events share their time with the one before, and the order inside a basket is an accident of the file.
So nothing rests on it. Inside a basket, events stand in an order that follows from a hash of user, item and time; training
draws another one every epoch. The test's target is the first item of the last basket in that order, that of validation the
first of the basket before, and a history ends before the basket that its target is in.

Training asks after every event for an item of the next basket, as the test does. Asked for the next event instead, nearly always
another one of the same basket, a model learns what lies in one basket: ELASTIC's validation NDCG@10 on groceries was then 0.134
after three epochs and not 0.149.
"""

import functools
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy import ndarray

from elastic_core.core.histories import Dataset, Histories, Split
from elastic_core.errors import InputError

FEWEST = 3  # baskets of a person: one to read, one to validate on, one to test on
MOSTLY = 0.6  # share of neighbouring events with one time from which a file is taken for baskets; MovieLens's ratings have 0.51


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BasketDataset(Dataset):
    """Histories whose last basket is held out. Everybody has at least `FEWEST` baskets."""

    in_baskets: ClassVar[bool] = True

    baskets: ndarray  # int32 [events], number of the basket of each event, ascending
    valid_starts: ndarray  # int64 [users], flat position where everybody's last basket but one begins
    test_starts: ndarray  # int64 [users], and the last one

    def split_arrays(self) -> tuple[ndarray, ...]:
        return *super().split_arrays(), self.baskets.astype("<i4", copy=False)

    def split_ends(self, split: Split) -> ndarray:
        return self.test_starts if split == "test" else self.valid_starts

    def target_items(self, split: Split) -> ndarray:
        if split == "train":
            raise InputError("the training split has no single target a user")
        return self.histories.items[self.split_ends(split)]

    def next_items(self, user: int, split: Split = "test") -> ndarray:
        end = self.test_starts[user] if split != "test" else self.histories.offsets[user + 1]
        return self.histories.items[self.split_ends(split)[user] : end]

    def reorder_events(self, rng: np.random.Generator) -> Dataset:
        """The same baskets with the items of each in another order."""
        order = np.argsort(self.baskets + rng.random(len(self.baskets), dtype=np.float32), kind="stable")
        return replace(self, histories=replace(self.histories, items=self.histories.items[order]))

    def next_targets(self, rng: np.random.Generator) -> ndarray:
        """After every event an item of the user's next basket, drawn evenly; nothing in the last basket of training, after which
        validation's comes."""
        starts = np.flatnonzero(np.diff(self.baskets, prepend=-1, append=self.baskets[-1] + 1))  # and where all end
        sizes = np.diff(starts)
        next_baskets = np.minimum(self.baskets + 1, len(sizes) - 1)
        drawn = starts[next_baskets] + (rng.random(len(self.baskets)) * sizes[next_baskets]).astype(np.int64)
        targets = self.histories.items[drawn]
        targets[drawn >= np.repeat(self.valid_starts, self.histories.lengths)] = 0
        return targets


def hold_out_baskets(dataset: Dataset, setting: str, ties: str) -> Dataset:
    """The data split by baskets where `setting` (data.baskets) says `yes`, or nothing and they look like those of a shop: no rule
    `ties` was given for the order inside a basket, `MOSTLY` of neighbouring events share a time, and most people have `FEWEST`
    baskets."""
    if setting == "yes":
        return with_baskets(dataset)
    if setting == "no" or ties or dataset.ties is None or dataset.ties.events <= MOSTLY:
        return dataset
    return with_baskets(dataset) if np.mean(_count_baskets(dataset.histories) >= FEWEST) > 0.5 else dataset


def with_baskets(dataset: Dataset) -> BasketDataset:
    """The same events, split at everybody's last two baskets; who has fewer than `FEWEST` baskets is left out.

    Raises InputError where the data have no times, or nobody has so many baskets."""
    if not dataset.has_times:
        raise InputError(f"{dataset.label} has no times, so it has no baskets: data.baskets=no reads it event by event")
    dataset = _drop_short_histories(dataset)
    histories = dataset.histories
    users = np.repeat(np.arange(histories.n_users, dtype=np.int32), histories.lengths)
    baskets = np.cumsum(_first_of_basket(histories, users), dtype=np.int32) - np.int32(1)
    items = histories.items[_order_in_baskets(baskets, _hash_events(dataset, users))]
    starts = np.flatnonzero(np.diff(baskets, prepend=-1))  # of every basket
    last = baskets[histories.offsets[1:] - 1]  # number of everybody's last basket
    same = {field.name: getattr(dataset, field.name) for field in fields(Dataset)}
    note = "everybody's last basket is held out, because events at one time have no order (data.baskets=no reads them one by one)"
    notes = tuple(text for text in dataset.notes if dataset.ties is None or text != dataset.ties.note)
    changed = {"histories": replace(histories, items=items), "ties": None, "notes": (*notes, note)}
    return BasketDataset(**same | changed, baskets=baskets, valid_starts=starts[last - 1], test_starts=starts[last])


def _drop_short_histories(dataset: Dataset) -> Dataset:
    """Those who have at least `FEWEST` baskets."""
    histories = dataset.histories
    enough = _count_baskets(histories) >= FEWEST
    if enough.all():
        return dataset
    if enough.sum() < 2:
        raise InputError(f"{dataset.label}: nobody has {FEWEST} baskets, that is, events at {FEWEST} different times")
    keep = np.repeat(enough, histories.lengths)
    offsets = np.concatenate([[0], np.cumsum(histories.lengths[enough])])
    shorter = Histories(histories.items[keep], histories.times[keep], offsets, histories.user_ids[enough])
    note = f"{(~enough).sum():,} people with fewer than {FEWEST} baskets were left out"
    left_out = dataset.people_left_out + int((~enough).sum())
    return replace(dataset, histories=shorter, notes=(*dataset.notes, note), people_left_out=left_out)


def _count_baskets(histories: Histories) -> ndarray:
    """int64 [users]: how many baskets everybody has."""
    users = np.repeat(np.arange(histories.n_users), histories.lengths)
    return np.bincount(users[_first_of_basket(histories, users)], minlength=histories.n_users)


def _first_of_basket(histories: Histories, users: ndarray) -> ndarray:
    """bool [events]: whether an event has another time, or another user, than the one before."""
    changes = np.ones(len(users), dtype=bool)
    changes[1:] = (np.diff(histories.times) != 0) | (np.diff(users) != 0)
    return changes


def _order_in_baskets(baskets: ndarray, hashes: ndarray) -> ndarray:
    """int64 [events]: by basket, and in it by hash, of which as many bits count as the basket's number leaves; one key sorts ten
    times as fast as two."""
    bits = np.uint64(int(baskets[-1]).bit_length())
    return np.argsort((baskets.astype(np.uint64) << (np.uint64(64) - bits)) | (hashes >> bits), kind="stable")


def _hash_events(dataset: Dataset, users: ndarray) -> ndarray:
    """uint64 [events]: a number that follows from the ids of user and item and the time, and from nothing else."""
    mix = functools.partial(pd.util.hash_array, categorize=False)
    mixed = mix(dataset.histories.times.astype(np.uint64))
    for ids, places in ((dataset.histories.user_ids, users), (dataset.catalog.ids, dataset.histories.items)):
        mixed = mix(mixed ^ mix(ids.astype(object))[places])
    return mixed
