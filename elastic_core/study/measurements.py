"""What a study measures of a run besides the ranks of its test: scores with less history, lists, time and memory."""

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
MAX_CUT, MAX_LISTED = 2_000, 500  # users, drawn by chance, who are asked with less history, and whose lists are made
CHUNK = 128


def sample_users(dataset: Dataset, most: int = MAX_CUT) -> ndarray:
    """Everybody who has a test, or so many of them, always the same ones."""
    users = dataset.users_with_target("test")
    return users if len(users) <= most else np.sort(np.random.default_rng(0).permutation(users)[:most])


def score_by_cut(model: Recommender, dataset: Dataset, protocol: str, cuts: Sequence[int]) -> ndarray:
    """NDCG@10 of the test by how many of the last events are read: [cuts, users]. Seen items are left out of the candidates as
    ever, where the protocol says so."""
    users = sample_users(dataset)
    reports = [evaluate(ShortHistoryScorer(model, cut), dataset, "test", (protocol,), users=users) for cut in cuts]
    return np.stack([report.user_values(protocol, METRIC) for report in reports])


def list_best(model: Recommender, dataset: Dataset, protocol: str) -> ndarray:
    """Users' ten best items under the protocol, int32 [users, 10]; 0 where fewer are left."""
    return top_lists(model, dataset, "test", protocol, sample_users(dataset, MAX_LISTED), CHUNK)


def score_novelty(lists: ndarray, counts: ndarray) -> ndarray:
    """Per user the mean of -log2 of the share of all training events that a listed item has (Zhou et al. 2010): bits, float64
    [users]. An item that nobody has seen counts as seen once."""
    bits = -np.log2(np.maximum(counts, 1) / max(counts.sum(), 1))
    listed = lists > 0
    return np.where(listed, bits[lists], 0.0).sum(1) / np.maximum(listed.sum(1), 1)


def share_among(lists: ndarray, items: ndarray) -> ndarray:
    """Per user the share of listed items that are some of these, float64 [users]."""
    return np.asarray(np.isin(lists, items).sum(1) / np.maximum((lists > 0).sum(1), 1))


def events_since_alike(dataset: Dataset) -> ndarray:
    """Events since the last one of the kind of what came next (a genre in common), int [users]; 0 where there is none, or the
    kinds are not known."""
    genres, has_genre = genre_table(dataset.catalog)
    starts, ends, targets = dataset.histories.offsets[:-1], dataset.split_ends("test"), dataset.target_items("test")
    gaps = np.zeros(len(ends), dtype=np.int64)
    if not genres:
        return gaps
    for user in dataset.users_with_target("test"):
        history = dataset.histories.items[starts[user] : ends[user]]
        alike = np.flatnonzero(has_genre[history] @ has_genre[targets[user]] > 0)
        gaps[user] = len(history) - alike[-1] if len(alike) else 0
    return gaps


def measure_costs(models: Mapping[str, Recommender], dataset: Dataset, seconds: float = 8.0) -> dict[str, dict[str, float]]:
    """By system: seconds of one user's answer (all items scored; median and quartiles, all systems in turns), bytes of weights
    and of an answer. The user is one whose history is longer than nine in ten."""
    lengths = dataset.histories.lengths
    user = int(np.argsort(lengths, kind="stable")[int(0.9 * (len(lengths) - 1))])
    jobs = {}
    for label, model in models.items():
        model.eval()
        batch = reading_batch(dataset, np.array([user]), dataset.split_ends("test")[[user]], model.length)
        with torch.inference_mode():
            jobs[label] = torch.inference_mode()(partial(model.prepare_scores(), batch))
    rounds = time_in_turns(list(jobs.values()), CPU, rounds=25, seconds=seconds)
    quartiles = {label: np.quantile(times[:, 0], [0.25, 0.5, 0.75]) for label, times in zip(jobs, rounds, strict=True)}
    return {
        label: {
            **{name: float(value) for name, value in zip(("low", "median", "high"), quartiles[label], strict=True)},
            "weights": float(sum(x.numel() * x.element_size() for x in [*model.parameters(), *model.buffers()])),
            "parameters": float(sum(x.numel() for x in model.parameters())),
            "peak": float(peak_bytes(jobs[label], CPU)), "events": float(lengths[user] - 1),
        }
        for label, model in models.items()
    }  # fmt: skip
