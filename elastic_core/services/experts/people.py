"""Who retrieves an expert, from the strongest to the nearly: bands, examples, and what of their histories it reads.

Bands, by margin (see experts.py). Of those who retrieve it: `top` the highest quarter, `just in` the lowest quarter, `middle`
the rest. Of the others: `just out`, as many as are just in and at least FEWEST_OUT, with the smallest gap; `out`, the rest.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.models import Recommender, tracing
from elastic_core.services.experts.overview import Survey
from elastic_core.services.person.people import some_of
from elastic_core.services.person.recommend import batch_of

TOP, MIDDLE, IN, OUT, FAR = "top", "middle", "just in", "just out", "out"
BANDS = (TOP, MIDDLE, IN, OUT, FAR)
RANDOM = "random"
FEWEST_OUT = 10
EACH, ITEMS = 2, 4  # people of a band, items of a person
BINS = 40


def bands(found: Survey, expert: int) -> np.ndarray:
    """The band of every person, text [U]."""
    margins, retrieved = found.margins(expert), (found.traffic.experts == expert).any(1)
    result, order = np.full(found.people, FAR, dtype=object), np.argsort(-margins, kind="stable")
    inside, outside = order[retrieved[order]], order[~retrieved[order]]
    n, quarter = len(inside), max(len(inside) // 4, 1)
    result[inside] = MIDDLE
    if n > 1:
        result[inside[n - quarter :]] = IN
    result[inside[:quarter]] = TOP
    result[outside[: max(quarter, FEWEST_OUT)]] = OUT
    return result


def histogram(found: Survey, expert: int, along: str = "margin") -> pd.DataFrame:
    """How many people have which score or margin: low and high edge of the bin, band, people. Empty bins are left out."""
    values = found.margins(expert) if along == "margin" else found.scores(expert)
    names = bands(found, expert)
    edges = np.histogram_bin_edges(values, BINS)
    if along == "margin" and edges[0] < 0 < edges[-1]:  # an edge at the cut-off: no bar holds both kinds of people
        width = edges[1] - edges[0]
        edges = np.arange(np.floor(edges[0] / width), np.ceil(edges[-1] / width) + 1) * width
    at = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    counts = pd.DataFrame({"bin": at, "band": names}).value_counts().reset_index(name="people")
    counts["low"], counts["high"] = edges[counts["bin"]], edges[counts["bin"] + 1]
    order = counts["band"].map(BANDS.index)
    return counts.assign(order=order).sort_values(["order", "bin"])[["low", "high", "band", "people"]].reset_index(drop=True)


def moments(found: Survey, expert: int, along: str = "margin") -> dict[str, float]:
    """Over all people: how many retrieve the expert (density), mean, standard deviation and skewness of its score or margin."""
    values = (found.margins(expert) if along == "margin" else found.scores(expert)).astype(float)
    spread = float(values.std())
    skew = float((((values - values.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0
    return {"density": len(found.users(expert)) / found.people, "mean": float(values.mean()), "spread": spread, "skew": skew}


def expert_standing(found: Survey, expert: int, user: int) -> dict[str, float]:
    """One person and this expert: its score, margin, place among all experts for them (from 1), gate (0 if not retrieved)."""
    scores = found.of_person(user)
    ranks = np.flatnonzero(found.traffic.experts[user] == expert)
    place = int(ranks[0]) + 1 if len(ranks) else max(int((scores > scores[expert]).sum()), found.traffic.experts.shape[1]) + 1
    gate = float(found.traffic.gates[user, ranks[0]]) if len(ranks) else 0.0
    return {"score": float(scores[expert]), "margin": float(found.margins(expert)[user]), "place": place, "gate": gate}


class Examples(NamedTuple):
    """`people`: group, user, score, margin, rank (0 = not retrieved), gate, events, even (1 / events that the model reads),
    items, shares, times (the shares over `even`). `items` are up to four of the person's history with the largest
    aggregation weights in `shares`; without weights the most recent, shares empty."""

    people: pd.DataFrame
    traced: bool


def examples(model: Recommender, dataset: Dataset, found: Survey, expert: int) -> Examples:
    """People from every band, the band's own middle first, and at random among those who retrieve it."""
    margins, names = found.margins(expert), bands(found, expert)
    groups: list[tuple[str, np.ndarray]] = []
    for band in (TOP, MIDDLE, IN, OUT):
        inside = np.flatnonzero(names == band)
        inside = inside[np.argsort(-margins[inside], kind="stable")]
        if band == IN:
            inside = inside[::-1]  # closest to the cut-off first
        if band == MIDDLE:
            inside = inside[np.argsort(np.abs(np.arange(len(inside)) - len(inside) / 2), kind="stable")]
        groups.append((band, inside[:EACH]))
    retrieved = found.users(expert)
    groups.append((RANDOM, retrieved[some_of(len(retrieved), EACH + 1, seed=expert)]))
    users = np.concatenate([chosen for _, chosen in groups])
    group = [name for name, chosen in groups for _ in chosen]
    standings = [expert_standing(found, expert, int(user)) for user in users]
    frame = pd.DataFrame(standings, columns=["group", "user", "score", "margin", "place", "gate"]).assign(group=group, user=users)
    frame["rank"] = np.where(frame["gate"] > 0, frame.pop("place"), 0)
    frame["events"] = dataset.readable()[users]
    frame["even"] = 1 / np.minimum(frame["events"], model.length)
    read = _reads(model, dataset, users, expert, found.reads is not None)
    frame["items"], frame["shares"] = map(list, zip(*read, strict=True))
    frame["times"] = [tuple(share / row.even for share in row.shares) for row in frame.itertuples()]
    return Examples(frame, found.reads is not None)


@torch.inference_mode()
def _reads(
    model: Recommender, dataset: Dataset, users: np.ndarray, expert: int, traced: bool
) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    """Items of each history that the expert gives most weight (first layer, mean over heads); one met twice counts together."""
    batch = batch_of(model, dataset, users)
    trace, said = tracing(model).trace(batch) if traced else None, []
    for row, items in enumerate(batch.items.numpy()):
        shares = pd.Series(np.nan, items[items > 0][::-1][:ITEMS])
        if trace is not None and (trace.retrieved[0].experts[row] == expert).any():
            weights = trace.taken[row][trace.retrieved[0].experts[row] == expert][0].numpy()
            weights = weights / max(float(weights.sum()), 1e-9)
            shares = pd.Series(weights[items > 0]).groupby(items[items > 0]).sum().nlargest(ITEMS)
        said.append((tuple(shares.index.tolist()), tuple(shares.dropna().tolist())))
    return said
