"""Interest or activity? What decides which experts a person gets, each figure beside what it would be if the claim were false.

A router that reads interests finds the same experts in any fair sample of a history, other experts for other people of the same
length, and its choice tells what somebody watched and not how much. So over all people (k experts each, *overlap* = the part
of a person's experts that is found again):

    halves    experts of the odd events ~ of the even events of the same person; null: even events of somebody of like length
    quarter   experts of the whole history ~ of a random quarter of it; null: the quarter of a random other person
    length    R² of log length from which experts, on people held out; nulls: from the popularity of the films watched alone, and
              from what part of the history each of 64 kinds of films has (`_kind_shares`): neither counts anything
    count     the same with everybody's events drawn from all events: only how many they are is left to tell; null: 0
    genres    R² of genre shares from which experts, on people held out; null: people's experts shuffled
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy import ndarray
from numpy.random import Generator

from elastic_core.core.batches import Batch, reading_batch
from elastic_core.core.histories import Dataset, Split
from elastic_core.data.item_features import genre_table
from elastic_core.errors import InputError
from elastic_core.memory.routing import retrieve_batches
from elastic_core.models import Recommender

FOLDS = 5
ALPHAS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
FEWEST, MOST = 20, 4_000  # people
KINDS = 64  # of items
SHORTEST = 8  # events from which halves and quarters are taken
STEPS = 7  # of progress: the retrievals, then each of six regressions


@dataclass(frozen=True)
class RoutingMetrics:
    """Overlaps in 0 … 1 and held-out R²; `genres` and `genres_shuffled` are NaN where items have no genres."""

    halves: float
    stranger: float  # the null of `halves`
    quarter: float
    quarter_stranger: float  # the null of `quarter`
    length: float
    length_popularity: float  # what the popularity of the films watched tells of log length
    length_kinds: float  # what the kinds of films watched tell of it
    count: float  # what is left of `length` where nobody watched anything of their own; its null is 0
    genres: float
    genres_shuffled: float
    users: int


@torch.inference_mode()
def measure_routing(
    model: Recommender, dataset: Dataset, split: Split = "test", report_progress: Callable[[float], None] = lambda share: None
) -> RoutingMetrics:  # fmt: skip
    """All figures over up to 4,000 people at random with at least 8 events. Takes five retrievals of each; tells the share done.

    Raises InputError where fewer than 20 have so many, or the model retrieves nothing."""
    steps = iter(range(1, STEPS + 1))

    def report_r2(x: ndarray, y: ndarray, rng: Generator) -> float:
        r2 = held_out_r2(x, y, rng)
        report_progress(next(steps) / STEPS)
        return r2

    rng = np.random.default_rng(0)
    ends = dataset.split_ends(split)
    lengths = np.minimum(ends - dataset.histories.offsets[:-1], model.length)
    users = np.flatnonzero(lengths >= SHORTEST)
    if len(users) < FEWEST:
        raise InputError(f"these figures need {FEWEST} people with {SHORTEST} events or more; there are {len(users)}")
    if len(users) > MOST:
        users = np.sort(rng.choice(users, MOST, replace=False))
    lengths = lengths[users]
    items = reading_batch(dataset, users, ends[users], model.length).items.numpy()
    place = np.cumsum(items > 0, 1)  # 1 … n on real events
    luck = np.where(items > 0, rng.random(items.shape), np.inf)
    picked = luck.argsort(1).argsort(1) < np.ceil(lengths / 4)[:, None]
    everything = _retrieve_experts(model, items)
    odd_half, even_half, quarter = (
        _retrieve_experts(model, _chosen_events(items, chosen)) for chosen in (place % 2 == 1, place % 2 == 0, picked)
    )
    by_length = np.argsort(lengths + rng.random(len(users)), kind="stable")  # neighbours here are of like length
    other = rng.permutation(len(users))
    log_length = np.log(lengths)
    popularity = np.log(np.maximum(dataset.item_counts(), 1))
    taste = _popularity_features(items, popularity)
    shares = genre_shares(dataset, items)
    chosen = _indicator_table(everything)
    report_progress(next(steps) / STEPS)
    random_items = np.where(items > 0, np.random.default_rng([0, 1]).choice(items[items > 0], items.shape), 0)
    return RoutingMetrics(
        halves=mean_overlap(odd_half, even_half),
        stranger=mean_overlap(odd_half[by_length], even_half[np.roll(by_length, -1)]),
        quarter=mean_overlap(everything, quarter),
        quarter_stranger=mean_overlap(everything, quarter[np.where(other == np.arange(len(users)), np.roll(other, 1), other)]),
        length=report_r2(chosen, log_length[:, None], rng),
        length_popularity=report_r2(taste, log_length[:, None], rng),
        length_kinds=report_r2(_kind_shares(items), log_length[:, None], np.random.default_rng([0, 3])),
        count=report_r2(
            _indicator_table(_retrieve_experts(model, random_items)), log_length[:, None], np.random.default_rng([0, 2])
        ),
        genres=report_r2(chosen, shares, rng) if shares is not None else float("nan"),
        genres_shuffled=report_r2(rng.permutation(chosen), shares, rng) if shares is not None else float("nan"),
        users=len(users),
    )


def mean_overlap(a: ndarray, b: ndarray) -> float:
    """Mean part of row r of `a [U, k]` that row r of `b [U, k]` holds too."""
    return float((a[:, :, None] == b[:, None, :]).any(2).mean()) if a.size else 0.0


def held_out_r2(x: ndarray, y: ndarray, rng: Generator) -> float:
    """R² of `y [U, t]` from `x [U, f]` by ridge regression on people it was not fitted to, targets weighed by their variance."""
    from sklearn.linear_model import RidgeCV  # a second to import, for this alone
    from sklearn.model_selection import KFold, cross_val_predict

    folds = KFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    predicted = cross_val_predict(RidgeCV(ALPHAS), x, y, cv=folds).reshape(y.shape)
    return float(1 - np.square(y - predicted).sum() / max(np.square(y - y.mean(0)).sum(), 1e-12))


def genre_shares(dataset: Dataset, items: ndarray) -> ndarray | None:
    """What part of a history `items [U, N]` (0 pads) has each genre, `[U, genres]`; an item with several counts for each."""
    names, table = genre_table(dataset.catalog)
    return mean_shares(items, table) if names else None


def mean_shares(items: ndarray, table: ndarray) -> ndarray:
    """What part of histories `items [U, N]` (0 pads) has each of the things in `table [n_items + 1, G]`: `[U, G]`."""
    return table[items].sum(1) / np.maximum((items > 0).sum(1, keepdims=True), 1)


def _popularity_features(items: ndarray, popularity: ndarray) -> ndarray:
    """Mean, spread and quartiles of the log popularity of what was watched: `[U, 5]`."""
    rows = [popularity[row[row > 0]] for row in items]
    return np.stack([np.concatenate([[x.mean(), x.std()], np.quantile(x, (0.25, 0.5, 0.75))]) for x in rows])


def _kind_shares(items: ndarray) -> ndarray:
    """What part of histories `items [U, N]` (0 pads) is of each kind of items, `[U, KINDS]`. Items that the same people
    chose are of one kind: k-means of the 32 first singular vectors, at unit length, of who chose what."""
    from scipy.sparse import csr_matrix
    from sklearn.cluster import KMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    seen_items, place = np.unique(items[items > 0], return_inverse=True)
    user = np.nonzero(items)[0]
    table = csr_matrix((np.ones(len(place)), (place, user)), (len(seen_items), len(items)))
    width = max(1, min(32, min(table.shape) - 1))
    vectors = normalize(TruncatedSVD(width, random_state=0).fit_transform(normalize(table)))
    kind = KMeans(min(KINDS, len(seen_items)), n_init=3, random_state=0).fit_predict(vectors)
    shares = np.zeros((len(items), kind.max() + 1))
    np.add.at(shares, (user, kind[place]), 1)
    return shares / shares.sum(1, keepdims=True)


def _chosen_events(items: ndarray, chosen: ndarray) -> ndarray:
    """The chosen events of left-padded histories, in their order, left-padded."""
    real = chosen & (items > 0)
    return np.take_along_axis(items * real, real.argsort(1, kind="stable"), 1)


def _retrieve_experts(model: Recommender, items: ndarray) -> ndarray:
    parts = (Batch(rows, rows) for rows in torch.from_numpy(items).split(512))
    return torch.cat([retrieval.experts for retrieval in retrieve_batches(model, parts)]).cpu().numpy()


def _indicator_table(experts: ndarray) -> ndarray:
    """1 where a person has an expert; a column for every expert that anybody has."""
    in_use, place = np.unique(experts, return_inverse=True)
    table = np.zeros((len(experts), len(in_use)))
    np.put_along_axis(table, place.reshape(experts.shape), 1.0, 1)
    return table
