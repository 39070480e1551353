"""Does where a model looks tell what would change its mind? The last row's weights beside influence by removal, and the nulls.

Weights: which part of its reading the last event gives each event (person/attention.py). The claim that they are reasons is
their rank correlation with the size of the effects of removal. It stands beside the same correlation for weights that say
nothing of this person: the person's own, shuffled, and those of people with histories of like length, as many events ago.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender, can_stream
from elastic_core.peers.parts.capabilities import Attends
from elastic_core.services.person.attention import last_weights
from elastic_core.services.person.influence import Influence, influence_of_user, rank_agreement
from elastic_core.services.person.people import spaced
from elastic_core.services.person.recommend import batch_of

LIKE, DRAWS = 20, 400  # people of like length, shuffles
ASKED, FEWEST = 32, 10  # people that everybody's correlation is taken over; events that each of them has at least


class Looked(NamedTuple):
    """One person. `found.table` has weights, effects, and `usual`: mean weights over people of like length, of the same events
    counted from the last. The numbers are rank correlations, NaN where there are none."""

    found: Influence
    even: float  # which part each event would have were all read alike
    shuffled: tuple[float, float] = (math.nan, math.nan)  # 95% of shuffles
    others: float = math.nan  # mean over people of like length
    people: int = 0  # of them

    @property
    def weights(self) -> bool:
        """Say whether the model has any."""
        return bool(self.found.table["attention"].notna().any())


class Beside(NamedTuple):
    """Mean over people and half of its 95% interval: of something, of its null, and of the one less the other by person."""

    people: int
    own: tuple[float, float]
    null: tuple[float, float]
    difference: tuple[float, float]

    @classmethod
    def of(cls, own: np.ndarray, null: np.ndarray) -> "Beside":
        means = [(float(each.mean()), float(1.96 * each.std(ddof=1) / math.sqrt(len(each)))) for each in (own, null, own - null)]
        return cls(len(own), *means)


def why_none(model: Recommender) -> str:
    """Say why a model has no weights to show, in a sentence."""
    if not model.trained:
        return "It learns no weights: it counts."
    if can_stream(model):
        return "It keeps one state and rewrites it at every event: nothing is looked back at, so there are no weights."
    return "It does not say what it gives to which event."


def looked(model: Recommender, dataset: Dataset, user: int, stay: bool = False) -> Looked:
    """Compare weights and effects, for what came next. Raises InputError for a history of fewer than two events."""
    found, rng = influence_of_user(model, dataset, user, stay), np.random.default_rng(0)
    weights, effect = found.table["attention"].to_numpy(), found.table["change"].abs().to_numpy()
    even = 1 / min(int(dataset.readable()[user]), model.length)
    if found.agreement is None:
        return Looked(found._replace(table=found.table.assign(usual=np.nan)), even)
    drawn = pd.Series([_correlation(rng.permutation(weights), effect) for _ in range(DRAWS)])
    theirs = _weights_of_last(model, dataset, like(dataset, user), len(weights))
    others = pd.Series([_correlation(row, effect) for row in theirs]).mean()
    found = found._replace(table=found.table.assign(usual=pd.DataFrame(theirs).mean()))
    return Looked(found, even, (drawn.quantile(0.025), drawn.quantile(0.975)), float(others), len(theirs))


def weights_of_everybody(model: Recommender, dataset: Dataset, stay: bool = False) -> Beside:
    """Return the rank correlation of some people, evenly over the lengths of histories, for a model that has weights; the null
    has the weights of the next longer history. Raises InputError for too few people."""
    lengths = dataset.readable()
    long = np.flatnonzero(lengths >= FEWEST)
    if len(long) < 4:
        raise InputError(f"fewer than 4 people have {FEWEST} events")
    ordered, pairs = long[np.argsort(lengths[long], kind="stable")], []
    for user, longer in ordered[spaced(len(ordered) - 1, ASKED)[:, None] + [0, 1]]:
        found = influence_of_user(model, dataset, int(user), stay).table
        theirs = _weights_of_last(model, dataset, np.array([longer]), len(found))[0]
        effect = found["change"].abs().to_numpy()
        pairs.append((_correlation(found["attention"].to_numpy(), effect), _correlation(theirs, effect)))
    known = pd.DataFrame(pairs).dropna().to_numpy()
    if len(known) < 2:
        raise InputError("removing an event changes nothing here")
    return Beside.of(*known.T)


def like(dataset: Dataset, user: int) -> np.ndarray:
    """Return the 20 other people whose histories are most alike in length, at least as long first; ties by number."""
    apart = dataset.readable() - dataset.readable()[user]
    order = np.argsort(np.where(apart < 0, -2 * apart, apart), kind="stable")
    return order[order != user][:LIKE]


@torch.inference_mode()
def weights_of(model: Recommender, dataset: Dataset, users: np.ndarray) -> list[np.ndarray]:
    """Return, of every person, the weights of the events read; nothing for a model that has none."""
    batch = batch_of(model, dataset, users)
    found = last_weights(model, batch) if isinstance(model, Attends) else None
    return [] if found is None else [row[real] for row, real in zip(found, batch.real.numpy(), strict=True)]


def _weights_of_last(model: Recommender, dataset: Dataset, users: np.ndarray, events: int) -> np.ndarray:
    """Return the weights of the last events of each, `[people, events]`; NaN where somebody has fewer."""
    rows = weights_of(model, dataset, users)
    return np.array([np.pad(row[-events:], (max(events - len(row), 0), 0), constant_values=np.nan) for row in rows])


def _correlation(weights: np.ndarray, effect: np.ndarray) -> float:
    found = rank_agreement(weights, effect)
    return math.nan if found is None else found.correlation
