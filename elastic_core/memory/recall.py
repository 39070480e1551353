"""After a long silence: does a model still know that somebody has an interest, and where in it they were?

Where people dwell in one interest for long, the next event is nearly always of that one, so a ranking of all items asks hardly
anything else. Here two questions are asked apart, of the interest that what came next is of, by how many events ago it showed:

    place   among the items of that interest alone: 1 / rank of what came next. A planted oracle knows which item was met last,
            and so what follows; popularity within the interest knows nothing of the person.
    found   the share of interests that this person never had to which the model gives less than to this one (0.5: by chance).
            What an interest is given: its items' part of the softmax over all items, divided by that under popularity.

A model that forgets falls to popularity in the one, to one half in the other.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy import ndarray
from pandas import DataFrame

from elastic_core import disk
from elastic_core.core.batches import reading_batch
from elastic_core.core.histories import Dataset, Split
from elastic_core.data.synthetic import NOISE
from elastic_core.memory.gaps import gaps, name_of, truth_of
from elastic_core.models import Recommender
from elastic_core.runs.ranks import Interval

BINS = ((1, 1), (2, 10), (11, 50), (51, 100), (101, 200), (201, 500), (501, 10**9))
BATCH = 16
FILE = Path("benchmarks") / "recall.csv"  # below the runs
ORACLE, POPULARITY = NULLS = ("planted oracle", "popularity")  # all there is to know, and nothing of the person
CHANCE = 0.5  # of `found`
Scores = Callable[[ndarray], ndarray]  # of these people, float64 [B, n_items + 1]


class Recall(NamedTuple):
    """Per person, NaN where the target is noise, its interest is new to them, or there is nothing to compare with."""

    place: ndarray
    found: ndarray


def of_model(model: Recommender, dataset: Dataset, split: Split = "test") -> Recall:
    """What a trained model, or a fitted baseline, recalls."""
    model.eval()
    ends = dataset.ends(split)
    with torch.inference_mode():
        judge = model.prepare()

        def scores(users: ndarray) -> ndarray:
            return judge(reading_batch(dataset, users, ends[users], model.length)).double().numpy()

        return recall(scores, dataset, split)


def of_oracle(dataset: Dataset, split: Split = "test") -> Recall:
    """What somebody recalls who knows every event's interest and the world's rules."""
    truth, starts, ends = truth_of(dataset), dataset.histories.offsets[:-1], dataset.ends(split)

    def scores(users: ndarray) -> ndarray:
        return np.log(np.maximum(truth.oracle(dataset.histories.items, starts[users], ends[users], users), 1e-300))

    return recall(scores, dataset, split)


def of_popularity(dataset: Dataset, split: Split = "test") -> Recall:
    """What is known without reading anything: how often items are met."""
    counts = np.log(np.maximum(dataset.counts().astype(float), 1e-9))
    return recall(lambda users: np.tile(counts, (len(users), 1)), dataset, split)


def recall(scores: Scores, dataset: Dataset, split: Split = "test") -> Recall:
    """Logits of all items, asked people by people."""
    truth, gap = truth_of(dataset), gaps(dataset, split)
    starts, ends, targets = dataset.histories.offsets[:-1], dataset.ends(split), dataset.targets(split)
    count = len(truth.interests)
    belongs = truth.item_interest[1:, None] == np.arange(count)  # [n, interests]
    usual = _parts(np.log(np.maximum(dataset.counts()[1:].astype(float), 1e-9))[None], belongs)
    place, found = np.full(len(ends), np.nan), np.full(len(ends), np.nan)
    asked = np.flatnonzero(gap > 0)
    for at in range(0, len(asked), BATCH):
        users = asked[at : at + BATCH]
        values = scores(users)[:, 1:]
        given = _parts(values, belongs) / usual
        for row, user in enumerate(users):
            target = int(targets[user]) - 1
            interest = int(truth.event_interest[ends[user]])
            inside = values[row, belongs[:, interest]]
            above, tied = (inside > values[row, target]).sum(), (inside == values[row, target]).sum() - 1
            place[user] = np.mean(1 / np.arange(above + 1, above + tied + 2))  # equal scores: any order alike
            had = np.unique(truth.event_interest[starts[user] : ends[user]])
            never = np.setdiff1d(np.arange(count), had[had != NOISE])
            if len(never):
                own, others = given[row, interest], given[row, never]
                found[user] = np.mean((own > others) + 0.5 * (own == others))
    return Recall(place, found)


def by_gap(named: dict[str, Recall], gap: ndarray) -> DataFrame:
    """gap, people, system, place, place_ci, found, found_ci: means and half 95% intervals over people, by range and system."""
    rows = []
    for low, high in BINS:
        here = (gap >= low) & (gap <= high)
        name = name_of(low, high)
        for system, of in named.items():
            place, found = _mean(of.place[here]), _mean(of.found[here])
            if here.any():
                rows.append((name, int(here.sum()), system, *place, *found))
    return DataFrame(rows, columns="gap people system place place_ci found found_ci".split())


def range_of(name: str) -> tuple[int, int]:
    """The other way round; what is none of ours stands last."""
    return next((each for each in BINS if name_of(*each) == name), BINS[-1])


COLUMNS = {
    "gap": str, "people": int, "system": str, "place": float, "place_ci": float, "found": float, "found_ci": float, "world": str,
    "split": str, "commit": str,
}  # fmt: skip
MOST_BYTES = 2**22


def read_recall(file: Path) -> DataFrame:
    """The rows that were kept; none of a file that is missing or of another form."""
    try:
        table = pd.read_csv(io.BytesIO(disk.read_bytes(file, MOST_BYTES, file.parent)), dtype=str)
        return table[list(COLUMNS)].astype(COLUMNS)
    except (ValueError, KeyError, OverflowError):  # what is not found, no file, no table, no number
        return DataFrame(columns=list(COLUMNS)).astype(COLUMNS)


def _parts(logits: ndarray, belongs: ndarray) -> ndarray:
    """Every interest's part of the softmax `[B, interests]`."""
    shares = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(shares / shares.sum(1, keepdims=True) @ belongs)


def _mean(values: ndarray) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    found = Interval.of(known if len(known) else np.array([np.nan]))
    return found.mean, 1.96 * found.error
