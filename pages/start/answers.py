"""What the start page keeps between reruns; see kit/cache.py for how things are identified."""

import streamlit as st

from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.runs import Run
from elastic_core.services.person import attribution
from elastic_core.services.person.attribution import Agreement
from elastic_core.services.person.inspect import Situation
from elastic_core.services.person.path import Path, path
from pages.frame.shell import Context
from pages.kit import cache
from pages.kit.kept import kept

PEOPLE = 200  # who are asked whether the owner of their first suggestion is the expert whose removal lowers it most


def links(now: Context, here: Situation, shown: list[int]) -> Path:
    """What asks, keeps and gives what in this situation."""
    known = tuple(here.read.items.tolist()), here.silenced, here.stay, tuple(shown)
    return _links(str(now.run.path), cache.stamp(now.run), now.dataset.hash, known, now.model, here)


@kept(64)
def _links(path_: str, stamp: str, data_hash: str, known: tuple[object, ...], _model: Recommender, _here: Situation) -> Path:
    return path(_model, _here, known[3])  # type: ignore[arg-type]


def owners(run: Run, model: Recommender, data: Dataset, split: Split) -> Agreement | None:
    """Do shares say what a removal does? Of some people; None for a model without shares."""
    return _owners(str(run.path), cache.stamp(run), data.hash, split, model, data)


@st.cache_data(max_entries=12, show_spinner=False)
def _owners(path_: str, stamp: str, data_hash: str, split: Split, _model: Recommender, _data: Dataset) -> Agreement | None:
    return attribution.agreement(_model, _data, split, PEOPLE, stay=cache.repeats(_data, split).stay)


def warm(run: Run, model: Recommender, data: Dataset) -> None:
    """Asks for the first visitor."""
    owners(run, model, data, "test")
