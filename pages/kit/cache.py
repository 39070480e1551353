"""What several pages keep between reruns, see kept.py. What it hands out is shared and read-only.

What one page keeps lies in its answers.py: `name = kept(64)(service)`, or `asking(kept(64), service)` for a service of a model
and its data, which the page then asks about an opened run: `name(now, now.user)`. `drawn` keeps its figures.

A run is identified by its folder and a stamp of its files, so a run that goes on training is read anew.
"""

import json
import pickle
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from pandas import DataFrame
from plotly.basedatatypes import BaseFigure

from elastic_core.core.histories import Split
from elastic_core.data import Dataset, load
from elastic_core.data.repeats import Repeats, count_repeats
from elastic_core.data.source_catalog import gone
from elastic_core.errors import InputError
from elastic_core.memory.routing import Routing, routing
from elastic_core.models import Recommender, Trace, can_retrieve
from elastic_core.results import store
from elastic_core.results.systems import run_label
from elastic_core.run_config import DataConfig, RunConfig
from elastic_core.runs import Run
from elastic_core.services.experts import overview
from elastic_core.services.experts.ablation import Population
from elastic_core.services.experts.evidence import Evidence, of_histories
from elastic_core.services.journey import trace
from elastic_core.services.keys import checks, gate, search
from elastic_core.services.person import attribution, inspect
from elastic_core.services.person.attention import trace_history
from elastic_core.services.person.inspect import good_example
from elastic_core.services.person.null_edits import null_of_last_edit
from elastic_core.services.person.prediction import predict_user
from elastic_core.services.train import run_table
from elastic_core.services.train.estimate import estimate
from elastic_core.training_time import Estimate
from pages.kit.kept import asking, copied, kept, shown, size, stamped

RETRY_SECONDS = 600  # how long "this data cannot be had" is believed before the network is asked again
LIST_SECONDS = 1.0  # how long a list of runs is believed while none comes or goes
DATASETS, DATASETS_BYTES = 4, 512 * 2**20


@kept(512)
def called(run: Run) -> str:
    """What people call a run; told anew when its files change."""
    return run_label(run)


def by_name(run: Run) -> str:
    return run.name


@dataclass
class _Listed:
    """The runs of a folder as they were a moment ago."""

    when: float
    mark: int  # changes when a run comes or goes
    runs: list[Run]
    known: str  # which runs these were, and how
    ordered: dict[str, list[Run]] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)  # by their folders' names


@kept(1)
def _lists() -> dict[Path, _Listed]:
    return {}


def runs(root: Path, order: Callable[[Run], Any] = by_name) -> list[Run]:
    """All runs that can be opened, in an order; files are read again only when one changed. Shared, so each is read once.

    Every rerun of every visitor asks, and a look at each file of fifty runs takes 10 ms: for a second it is believed."""
    listed, name = _listed(root), f"{order.__module__}.{order.__qualname__}"
    if name not in listed.ordered:
        listed.ordered[name] = sorted((run for run in listed.runs if run.has_weights), key=order)
    return list(listed.ordered[name])


def scored(root: Path) -> list[Run]:
    """All runs that keep the ranks of their test, by name, also those whose weights were not passed on."""
    listed = _listed(root)
    if "" not in listed.ordered:
        listed.ordered[""] = [run for run in listed.runs if run.has_report]
    return list(listed.ordered[""])


def all_called(root: Path) -> dict[str, str]:
    """What people call the runs of a folder, by their folders' names. Shared: never change it."""
    listed = _listed(root)
    if not listed.called:
        listed.called.update((run.name, called(run)) for run in listed.runs)
    return listed.called


def _listed(root: Path) -> _Listed:
    mark, listed = _mark(root), _lists().get(root)
    if listed is not None and listed.mark == mark and time.monotonic() - listed.when < LIST_SECONDS:
        return listed
    found = store.load(root)
    known, before = stamped(found), listed
    listed = _lists()[root] = _Listed(time.monotonic(), mark, found, known)
    if before is not None and before.known == known:
        listed.ordered, listed.called = before.ordered, before.called
    return listed


def _mark(root: Path) -> int:
    try:
        return root.stat().st_mtime_ns
    except OSError:
        return 0


def everyone(root: Path) -> list[Run]:
    """All runs of a folder that can be read."""
    return _listed(root).runs


@kept(64)
def tested(run: Run) -> dict[str, Any] | None:
    """The run's test, if it had one."""
    return run.last("test")


@kept(4)
def runs_table(runs: list[Run]) -> DataFrame:
    """One row a run; only what changed is read again."""
    return run_table.runs_table(runs, _run_row)


@kept(512)
def _run_row(run: Run) -> dict[str, Any]:
    return run_table.run_row(run)


