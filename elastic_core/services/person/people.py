"""Whom to look at? People by the length of their history, by a genre's share of it, or by what one run gains over another."""

import numpy as np
import pandas as pd

from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.memory.routing import Routing
from elastic_core.models import Recommender
from elastic_core.runs.ranks import evaluate

FEWEST = 10  # events that a share of a genre needs to mean anything
TOP = 8  # people that a search lists


def spaced(many: int, most: int) -> np.ndarray:
    """At most `most` of 0 … `many` - 1, evenly, both ends included."""
    return np.unique(np.linspace(0, many - 1, min(most, many)).round().astype(np.int64))


def some_of(many: int, most: int, seed: int) -> np.ndarray:
    """At most `most` of 0 … `many` - 1, drawn at random, in order."""
    return np.sort(np.random.default_rng(seed).choice(many, min(most, many), replace=False))


def own_id(dataset: Dataset, user: int) -> str:
    """A person's id in the data; nothing where it is the number that the app gives them anyway."""
    raw = str(dataset.histories.user_ids[user])
    return "" if raw == str(user + 1) else raw


def numbered(dataset: Dataset, raw: str) -> int:
    """The number, from 0, of the person with this id. Raises InputError if there is none."""
    ids = dataset.histories.user_ids
    found = np.flatnonzero(ids.astype(str) == raw)
    if not len(found):
        raise InputError(f"{dataset.label} has no user {raw!r}; there are {len(ids):,}, for example {ids[0]} and {ids[-1]}")
    return int(found[0])


def by_id(dataset: Dataset, text: str) -> list[int]:
    """People whose id is `text`, begins with it or holds it, in this order; case is ignored, and an exact id stands alone."""
    names, asked = pd.Series(dataset.histories.user_ids.astype(str)), text.strip().lower()
    lower = names.str.lower()
    for exact in (names == text.strip(), lower == asked):
        if exact.any():
            return [int(exact.idxmax())]
    begins, holds = lower.str.startswith(asked), lower.str.contains(asked, regex=False)
    return [*names.index[begins], *names.index[holds & ~begins]][:TOP] if asked else []


def is_id(dataset: Dataset, user: int, text: str) -> bool:
    """Whether `text` is this person's whole id; case is ignored."""
    return str(dataset.histories.user_ids[user]).lower() == text.strip().lower()


def same(old: Dataset, user: int, new: Dataset, own: str | None = None) -> int | None:
    """A person of one dataset in another: the same number on the same data, the same id on another cut of it. `own` is an id that
    the visitor typed; it is looked for everywhere, for ids of strangers' data name other people. None where they are not there.
    """
    if old.hash == new.hash:
        return user
    here = str(old.histories.user_ids[user]) if (old.name, old.label) == (new.name, new.label) else None
    wanted = filter(None, (here, own))
    ids = new.histories.user_ids.astype(str).tolist()
    return next((ids.index(raw) for raw in wanted if raw in ids), None)


def by_length(dataset: Dataset, longest: bool = True) -> pd.DataFrame:
    """user, events that may be read; the longest or the shortest histories first."""
    return _first(pd.DataFrame({"events": dataset.readable()}), "events", ascending=not longest)


def _first(table: pd.DataFrame, column: str, ascending: bool = False) -> pd.DataFrame:
    """Of a table of everybody, the rows that come first by a column; who they are is `user`."""
    return table.sort_values(column, ascending=ascending, kind="stable").head(TOP).rename_axis("user").reset_index()


def genre_share(dataset: Dataset, genre: str, split: Split = "test") -> np.ndarray:
    """float [users]: what part of a readable history has a genre; 0 for histories without events."""
    has = np.array([genre in each for each in dataset.catalog.genres or ()], dtype=float)
    offsets, ends = dataset.histories.offsets[:-1], dataset.ends(split)
    sums = np.concatenate([[0.0], np.cumsum(has[dataset.histories.items])])
    return np.asarray((sums[ends] - sums[offsets]) / np.maximum(ends - offsets, 1))


def by_genre(dataset: Dataset, genre: str) -> pd.DataFrame:
    """user, events, share of `genre` in the history; the largest share first, among people with at least ten events."""
    table = pd.DataFrame({"events": dataset.readable(), "share": genre_share(dataset, genre)})
    return _first(table[(table["events"] >= FEWEST) & (table["share"] > 0)], "share")


def target_ranks(model: Recommender, dataset: Dataset, stay: bool = False) -> np.ndarray:
    """float [users]: place of what came next among all unseen items or, where met items `stay`, among all; ties at their mean."""
    protocol = "full-seen" if stay else "full"
    return evaluate(model, dataset, protocols=(protocol,)).ranks[protocol].places


def people_table(dataset: Dataset, ranks: np.ndarray, traffic: Routing | None = None, expert: int | None = None) -> pd.DataFrame:
    """person (from 1), events that may be read, rank of what came next, and the share of `expert` in the weights of all experts
    that the history retrieves; one row a person, in order."""
    table = pd.DataFrame({"person": np.arange(len(ranks)) + 1, "events": dataset.readable(), "rank": ranks})
    if traffic is not None:
        weights = np.where(traffic.experts == expert, traffic.gates, 0).sum(1)
        table["share"] = weights / np.maximum(traffic.gates.sum(1), 1e-12)
    return table


def gains(first: np.ndarray, second: np.ndarray, losses: bool = False) -> pd.DataFrame:
    """user, rank (by the first run), other (by the second), doublings: how often the rank was halved; the largest first.

    With `losses`, where the second run gains most over the first.
    """
    return _first(pd.DataFrame({"rank": first, "other": second, "doublings": np.log2(second / first)}), "doublings", losses)
