"""What a study asks of a run besides the ranks of its test: its score with less history, its lists, its time and its memory."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from numpy import ndarray

from elastic_core.bench.harness import peak_bytes, time_in_turns
from elastic_core.core.batches import reading_batch
from elastic_core.data import Dataset
from elastic_core.data.item_features import genre_table
from elastic_core.machine import CPU
from elastic_core.models import Recommender
from elastic_core.results.short_histories import ShortHistoryScorer
from elastic_core.runs.evaluation import top_lists
from elastic_core.runs.ranks import evaluate

METRIC, RECALL = "NDCG@10", "HR@10"
MOST_ASKED, MOST_LISTED = 2_000, 500  # people, drawn by chance, who are asked with less history, and whose lists are made
CHUNK = 128


def some_people(dataset: Dataset, most: int = MOST_ASKED) -> ndarray:
    """Everybody who has a test, or so many of them, always the same ones."""
    asked = dataset.users_with_target("test")
    return asked if len(asked) <= most else np.sort(np.random.default_rng(0).permutation(asked)[:most])


def by_cut(model: Recommender, dataset: Dataset, protocol: str, cuts: Sequence[int]) -> ndarray:
    """NDCG@10 of the test by how many of the last events are read: [cuts, people]. What a person has met is left out of the
    candidates as ever, where the protocol says so."""
    people = some_people(dataset)
    found = [evaluate(ShortHistoryScorer(model, cut), dataset, "test", (protocol,), users=people) for cut in cuts]
    return np.stack([one.user_values(protocol, METRIC) for one in found])


def best_lists(model: Recommender, dataset: Dataset, protocol: str) -> ndarray:
    """People's ten best items under the protocol, int32 [people, 10]; 0 where fewer are left."""
    return top_lists(model, dataset, "test", protocol, some_people(dataset, MOST_LISTED), CHUNK)


def novelty(shown: ndarray, counts: ndarray) -> ndarray:
    """Per person the mean of -log2 of the share of all people's training events that a listed item has (Zhou et al. 2010): bits,
    float64 [people]. An item that nobody met counts as met once."""
    bits = -np.log2(np.maximum(counts, 1) / max(counts.sum(), 1))
    there = shown > 0
    return np.where(there, bits[shown], 0.0).sum(1) / np.maximum(there.sum(1), 1)


def among(shown: ndarray, some: ndarray) -> ndarray:
    """Per person the share of listed items that are some of these, float64 [people]."""
    return np.asarray(np.isin(shown, some).sum(1) / np.maximum((shown > 0).sum(1), 1))


def since_alike(dataset: Dataset) -> ndarray:
    """Events since the last one of the kind of what came next (a genre in common), int [users]; 0 where there is none, or the
    kinds are not known."""
    names, holds = genre_table(dataset.catalog)
    starts, ends, targets = dataset.histories.offsets[:-1], dataset.split_ends("test"), dataset.target_items("test")
    found = np.zeros(len(ends), dtype=np.int64)
    if not names:
        return found
    for user in dataset.users_with_target("test"):
        read = dataset.histories.items[starts[user] : ends[user]]
        alike = np.flatnonzero(holds[read] @ holds[targets[user]] > 0)
        found[user] = len(read) - alike[-1] if len(alike) else 0
    return found


def costs(models: Mapping[str, Recommender], dataset: Dataset, seconds: float = 8.0) -> dict[str, dict[str, float]]:
    """By system: seconds of one person's answer (all items scored; median and quartiles, all systems in turns), bytes of weights
    and of an answer. The person is one whose history is longer than nine in ten."""
    lengths = dataset.histories.lengths
    user = int(np.argsort(lengths, kind="stable")[int(0.9 * (len(lengths) - 1))])
    jobs = {}
    for name, model in models.items():
        model.eval()
        batch = reading_batch(dataset, np.array([user]), dataset.split_ends("test")[[user]], model.length)
        with torch.inference_mode():
            jobs[name] = torch.inference_mode()(partial(model.prepare_scores(), batch))
    taken = time_in_turns(list(jobs.values()), CPU, rounds=25, seconds=seconds)
    timings = {name: np.quantile(mine[:, 0], [0.25, 0.5, 0.75]) for name, mine in zip(jobs, taken, strict=True)}
    return {
        name: {
            **{what: float(value) for what, value in zip(("low", "median", "high"), timings[name], strict=True)},
            "weights": float(sum(x.numel() * x.element_size() for x in [*model.parameters(), *model.buffers()])),
            "parameters": float(sum(x.numel() for x in model.parameters())),
            "peak": float(peak_bytes(jobs[name], CPU)), "events": float(lengths[user] - 1),
        }
        for name, model in models.items()
    }  # fmt: skip