@dataclass
class _Shelf:
    """Datasets of all sessions. Not a cached function, because loading reports its progress to the page."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    ready: dict[str, Dataset] = field(default_factory=dict)
    failed: dict[str, tuple[float, str]] = field(default_factory=dict)


@st.cache_resource
def _shelf() -> _Shelf:
    return _Shelf()


def dataset(config: DataConfig, tell: Callable[[str], None] = lambda sentence: None) -> Dataset:
    """The data of a configuration; `tell` hears what is done the first time. Raises InputError if it cannot be had."""
    key, shelf = json.dumps(asdict(config), sort_keys=True), _shelf()
    with shelf.lock:  # two visitors at once load once
        if key in shelf.ready and gone(config):  # deleted, here or by another process: not shown any more
            shelf.ready.pop(key)
        if key in shelf.ready:
            shelf.ready[key] = shelf.ready.pop(key)  # used last, goes last
            return shelf.ready[key]
        when, reason = shelf.failed.get(key, (0.0, ""))
        if reason and time.monotonic() - when < RETRY_SECONDS:
            raise InputError(reason)
        try:
            loaded = load(config, tell)
        except InputError as error:
            shelf.failed[key] = (time.monotonic(), str(error))
            raise
        shelf.ready[key] = loaded
        while len(shelf.ready) > DATASETS or (sum(map(size, shelf.ready.values())) > DATASETS_BYTES and len(shelf.ready) > 1):
            shelf.ready.pop(next(iter(shelf.ready)))
        return loaded


class Drawn(BaseFigure):
    """A figure to be shown, not changed: its values in one piece.

    Plotly keeps an object around each of them, and a hover text for each person is an object, too: with those a figure takes two
    to ten times as much, in places so small and many that what lives on among them keeps the memory from the system.
    """

    def __init__(self, figure: BaseFigure) -> None:
        self._values = pickle.dumps(figure.to_dict(), protocol=pickle.HIGHEST_PROTOCOL)

    def to_dict(self) -> dict[str, Any]:
        return dict(pickle.loads(self._values))


def drawn(draw: Callable[..., BaseFigure], *given: Any, **more: Any) -> Drawn:
    """What a pure function draws of these, drawn once: plotly checks every value of a figure, which takes longer than a model."""
    return _drawn(f"{draw.__module__}.{draw.__qualname__}", given, more, draw)


@kept(256)
def _drawn(name: str, given: tuple[Any, ...], more: dict[str, Any], _draw: Callable[..., BaseFigure]) -> Drawn:
    return Drawn(_draw(*given, **more))


@dataclass(frozen=True, eq=False)
class Opened:
    """A run, opened on its data. All parts are shared between visits and read-only."""

    run: Run
    dataset: Dataset
    model: Recommender

    @property
    def kept_as(self) -> str:
        """What is kept of it does not depend on what more a subclass knows."""
        return stamped([self.run]) + shown(self.dataset)

    @property
    def words(self) -> inspect.Words:
        """What its data call their items."""
        return inspect.item_words(self.dataset)

    @property
    def stay(self) -> bool:
        """Do people choose again what they have met, so that it stays in the running?"""
        return repeats(self.dataset).stay


def open_run(run: Run, data: Dataset) -> Opened:
    """Raises InputError where the run does not open, or not on these data."""
    return Opened(run, data, _model(run, data))


@kept(6)
def _model(run: Run, data: Dataset) -> Recommender:
    """In eval mode, checked against the data."""
    return run.model(data).requires_grad_(False)


@kept(16)
def repeats(data: Dataset) -> Repeats:
    """Do people choose again what they have met?"""
    return count_repeats(data)


prediction = asking(kept(64), predict_user)  # shared: never change it
null_edits = asking(kept(256), null_of_last_edit)  # the last edit of a person beside the same elsewhere
example = asking(copied(12), good_example)  # the person that the app opens with
turned = kept(32)(search.of_angles)  # the 4 × 4, asked for a query of two arrows
gradients = asking(copied(32, "One backward pass with the gate, one without …"), gate.gradients)


def strongest(of: Opened, user: int) -> int | None:
    """The person's strongest expert in the list that Start opens with, whatever was edited (`attribution.strongest_expert`)."""
    if can_retrieve(of.model) and not attribution.suggests(of.model):  # then it is the most wanted: nothing need be predicted
        return int(traffic(of).experts[user, 0])
    return prediction(of, user, (), of.stay).strongest


@kept(64)
def reads(of: Opened, items: np.ndarray) -> tuple[DataFrame | None, dict[int, str]]:
    """What every retrieved expert reads of a history, by name, and what it holds or reads most, in words; nothing for a model
    that does not say."""
    if (inside := traced(of, items)) is not None:
        found = trace.reads(of.dataset, items, inside)
        verb = "reads" if inside.strength is None else "holds"
        return found, {expert: f"{verb} {said}" for expert, said in trace.by_name(found).items()}
    return None, {}


@kept(32)
def traced(of: Opened, items: np.ndarray) -> Trace | None:
    """How a history was read; None where the model does not say."""
    with suppress(InputError):
        return trace_history(of.model, items)
    return None


@copied(6, "Counting how many people retrieve each expert …")
def traffic(of: Opened, split: Split = "test") -> Routing:
    """Which experts everybody's history retrieves. Only for models that retrieve."""
    return routing(of.model, of.dataset, split)


@kept(4, "Asking what everybody’s history retrieves and what each expert reads …")
def survey(of: Opened) -> overview.Survey:
    """What everybody's history retrieves and what each expert reads. Only for models that retrieve."""
    return overview.survey(Population(of.model, of.dataset, traffic(of)))


@kept(6)
def evidence(of: Opened) -> Evidence | None:
    """Which genres the people of every expert choose more than others; None for data without genres."""
    return of_histories(of.model, of.dataset, traffic(of))


@copied(32, "Searching several hundred people’s experts both ways …")
def printed(of: Opened, user: int, k: int, ago: int = 0) -> checks.Printed:
    """Eq. 7 as printed, for this person (the event `ago` before their newest) and several hundred others."""
    return checks.as_printed(search.first_memory(of.model).keys, k, checks.people_queries(of.model, of.dataset, user, ago=ago))


gate_toy = copied(1, "Training two tiny routers …")(gate.toy)  # the same one, trained with a gate and without


def estimated(config: RunConfig, data: Dataset) -> Estimate:
    """What this training would cost here; measured once for a configuration and believed for a while."""
    return _estimated(json.dumps(config.to_dict(), sort_keys=True), data, config)


@copied(64, seconds=RETRY_SECONDS)
def _estimated(config: str, data: Dataset, _config: RunConfig) -> Estimate:
    return estimate(_config, data)
