"""What there is to know about a dataset before a model is trained on it: its size, shape and terms, how exact the copy is."""

import functools
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from elastic_core.data import Dataset, Truth
from elastic_core.data.source_catalog import GROCERIES, PLANTED, SOURCES, at_hand
from elastic_core.errors import InputError
from elastic_core.results.reproduce import System, planned_runs
from elastic_core.results.systems import is_variant, system_label
from elastic_core.results.table import remembered_by_systems
from elastic_core.run_config import DataConfig
from elastic_core.runs import Run

GROCERIES_LABEL, PLANTED_LABEL = "A year of groceries", "Planted interests"
MOST_EVENTS = 600  # of one person's history, in the split picture
BINS = 24
EXACT = "Exactly the published file: its hash is the same."
EXACTNESS = {
    "MovieLens-1M (reassembled)": "Put together from public copies that each hold a part. All ratings and films are here, and we "
    "believe that the order is right, but for events in the same second. About one time in seventeen is only close (three-star "
    "ratings). Good for training; not for gaps in time. Name it MovieLens-1M (reassembled) in a report.",
    "MovieLens-1M (SASRec sequences)": f"{EXACT} It keeps the order of events but not their times.",
    "Amazon Video Games": f"{EXACT} It keeps the order of events but not their times, and no titles.",
    "Check-ins in New York": "Prepared by others for a public next-place model, without the names of places. Times are exact "
    "to the minute.",
    "Amazon Beauty": f"{EXACT} It keeps the order of events but not their times, and no titles.",
}


class Card(NamedTuple):
    """One dataset as it is used here: after repeats were dropped and the k-core was taken."""

    label: str
    k_core: int
    n_users: int
    items: int
    events: int
    span: str  # days, where the file has times
    ties: str  # how many events share their time and what decides then; nothing without times
    shortest: int
    median: float
    mean: float
    longest: int
    licence: str
    official: str
    exact: str
    hash: str
    notes: tuple[str, ...]

    @property
    def density(self) -> float:
        """Share of all (person, item) pairs that an event could have, if none repeated."""
        return self.events / (self.n_users * self.items)


def make_card(data: Dataset, k_core: int) -> Card:
    lengths, times, source = data.histories.lengths, data.histories.times, SOURCES.get(data.name)
    return Card(
        label=data.label,
        k_core=k_core,
        n_users=data.histories.n_users,
        items=data.catalog.n_items,
        events=int(lengths.sum()),
        span=" to ".join(_date_range(np.array([times.min(), times.max()]))) if data.has_times else "order only",
        ties=str(data.ties or ""),
        shortest=int(lengths.min()),
        median=float(np.median(lengths)),
        mean=float(lengths.mean()),
        longest=int(lengths.max()),
        licence=data.licence,
        official=source.url if source else "",
        exact=_exactness_text(data),
        hash=data.hash,
        notes=data.notes,
    )


def _date_range(times: np.ndarray) -> list[str]:
    return times.astype("datetime64[s]").astype("datetime64[D]").astype(str).tolist()


def _exactness_text(data: Dataset) -> str:
    if data.truth is not None:
        return "Drawn from a rule; the same seed draws the same world on every machine."
    if data.name == GROCERIES:
        return "Made from the public package by a script that comes along; the same bytes each time."
    if data.label in EXACTNESS:
        return EXACTNESS[data.label]
    if data.name in SOURCES:
        return EXACT if "unverified" not in data.label else "Not the published file: its events differ from it."
    return "Your own file, as you sent it, without the rows that could not be read."


def at_hand_choices(uploads: Mapping[str, DataConfig], current: DataConfig | None = None) -> dict[str, DataConfig]:
    """Every dataset that can be shown without downloading, by label; the chosen run's own first."""
    choices = {SOURCES[name].label: DataConfig(source=name) for name in SOURCES if at_hand(name)}
    choices |= {GROCERIES_LABEL: DataConfig(source=GROCERIES), PLANTED_LABEL: DataConfig(source=PLANTED), **uploads}
    if current is None:
        return choices
    first = next((label for label, config in choices.items() if config == current), "The chosen run's data")
    return {first: current} | choices


def unavailable_data() -> pd.DataFrame:
    """Named sources that would have to be downloaded: label, address and terms."""
    rows = [(s.label, s.url, s.licence) for name, s in SOURCES.items() if not at_hand(name)]
    return pd.DataFrame(rows, columns=["data", "official address", "terms"])


def overview_table(cards: list[Card]) -> pd.DataFrame:
    rows = [(c.label, c.n_users, c.items, c.events, c.density, c.mean, c.median, c.longest, c.span) for c in cards]
    names = ["data", "people", "items", "events", "density", "mean length", "median length", "longest", "time span"]
    return pd.DataFrame(rows, columns=names)


# --- pictures --------------------------------------------------------------------------------------------------------


def length_histogram(data: Dataset) -> pd.DataFrame:
    """People by length of history, in bins that widen like powers: from, to, people."""
    return _histogram(data.histories.lengths, "people")


def popularity_histogram(data: Dataset) -> pd.DataFrame:
    """Items by how many events they have, in the same kind of bins: from, to, items."""
    return _histogram(data.all_counts()[1:], "items")


def top_share(data: Dataset) -> float:
    """Share of all events that fall on the most popular tenth of the items."""
    counts = np.sort(data.all_counts()[1:])[::-1]
    return float(counts[: max(1, math.ceil(len(counts) / 10))].sum() / counts.sum())


