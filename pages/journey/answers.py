"""What the journey page keeps between reruns; see kit/cache.py for how things are identified."""

from contextlib import suppress

import numpy as np
import pandas as pd
import streamlit as st

from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender, Trace
from elastic_core.runs import Run
from elastic_core.services.experts.evidence import Label
from elastic_core.services.journey import shown, trace
from elastic_core.services.journey.chance import of_version
from elastic_core.services.journey.dispatch import Dispatch, dispatch
from elastic_core.services.journey.text import encode
from elastic_core.services.journey.trace import Aggregation, Along
from elastic_core.services.journey.versions import Tree
from elastic_core.services.person import influence as removal
from elastic_core.services.person import inspect, people
from elastic_core.services.person.chance import Chance
from elastic_core.services.person.inspect import Situation
from elastic_core.services.person.recommend import Reading
from pages.frame.shell import Context
from pages.journey import charts
from pages.kit import cache, plot
from pages.kit.kept import kept

Items = tuple[int, ...]


def situation(run: Run, model: Recommender, data: Dataset, read: Reading, stay: bool = False) -> Situation:
    """What a history retrieves and is answered; do its items `stay` in the running?"""
    return _situation(str(run.path), cache.stamp(run), data.hash, tuple(read.items.tolist()), read.truth, stay, model, data)


@kept(64)
def _situation(
    path: str, stamp: str, data_hash: str, items: Items, truth: int | None, stay: bool, _model: Recommender, _data: Dataset
) -> Situation:
    return inspect.situation_of(_model, _data, Reading(np.array(items, dtype=np.int64), truth), stay=stay)


def chance(run: Run, model: Recommender, data: Dataset, tree: Tree, stay: bool) -> Chance | None:
    """The last edit beside the same edit elsewhere."""
    return _chance(str(run.path), cache.stamp(run), data.hash, encode(tree.chain()), tree.base.digest, stay, model, data, tree)


@kept(256)
def _chance(
    path: str, stamp: str, data_hash: str, code: str, base: str, stay: bool, _model: Recommender, _data: Dataset, _tree: Tree
) -> Chance | None:
    return of_version(_model, _data, _tree, stay)


def influence(run: Run, model: Recommender, data: Dataset, items: Items, target: int, stay: bool) -> removal.Influence:
    """Each of the last events taken away once."""
    inside = cache.traced(run, model, items) if model.retrieves else None
    return _influence(str(run.path), cache.stamp(run), data.hash, items, target, stay, model, data, inside)


@kept(64)
def _influence(
    path: str, stamp: str, data_hash: str, items: Items, target: int, stay: bool, _model: Recommender, _data: Dataset,
    _inside: Trace | None,
) -> removal.Influence:  # fmt: skip
    return removal.influence(_model, _data, np.array(items, dtype=np.int64), target, stay=stay, trace=_inside)


def along(run: Run, model: Recommender, data: Dataset, user: int, stay: bool) -> Along:
    """One person at up to 40 moments of their history."""
    return _along(str(run.path), cache.stamp(run), data.hash, user, stay, model, data)


@kept(64)
def _along(path: str, stamp: str, data_hash: str, user: int, stay: bool, _model: Recommender, _data: Dataset) -> Along:
    return trace.along(_model, _data, user, stay=stay)


def label(run: Run, model: Recommender, data: Dataset, split: Split, expert: int) -> Label | None:
    """The genre that stands out around an expert; None for data without any."""
    return _label(str(run.path), cache.stamp(run), data.hash, split, expert, model, data, run)


@kept(4_096)
def _label(
    path: str, stamp: str, data_hash: str, split: Split, expert: int, _model: Recommender, _data: Dataset, _run: Run
) -> Label | None:
    found = cache.evidence(_run, _model, _data, split)
    return found.label(expert) if found else None


def reading(run: Run, model: Recommender, data: Dataset, items: np.ndarray, layer: int) -> Aggregation:
    """How the retrieved experts read a history. Raises InputError where there is nothing to read with."""
    read = tuple(items.tolist())
    inside = cache.traced(run, model, read) if model.retrieves else None
    return _reading(str(run.path), cache.stamp(run), data.hash, read, layer, model, inside)


