"""How intensely was each kind of event happening for a person, and does that explain when events came?

1 is the mean of all kinds, and an intensity that is always 1 is the null: attention is not modulated by it at all, and what ends
an interval, and when, surprises it as much as knowing nothing but the usual pace does.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import Modulates
from elastic_core.services.experts.weights import mean_of
from elastic_core.services.person.people import spaced
from elastic_core.services.person.recommend import batch_of

SHOWN, LAST, ASKED = 6, 50, 200  # marks and events drawn; people that surprise is taken over


class Intensities(NamedTuple):
    """`table`: event (from 1), item, title, days (since the first event shown), mark, intensity (mean over layers)."""

    table: pd.DataFrame
    own: float  # mean intensity of the marks that events really are of, at the event before them
    marks: int


class Surprise(NamedTuple):
    """Nats an interval, mean and half of its 95% interval over people: by the model's intensities, and by a constant 1."""

    people: int
    model: tuple[float, float]
    constant: tuple[float, float]
    difference: tuple[float, float]  # the model's less the constant's, person by person
    trained: bool  # was the model asked to explain when events happen (CTReg)?


@torch.inference_mode()
def intensities(model: Recommender, dataset: Dataset, user: int) -> Intensities | None:
    """The kinds of events that this person met most, over their last events; None for a model that modulates nothing."""
    if not isinstance(model, Modulates):
        return None
    batch = batch_of(model, dataset, np.array([user]))
    found = model.intensities(batch)
    if found is None:
        return None
    names = model.mark_names(dataset.catalog)
    values = found.mean(0)[0].double().numpy()  # [N, E]
    events = int(batch.real[0].sum())
    items = batch.items[0, -events:].numpy()
    shown = min(LAST, events)
    marks = model.marks[batch.items[0]].double().numpy()[-events:]
    most = np.argsort(-marks.sum(0), kind="stable")[:SHOWN]
    most = most[marks.sum(0)[most] > 0]
    times = None if batch.times is None else batch.times[0, -shown:].numpy()
    first = int(dataset.readable()[user]) - shown
    parts = [
        pd.DataFrame(
            {
                "event": np.arange(first + 1, first + shown + 1), "item": items[-shown:],
                "title": dataset.catalog.called(items[-shown:]),
                "days": np.nan if times is None else (times - times[0]) / 86_400, "mark": names[mark],
                "intensity": values[-shown:, mark],
            }
        )
        for mark in most
    ]  # fmt: skip
    before = (values[-events:-1] * marks[1:]).sum(1)
    return Intensities(pd.concat(parts, ignore_index=True), float(before.mean()) if len(before) else math.nan, len(names))


@torch.inference_mode()
def surprise(model: Recommender, dataset: Dataset) -> Surprise | None:
    """Over people evenly from all; None for a model that modulates nothing, or data without times."""
    if not isinstance(model, Modulates) or not dataset.has_times:
        return None
    users = spaced(dataset.histories.n_users, ASKED)
    pairs = []
    for part in np.array_split(users, max(len(users) // 25, 1)):
        found = model.surprise(batch_of(model, dataset, part))
        if found is None:
            return None
        ours, constant, known = found
        count = known.sum(1).clamp_min(1)
        pairs.append(torch.stack([(x * known).sum(1) / count for x in (ours.mean(0), constant)])[:, known.any(1)])
    both = torch.cat(pairs, 1).double().numpy()
    trained = bool(model.auxiliary_weights())
    return Surprise(both.shape[1], mean_of(both[0]), mean_of(both[1]), mean_of(both[0] - both[1]), trained)
