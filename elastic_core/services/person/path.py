"""One history, link by link: what each event asks for, what each expert keeps of it and gives to the list, and what a removal
takes away.

All links are read off the model: `asks` are the ballots that it counted, `keeps` and `gives` its own weights. `without` and
`missing` are not: each expert and each event is taken away once, all in one batch, and the chance of every suggestion is measured
again. Where a model has no such link (no votes by event, no share of a suggestion), the field is None.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import torch

from elastic_core.errors import InputError
from elastic_core.lists import history_batch
from elastic_core.models import Recommender, tracing
from elastic_core.services.person import chance
from elastic_core.services.person.attribution import attributed
from elastic_core.services.person.inspect import Situation
from elastic_core.services.person.recommend import silence

SHOWN = 12


class Vote(NamedTuple):
    """One event's vote for one expert. `share` is the part of the event's own votes."""

    expert: int
    share: float


class Path(NamedTuple):
    """S events are shown, k experts were retrieved (h of them are heard, those that are not silenced), M items are suggested.

    Rows of silenced experts are 0 in `keeps` and `gives` and NaN in `without`; so are events that are not read.
    """

    places: list[int]  # of the shown events in the history as it is now, oldest first
    experts: list[int]  # [k] best first
    asks: list[list[Vote]] | None  # [S] every shown event's votes, best first
    wanted: np.ndarray | None  # [k] every expert's part of all votes
    usual: np.ndarray | None  # [k] and of everybody's votes
    keeps: np.ndarray | None  # [k, N] which part of what an expert holds, or reads, an event of the history is
    gives: np.ndarray | None  # [M, k] an expert's share of a suggestion's probability
    without: np.ndarray  # [M, k] a suggestion's chance without an expert, over its chance
    missing: np.ndarray  # [M, S] a suggestion's chance without an event, over its chance


@torch.inference_mode()
def path(model: Recommender, here: Situation, shown: Collection[int] | None = None) -> Path:
    """The links of one situation. `shown`: places of events in its history; the latest `SHOWN` if not given."""
    read, items = here.read, here.answer.table["item"].to_numpy()
    count = here.events_read
    places = sorted(range(max(here.events - SHOWN, 0), here.events) if shown is None else shown)
    experts = [] if here.found is None else here.found.experts[0].tolist()
    heard = [experts.index(expert) for expert in here.heard]
    asks = wanted = usual = keeps = gives = None
    if here.found is not None and here.found.ballots is not None:
        voted, votes = (each[0, -count:] for each in here.found.ballots[:2])  # [count, m]
        part = (votes / votes.sum(1, keepdim=True).clamp_min(1e-12)).tolist()
        rows = [[Vote(*vote) for vote in zip(*pair, strict=True)] for pair in zip(voted.tolist(), part, strict=True)]
        asks = [rows[place - (here.events - count)] if place >= here.events - count else [] for place in places]
        every, common = here.found.votes, here.found.ballots.usual
        wanted = None if every is None else every[0, experts].numpy()
        usual = None if common is None else common[experts].numpy()
    if experts:
        keeps = np.zeros((len(experts), here.events), dtype=np.float32)
        found = attributed(model, read, items.tolist(), silence(here.silenced))
        if found is not None:
            kept = [experts.index(expert) for expert in found.experts[0].tolist()]
            gives = np.zeros((len(items), len(experts)), dtype=np.float32)
            gives[:, kept] = found.parts[0, :, : len(kept)].numpy()
            keeps[kept, -count:] = found.held[0, :, -count:].numpy()
        else:
            try:  # how the experts of the first layer read the events, where the model says so
                trace = tracing(model).trace(history_batch(read.items, model.length, read.times))
                keeps[heard, -count:] = trace.reading[0][0].mean(0).numpy()[heard, -count:]
            except InputError:
                keeps = None
    without, missing = _removals(model, here, items, places, experts, heard)
    return Path(places, experts, asks, wanted, usual, keeps, gives, without, missing)


def _removals(
    model: Recommender, here: Situation, items: np.ndarray, places: Sequence[int], experts: Sequence[int], heard: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """What is left of every suggestion's chance, among the items in the running, without each expert and without each event."""
    silenced = frozenset(here.silenced)
    quieter = [silenced | {experts[at]} for at in heard] if len(heard) > 1 else []
    away = [place for place in places if place >= here.events - here.events_read] if here.events > 1 else []
    versions = [chance.Version(here.read, silenced), *(chance.Version(here.read, quiet) for quiet in quieter)]
    versions += [chance.Version(here.read.without(place), silenced) for place in away]
    scores = torch.from_numpy(chance.scores(model, versions)).double()
    scores[:, torch.from_numpy(here.answer.ranks == 0)] = -torch.inf
    logs = scores.log_softmax(1)[:, torch.tensor(items)]
    times = (logs[1:] - logs[:1]).exp().T.numpy()
    without, missing = np.full((len(items), len(experts)), np.nan), np.full((len(items), len(places)), np.nan)
    without[:, list(heard)[: len(quieter)]] = times[:, : len(quieter)]
    missing[:, [places.index(place) for place in away]] = times[:, len(quieter) :]
    return without, missing
