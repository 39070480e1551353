"""Do experts stand for the planted interests? Scored where the truth is known, beside models in which the claim is broken.

Two questions. *People*: does a person's expert tell which interest moves them (the heaviest in their true mixture)?
*Events*: label every event of a history by the expert that reads it with the largest weight; does the label tell the
interest the event came from? Each is answered with purity and adjusted mutual information (0 = chance, 1 = the same
partition).

Shuffling the truth only breaks everything at once, and any grouping of like items beats it. What a person's experts tell must
come from the trained keys, and what an expert's reading tells from its trained value, so the nulls are the same model with
its keys drawn anew, its values replaced by noise of their size, its values swapped among the keys, and a model that was
never trained (`NULLS`). Beside the people's score stands its ceiling: what somebody scores who knows every event's interest and
counts the last ones, because mixtures drift and the heaviest interest cannot be read off a history exactly.
"""

import copy
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from elastic_core import models
from elastic_core.core.batches import reading_batch
from elastic_core.core.elastic import InterestMemory
from elastic_core.data import Catalog, Dataset
from elastic_core.data.synthetic import NOISE
from elastic_core.errors import InputError
from elastic_core.memory.gaps import truth_of
from elastic_core.models import Recommender, as_tracing_model


class Score(NamedTuple):
    """One question's answer. `*_chance` are means over shuffles, `ami_chance_high` their 97.5% quantile."""

    purity: float
    purity_chance: float
    ami: float
    ami_chance: float
    ami_chance_high: float
    labelled: int  # people, or events


class Recovery(NamedTuple):
    strongest: Score  # a person's first-ranked expert against their heaviest interest
    retrieved: Score  # all k of a person's experts against it
    events: Score  # the expert that reads an event most against the event's own interest


NULLS: dict[str, Callable[[Tensor, Tensor], object]] = {
    "keys drawn anew": lambda values, keys: keys.copy_(torch.randn_like(keys) * keys.std()),
    "values replaced by noise": lambda values, keys: values.copy_(torch.randn_like(values) * values.std() + values.mean()),
    "values swapped among keys": lambda values, keys: values.copy_(values[torch.randperm(len(values))]),
}
TRAINED, UNTRAINED = "as trained", "never trained"
MOST_USERS = 2_000  # who are asked at most


