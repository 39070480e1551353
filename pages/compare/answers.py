"""What the Compare page keeps between reruns: the ranks of runs, what follows from those of two, and everybody's lists."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st
from pandas import DataFrame

from elastic_core import comparisons
from elastic_core.data import Dataset
from elastic_core.evaluation.compare import Comparison
from elastic_core.evaluation.evaluate import Report
from elastic_core.runs import Run
from elastic_core.services.compare import slices, standings, versus
from elastic_core.services.compare.versus import Lists
from pages.kit import cache
from pages.kit.kept import kept

MOST = 16  # runs
Key = tuple[str, str, str]
Named = tuple[tuple[str, str], ...]  # path and stamp of each run


def report(run: Run) -> Report:
    """The ranks that the run keeps of its test; shared, so never changed. Raises InputError if there are none."""
    return _report(str(run.path), cache.stamp(run))


@kept(64)
def _report(path: str, stamp: str) -> Report:
    return Run(Path(path)).report()


def compared(a: Sequence[Run], b: Sequence[Run], protocol: str, metric: str) -> Comparison:
    """The system of the runs `a` minus that of `b`, with interval and p."""
    return _compared(_named(a), _named(b), protocol, metric)


@st.cache_data(max_entries=128, show_spinner=False)
def _compared(a: Named, b: Named, protocol: str, metric: str) -> Comparison:
    left, right = ([Run(Path(path)) for path, _ in side] for side in (a, b))
    return comparisons.compare_runs(left, right, protocol, metric)


def forest(a: Sequence[Run], b: Sequence[Run], data: Dataset, protocol: str, metric: str) -> DataFrame:
    """The difference in every group of people."""
    return _forest(_named(a), _named(b), data.hash, protocol, metric, data)


@st.cache_data(max_entries=64, show_spinner="Drawing people again, ten thousand times for each group …")
def _forest(a: Named, b: Named, data_hash: str, protocol: str, metric: str, _data: Dataset) -> DataFrame:
    left, right = ([Run(Path(path)) for path, _ in side] for side in (a, b))
    trained = (comparisons.needs_training(left[0]), comparisons.needs_training(right[0]))
    return slices.forest(list(map(report, left)), list(map(report, right)), _data, protocol, metric, trained)


def _named(runs: Sequence[Run]) -> Named:
    return tuple((str(run.path), cache.stamp(run)) for run in runs)


def comparable(runs: list[Run], data: Dataset) -> list[Run]:
    """The runs that keep ranks of a test on this data; files are read again only when one changed."""
    names = _comparable(_named(runs), data.hash, data)
    return [Run(Path(name)) for name in names]


@st.cache_data(max_entries=16, show_spinner=False)
def _comparable(runs: Named, data_hash: str, _data: Dataset) -> list[str]:
    return [str(run.path) for run in standings.comparable([Run(Path(path)) for path, _ in runs], _data)]


# --- everybody's lists, which need the model -------------------------------------------------------------------------


@dataclass
class _Shelf:
    """Lists of all sessions, read-only. Not a cached function, because making them reports its progress to the page."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    ready: dict[Key, Lists] = field(default_factory=dict)


@st.cache_resource
def _shelf() -> _Shelf:
    return _Shelf()


def known(run: Run, data: Dataset) -> Lists | None:
    """What was made before, if anything."""
    return _shelf().ready.get(_key(run, data))


def listed(run: Run, data: Dataset, tell: Callable[[str, float], None]) -> Lists:
    """Everybody's ten; `tell` hears name and share the first time. Raises InputError if the run does not open."""
    key, shelf = _key(run, data), _shelf()
    found = shelf.ready.get(key)
    if found is not None:
        return found
    model = cache.opened(run, data)
    with shelf.lock:  # two visitors at once list once
        if key not in shelf.ready:
            found = versus.list_everybody(model, data, tell=lambda share: tell(run.name, share))
            while len(shelf.ready) >= MOST:
                shelf.ready.pop(next(iter(shelf.ready)))
            shelf.ready[key] = found
        return shelf.ready[key]


def _key(run: Run, data: Dataset) -> Key:
    return str(run.path), cache.stamp(run), data.hash
