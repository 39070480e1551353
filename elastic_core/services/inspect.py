"""Who is this person, which experts does their history summon, and what does one expert change for them?"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.data.batches import history_batch, reading_batch
from elastic_core.errors import InputError
from elastic_core.layers.interest_memory import Retrieved
from elastic_core.models.registry import Recommender
from elastic_core.routing import Routing
from elastic_core.services.recommend import Answer, Edit, Reading

YEAR = re.compile(r"^(?P<name>.*\S)\s*\((?P<year>\d{4})\)\s*$")


def split_year(title: str) -> tuple[str, str]:
    """`Alien (1979)` → (`Alien`, `1979`); the year is empty where there is none."""
    found = YEAR.match(title)
    return (found["name"], found["year"]) if found else (title, "")


def noun(dataset: Dataset) -> tuple[str, str]:
    """What one item and several are called: films for MovieLens, items otherwise."""
    return ("film", "films") if dataset.name.startswith("ml-") else ("item", "items")


def history_table(dataset: Dataset, read: Reading, last: int = 12, user: int | None = None) -> pd.DataFrame:
    """The most recent `last` events, oldest first: position, item, title, genres, and the date where one is known."""
    start = max(len(read.items) - last, 0)
    items, catalog = read.items[start:], dataset.catalog
    table = pd.DataFrame(
        {
            "position": np.arange(start + 1, len(read.items) + 1),
            "item": items,
            "title": [catalog.title(int(i)) for i in items],
            "genres": [catalog.genres[int(i)] if catalog.genres else () for i in items],
        }
    )
    if user is not None and dataset.has_times and dataset.truth is None:
        at = dataset.histories.offsets[user] + start
        table["date"] = pd.to_datetime(dataset.histories.times[at : at + len(items)], unit="s").strftime("%Y-%m-%d")
    return table


def people_with(dataset: Dataset, item: int, split: str = "test") -> pd.DataFrame:
    """Everybody whose readable history has this item: user, events, since (events after it); the most recent first."""
    offsets, ends = dataset.histories.offsets[:-1], dataset.ends(split)  # type: ignore[arg-type]
    where = np.flatnonzero(dataset.histories.items == item)
    users = np.searchsorted(offsets, where, side="right") - 1
    readable = where < ends[users]
    users, where = users[readable], where[readable]
    table = pd.DataFrame({"user": users, "events": ends[users] - offsets[users], "since": ends[users] - 1 - where})
    return table.sort_values(["since", "user"]).drop_duplicates("user").reset_index(drop=True)


@torch.inference_mode()
def retrieve(model: Recommender, read: Reading, silenced: int | None = None) -> Retrieved:
    """What the history summons, best first (batch of one), after silencing an expert if asked to."""
    found: Retrieved = model.retrieve(history_batch(read.items, model.length))  # type: ignore[operator]
    return found if silenced is None else silence(silenced)(found)


def silence(expert: int) -> Edit:
    """An edit that takes one expert out of what a single person's history summoned; the others keep their gates."""

    def edit(found: Retrieved) -> Retrieved:
        return found.keep((found.experts[0] != expert).nonzero()[:, 0])

    return edit


def experts_table(found: Retrieved, load: np.ndarray) -> pd.DataFrame:
    """All experts for one person: expert, row, column, score (sum of two halves), load, rank and gate (0 if not summoned)."""
    rows, columns = found.halves[0, 0].numpy(), found.halves[0, 1].numpy()
    side = len(rows)
    if not side:
        raise InputError("this run's experts are the same for everybody: it has no keys to look up")
    numbers = np.arange(side * side)
    table = pd.DataFrame({"expert": numbers, "row": numbers // side, "column": numbers % side})
    table["score"] = (rows[:, None] + columns[None, :]).ravel()
    table["load"] = load
    table["rank"], table["gate"] = 0, 0.0
    summoned = found.experts[0].numpy()
    table.loc[summoned, "rank"] = np.arange(1, len(summoned) + 1)
    table.loc[summoned, "gate"] = found.gates[0].numpy().astype(float)
    return table


@dataclass(frozen=True, eq=False)
class Effect:
    """What one expert does for one person. Tables: item, title, times (chance with the expert / chance without it)."""

    promotes: pd.DataFrame
    holds_back: pd.DataFrame


def effect(dataset: Dataset, with_it: Answer, without_it: Answer, top: int = 5) -> Effect:
    """Which of the likelier items an expert makes more or less likely, measured by taking it away.

    Only items among the hundred likeliest with or without it count: far down the list a ratio says little.
    """
    both = (with_it.ranks > 0) & (without_it.ranks > 0)
    near = both & ((with_it.ranks <= 100) | (without_it.ranks <= 100))
    items = np.flatnonzero(near)
    times = with_it.chances[items] / np.maximum(without_it.chances[items], 1e-12)
    table = pd.DataFrame({"item": items, "title": [dataset.catalog.title(int(i)) for i in items], "times": times.astype(float)})
    ordered = table.sort_values("times", ascending=False, kind="stable")
    up, down = ordered[ordered["times"] > 1], ordered[ordered["times"] < 1][::-1]
    return Effect(up.head(top).reset_index(drop=True), down.head(top).reset_index(drop=True))


def people_of(traffic: Routing, expert: int, top: int = 5) -> pd.DataFrame:
    """Who summons an expert, the strongest gate first: user, gate."""
    users, ranks = np.nonzero(traffic.experts == expert)
    table = pd.DataFrame({"user": users, "gate": traffic.gates[users, ranks].astype(float)})
    return table.sort_values(["gate", "user"], ascending=[False, True]).head(top).reset_index(drop=True)


@torch.inference_mode()
def good_example(model: Recommender, dataset: Dataset, split: str = "test", among: int = 64, shortest: int = 20) -> int:
    """A person to open with: of the first `among` with enough history, the one whose next item ranks best."""
    ends = dataset.ends(split)  # type: ignore[arg-type]
    lengths = ends - dataset.histories.offsets[:-1]
    able = np.flatnonzero(lengths >= min(shortest, int(lengths.max())))[:among]
    scores = model.score(reading_batch(dataset, able, ends[able], model.length)).float().numpy().copy()
    targets = dataset.targets(split)[able]  # type: ignore[arg-type]
    own = scores[np.arange(len(able)), targets].copy()
    for row, user in enumerate(able):
        scores[row, dataset.histories.items[dataset.histories.offsets[user] : ends[user]]] = -np.inf
    scores[:, 0] = -np.inf
    return int(able[np.argmin((scores > own[:, None]).sum(1))])
