"""What the Compare page keeps between reruns: everybody judged by a run, and what follows from two of those."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st
from pandas import DataFrame

from elastic_core.data import Dataset
from elastic_core.evaluation.compare import Comparison
from elastic_core.runs import Run
from elastic_core.services import versus, versus_slices, versus_table
from elastic_core.services.versus import Judged
from pages.ui import cache

MOST = 16  # runs
Key = tuple[str, str, str]


@dataclass
class _Shelf:
    """Judged runs of all sessions, read-only. Not a cached function, because judging reports its progress to the page."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    ready: dict[Key, Judged] = field(default_factory=dict)


@st.cache_resource
def _shelf() -> _Shelf:
    return _Shelf()


def known(run: Run, data: Dataset) -> Judged | None:
    """What was found before, if anything."""
    return _shelf().ready.get(_key(run, data))


def judged(run: Run, data: Dataset, tell: Callable[[str, float], None]) -> Judged:
    """Everybody's place and list; `tell` hears name and share the first time. Raises InputError if the run does not open."""
    key, shelf = _key(run, data), _shelf()
    found = shelf.ready.get(key)
    if found is not None:
        return found
    model = cache.opened(run, data)
    with shelf.lock:  # two visitors at once judge once
        if key not in shelf.ready:
            found = versus.judge(model, data, tell=lambda share: tell(run.name, share))
            while len(shelf.ready) >= MOST:
                shelf.ready.pop(next(iter(shelf.ready)))
            shelf.ready[key] = found
        return shelf.ready[key]


def _key(run: Run, data: Dataset) -> Key:
    return str(run.path), cache.stamp(run), data.hash


def compared(a: Run, b: Run, data: Dataset, protocol: str, metric: str, left: Judged, right: Judged) -> Comparison:
    """A minus B, with interval and p."""
    return _compared(*_key(a, data), *_key(b, data), protocol, metric, left, right)


@st.cache_data(max_entries=128, show_spinner=False)
def _compared(
    a: str, a_stamp: str, a_data: str, b: str, b_stamp: str, b_data: str, protocol: str, metric: str, _a: Judged, _b: Judged
) -> Comparison:
    return versus.compared(_a, _b, protocol, metric)


def forest(a: Run, b: Run, data: Dataset, protocol: str, metric: str, left: Judged, right: Judged) -> DataFrame:
    """The difference in every group of people."""
    return _forest(*_key(a, data), *_key(b, data), protocol, metric, left, right, data)


@st.cache_data(max_entries=64, show_spinner="Drawing people again, ten thousand times for each group …")
def _forest(
    a: str, a_stamp: str, a_data: str, b: str, b_stamp: str, b_data: str, protocol: str, metric: str,
    _a: Judged, _b: Judged, _data: Dataset,
) -> DataFrame:  # fmt: skip
    return versus_slices.forest(_a.report, _b.report, _data, protocol, metric)


def comparable(runs: list[Run], data: Dataset) -> list[Run]:
    """The tested runs on this data; files are read again only when one changed."""
    names = _comparable(tuple((str(run.path), cache.stamp(run)) for run in runs), data.hash, data)
    return [Run(Path(name)) for name in names]


@st.cache_data(max_entries=16, show_spinner=False)
def _comparable(runs: tuple[tuple[str, str], ...], data_hash: str, _data: Dataset) -> list[str]:
    return [str(run.path) for run in versus_table.comparable([Run(Path(path)) for path, _ in runs], _data)]