@torch.no_grad()
def break_memory(model: Recommender, catalog: Catalog, null: str) -> Recommender:
    """The model with what is claimed broken: one of `NULLS`, or `UNTRAINED`. Raises InputError for another name."""
    if null not in (*NULLS, UNTRAINED):
        raise InputError(f"there is no null {null!r}; there are {', '.join((*NULLS, UNTRAINED))}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if null == UNTRAINED:
            return models.build(model.config, catalog).eval()
        other = copy.deepcopy(model)
        for memory in other.modules():
            if isinstance(memory, InterestMemory):
                NULLS[null](memory.values.weight, memory.keys.sub_keys)
        return other


def compare_with_nulls(model: Recommender, dataset: Dataset, n_users: int = MOST_USERS, shuffles: int = 5) -> dict[str, Recovery]:
    """The scores of the model (`TRAINED`) and of every null, by name."""
    models_by_name = {TRAINED: model} | {name: break_memory(model, dataset.catalog, name) for name in (*NULLS, UNTRAINED)}
    return {name: measure_recovery(other, dataset, n_users, shuffles) for name, other in models_by_name.items()}


def best_possible_ami(dataset: Dataset, length: int) -> float:
    """The best people's score (AMI) of who knows every interest of the last `length` events and counts with a half-life."""
    truth, ends = truth_of(dataset), dataset.split_ends("test")
    starts = np.maximum(dataset.histories.offsets[:-1], ends - length)
    heaviest, best = truth.user_mixture.argmax(1), 0.0
    for half_life in (4.0, 8.0, 16.0, 32.0, 1e9):
        heaviest_recent = np.full(len(ends), NOISE)
        for user, (start, end) in enumerate(zip(starts, ends, strict=True)):
            interests = truth.event_interest[start:end]
            weight = 0.5 ** (np.arange(end - start)[::-1] / half_life) * (interests != NOISE)
            heaviest_recent[user] = np.bincount(np.maximum(interests, 0), weight).argmax()
        best = max(best, label_agreement(heaviest_recent, heaviest)["ami"])
    return best


@torch.inference_mode()
def measure_recovery(model: Recommender, dataset: Dataset, n_users: int = MOST_USERS, shuffles: int = 50) -> Recovery:
    """Scores a model that retrieves on a planted world (test split). Raises InputError where there is no truth or memory."""
    if dataset.truth is None or not model.retrieves:
        raise InputError("recovery needs a planted world (its truth is known) and a model that retrieves experts")
    rng = np.random.default_rng(0)
    everyone = dataset.histories.n_users
    users = np.arange(everyone) if everyone <= n_users else np.sort(rng.choice(everyone, n_users, replace=False))
    ends = dataset.split_ends("test")[users]
    heaviest = dataset.truth.user_mixture[users].argmax(1)
    experts, labels, interests = [], [], []
    model.eval()
    for at in range(0, len(users), 256):
        rows = slice(at, at + 256)
        batch = reading_batch(dataset, users[rows], ends[rows], model.length)
        trace = as_tracing_model(model).trace_reading(batch)
        experts_of = trace.retrieved[0].experts
        experts.append(experts_of.numpy())
        strongest_reader = trace.slot_weights.argmax(1)  # [B, N] rank of the expert that takes most of the event
        labels.append(experts_of.gather(1, strongest_reader)[batch.real].numpy())
        interests.append(event_truth(dataset, users[rows], ends[rows], batch.items.shape[1]))
    chosen, read, true = np.concatenate(experts), np.concatenate(labels), np.concatenate(interests)
    if len(true) > 20_000:
        sample = rng.choice(len(true), 20_000, replace=False)
        read, true = read[sample], true[sample]
    return Recovery(
        strongest=_score_beside_chance(chosen[:, 0], heaviest, rng, shuffles),
        retrieved=_score_beside_chance(chosen, np.repeat(heaviest[:, None], chosen.shape[1], axis=1), rng, shuffles),
        events=_score_beside_chance(read[true != NOISE], true[true != NOISE], rng, shuffles),
    )


def _score_beside_chance(labels: ndarray, truth: ndarray, rng: np.random.Generator, shuffles: int) -> Score:
    """Rows (people or events) are shuffled whole, so what one person's k experts share is kept."""
    seen = label_agreement(labels.ravel(), truth.ravel())
    chance = [label_agreement(labels.ravel(), truth[rng.permutation(len(truth))].ravel()) for _ in range(shuffles)]
    ami = np.array([c["ami"] for c in chance])
    purity = float(np.mean([c["purity"] for c in chance]))
    return Score(seen["purity"], purity, seen["ami"], float(ami.mean()), float(np.quantile(ami, 0.975)), len(truth))


def event_truth(dataset: Dataset, users: ndarray, ends: ndarray, length: int) -> ndarray:
    """True interest of the events a model read, flat, in the order of `batch.items[batch.real]`."""
    assert dataset.truth is not None
    positions = ends[:, None] + np.arange(-length, 0)
    return dataset.truth.event_interest[positions[positions >= dataset.histories.offsets[users][:, None]]]


def label_agreement(experts: ndarray, truth: ndarray) -> dict[str, float]:
    """Purity and adjusted mutual information (Vinh et al. 2010) of found labels (experts) against true ones, without noise."""
    from sklearn.metrics import adjusted_mutual_info_score  # a second to import, for worlds whose truth is known alone
    from sklearn.metrics.cluster import contingency_matrix

    labelled = np.asarray(truth) != NOISE
    labels, true = np.asarray(experts)[labelled], np.asarray(truth)[labelled]
    common = contingency_matrix(true, labels).max(0).sum() if len(true) else 0  # events of a label's commonest true one
    return {"purity": float(common / max(len(true), 1)), "ami": float(adjusted_mutual_info_score(true, labels))}
