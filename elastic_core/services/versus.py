"""Two models on the same people: everybody's place in both lists, what the lists are like, who wins and who loses."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.data.batches import reading_batch
from elastic_core.data.histories import Split
from elastic_core.errors import InputError
from elastic_core.evaluation.candidates import PROTOCOLS, Candidates
from elastic_core.evaluation.compare import Comparison, compare
from elastic_core.evaluation.evaluate import Report
from elastic_core.evaluation.metrics import NAMES, Ranks, rank
from elastic_core.models import Recommender

TOP = 10
CHUNK = 128
Tell = Callable[[float], None]  # hears the share (0 … 1) that is done


@dataclass(frozen=True, eq=False)
class Judged:
    """One model on everybody, in the order of the people's numbers."""

    report: Report
    places: np.ndarray  # float64 [users]: expected place (from 1) of the true next item among all unseen items
    lists: np.ndarray  # int32 [users, 10]: the ten unseen items with the highest scores, best first; 0 where fewer are left
    seconds: float


@torch.inference_mode()
def judge(model: Recommender, dataset: Dataset, split: Split = "test", tell: Tell | None = None, seed: int = 0) -> Judged:
    """One pass over all people serves the four protocols and the lists. Same numbers as `evaluate`."""
    began = time.perf_counter()
    model.eval()
    people, candidates = np.arange(dataset.histories.n_users), Candidates(dataset, split, seed)
    found: dict[str, list[Ranks]] = {protocol: [] for protocol in PROTOCOLS}
    lists = []
    for at in range(0, len(people), CHUNK):
        users = people[at : at + CHUNK]
        scores = model.score(reading_batch(dataset, users, candidates.ends[users], model.length)).float()
        targets = torch.from_numpy(candidates.targets[users].astype(np.int64))
        masks = {protocol: candidates.mask(protocol, users) for protocol in PROTOCOLS}
        for protocol, mask in masks.items():
            found[protocol].append(rank(scores, targets, mask))
        running = masks["full"].scatter(1, targets[:, None], True)  # seen before or not, the target takes part
        lists.append(_best(scores, running))
        if tell is not None:
            tell(min(at + CHUNK, len(people)) / len(people))
    joined = {protocol: Ranks.join(parts) for protocol, parts in found.items()}
    seconds = time.perf_counter() - began
    report = Report(joined, people, split, dataset.hash, seed, seconds)
    return Judged(report, joined["full"].above + joined["full"].tied / 2 + 1, np.concatenate(lists), seconds)


def _best(scores: torch.Tensor, running: torch.Tensor) -> np.ndarray:
    values, items = scores.masked_fill(~running, -torch.inf).topk(min(TOP, scores.shape[1] - 1), dim=1)
    best = torch.where(values > -torch.inf, items, 0).to(torch.int32).numpy()
    return np.pad(best, ((0, 0), (0, TOP - best.shape[1])))


def compared(a: Judged, b: Judged, protocol: str, metric: str) -> Comparison:
    """A minus B with its bootstrap interval and the p of a sign-flip test."""
    if metric not in NAMES:
        raise InputError(f"unknown metric {metric!r}; known are {', '.join(NAMES)}")
    return compare(a.report, b.report, protocol, metric)


def verdict(found: Comparison, a: str, b: str) -> str:
    """What may be claimed, in one sentence."""
    if found.low <= 0 <= found.high:
        return f"On these {found.users:,} people no difference can be claimed."
    better, worse = (a, b) if found.difference > 0 else (b, a)
    return f"{better} is better than {worse} on these {found.users:,} people."


def duel(a: Judged, b: Judged) -> dict[str, int]:
    """In how many lists the true next item stands higher with A, higher with B, or equally."""
    return {
        "a": int((a.places < b.places).sum()),
        "b": int((a.places > b.places).sum()),
        "same": int((a.places == b.places).sum()),
    }


def everyone(a: Judged, b: Judged, dataset: Dataset) -> pd.DataFrame:
    """user, title of the true next item, place_a, place_b: one row a person."""
    targets = dataset.targets(a.report.split)  # type: ignore[arg-type]
    titles = [dataset.catalog.title(int(item)) for item in targets]
    return pd.DataFrame({"user": a.report.users, "title": titles, "place_a": a.places, "place_b": b.places})


def extremes(a: Judged, b: Judged, dataset: Dataset, protocol: str, metric: str, top: int = 10) -> pd.DataFrame:
    """The people for whom A gains most over B, then those for whom it loses most.

    Ordered by the difference of the metric; equal ones by the ratio of the two places. `side` is A or B, whoever wins.
    """
    difference = a.report.values(protocol, metric) - b.report.values(protocol, metric)
    ratio = np.log2(b.places / a.places)
    order = np.lexsort((ratio, difference))
    best = [u for u in order[::-1][:top] if difference[u] > 0 or (difference[u] == 0 and ratio[u] > 0)]
    worst = [u for u in order[:top] if difference[u] < 0 or (difference[u] == 0 and ratio[u] < 0)]
    chosen = np.array(best + worst, dtype=np.int64)
    targets, counts = dataset.targets(a.report.split)[chosen], dataset.counts()  # type: ignore[arg-type]
    ends = dataset.ends(a.report.split)[chosen]  # type: ignore[arg-type]
    return pd.DataFrame(
        {
            "side": ["A"] * len(best) + ["B"] * len(worst),
            "user": chosen,
            "title": [dataset.catalog.title(int(item)) for item in targets],
            "place_a": a.places[chosen],
            "place_b": b.places[chosen],
            "difference": difference[chosen],
            "events": ends - dataset.histories.offsets[:-1][chosen],
            "popularity": counts[targets],
        }
    )


@dataclass(frozen=True)
class Lists:
    """What a model's lists of ten are like."""

    coverage: float  # share of the catalogue that is recommended to anybody
    popularity: float  # training events of a recommended item, on average
    top_share: float  # share of recommendations that come from the most popular tenth of the catalogue


def properties(judged: Judged, dataset: Dataset) -> Lists:
    return describe_lists(judged.lists, dataset)


def chosen_lists(dataset: Dataset, split: Split = "test") -> Lists:
    """The same for what people really chose next: a yardstick for popularity (coverage: one item a person)."""
    return describe_lists(dataset.targets(split)[:, None], dataset)


def describe_lists(lists: np.ndarray, dataset: Dataset) -> Lists:
    counts, shown = dataset.counts(), lists[lists > 0]
    tenth = np.argsort(-counts[1:], kind="stable")[: max(dataset.catalog.n_items // 10, 1)] + 1
    return Lists(
        coverage=len(np.unique(shown)) / dataset.catalog.n_items,
        popularity=float(counts[shown].mean()) if len(shown) else 0.0,
        top_share=float(np.isin(shown, tenth).mean()) if len(shown) else 0.0,
    )


def overlap(a: Judged, b: Judged) -> np.ndarray:
    """Per person: how many of A's ten items are in B's ten, whatever their order."""
    same = (a.lists[:, :, None] == b.lists[:, None, :]) & (a.lists[:, :, None] > 0)
    return same.any(2).sum(1)
