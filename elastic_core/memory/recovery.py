"""Do experts stand for the planted interests? Scored where the truth is known, against the same scores by chance.

Two questions. *People*: does a person's expert tell which interest moves them (the heaviest in their true mixture)?
*Events*: label every event of a history by the expert that reads it with the largest weight; does the label tell the
interest the event came from? Each is answered with purity and adjusted mutual information (0 = chance, 1 = the same
partition); chance shuffles the truth among people, or among the events of the sample.
"""

from dataclasses import dataclass

import numpy as np
import torch

from elastic_core.data import Dataset
from elastic_core.data.batches import reading_batch
from elastic_core.data.truth import NOISE, recovery
from elastic_core.errors import InputError
from elastic_core.models import Recommender, tracing


@dataclass(frozen=True)
class Score:
    """One question's answer. `*_chance` are means over shuffles, `ami_chance_high` their 97.5% quantile."""

    purity: float
    purity_chance: float
    ami: float
    ami_chance: float
    ami_chance_high: float
    labelled: int  # people, or events


@dataclass(frozen=True)
class Recovery:
    strongest: Score  # a person's first-ranked expert against their heaviest interest
    retrieved: Score  # all k of a person's experts against it
    events: Score  # the expert that reads an event most against the event's own interest


@torch.inference_mode()
def recover(model: Recommender, dataset: Dataset, people: int = 2_000, shuffles: int = 50, seed: int = 0) -> Recovery:
    """Scores a model that retrieves on a planted world (test split). Raises InputError where there is no truth or memory."""
    if dataset.truth is None or not model.retrieves:
        raise InputError("recovery needs a planted world (its truth is known) and a model that retrieves experts")
    rng = np.random.default_rng(seed)
    everyone = dataset.histories.n_users
    users = np.arange(everyone) if everyone <= people else np.sort(rng.choice(everyone, people, replace=False))
    ends = dataset.ends("test")[users]
    heaviest = dataset.truth.user_mixture[users].argmax(1)
    experts, labels, interests = [], [], []
    model.eval()
    for at in range(0, len(users), 256):
        rows = slice(at, at + 256)
        batch = reading_batch(dataset, users[rows], ends[rows], model.length)
        trace = tracing(model).trace(batch)
        found = trace.retrieved[0].experts
        experts.append(found.numpy())
        strongest_reader = trace.reading[0].mean(1).argmax(1)  # [B, N] rank of the expert that reads the event most
        labels.append(found.gather(1, strongest_reader)[batch.real].numpy())
        interests.append(event_truth(dataset, users[rows], ends[rows], batch.items.shape[1]))
    chosen, read, true = np.concatenate(experts), np.concatenate(labels), np.concatenate(interests)
    if len(true) > 20_000:
        sample = rng.choice(len(true), 20_000, replace=False)
        read, true = read[sample], true[sample]
    return Recovery(
        strongest=_score(chosen[:, 0], heaviest, rng, shuffles),
        retrieved=_score(chosen, np.repeat(heaviest[:, None], chosen.shape[1], axis=1), rng, shuffles),
        events=_score(read[true != NOISE], true[true != NOISE], rng, shuffles),
    )


def _score(found: np.ndarray, truth: np.ndarray, rng: np.random.Generator, shuffles: int) -> Score:
    """Rows (people or events) are shuffled whole, so what one person's k experts share is kept."""
    seen = recovery(found.ravel(), truth.ravel())
    chance = [recovery(found.ravel(), truth[rng.permutation(len(truth))].ravel()) for _ in range(shuffles)]
    ami = np.array([c["ami"] for c in chance])
    return Score(
        seen["purity"],
        float(np.mean([c["purity"] for c in chance])),
        seen["ami"],
        float(ami.mean()),
        float(np.quantile(ami, 0.975)),
        len(truth),
    )


def event_truth(dataset: Dataset, users: np.ndarray, ends: np.ndarray, length: int) -> np.ndarray:
    """True interest of the events a model read, flat, in the order of `batch.items[batch.real]`."""
    assert dataset.truth is not None
    where = ends[:, None] + np.arange(-length, 0)
    return dataset.truth.event_interest[where[where >= dataset.histories.offsets[users][:, None]]]