def _histogram(values: np.ndarray, counted: str) -> pd.DataFrame:
    low, high = int(values.min()), int(values.max())
    growth, edges = ((high + 1) / low) ** (1 / BINS) - 1, [low]
    while edges[-1] <= high:  # no bin is narrower than the one before, or the next would look like a peak
        edges.append(edges[-1] + max(round(growth * edges[-1]), 1))
    counts, _ = np.histogram(values, bins=edges)
    return pd.DataFrame({"from": edges[:-1], "to": np.array(edges[1:]) - 1, counted: counts})


def split_table(data: Dataset, user: int) -> pd.DataFrame:
    """One person's events in order, the latest `MOST_EVENTS`: number, item, title, genres, day, and which split each is in.

    `person` and `id` (their number here, their id in the data) and `item` (its id) make it a table that can be joined."""
    items = data.histories.user_items(user)
    start = max(0, len(items) - MOST_EVENTS)
    numbers = np.arange(start, len(items))
    valid, test = (int(data.split_ends(part)[user] - data.histories.offsets[user]) for part in ("valid", "test"))
    split = ["train"] * valid + ["validation"] * (test - valid) + ["test"] * (len(items) - test)
    frame = pd.DataFrame({"event": numbers + 1, "split": split[start:], "title": data.catalog.titles_of(items[start:])})
    if data.catalog.genres is not None:
        frame["genres"] = [", ".join(data.catalog.genres[int(i)]) for i in items[start:]]
    if data.has_times:
        frame["day"] = _date_range(data.histories.times[data.histories.offsets[user] :][start : len(items)])
    ids = {"person": user + 1, "id": str(data.histories.user_ids[user]), "item": data.catalog.ids[items[start:]]}
    return frame.assign(**ids)


# --- the planted world -----------------------------------------------------------------------------------------------


def interest_blocks(data: Dataset, most: int = 16_000) -> pd.DataFrame:
    """Events by interest that moved them and by group of items: interest, items (text), group, events. At most `most` rows.

    Items are sorted by the interest they belong to, so each interest is one block; the last row is noise.
    """
    truth = _known_truth(data)
    names = [*truth.interests, "noise"]
    order = np.argsort(truth.item_interest[1:], kind="stable")  # positions of items 1…n, grouped
    groups = min(data.catalog.n_items, most // len(names))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) * groups // len(order)
    cell = truth.event_interest % len(names) * groups + place[data.histories.items - 1]  # noise is -1, and the last
    counts = np.bincount(cell, minlength=len(names) * groups)
    home = np.full(groups, -1)
    home[place] = truth.item_interest[1:]
    frame = pd.DataFrame({"interest": np.repeat(names, groups), "group": np.tile(np.arange(groups), len(names))})
    return frame.assign(home=np.tile([names[i] for i in home], len(names)), events=counts)


def interest_path(data: Dataset, user: int) -> pd.DataFrame:
    """One person's events with the interest that truly moved each (or noise): event, interest, title."""
    truth, events = _known_truth(data), data.histories.user_items(user)
    moved = truth.event_interest[data.histories.offsets[user] :][: len(events)]
    names = [truth.interests[i] if i >= 0 else "noise" for i in moved]
    return pd.DataFrame({"event": np.arange(1, len(events) + 1), "interest": names, "title": data.catalog.titles_of(events)})


def measured_truth(data: Dataset) -> dict[str, float]:
    """What the drawn world really holds: shares of noise and of the most popular items, interests a person shows, length."""
    truth, histories = _known_truth(data), data.histories
    users = np.repeat(np.arange(histories.n_users), histories.lengths)
    real = truth.event_interest >= 0
    interests_shown = len(np.unique(np.stack([users[real], truth.event_interest[real]]), axis=1).T)
    n_holders = (truth.user_mixture > 0).sum(0)  # people with each interest at their last event
    return {
        "noise": float(1 - real.mean()),
        "shared by two people": float((n_holders * (n_holders - 1)).sum() / (histories.n_users * (histories.n_users - 1))),
        "interests a person": interests_shown / histories.n_users,
        "top tenth": top_share(data),
        "mean length": float(histories.lengths.mean()),
    }


def remembered_by_runs(runs: Iterable[Run], data: Dataset, chosen: str = "") -> pd.DataFrame:
    """What systems on a planted world remember, from the ranks their runs keep: system, gap, people, share (of the oracle’s
    NDCG@10 full-seen; the mean over seeds). Without variants of ours, but for the system of the run that is `chosen`."""
    systems, planned = dict[str, list[Run]](), _planned_systems()
    for run in sorted(runs, key=lambda run: (system_of(run.name), run.config.train.seed)):
        system = planned.get(run.name)
        is_drawn = system is None or not is_variant(system) or system == planned.get(chosen)
        if is_drawn and run.finished and (run.last_event("start") or {}).get("data_hash") == data.hash:
            systems.setdefault(system_of(run.name), []).append(run)
    return remembered_by_systems(systems, data)


def system_of(run: str) -> str:
    """What a run is one of: named runs that differ in their seed alone are one system, others stand for themselves."""
    return system_label(_planned_systems()[run]) if run in _planned_systems() else run


@functools.cache
def _planned_systems() -> dict[str, System]:
    return {row.name: row.system for row in planned_runs()}


def _known_truth(data: Dataset) -> Truth:
    if data.truth is None:
        raise InputError(f"{data.label} has no planted truth")
    return data.truth
