"""What the Experts page keeps between reruns. See kit/cache.py for how runs and data are told apart."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from elastic_core.memory.routing import Routing
from elastic_core.services.experts import ablation, items, knobs, overview, people, relations, steering
from elastic_core.services.experts.items import Pushes
from elastic_core.services.experts.jobs import Passes
from elastic_core.services.experts.overview import Survey
from elastic_core.services.experts.steering import Steered, Turn
from elastic_core.services.person.recommend import reading
from pages.frame import shell
from pages.kit import cache
from pages.kit.cache import Opened
from pages.kit.kept import Shelf, asking, copied, kept

COSTS = 256


@dataclass(frozen=True, eq=False)
class Subject(Opened):
    """A run, opened, and its population's survey: what every part of the page asks about."""

    survey: Survey

    @property
    def traffic(self) -> Routing:
        return self.survey.traffic


def subject(of: Opened) -> Subject:
    return Subject(of.run, of.dataset, of.model, _survey(of))


def warm(of: Opened) -> None:
    """What the first visitor of the page would wait for."""
    table(subject(of))


@kept(4, "Asking what everybody’s history retrieves and what each expert reads …")
def _survey(of: Opened) -> Survey:
    return overview.survey(of.model, of.dataset, cache.traffic(of))


@kept(4)
def table(of: Subject) -> pd.DataFrame:
    """All experts. Shared: never change it."""
    return overview.expert_table(of.survey)


@kept(16)
def listed(of: Subject, status: str, effects: pd.DataFrame | None, columns: tuple[str, ...]) -> pd.DataFrame:
    """The experts of a status, or all, the busiest first, with the columns that are known; `effects` of removing each are some of
    them. Shared, too."""
    found = table(of) if status == "all" else table(of).query("status == @status")
    if effects is not None:
        named = effects.rename(columns={"low": "d_low", "high": "d_high"}).drop(columns=["n", "d_rank_median"])
        found = found.merge(named, on="expert", how="left")
    found = found.sort_values("load", ascending=False, kind="stable", ignore_index=True)
    return found[[name for name in columns if name in found]]


@copied(4)
def by_chance(of: Subject) -> tuple[int, float]:
    """How many experts carry a label, and how many would by chance."""
    return of.survey.by_chance()


@copied(256)
def examples(of: Subject, expert: int) -> pd.DataFrame:
    """People of an expert, with what it reads."""
    return people.examples(of.model, of.dataset, of.survey, expert)


@copied(256, "Taking the expert away from everybody who retrieves it …")
def pushes(of: Subject, expert: int) -> Pushes:
    """What an expert pushes up and down."""
    return items.pushes(of.model, of.dataset, of.traffic, expert)


@copied(512, "Taking the expert away from everybody who retrieves it …")
def effects(of: Subject, expert: int, other: int) -> pd.DataFrame:
    """Without the expert, without another one, with `other` in its place."""
    return ablation.effects(of.model, of.dataset, of.traffic, expert, other)


@copied(512, "Taking the expert away from everybody who retrieves it …")
def removal(of: Subject, expert: int) -> dict[Hashable, Any]:
    """The first row of `effects` alone."""
    before = ablation.judged(of.model, of.dataset, ablation.retrieving(of.traffic, expert))
    return ablation.effect("", ablation.remove(of.model, of.dataset, of.traffic, expert, before))


@copied(512, "Removing experts that as many people use …")
def removal_alike(of: Subject, expert: int) -> dict[Hashable, Any] | None:
    """The same of a few experts as busy, pooled."""
    found = [_from_few(of, other) for other in ablation.alike(of.traffic, expert)]
    return ablation.effect("", pd.concat(found)) if found else None


@kept(512)
def _from_few(of: Subject, expert: int) -> pd.DataFrame:
    return ablation.remove_from_few(of.model, of.dataset, of.traffic, expert)


@copied(512)
def alone(of: Subject, expert: int) -> items.Alone | None:
    """What an expert's vector pushes up by itself."""
    return items.alone(of.model, of.dataset, of.traffic, expert)


@copied(256)
def epochs(of: Subject, files: int, expert: int) -> pd.DataFrame:
    """The load of an expert during training, of which so many files are kept."""
    return relations.load_by_epoch(of.run, expert)


@kept(8, "Asking what every expert stands for …")
def _means(of: Subject) -> np.ndarray | None:
    if not of.survey.genres:
        return None
    return knobs.stands_for(of.model, of.dataset, of.traffic, of.survey)


def named(of: Subject) -> list[str]:
    """The genre every expert stands for; empty for those that stand for none."""
    means, genres = _means(of), of.survey.genres
    return [""] * of.survey.size if means is None else [genres[genre] if genre >= 0 else "" for genre in means]


def weak(of: Subject, expert: int) -> bool:
    """Whether chance explains the genre of an expert's own distribution, too. What comes from its people is beyond chance."""
    found = _preferred(of, expert)
    return found is not None and found[1] <= found[2]


_preferred = asking(copied(512), items.preferred)


@kept(64)
def steered(of: Subject, user: int, turn: Turn) -> Steered:
    """What somebody's list answers to a turn."""
    traffic, read = of.traffic, reading(of.dataset, user)
    return steering.steer(of.model, of.dataset, read, turn, traffic, traffic.experts[user], _means(of))


@st.cache_resource
def _shelf() -> Shelf:
    """What turns cost."""
    return Shelf(COSTS)


def all_effects(of: Subject) -> pd.DataFrame | None:
    """The effect of removing each expert, if somebody has had it computed."""
    return Passes(shell.RUNS).effects(of.run, of.dataset.hash)


def known_cost(of: Subject, turn: Turn) -> pd.DataFrame | None:
    """What a turn costs everybody, if somebody has asked."""
    return _shelf().get((of.kept_as, turn))


def cost(of: Subject, turn: Turn, tell: Callable[[float], None]) -> pd.DataFrame:
    """Asks. Holds nobody up: two visitors at once measure the same twice, and whoever moves on leaves nothing behind."""
    found = steering.cost(of.model, of.dataset, of.traffic, turn, tell=tell)
    with _shelf().lock:
        return _shelf().put((of.kept_as, turn), found)
