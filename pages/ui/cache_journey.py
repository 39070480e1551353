"""What the journey page keeps between reruns; see cache.py for how things are identified."""

import numpy as np
import streamlit as st

from elastic_core.data import Dataset
from elastic_core.data.histories import Split
from elastic_core.models.registry import Recommender
from elastic_core.runs import Run
from elastic_core.services import influence as removal
from elastic_core.services import journey_trace, people
from elastic_core.services.inspect import Situation
from elastic_core.services.recommend import Reading
from pages.ui import cache

Items = tuple[int, ...]


def situation(run: Run, model: Recommender, data: Dataset, read: Reading) -> Situation:
    """What a history summons and is answered."""
    return _situation(str(run.path), cache.stamp(run), data.hash, tuple(read.items.tolist()), read.truth, model, data)


@st.cache_resource(max_entries=64, show_spinner=False)
def _situation(
    path: str, stamp: str, data_hash: str, items: Items, truth: int | None, _model: Recommender, _data: Dataset
) -> Situation:
    return journey_trace.situation_of(_model, _data, Reading(np.array(items, dtype=np.int64), truth))


def influence(run: Run, model: Recommender, data: Dataset, items: Items, target: int) -> removal.Influence:
    """Each of the last events taken away once."""
    return _influence(str(run.path), cache.stamp(run), data.hash, items, target, model, data)


@st.cache_resource(max_entries=64, show_spinner=False)
def _influence(
    path: str, stamp: str, data_hash: str, items: Items, target: int, _model: Recommender, _data: Dataset
) -> removal.Influence:
    return removal.influence(_model, _data, np.array(items, dtype=np.int64), target)


def along(run: Run, model: Recommender, data: Dataset, user: int) -> journey_trace.Along:
    """One person at up to 40 moments of their history."""
    return _along(str(run.path), cache.stamp(run), data.hash, user, model, data)


@st.cache_resource(max_entries=64, show_spinner=False)
def _along(path: str, stamp: str, data_hash: str, user: int, _model: Recommender, _data: Dataset) -> journey_trace.Along:
    return journey_trace.along(_model, _data, user)


def ceiling(run: Run, model: Recommender, data: Dataset, split: Split) -> float:
    """The load above which an expert is hot for everyone."""
    return _ceiling(str(run.path), cache.stamp(run), data.hash, split, model, data, run)


@st.cache_data(max_entries=16, show_spinner=False)
def _ceiling(path: str, stamp: str, data_hash: str, split: Split, _model: Recommender, _data: Dataset, _run: Run) -> float:
    return journey_trace.ceiling(cache.traffic(_run, _model, _data, split))


def target_ranks(run: Run, model: Recommender, data: Dataset, split: Split) -> np.ndarray:
    """Where everybody's next item stands."""
    return _target_ranks(str(run.path), cache.stamp(run), data.hash, split, model, data)


@st.cache_data(max_entries=8, show_spinner="Asking one run about everybody …")
def _target_ranks(path: str, stamp: str, data_hash: str, split: Split, _model: Recommender, _data: Dataset) -> np.ndarray:
    return people.target_ranks(_model, _data, split)
