"""What the Experts page keeps between reruns. See kit/cache.py for how runs and data are told apart."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.runs import Run
from elastic_core.services.experts import ablation, items, knobs, overview, people, relations, steering
from elastic_core.services.experts.items import Pushes
from elastic_core.services.experts.jobs import Passes
from elastic_core.services.experts.overview import Survey
from elastic_core.services.experts.people import Examples
from elastic_core.services.experts.steering import Steered, Turn
from elastic_core.services.person.recommend import reading
from pages.frame import shell
from pages.kit import cache
from pages.kit.kept import kept

COSTS = 256


@dataclass(frozen=True, eq=False)
class Subject:
    """A run, opened, and its population's survey: what every part of the page asks about."""

    run: Run
    model: Recommender
    data: Dataset
    split: Split
    survey: Survey

    @property
    def key(self) -> tuple[str, str, str, str]:
        return str(self.run.path), cache.stamp(self.run), self.data.hash, self.split


def subject(run: Run, model: Recommender, data: Dataset, split: Split) -> Subject:
    traffic = cache.traffic(run, model, data, split)
    found = _survey((str(run.path), cache.stamp(run), data.hash, split), model, data, traffic, split)
    return Subject(run, model, data, split, found)


def warm(run: Run, model: Recommender, data: Dataset) -> None:
    """What the first visitor of the page would wait for."""
    table(subject(run, model, data, "test"))


@kept(4, "Asking what everybody’s history retrieves and what each expert reads …")
def _survey(key: tuple[str, ...], _model: Recommender, _data: Dataset, _traffic: object, _split: Split) -> Survey:
    return overview.survey(_model, _data, _traffic, _split)  # type: ignore[arg-type]


def table(of: Subject) -> pd.DataFrame:
    """All experts."""
    return _table(of.key, of)


@st.cache_data(max_entries=4, show_spinner=False)
def _table(key: tuple[str, ...], _of: Subject) -> pd.DataFrame:
    return overview.table(_of.survey)


def by_chance(of: Subject) -> tuple[int, float]:
    """How many experts carry a label, and how many would by chance."""
    return _by_chance(of.key, of)


@st.cache_data(max_entries=4, show_spinner=False)
def _by_chance(key: tuple[str, ...], _of: Subject) -> tuple[int, float]:
    return _of.survey.by_chance()


def examples(of: Subject, expert: int) -> Examples:
    """People of an expert, with what it reads."""
    return _examples(of.key, expert, of)


@st.cache_data(max_entries=256, show_spinner=False)
def _examples(key: tuple[str, ...], expert: int, _of: Subject) -> Examples:
    return people.examples(_of.model, _of.data, _of.survey, expert, _of.split)


def pushes(of: Subject, expert: int) -> Pushes:
    """What an expert pushes up and down."""
    return _pushes(of.key, expert, of)


@st.cache_data(max_entries=256, show_spinner="Taking the expert away from everybody who retrieves it …")
def _pushes(key: tuple[str, ...], expert: int, _of: Subject) -> Pushes:
    return items.pushes(_of.model, _of.data, _of.survey.traffic, expert, _of.split)


def effects(of: Subject, expert: int, other: int) -> pd.DataFrame:
    """Without the expert, without another one, with `other` in its place."""
    return _effects(of.key, expert, other, of)


@st.cache_data(max_entries=512, show_spinner="Taking the expert away from everybody who retrieves it …")
def _effects(key: tuple[str, ...], expert: int, other: int, _of: Subject) -> pd.DataFrame:
    return ablation.effects(_of.model, _of.data, _of.survey.traffic, expert, other, _of.split)


def removal(of: Subject, expert: int) -> dict[Hashable, Any]:
    """The first row of `effects` alone."""
    return _removal(of.key, expert, of)


@st.cache_data(max_entries=512, show_spinner="Taking the expert away from everybody who retrieves it …")
def _removal(key: tuple[str, ...], expert: int, _of: Subject) -> dict[Hashable, Any]:
    return dict(ablation.remove(_of.model, _of.data, _of.survey.traffic, expert, _of.split).row())


def removal_alike(of: Subject, expert: int) -> dict[Hashable, Any] | None:
    """The same of a few experts as busy, pooled."""
    others = ablation.alike(of.survey.traffic, expert)
    return _alike(of.key, tuple(others), of) if others else None


