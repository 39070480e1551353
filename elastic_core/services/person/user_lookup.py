"""Finding people: by their ids, at random or evenly among many, and by a genre's share of their history."""

import numpy as np
import pandas as pd

from elastic_core.core.histories import Split
from elastic_core.data import Dataset

TOP = 8  # people that a search lists


def evenly_spaced(count: int, limit: int) -> np.ndarray:
    """At most `limit` of 0 … `count` - 1, evenly, both ends included."""
    return np.unique(np.linspace(0, count - 1, min(limit, count)).round().astype(np.int64))


def sample_indices(count: int, limit: int, seed: int) -> np.ndarray:
    """At most `limit` of 0 … `count` - 1, drawn at random, in order."""
    return np.sort(np.random.default_rng(seed).choice(count, min(limit, count), replace=False))


def own_id(dataset: Dataset, user: int) -> str:
    """A person's id in the data; nothing where it is the number that the app gives them anyway."""
    raw = str(dataset.histories.user_ids[user])
    return "" if raw == str(user + 1) else raw


def find_users(dataset: Dataset, text: str) -> list[int]:
    """People whose id is `text`, begins with it or holds it, in this order; case is ignored, and an exact id stands alone."""
    names, prefix = pd.Series(dataset.histories.user_ids.astype(str)), text.strip().lower()
    lower = names.str.lower()
    for exact in (names == text.strip(), lower == prefix):
        if exact.any():
            return [int(exact.idxmax())]
    begins, holds = lower.str.startswith(prefix), lower.str.contains(prefix, regex=False)
    return [*names.index[begins], *names.index[holds & ~begins]][:TOP] if prefix else []


def is_id(dataset: Dataset, user: int, text: str) -> bool:
    """Whether `text` is this person's whole id; case is ignored."""
    return str(dataset.histories.user_ids[user]).lower() == text.strip().lower()


def same_user(old_data: Dataset, user: int, new_data: Dataset, own_id: str | None = None) -> int | None:
    """A person of one dataset in another: the same number on the same data, the same id on another cut of it. `own_id` is one
    that the visitor typed; it is looked for everywhere, for ids of strangers' data name other people. None where they are not
    there.
    """
    if old_data.hash == new_data.hash:
        return user
    id_here = (
        str(old_data.histories.user_ids[user]) if (old_data.name, old_data.label) == (new_data.name, new_data.label) else None
    )
    wanted_ids = filter(None, (id_here, own_id))
    ids = new_data.histories.user_ids.astype(str).tolist()
    return next((ids.index(raw) for raw in wanted_ids if raw in ids), None)


def genre_share(dataset: Dataset, genre: str, split: Split = "test") -> np.ndarray:
    """float [users]: what part of a readable history has a genre; 0 for histories without events."""
    has_genre = np.array([genre in each for each in dataset.catalog.genres or ()], dtype=float)
    offsets, ends = dataset.histories.offsets[:-1], dataset.split_ends(split)
    sums = np.concatenate([[0.0], np.cumsum(has_genre[dataset.histories.items])])
    return np.asarray((sums[ends] - sums[offsets]) / np.maximum(ends - offsets, 1))
