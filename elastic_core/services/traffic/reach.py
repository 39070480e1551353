"""Without experts: how far back does a model look, how far back do its answers depend on, and are codewords used evenly?

Beside the weights of the last row and the effects of removal stands what they would be were all events alike. Codewords stand
beside a random assignment, in which every item draws its word of each codebook anew and events follow the items.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from elastic_core.core.batches import reading_batch
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import Attends, Codewords
from elastic_core.services.journey.trace import shares
from elastic_core.services.person.influence import LAST, influence
from elastic_core.services.person.recommend import reading

BINS = ((1, 1), (2, 2), (3, 5), (6, 10), (11, 20), (21, LAST))
LOOKED, ASKED, FEWEST = 64, 24, 20  # people whose weights, whose removals are asked; events each of them has at least


@dataclass(frozen=True, eq=False)
class Reach:
    """`table`: ago (events ago), even, weight (NaN without weights), effect: mean shares over people, which add up to 1."""

    table: pd.DataFrame
    looked: int
    asked: int


@torch.inference_mode()
def reach(model: Recommender, dataset: Dataset, stay: bool = False) -> Reach:
    """Over the last events of people with histories that are long enough. Raises InputError where nobody's is."""
    ends = dataset.ends("test")
    lengths = ends - dataset.histories.offsets[:-1]
    long = np.flatnonzero(lengths >= FEWEST)
    if not len(long):
        raise InputError(f"nobody has {FEWEST} events")
    looked, asked = (long[np.unique(np.linspace(0, len(long) - 1, min(n, len(long))).astype(int))] for n in (LOOKED, ASKED))
    weights = _weights(model, dataset, looked)
    effects = [_effects(model, dataset, int(user), stay) for user in asked]
    rows = {"even": [np.full(min(int(lengths[user]), LAST), 1.0) for user in asked], "effect": effects}
    parts = {name: _binned(values) for name, values in rows.items()}
    parts["weight"] = _binned(weights) if weights else np.full(len(BINS), np.nan)
    names = [str(low) if low == high else f"{low}-{high}" for low, high in BINS]
    return Reach(
        pd.DataFrame({"ago": names, **{name: parts[name] for name in ("even", "weight", "effect")}}), len(looked), len(asked)
    )


def _weights(model: Recommender, dataset: Dataset, users: np.ndarray) -> list[np.ndarray]:
    """Of each person, the weights of the last events, the latest first; nothing for a model that has none."""
    if not isinstance(model, Attends):
        return []
    batch = reading_batch(dataset, users, dataset.ends("test")[users], model.length)
    found = shares(model, batch)
    return [] if found is None else [row[real][::-1][:LAST] for row, real in zip(found, batch.real.numpy(), strict=True)]


def _effects(model: Recommender, dataset: Dataset, user: int, stay: bool) -> np.ndarray:
    read = reading(dataset, user)
    assert read.truth is not None
    times = read.times if model.reads_times else None
    found = influence(model, dataset, read.items, read.truth, LAST, stay, times)
    return np.abs(found.table["change"].to_numpy())[::-1]


def _binned(rows: list[np.ndarray]) -> np.ndarray:
    """Mean share of every range of places over people; people of whom all is 0 are left out."""
    known = [row / row.sum() for row in rows if row.sum() > 0]
    return np.array([np.mean([row[low - 1 : high].sum() for row in known]) if known else 0.0 for low, high in BINS])


@dataclass(frozen=True, eq=False)
class Use:
    """`table`: book, word, share (of the events of its codebook), rank (busiest first), low, high: 95% of the random assignment
    at that rank. `even`: over how many words events are spread, as if evenly, mean over codebooks; `chance`: 95% of the same."""

    table: pd.DataFrame
    size: int
    even: float
    chance: tuple[float, float]


def use(found: Codewords, dataset: Dataset, draws: int = 200, seed: int = 0) -> Use:
    """How all training events fall on the words."""
    chosen, size = found.chosen.numpy(), found.words.shape[1]
    counts, rng = dataset.counts()[1:].astype(float), np.random.default_rng([seed, 2])
    events = counts / max(counts.sum(), 1)
    books = range(chosen.shape[1])
    loads = np.stack([np.bincount(chosen[:, book], events, size) for book in books])
    drawn = np.stack([np.bincount(rng.integers(size, size=len(events)), events, size) for _ in range(draws)])
    ordered = np.sort(drawn, axis=1)[:, ::-1]
    low, high = np.quantile(ordered, 0.025, axis=0), np.quantile(ordered, 0.975, axis=0)
    place = np.argsort(np.argsort(-loads, axis=1, kind="stable"), axis=1)
    table = pd.DataFrame(
        {
            "book": np.repeat(np.arange(1, len(loads) + 1), size), "word": np.tile(np.arange(1, size + 1), len(loads)),
            "share": loads.ravel(), "rank": place.ravel() + 1, "low": low[place.ravel()], "high": high[place.ravel()],
        }
    )  # fmt: skip
    limits = np.quantile([_spread(row) for row in drawn], (0.025, 0.975))
    return Use(table, size, float(np.mean([_spread(row) for row in loads])), (float(limits[0]), float(limits[1])))


def _spread(shares: np.ndarray) -> float:
    known = shares[shares > 0]
    return float(np.exp(-(known * np.log(known)).sum()))
