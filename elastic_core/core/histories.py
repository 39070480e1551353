"""Histories as flat arrays, and the leave-one-out split as views (method.md, protocol).

The last event of a history is the test target, the one before it the validation target, everything earlier is for training.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from elastic_core.errors import InputError

# --- the catalogue ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Catalog:
    """What the dense ids mean. Every sequence has n_items + 1 entries; entry 0 is padding and empty."""

    ids: np.ndarray
    titles: np.ndarray | None = None
    genres: tuple[tuple[str, ...], ...] | None = None

    @classmethod
    def from_count(cls, n_items: int) -> Self:
        """Items called 1 … n_items, of which nothing else is known."""
        return cls(np.array(["", *map(str, range(1, n_items + 1))], dtype=object))

    @property
    def n_items(self) -> int:
        return len(self.ids) - 1

    def title(self, item: int) -> str:
        """The title, or the raw id where there is none; one without letters as `item <raw id>`."""
        if not 1 <= item <= self.n_items:
            raise InputError(f"there is no item number {item}: the catalogue has 1 to {self.n_items}")
        known = str(self.titles[item]) if self.titles is not None else ""
        raw = str(self.ids[item])
        return known or (raw if any(map(str.isalpha, raw)) else f"item {raw}")

    def titles_of(self, items: Iterable[int]) -> list[str]:
        """The titles of several."""
        return [self.title(int(item)) for item in items]

    def find_item(self, raw_id: str) -> int:
        """The dense id of a raw id, 0 for one that is not in the catalogue."""
        return self._index.get(str(raw_id), 0)

    def item_number(self, raw_id: str) -> int:
        """The dense id of a raw id. Raises InputError for one that is not in the catalogue."""
        item = self.find_item(raw_id)
        if not item:
            raise InputError(f"the catalogue has no item {str(raw_id)!r}")
        return item

    @cached_property
    def _index(self) -> dict[str, int]:
        return {str(raw): dense for dense, raw in enumerate(self.ids) if dense}


Split = Literal["train", "valid", "test"]
PIECE = 1 << 22  # events looked at together


@dataclass(frozen=True, eq=False)
class Histories:
    """All histories end to end: user u owns items[offsets[u]:offsets[u + 1]], oldest first."""

    items: np.ndarray  # int32 [events], dense ids
    times: np.ndarray  # int64 [events], seconds since 1970, or the rank within the history where the file has no times
    offsets: np.ndarray  # int64 [users + 1]
    user_ids: np.ndarray  # text [users], natural order

    @property
    def n_users(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def user_items(self, user: int) -> np.ndarray:
        """A view of one user's items."""
        if not 0 <= user < self.n_users:
            raise InputError(f"there is no user number {user}: there are 0 to {self.n_users - 1}")
        return self.items[self.offsets[user] : self.offsets[user + 1]]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """A catalogue, histories over it, and what is known about where they come from."""

    in_baskets: ClassVar[bool] = False  # are everybody's last baskets held out (data/baskets.py), and not their last events?

    name: str
    label: str
    catalog: Catalog
    histories: Histories
    licence: str
    titles_may_be_shared: bool = False
    has_times: bool = True
    truth: Any = None  # what a planted world knows of itself (data/synthetic.py)
    ties: Any = None  # of data with times that were read from a file: who shares one (data/preprocessing.py)
    notes: tuple[str, ...] = ()
    understood: tuple[tuple[str, str], ...] = ()  # of a file: what was taken for what
    people_left_out: int = 0  # with fewer events than the k-core or the split asks for
    config: Any = None  # the settings that load them again (run_config.DataConfig)
    files: Mapping[str, bytes] = field(default_factory=dict)  # of a DataFrame: what a run keeps, to load them again

    def __repr__(self) -> str:
        sizes = (f"{count:,} {what}" for what, count in self.sizes().items())
        return f"{self.label}: {', '.join(sizes)} (hash {self.hash})"

    def _repr_html_(self) -> str:
        return facts_as_html(self.label, self.facts())

    def sizes(self) -> dict[str, int]:
        """How many people, items and events there are."""
        return {"people": self.histories.n_users, "items": self.catalog.n_items, "events": len(self.histories.items)}

    def facts(self) -> list[tuple[str, str]]:
        """What there is to know before training, a name and a text each: sizes, what was understood of a file, its licence."""
        from elastic_core.core.description import describe_dataset

        return describe_dataset(self)

    @cached_property
    def hash(self) -> str:
        """Sixteen hex digits of sha256 over what the split follows from (`split_arrays`)."""
        digest = hashlib.sha256()
        for array in self.split_arrays():
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    def find_user(self, raw: object) -> int | None:
        """The number, from 0, of the user with this id; None if there is none."""
        matches = np.flatnonzero(self.histories.user_ids.astype(str) == str(raw))
        return int(matches[0]) if len(matches) else None

    def user_number(self, raw: object) -> int:
        """The same. Raises InputError if there is none."""
        user = self.find_user(raw)
        if user is None:
            ids, n_short = self.histories.user_ids, self.people_left_out
            short = f"; {n_short:,} more {'has' if n_short == 1 else 'have'} too few events" if n_short else ""
            examples = f"there are {len(ids):,}, for example {ids[0]} and {ids[-1]}"
            raise InputError(f"{self.label} has no user {str(raw)!r}; {examples}{short}")
        return user

    def split_arrays(self) -> tuple[np.ndarray, ...]:
        """Items and offsets, and what else decides a split that is not leave-one-out; little-endian."""
        return self.histories.items.astype("<i4", copy=False), self.histories.offsets.astype("<i8", copy=False)

    def split_ends(self, split: Split) -> np.ndarray:
        """int64 [users]: exclusive end, in `histories.items`, of what may be read when predicting this split's target."""
        return self.histories.offsets[1:] - (1 if _check_split(split) == "test" else 2)

    def readable_lengths(self, split: Split = "test") -> np.ndarray:
        """int64 [users]: how many events those are."""
        return self.split_ends(split) - self.histories.offsets[:-1]

    def users_with_target(self, split: Split) -> np.ndarray:
        """int64: the users who have a target in this split, in order. Here everybody; by time (by_time.py) some."""
        return np.arange(self.histories.n_users)

    def target_items(self, split: Split) -> np.ndarray:
        """int32 [users]: the item to be predicted. Training has no single target."""
        if _check_split(split) == "train":
            raise InputError("the training split has no single target a user")
        return self.histories.items[self.histories.offsets[1:] - (1 if split == "test" else 2)]

    def next_items(self, user: int, split: Split = "test") -> np.ndarray:
        """int32: what came after the history that this split lets a model read: one item, or a whole basket."""
        end = self.split_ends(split)[user]
        return self.histories.items[end : end + 1]

    def item_counts(self) -> np.ndarray:
        """int64 [n_items + 1]: events of each item in the training split."""
        border, places = np.repeat(self.split_ends("train"), self.histories.lengths), np.arange(len(self.histories.items))
        return count_numbers(self.histories.items, self.catalog.n_items + 1, lambda piece: places[piece] < border[piece])

    def reorder_events(self, rng: np.random.Generator) -> "Dataset":
        """What an epoch of training reads: these histories, or, where some events have no order, one drawn for them."""
        return self

    def next_targets(self, rng: np.random.Generator) -> np.ndarray:
        """int32 [events]: what training asks for after every event, 0 for nothing: the next event. Past `split_ends("train")`
        and at a user's last event there is nothing to ask for, and nobody reads it."""
        return np.append(self.histories.items[1:], np.int32(0))

    def all_counts(self) -> np.ndarray:
        """int64 [n_items + 1]: events of each item in all splits."""
        return count_numbers(self.histories.items, self.catalog.n_items + 1)


def _check_split(split: str) -> str:
    if split not in ("train", "valid", "test"):
        raise InputError(f"the split must be train, valid or test, not {split!r}")
    return split


def split_range(total: int) -> Iterator[slice]:
    """Stretches of millions of events, so that what is worked out of them stays small beside them."""
    return (slice(at, min(at + PIECE, total)) for at in range(0, total, PIECE))


def count_numbers(numbers: np.ndarray, size: int, mask: Callable[[slice], np.ndarray] | None = None) -> np.ndarray:
    """int64 [size]: how often each of 0 … size - 1 is there; of the places that `mask` marks, if it is given."""
    counts = np.zeros(size, dtype=np.int64)
    for piece in split_range(len(numbers)):
        counts += np.bincount(numbers[piece] if mask is None else numbers[piece][mask(piece)], minlength=size)
    return counts


def facts_as_html(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """A table with a name and a text a row, for a notebook; whatever stands in them is text."""
    import pandas as pd  # the rest of the core does without

    with pd.option_context("display.max_colwidth", None):
        names, texts = zip(*facts, strict=True)
        return pd.DataFrame({title: texts}, index=names).to_html(justify="left")
