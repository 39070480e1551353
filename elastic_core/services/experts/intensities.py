"""How intensely was each kind of event happening for a person, and does that explain when events came?

1 is the mean of all kinds, and an intensity that is always 1 is the null: attention is not modulated by it at all, and what ends
an interval, and when, surprises it as much as knowing nothing but the usual pace does.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import Modulates
from elastic_core.services.experts.weights import Beside
from elastic_core.services.person.people import spaced
from elastic_core.services.person.recommend import batch_of

SHOWN, LAST, ASKED = 6, 50, 200  # marks and events drawn; people that surprise is taken over


class Intensities(NamedTuple):
    """`table`: event (from 1), item, title, days (since the first event shown), mark, intensity (mean over layers)."""

    table: pd.DataFrame
    own: float  # mean intensity of the marks that events really are of, at the event before them
    marks: int


@torch.inference_mode()
def intensities(model: Recommender, dataset: Dataset, user: int) -> Intensities | None:
    """Return the kinds of events that this person met most, over their last events; None for a model that modulates nothing."""
    if not isinstance(model, Modulates):
        return None
    batch = batch_of(model, dataset, np.array([user]))
    found = model.intensities(batch)
    if found is None:
        return None
    names, real = model.mark_names(dataset.catalog), batch.real[0]
    items = batch.items[0][real].numpy()
    values = found.mean(0)[0][real].double().numpy()  # [events, E]
    marks = model.marks[items].double().numpy()
    most = np.argsort(-marks.sum(0), kind="stable")[:SHOWN]
    most = most[marks.sum(0)[most] > 0]
    last = int(dataset.readable()[user])
    events = pd.DataFrame(
        {"event": np.arange(last - len(items), last) + 1, "item": items, "title": dataset.catalog.called(items)}
    )
    events["days"] = np.nan if batch.times is None else batch.times[0][real].numpy()
    shown = events.iloc[-LAST:]
    shown = shown.assign(days=(shown["days"] - shown["days"].iloc[0]) / 86_400)
    table = pd.concat([shown.assign(mark=names[mark], intensity=values[-LAST:, mark]) for mark in most], ignore_index=True)
    return Intensities(table, float(pd.Series((values[:-1] * marks[1:]).sum(1)).mean()), len(names))


@torch.inference_mode()
def surprise(model: Recommender, dataset: Dataset) -> Beside | None:
    """Return nats an interval by the model's intensities beside a constant 1, over people evenly from all; None for a model that
    modulates nothing, or data without times."""
    if not isinstance(model, Modulates) or not dataset.has_times:
        return None
    users = spaced(dataset.histories.n_users, ASKED)
    people = []
    for part in np.array_split(users, max(len(users) // 25, 1)):
        found = model.surprise(batch_of(model, dataset, part))
        if found is None:
            return None
        ours, constant, known = found
        mean = torch.stack([(each * known).sum(1) / known.sum(1).clamp_min(1) for each in (ours.mean(0), constant)])
        people.append(mean[:, known.any(1)])
    return Beside.of(*torch.cat(people, 1).double().numpy())