@kept(64)
def _reading(
    path: str, stamp: str, data_hash: str, items: Items, layer: int, _model: Recommender, _inside: Trace | None
) -> Aggregation:
    return trace.aggregation(_model, np.array(items, dtype=np.int64), layer, trace=_inside)


def dispatched(run: Run, model: Recommender, data: Dataset, items: np.ndarray, events: int) -> Dispatch:
    """What experts take of the last events, and what these get back. Raises InputError where there is no dispatcher."""
    return _dispatched(str(run.path), cache.stamp(run), data.hash, tuple(items.tolist()), events, model, data)


@kept(64)
def _dispatched(
    path: str, stamp: str, data_hash: str, items: Items, events: int, _model: Recommender, _data: Dataset
) -> Dispatch:
    return dispatch(_model, _data, np.array(items, dtype=np.int64), events)


def dispatch_table(found: Dispatch) -> pd.DataFrame:
    """One row an event and expert: event (from 1, the oldest that is drawn), title, expert, taken, back."""
    n, k = found.back.shape
    return pd.DataFrame(
        {
            "event": np.repeat(np.arange(1, n + 1), k), "title": np.repeat(np.array(found.titles, dtype=object), k),
            "expert": np.tile(found.experts, n), "taken": found.takes.T.ravel(), "back": found.back.ravel(),
        }
    )  # fmt: skip


def way(now: Context, moment: int, dark: bool, stay: bool) -> tuple[cache.Drawn, Along, Along | None, int, int]:
    """The figure of the whole journey with what it shows: both runs' ranks, experts drawn, experts in all."""
    other = now.other
    keys = cache.stamped(run for run in (now.run, other) if run)
    return _way(keys, now.dataset.hash, now.user, moment, dark, stay, now)


@kept(64)
def _way(
    runs: cache.Stamped, data_hash: str, user: int, moment: int, dark: bool, stay: bool, _now: Context
) -> tuple[cache.Drawn, Along, Along | None, int, int]:
    mine, other = along(_now.run, _now.model, _now.dataset, user, stay), None
    if _now.other is not None:
        other = along(_now.other, cache.opened(_now.other, _now.dataset), _now.dataset, user, stay)
    experts, count = shown.busiest(mine.experts, moment) if len(mine.experts) else (mine.experts, 0)
    names = (_now.run.name, _now.other.name if _now.other else "")
    figure = charts.along(mine.ranks, experts, moment, plot.palette(dark), other.ranks if other else None, names)
    return cache.Drawn(figure), mine, other, int(experts["expert"].nunique()), count


def everybody(run: Run, model: Recommender, data: Dataset, split: Split, expert: int | None) -> pd.DataFrame:
    """Everybody as one row; the ranks are those of the run's test, where it keeps them."""
    return _everybody(str(run.path), cache.stamp(run), data.hash, split, expert, run, model, data)


@kept(8)
def _everybody(
    path: str, stamp: str, data_hash: str, split: Split, expert: int | None, _run: Run, _model: Recommender, _data: Dataset
) -> pd.DataFrame:
    traffic = cache.traffic(_run, _model, _data, split) if expert is not None else None
    return people.everybody(_data, split, _standing(_run, _model, _data, split), traffic, expert)


def _standing(run: Run, model: Recommender, data: Dataset, split: Split) -> np.ndarray:
    protocol = "full-seen" if cache.repeats(data, split).stay else "full"
    if split == "test" and run.has_report:
        with suppress(InputError, KeyError):
            ranks = run.report().ranks[protocol]
            if len(ranks.above) == data.histories.n_users:
                return np.asarray(ranks.above + ranks.tied / 2 + 1)
    return target_ranks(run, model, data, split)


def target_ranks(run: Run, model: Recommender, data: Dataset, split: Split) -> np.ndarray:
    """Where everybody's next item stands; among all items where people choose again what they have met."""
    return _target_ranks(str(run.path), cache.stamp(run), data.hash, split, model, data)


@st.cache_data(max_entries=8, show_spinner="Asking one run about everybody …")
def _target_ranks(path: str, stamp: str, data_hash: str, split: Split, _model: Recommender, _data: Dataset) -> np.ndarray:
    return people.target_ranks(_model, _data, split, stay=cache.repeats(_data, split).stay)
