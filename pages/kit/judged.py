"""What was measured on what, and who may be called better: for every screen that says so, from the ranks that runs keep.

Every comparison is kept by itself, so that one more run asks only for its own."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd
import streamlit as st

from elastic_core import tables
from elastic_core.comparisons import compare_runs
from elastic_core.data import Dataset
from elastic_core.disk import Unreadable
from elastic_core.errors import InputError
from elastic_core.evaluation.compare import Comparison
from elastic_core.memory import recall
from elastic_core.runs import Run
from elastic_core.services.evidence import judging, systems
from elastic_core.services.evidence.systems import Group
from elastic_core.services.train import beside
from pages.kit import cache
from pages.kit.cache import Stamped, stamped, unstamped
from pages.kit.kept import kept


def groups(root: Path) -> tuple[list[Group], list[Unreadable]]:
    """Data sets with what was measured on them, and runs whose ranks cannot be read."""
    return _groups(stamped(cache.scored(root)))


@kept(8)
def _groups(runs: Stamped) -> tuple[list[Group], list[Unreadable]]:
    return systems.groups(unstamped(runs))


def standings(group: Group, protocol: str) -> pd.DataFrame:
    return _standings(_of(group), _cards(group), protocol, group)


@st.cache_data(max_entries=32, show_spinner="Holding every system against the baseline …")
def _standings(runs: Stamped, cards: tuple[int, ...], protocol: str, _group: Group) -> pd.DataFrame:
    return judging.standings(_group, protocol, compare)


def fitting(group: Group) -> str:
    """The protocol in which these data are judged."""
    return _fitting(_of(group), _cards(group), group)


@st.cache_data(max_entries=32, show_spinner=False)
def _fitting(runs: Stamped, cards: tuple[int, ...], _group: Group) -> str:
    return judging.fitting(_group)


def _cards(group: Group) -> tuple[int, ...]:
    """What tells the result cards of these runs from others: they come after the ranks."""
    files = [run.path / beside.FILE for runs in group.systems.values() for run in runs]
    return tuple(file.stat().st_mtime_ns for file in files if file.is_file())


def differences(group: Group, ours: str, protocol: str) -> pd.DataFrame:
    return _differences(_of(group), ours, protocol, group)


@st.cache_data(max_entries=64, show_spinner="Comparing with every other system …")
def _differences(runs: Stamped, ours: str, protocol: str, _group: Group) -> pd.DataFrame:
    return judging.system_differences(_group, ours, protocol, compare)


def compared(a: Sequence[Run], b: Sequence[Run], protocol: str, metric: str = "NDCG@10") -> Comparison:
    """The system of the runs `a` minus that of `b`, with interval and p. Raises InputError if they cannot be compared."""
    found = _compared(stamped(a), stamped(b), protocol, metric)
    if isinstance(found, str):
        raise InputError(found)
    return found


def compare(a: Sequence[Run], b: Sequence[Run], protocol: str) -> Comparison | None:
    """None where the two were not measured on the same people and candidates."""
    with suppress(InputError):
        return compared(a, b, protocol)
    return None


@st.cache_data(max_entries=1024, show_spinner=False)
def _compared(a: Stamped, b: Stamped, protocol: str, metric: str) -> Comparison | str:
    try:
        return compare_runs(unstamped(a), unstamped(b), protocol, metric)
    except InputError as problem:
        return str(problem)


def _of(group: Group) -> Stamped:
    return stamped([run for runs in group.systems.values() for run in runs])


def recalled(root: Path) -> pd.DataFrame:
    """What systems recall by silence, as `tables.recalled`; read again when the file changes."""
    file = root / recall.FILE
    return _recalled(str(root), file.stat().st_mtime_ns if file.is_file() else 0)


@st.cache_data(max_entries=4, show_spinner=False)
def _recalled(root: str, stamp: int) -> pd.DataFrame:
    return tables.recalled(Path(root))


def chance(data: Dataset, protocol: str) -> float | None:
    """NDCG@10 of a random order of everybody's candidates, where it is known exactly."""
    return _chance(data.hash, protocol, data) if protocol in (beside.PROTOCOL, beside.SEEN) else None


@st.cache_data(max_entries=16, show_spinner=False)
def _chance(data_hash: str, protocol: str, _data: Dataset) -> float:
    return beside.random_ndcg(_data, protocol)
