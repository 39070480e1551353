"""Whom to look at? People by the length of their history, by a genre's share of it, or by what one run gains over another."""

import numpy as np
import pandas as pd
import torch

from elastic_core.core.batches import reading_batch
from elastic_core.core.candidates import Candidates
from elastic_core.core.evaluate import rank
from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.memory.routing import Routing
from elastic_core.models import Recommender

FEWEST = 10  # events that a share of a genre needs to mean anything

IDS = 8  # people that a search by id lists


def own_id(dataset: Dataset, user: int) -> str:
    """A person's id in the data; nothing where it is the number that the app gives them anyway."""
    raw = str(dataset.histories.user_ids[user])
    return "" if raw == str(user + 1) else raw


def numbered(dataset: Dataset, raw: str) -> int:
    """The number, from 0, of the person with this id. Raises InputError if there is none."""
    found = np.flatnonzero(dataset.histories.user_ids.astype(str) == raw)
    if not len(found):
        ids = dataset.histories.user_ids
        raise InputError(f"{dataset.label} has no user {raw!r}; there are {len(ids):,}, for example {ids[0]} and {ids[-1]}")
    return int(found[0])


def by_id(dataset: Dataset, text: str, top: int = IDS) -> list[int]:
    """People whose id is `text`, begins with it or holds it, in this order; case is ignored, and an exact id stands alone."""
    asked = text.strip().lower()
    begins, holds = list[int](), list[int]()
    exact: int | None = None
    if not asked:
        return []
    for user, raw in enumerate(dataset.histories.user_ids.tolist()):
        name = str(raw)
        if name == text.strip():
            return [user]
        name = name.lower()
        if asked in name:
            exact = user if name == asked and exact is None else exact
            place = begins if name.startswith(asked) else holds
            if len(place) < top:
                place.append(user)
    return [exact] if exact is not None else [*begins, *holds][:top]


def is_id(dataset: Dataset, user: int, text: str) -> bool:
    """Whether `text` is this person's whole id; case is ignored."""
    return str(dataset.histories.user_ids[user]).lower() == text.strip().lower()


def same(old: Dataset, user: int, new: Dataset, own: str | None = None) -> int | None:
    """A person of one dataset in another: the same number on the same data, the same id on another cut of it. `own` is an id that
    the visitor typed; it is looked for everywhere, for ids of strangers' data name other people. None where they are not there.
    """
    if old.hash == new.hash:
        return user
    wanted = [own] if own else []
    if (old.name, old.label) == (new.name, new.label):
        wanted.insert(0, str(old.histories.user_ids[user]))
    ids = new.histories.user_ids.astype(str).tolist()
    return next((ids.index(raw) for raw in wanted if raw in ids), None)


def by_length(dataset: Dataset, longest: bool = True, top: int = 8) -> pd.DataFrame:
    """user, events that may be read; the longest or the shortest histories first."""
    events = dataset.ends("test") - dataset.histories.offsets[:-1]
    order = np.argsort(-events if longest else events, kind="stable")[:top]
    return pd.DataFrame({"user": order, "events": events[order]})


def genre_share(dataset: Dataset, genre: str, split: Split = "test") -> np.ndarray:
    """float [users]: what part of a readable history has a genre; 0 for histories without events."""
    has = np.array([genre in each for each in dataset.catalog.genres or ()], dtype=float)
    offsets, ends = dataset.histories.offsets[:-1], dataset.ends(split)
    sums = np.concatenate([[0.0], np.cumsum(has[dataset.histories.items])])
    return np.asarray((sums[ends] - sums[offsets]) / np.maximum(ends - offsets, 1))


def by_genre(dataset: Dataset, genre: str, top: int = 8) -> pd.DataFrame:
    """user, events, share of `genre` in the history; the largest share first, among people with at least ten events."""
    genres = dataset.catalog.genres
    if genres is None or not any(genre in each for each in genres):
        raise InputError(f"no item here has the genre {genre[:40]!r}")
    events = dataset.ends("test") - dataset.histories.offsets[:-1]
    share = np.where(events >= FEWEST, genre_share(dataset, genre), -1.0)
    order = np.argsort(-share, kind="stable")[:top]
    order = order[share[order] > 0]
    return pd.DataFrame({"user": order, "events": events[order], "share": share[order]})


@torch.inference_mode()
def target_ranks(model: Recommender, dataset: Dataset, batch: int = 256, stay: bool = False) -> np.ndarray:
    """float [users]: rank of what came next among all unseen items (protocol `full`) or, where met items `stay`, among all
    (`full-seen`), ties at their mean."""
    users, ends, targets = np.arange(dataset.histories.n_users), dataset.ends("test"), dataset.targets("test")
    candidates, found = Candidates(dataset, "test", seed=0), []
    for at in range(0, len(users), batch):
        rows = users[at : at + batch]
        scores = model.score(reading_batch(dataset, rows, ends[rows], model.length))
        ranks = rank(
            scores, torch.from_numpy(targets[rows].astype(np.int64)), candidates.mask("full-seen" if stay else "full", rows)
        )
        found.append(ranks.above + ranks.tied / 2 + 1)
    return np.concatenate(found)


def everybody(dataset: Dataset, ranks: np.ndarray, traffic: Routing | None = None, expert: int | None = None) -> pd.DataFrame:
    """person (from 1), events that may be read, rank of what came next, and the share of `expert` in the weights of all experts
    that the history retrieves; one row a person, in order."""
    events = dataset.ends("test") - dataset.histories.offsets[:-1]
    table = pd.DataFrame({"person": np.arange(1, len(events) + 1), "events": events, "rank": ranks})
    if traffic is not None and expert is not None:
        weights = np.where(traffic.experts == expert, traffic.gates, 0).sum(1)
        table["share"] = weights / np.maximum(traffic.gates.sum(1), 1e-12)
    return table


def gains(first: np.ndarray, second: np.ndarray, losses: bool = False, top: int = 8) -> pd.DataFrame:
    """user, rank (by the first run), other (by the second), doublings: how often the rank was halved; the largest first.

    With `losses`, where the second run gains most over the first.
    """
    doublings = np.log2(second / first)
    order = np.argsort(doublings if losses else -doublings, kind="stable")[:top]
    return pd.DataFrame({"user": order, "rank": first[order], "other": second[order], "doublings": doublings[order]})
