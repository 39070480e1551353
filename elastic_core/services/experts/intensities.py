"""How intensely was each kind of event happening for a person, and does that explain when events came?

1 is the mean of all kinds, and an intensity that is always 1 is the null: attention is not modulated by it at all, and what ends
an interval, and when, surprises it as much as knowing nothing but the usual pace does.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from elastic_core.core.batches import reading_batch
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import Modulates

SHOWN, ASKED = 6, 200  # marks drawn; people that surprise is taken over


@dataclass(frozen=True, eq=False)
class Intensities:
    """`table`: event (from 1), item, title, days (since the first event shown), mark, intensity (mean over layers)."""

    table: pd.DataFrame
    own: float  # mean intensity of the marks that events really are of, at the event before them
    marks: int


@dataclass(frozen=True)
class Surprise:
    """Nats an interval, mean and half of its 95% interval over people: by the model's intensities, and by a constant 1."""

    people: int
    model: tuple[float, float]
    constant: tuple[float, float]
    difference: tuple[float, float]  # the model's less the constant's, person by person
    trained: bool  # was the model asked to explain when events happen (CTReg)?


@torch.inference_mode()
def intensities(model: Recommender, dataset: Dataset, user: int, last: int = 50) -> Intensities | None:
    """The kinds of events that this person met most, over their last events; None for a model that modulates nothing."""
    if not isinstance(model, Modulates):
        return None
    users = np.array([user])
    ends = dataset.ends("test")[users]
    batch = reading_batch(dataset, users, ends, model.length)
    found = model.intensities(batch)
    if found is None:
        return None
    names = model.mark_names(dataset.catalog)
    values = found.mean(0)[0].double().numpy()  # [N, E]
    events = int(batch.real[0].sum())
    items = batch.items[0, -events:].numpy()
    shown = min(last, events)
    marks = model.marks[batch.items[0]].double().numpy()[-events:]
    most = np.argsort(-marks.sum(0), kind="stable")[:SHOWN]
    most = most[marks.sum(0)[most] > 0]
    times = None if batch.times is None else batch.times[0, -shown:].numpy()
    first = int(ends[0] - dataset.histories.offsets[user]) - shown
    parts = [
        pd.DataFrame(
            {
                "event": np.arange(first + 1, first + shown + 1), "item": items[-shown:],
                "title": [dataset.catalog.title(int(i)) for i in items[-shown:]],
                "days": np.nan if times is None else (times - times[0]) / 86_400, "mark": names[mark],
                "intensity": values[-shown:, mark],
            }
        )
        for mark in most
    ]  # fmt: skip
    before = (values[-events:-1] * marks[1:]).sum(1)
    return Intensities(pd.concat(parts, ignore_index=True), float(before.mean()) if len(before) else math.nan, len(names))


@torch.inference_mode()
def surprise(model: Recommender, dataset: Dataset, most: int = ASKED) -> Surprise | None:
    """Over people evenly from all; None for a model that modulates nothing, or data without times."""
    if not isinstance(model, Modulates) or not dataset.has_times:
        return None
    users = np.unique(np.linspace(0, dataset.histories.n_users - 1, min(most, dataset.histories.n_users)).round().astype(int))
    pairs = []
    for part in np.array_split(users, max(len(users) // 25, 1)):
        found = model.surprise(reading_batch(dataset, part, dataset.ends("test")[part], model.length))
        if found is None:
            return None
        ours, constant, known = found
        count = known.sum(1).clamp_min(1)
        pairs.append(torch.stack([(x * known).sum(1) / count for x in (ours.mean(0), constant)])[:, known.any(1)])
    both = torch.cat(pairs, 1).double().numpy()
    trained = bool(model.auxiliary_weights())
    return Surprise(both.shape[1], _mean(both[0]), _mean(both[1]), _mean(both[0] - both[1]), trained)


def _mean(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(1.96 * values.std(ddof=1) / math.sqrt(len(values)))
