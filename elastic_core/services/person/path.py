"""One history, link by link: what each event asks for, what each expert keeps of it and gives to the list, and what a removal
takes away.

All links are read off the model: `asks` are the ballots that it counted, `keeps` and `gives` its own weights. `without` and
`missing` are not: each expert and each event is taken away once, all in one batch, and the chance of every suggestion is measured
again. Where a model has no such link (no votes by event, no share of a suggestion), the field is None.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from elastic_core.errors import InputError
from elastic_core.models import Recommender, tracing
from elastic_core.services.person import chance
from elastic_core.services.person.attribution import attributed
from elastic_core.services.person.chance import Version
from elastic_core.services.person.inspect import Situation
from elastic_core.services.person.recommend import silence

SHOWN = 12


class Path(NamedTuple):
    """S events are shown, k experts were retrieved (those that are not silenced are heard), M items are suggested.

    Rows of silenced experts are 0 in `keeps` and `gives` and NaN in `without`; so are events that are not read.
    """

    places: Sequence[int | None]  # [S] of the shown events in the history as it is now, oldest first; None: it was taken away
    experts: list[int]  # [k] best first
    asks: list[list[tuple[int, float]]] | None  # [S] every shown event's votes, best first: expert, part of the event's own votes
    wanted: np.ndarray | None  # [k] every expert's part of all votes
    usual: np.ndarray | None  # [k] and of everybody's votes
    keeps: np.ndarray | None  # [k, N] which part of what an expert holds, or reads, an event of the history is
    gives: np.ndarray | None  # [M, k] an expert's share of a suggestion's probability
    without: np.ndarray  # [M, k] a suggestion's chance without an expert, over its chance
    missing: np.ndarray  # [M, S] a suggestion's chance without an event, over its chance


@torch.inference_mode()
def path(model: Recommender, here: Situation, places: Sequence[int | None]) -> Path:
    """The links of one situation, for the events at `places`."""
    read, items, experts = here.read, here.answer.table["item"].tolist(), here.experts
    count, unread = here.events_read, here.events - here.events_read
    asks = wanted = usual = keeps = gives = None
    if here.found is not None and here.found.ballots is not None:
        voted, votes = (each[0, -count:] for each in here.found.ballots[:2])  # [count, m]
        parts = votes / votes.sum(1, keepdim=True).clamp_min(1e-12)
        rows = [list(zip(*pair, strict=True)) for pair in zip(voted.tolist(), parts.tolist(), strict=True)]
        asks = [[] if place is None or place < unread else rows[place - unread] for place in places]
        every, common = here.found.votes, here.found.ballots.usual
        wanted = None if every is None else every[0, experts].numpy()
        usual = None if common is None else common[experts].numpy()
    if experts:
        keeps = np.zeros((len(experts), here.events), dtype=np.float32)
        found = attributed(model, read, items, silence(here.silenced))
        if found is not None:
            kept = [experts.index(expert) for expert in found.experts[0].tolist()]
            gives = np.zeros((len(items), len(experts)), dtype=np.float32)
            gives[:, kept] = found.parts[0, :, : len(kept)].numpy()
            keeps[kept, -count:] = found.held[0, :, -count:].numpy()
        else:
            try:  # how the experts of the first layer read the events, where the model says so
                reading = tracing(model).trace(read.batch(model.length)).reading[0][0].mean(0)[:, -count:].numpy()
                keeps[:, -count:] = np.where(np.isin(experts, here.heard)[:, None], reading, 0)
            except InputError:
                keeps = None
    less = here.heard if len(here.heard) > 1 else []
    away = [place for place in places if place is not None and place >= unread] if here.events > 1 else []
    silenced = frozenset(here.silenced)
    versions = [Version(read, silenced), *(Version(read, silenced | {expert}) for expert in less)]
    versions += [Version(read.without(place), silenced) for place in away]
    scores = torch.from_numpy(chance.scores(model, versions)).double()
    scores[:, torch.from_numpy(here.answer.ranks == 0)] = -torch.inf
    logs = scores.log_softmax(1)[:, items]
    times = (logs[1:] - logs[:1]).exp().T.numpy()
    without, missing = (np.full((len(items), many), np.nan) for many in (len(experts), len(places)))
    without[:, [experts.index(expert) for expert in less]] = times[:, : len(less)]
    missing[:, [places.index(place) for place in away]] = times[:, len(less) :]
    return Path(places, experts, asks, wanted, usual, keeps, gives, without, missing)
