"""Without experts: how far back does a model look, how far back do its answers depend on, and are codewords used evenly?

Beside the weights of the last row and the effects of removal stands what they would be were all events alike. Codewords stand
beside a random assignment, in which every item draws its word of each codebook anew and events follow the items.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.memory.routing import limits_of
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import Codewords
from elastic_core.services.experts.codewords import over
from elastic_core.services.experts.weights import weights_of
from elastic_core.services.person.influence import LAST, influence_of_user

BINS = ((1, 1), (2, 2), (3, 5), (6, 10), (11, 20), (21, LAST))
LOOKED, ASKED, FEWEST = 64, 24, 20  # people whose weights, whose removals are asked; events each of them has at least


class Reach(NamedTuple):
    """`table`: ago (events ago), even, weight (NaN without weights), effect: mean shares over people, which add up to 1."""

    table: pd.DataFrame
    looked: int
    asked: int


@torch.inference_mode()
def reach(model: Recommender, dataset: Dataset, stay: bool = False) -> Reach:
    """Over the last events of people with histories that are long enough. Raises InputError where nobody's is."""
    lengths = dataset.readable()
    long = np.flatnonzero(lengths >= FEWEST)
    if not len(long):
        raise InputError(f"nobody has {FEWEST} events")
    looked, asked = (long[np.unique(np.linspace(0, len(long) - 1, min(n, len(long))).astype(int))] for n in (LOOKED, ASKED))
    weights = [row[::-1][:LAST] for row in weights_of(model, dataset, looked)]
    effects = [influence_of_user(model, dataset, int(user), stay).table["change"].abs().to_numpy()[::-1] for user in asked]
    even = [np.ones(min(int(lengths[user]), LAST)) for user in asked]
    names = [str(low) if low == high else f"{low}-{high}" for low, high in BINS]
    table = {"ago": names, "even": _binned(even), "weight": _binned(weights) if weights else np.nan, "effect": _binned(effects)}
    return Reach(pd.DataFrame(table), len(looked), len(asked))


def _binned(rows: list[np.ndarray]) -> np.ndarray:
    """Mean share of every range of places over people; people of whom all is 0 are left out."""
    known = [row / row.sum() for row in rows if row.sum() > 0]
    return np.array([np.mean([row[low - 1 : high].sum() for row in known]) if known else 0.0 for low, high in BINS])


class Use(NamedTuple):
    """`table`: book, word, share (of the events of its codebook), rank (busiest first), low, high: 95% of the random assignment
    at that rank. `even`: over how many words events are spread, as if evenly, mean over codebooks; `chance`: 95% of the same."""

    table: pd.DataFrame
    size: int
    even: float
    chance: tuple[float, float]


def use(found: Codewords, dataset: Dataset) -> Use:
    """How all training events fall on the words."""
    chosen, size = found.chosen.numpy(), found.words.shape[1]
    counts, rng = dataset.counts()[1:].astype(float), np.random.default_rng([0, 2])
    events = counts / max(counts.sum(), 1)
    loads = np.stack([np.bincount(book, events, size) for book in chosen.T])
    drawn = np.stack([np.bincount(rng.integers(size, size=len(events)), events, size) for _ in range(200)])
    ordered = np.sort(drawn, axis=1)[:, ::-1]
    low, high = np.quantile(ordered, (0.025, 0.975), axis=0)
    books, words = np.indices(loads.shape).reshape(2, -1) + 1
    table = pd.DataFrame({"book": books, "word": words, "share": loads.ravel()})
    table["rank"] = table.groupby("book")["share"].rank(method="first", ascending=False).astype(int)
    table["low"], table["high"] = low[table["rank"] - 1], high[table["rank"] - 1]
    return Use(table, size, float(np.mean([over(row) for row in loads])), limits_of([over(row) for row in drawn]))