@st.cache_data(max_entries=512, show_spinner="Taking experts as busy away from their people …")
def _alike(key: tuple[str, ...], others: tuple[int, ...], _of: Subject) -> dict[Hashable, Any]:
    return dict(ablation.pooled("", [_one(_of.key, other, _of) for other in others]).row())


@kept(512)
def _one(key: tuple[str, ...], expert: int, _of: Subject) -> ablation.Effect:
    return ablation.remove(_of.model, _of.data, _of.survey.traffic, expert, _of.split, most=ablation.FEW)


def alone(of: Subject, expert: int) -> items.Alone | None:
    """What an expert's vector pushes up by itself."""
    return _alone(of.key, expert, of)


@st.cache_data(max_entries=512, show_spinner=False)
def _alone(key: tuple[str, ...], expert: int, _of: Subject) -> items.Alone | None:
    return items.alone(_of.model, _of.data, _of.survey.traffic, expert, _of.split)


def epochs(of: Subject, expert: int) -> pd.DataFrame:
    """The load of an expert during training."""
    return _epochs(of.key, len(of.run.snapshots()), expert, of)


@st.cache_data(max_entries=256, show_spinner=False)
def _epochs(key: tuple[str, ...], files: int, expert: int, _of: Subject) -> pd.DataFrame:
    return relations.load_by_epoch(_of.run, expert)


@kept(8, "Asking what every expert stands for …")
def _means(key: tuple[str, ...], _of: Subject) -> np.ndarray | None:
    if not _of.survey.genres:
        return None
    return knobs.stands_for(_of.model, _of.data, _of.survey.traffic, _of.split, _of.survey)


def named(of: Subject) -> list[str]:
    """The genre every expert stands for; empty for those that stand for none."""
    means, genres = _means(of.key, of), of.survey.genres
    return [""] * of.survey.size if means is None else [genres[genre] if genre >= 0 else "" for genre in means]


def weak(of: Subject, expert: int) -> bool:
    """Whether chance explains the genre of an expert's own distribution, too. What comes from its people is beyond chance."""
    found = _preferred(of.key, expert, of)
    return found is not None and found[1] <= found[2]


@st.cache_data(max_entries=512, show_spinner=False)
def _preferred(key: tuple[str, ...], expert: int, _of: Subject) -> tuple[str, float, float] | None:
    return items.preferred(_of.model, _of.data, expert)


def steered(of: Subject, user: int, turn: Turn) -> Steered:
    """What somebody's list answers to a turn."""
    return _steered(of.key, user, turn, of)


@kept(64)
def _steered(key: tuple[str, ...], user: int, turn: Turn, _of: Subject) -> Steered:
    traffic, read = _of.survey.traffic, reading(_of.data, user, _of.split)
    return steering.steer(_of.model, _of.data, read, turn, traffic, traffic.experts[user], _means(_of.key, _of))


@dataclass
class _Shelf:
    """Costs of turns. No cached function, because computing them reports its progress."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    costs: dict[tuple[tuple[str, ...], Turn], pd.DataFrame] = field(default_factory=dict)


@st.cache_resource
def _shelf() -> _Shelf:
    return _Shelf()


def all_effects(of: Subject) -> pd.DataFrame | None:
    """The effect of removing each expert, if somebody has had it computed."""
    return Passes(shell.RUNS).effects(of.run, of.data.hash, of.split)


def known_cost(of: Subject, turn: Turn) -> pd.DataFrame | None:
    """What a turn costs everybody, if somebody has asked."""
    return _shelf().costs.get((of.key, turn))


def cost(of: Subject, turn: Turn, tell: Callable[[float], None]) -> pd.DataFrame:
    """Asks. Holds nobody up: two visitors at once measure the same twice, and whoever moves on leaves nothing behind."""
    found = steering.cost(of.model, of.data, of.survey.traffic, turn, of.split, tell=tell)
    costs = _shelf().costs
    with _shelf().lock:
        while len(costs) >= COSTS:
            costs.pop(next(iter(costs)))
        costs[of.key, turn] = found
    return found


def touched(of: Subject, turn: Turn) -> int:
    """How many people a turn changes anything for."""
    return len(steering.touched(of.survey.traffic, turn))
