"""What the Evidence page keeps between reruns: verdicts on speed, what follows from two systems' ranks, everybody's lists."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st
from pandas import DataFrame

from elastic_core import comparisons
from elastic_core.data import Dataset
from elastic_core.runs import Run
from elastic_core.services.evidence import slices, standings, verdicts, versus
from elastic_core.services.evidence.verdicts import Verdict
from elastic_core.services.evidence.versus import Lists
from pages.frame import shell
from pages.kit import cache, judged
from pages.kit.cache import Opened
from pages.kit.kept import Shelf, copied, kept, stamped

MOST = 16  # runs


def faster(root: Path) -> Verdict:
    """When ELASTIC is faster than SASRec, from the benchmark's rows; read again when they change."""
    return _faster(root, root / "benchmarks.csv")


@kept(4)
def _faster(root: Path, file: Path) -> Verdict:
    return verdicts.faster(root)


def warm(of: Opened) -> None:
    """What the first visitor of the page would wait for: of all runs, whichever is opened first."""
    groups, _ = judged.groups(shell.RUNS)
    for pair in verdicts.PAIRS:
        verdicts.compared(pair, groups, judged.differences)


@copied(64, "Comparing in every group of people …")
def forest(a: list[Run], b: list[Run], data: Dataset, protocol: str, metric: str) -> DataFrame:
    """The difference in every group of people."""
    trained = (comparisons.needs_training(a[0]), comparisons.needs_training(b[0]))
    return slices.forest([run.report() for run in a], [run.report() for run in b], data, protocol, metric, trained)


@kept(16)
def comparable(runs: list[Run], data: Dataset) -> list[Run]:
    """The runs that keep ranks of a test on this data; files are read again only when one changed."""
    return standings.comparable(runs, data)


# --- everybody's lists, which need the model -------------------------------------------------------------------------


@st.cache_resource
def _shelf() -> Shelf:
    """The lists of all sessions."""
    return Shelf(MOST)


def known(run: Run, data: Dataset) -> Lists | None:
    """What was made before, if anything."""
    return _shelf().get(_key(run, data))


def listed(run: Run, data: Dataset, tell: Callable[[str, float], None]) -> Lists:
    """Everybody's ten; `tell` hears name and share the first time. Raises InputError if the run does not open."""
    key, shelf = _key(run, data), _shelf()
    if key in shelf:
        return shelf[key]  # type: ignore[no-any-return]
    model = cache.open_run(run, data).model
    with shelf.lock:  # two visitors at once list once
        return shelf.get(key) or shelf.put(key, versus.list_everybody(model, data, tell=lambda share: tell(run.name, share)))


def _key(run: Run, data: Dataset) -> str:
    return stamped([run]) + data.hash
