"""What pages keep between reruns: Streamlit's caches, told how to recognize runs, data and files.

`@cached_resource(64)` is `st.cache_resource` and `@cached_data(12)` is `st.cache_data`, with so many entries at most. A run is
another one when its files change, data are others when anything differs that a page may show, and arguments that begin with `_`
do not count. A resource is shared by all visitors: never change it. Of cached data every visitor gets a copy.

Here stands what several pages keep. What one page keeps stands in its cached.py.
"""

import hashlib
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st
from pandas import DataFrame
from plotly import io as pio
from plotly.basedatatypes import BaseFigure

from elastic_core import files
from elastic_core.core.histories import Split
from elastic_core.data import Dataset, load
from elastic_core.data.baskets import BasketDataset
from elastic_core.data.by_time import ByTime
from elastic_core.data.repeats import Repeats, count_repeats
from elastic_core.data.source_catalog import is_deleted
from elastic_core.errors import InputError
from elastic_core.memory.routing import RoutedUsers, route_users
from elastic_core.models import Recommender
from elastic_core.results import store
from elastic_core.results.store import StoredRun
from elastic_core.results.systems import run_label
from elastic_core.run_config import DataConfig
from elastic_core.runs import CONFIG, EVENTS, WEIGHTS, Run, ranks
from elastic_core.services.edits import Edits
from elastic_core.services.experts import overview
from elastic_core.services.experts.ablation import EvaluationContext
from elastic_core.services.experts.evidence import ExpertName, NameCheck, check_names, count_fitting_names
from elastic_core.services.keys import search
from elastic_core.services.person import inspect, model_trace
from elastic_core.services.person.null_edits import NullEdits, null_of_last_edit
from elastic_core.services.person.prediction import Prediction, predict_user
from elastic_core.services.train import run_table
from pages.components.plot import Chart

RETRY_SECONDS = 600  # how long "these data cannot be had" is believed before the network is asked again
LIST_SECONDS = 1.0  # how long a list of runs is believed while none comes or goes
P = ParamSpec("P")
R = TypeVar("R")


# --- how arguments are recognized ---


def run_key(run: Run) -> tuple[str, ...]:
    """Changes when the run's files do."""
    names = (CONFIG, WEIGHTS, EVENTS, ranks.FILE)
    return (str(run.path), *(str(files.file_stamp(f"{run.path}/{name}")) for name in names))


def data_key(data: Dataset) -> str:
    """Tells data from others by all that a page may show of them: events, when they happened, what items are called."""
    if data not in _data_keys:
        catalog, histories = data.catalog, data.histories
        digest = hashlib.sha256(f"{data.hash} {data.label} {data.has_times}".encode())
        digest.update(np.ascontiguousarray(histories.times).data)
        for names in (histories.user_ids, catalog.ids, catalog.titles, catalog.genres):
            digest.update("\0".join(map(str, () if names is None else names)).encode(errors="surrogatepass"))
        _data_keys[data] = digest.hexdigest()
    return _data_keys[data]


_data_keys: WeakKeyDictionary[Dataset, str] = WeakKeyDictionary()


def path_key(path: Path) -> tuple[str, ...]:
    """Changes when a file does, or when something comes into a folder or leaves it."""
    try:
        status = path.stat()
    except OSError:
        return (str(path),)
    return str(path), str(status.st_ino), str(status.st_size), str(status.st_mtime_ns)


# Streamlit looks for the exact class: of a subclass that is not here it would copy and hash every event at every call.
HASH_FUNCS: dict[str | type, Callable[[Any], object]] = {
    Run: run_key,
    StoredRun: run_key,
    Dataset: data_key,
    BasketDataset: data_key,
    ByTime: data_key,
    type(Path()): path_key,
    FunctionType: lambda function: f"{function.__module__}.{function.__qualname__}",
    DataFrame: pickle.dumps,  # 0.05 ms; Streamlit's own way takes 2 ms for a table of ten rows
}


def cached_resource(max_entries: int, spinner: str | bool = False, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    return st.cache_resource(max_entries=max_entries, show_spinner=spinner, hash_funcs=HASH_FUNCS, **options)


def cached_data(max_entries: int, spinner: str | bool = False, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    return st.cache_data(max_entries=max_entries, show_spinner=spinner, hash_funcs=HASH_FUNCS, **options)


# --- runs ---


def by_name(run: Run) -> str:
    return run.name


@cached_resource(4, ttl=LIST_SECONDS)
def all_runs(root: Path) -> list[Run]:
    """All runs of a folder that can be read. Every rerun asks, and to look at all folders takes 5 ms."""
    return store.load(root)


@cached_resource(8, ttl=LIST_SECONDS)
def list_openable_runs(root: Path, order: Callable[[Run], Any] = by_name) -> list[Run]:
    """All runs that can be opened, in an order."""
    return sorted((run for run in all_runs(root) if run.has_weights), key=order)


@cached_resource(4, ttl=LIST_SECONDS)
def ranked_runs(root: Path) -> list[Run]:
    """All runs that keep the ranks of their test, by name, also those whose weights were not passed on."""
    return [run for run in all_runs(root) if run.has_report]


@cached_resource(4, ttl=LIST_SECONDS)
def label_runs(root: Path) -> dict[str, str]:
    """What people call the runs that can be opened, by the names of their folders."""
    return {run.name: run_label(run) for run in list_openable_runs(root)}


@cached_resource(512)
def label_run(run: Run) -> str:
    """What people call a run."""
    return run_label(run)


@cached_resource(4)
def runs_table(runs: list[Run]) -> DataFrame:
    """One row a run; only what changed is read again."""
    return run_table.runs_table(runs, _run_row)


@cached_resource(512)
def _run_row(run: Run) -> dict[str, Any]:
    return run_table.run_row(run)


# --- data, models, figures ---


class _LoadedData(NamedTuple):
    """Data, or why they cannot be had."""

    config: DataConfig
    data: Dataset | None
    problem: str
    when: float  # seconds of `time.monotonic`


def _is_valid(loaded: _LoadedData) -> bool:
    """A failure is believed for a while; data of a file until somebody deletes it, here or in another process."""
    if loaded.data is None:
        return time.monotonic() - loaded.when < RETRY_SECONDS
    return not is_deleted(loaded.config)


@cached_resource(5, "Getting the data ready. Public data are downloaded once, as their terms allow.", validate=_is_valid)
def _load_data(config: DataConfig) -> _LoadedData:
    try:
        return _LoadedData(config, load(config), "", time.monotonic())
    except InputError as error:
        return _LoadedData(config, None, str(error), time.monotonic())


def load_dataset(config: DataConfig) -> Dataset:
    """The data of a configuration. Raises InputError if they cannot be had."""
    loaded = _load_data(config)
    if loaded.data is None:
        raise InputError(loaded.problem)
    return loaded.data


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run, opened on its data. All parts are shared between visits and read-only."""

    run: Run
    dataset: Dataset
    model: Recommender

    def __init_subclass__(cls) -> None:
        HASH_FUNCS[cls] = OpenRun.cache_key  # what is cached of a run does not depend on what more a subclass knows

    def cache_key(self) -> object:
        return run_key(self.run), data_key(self.dataset)

    @property
    def item_words(self) -> inspect.ItemWords:
        """What its data call their items."""
        return inspect.item_words(self.dataset)

    @property
    def keep_seen(self) -> bool:
        """Do people choose again what they have seen, so that it stays in the running?"""
        return measure_repeats(self.dataset).stay


HASH_FUNCS[OpenRun] = OpenRun.cache_key


def open_run(run: Run, data: Dataset) -> OpenRun:
    """Raises InputError where the run does not open, or not on these data."""
    return OpenRun(run, data, _load_model(run, data))


@cached_resource(6)
def _load_model(run: Run, data: Dataset) -> Recommender:
    """In eval mode, checked against the data."""
    return run.model(data).requires_grad_(False)


class StoredFigure(BaseFigure):
    """A figure to be shown, not changed. Plotly keeps an object around each of its values; in one piece it takes a third."""

    def __init__(self, figure: BaseFigure | Chart) -> None:
        if isinstance(figure, dict):
            template = pio.templates[pio.templates.default].to_plotly_json()
            values = {"data": figure["data"], "layout": {"template": template, **figure["layout"]}}
        else:
            values = figure.to_dict()
        self._values = pickle.dumps(values, protocol=pickle.HIGHEST_PROTOCOL)

    def to_dict(self) -> dict[str, Any]:
        return dict(pickle.loads(self._values))


@cached_resource(256)
def cached_figure(draw: Callable[..., BaseFigure | Chart], *values: Any, **options: Any) -> StoredFigure:
    """What a pure function draws of these: plotly checks every value of a figure, which takes 30 to 50 ms."""
    return StoredFigure(draw(*values, **options))


# --- what several pages ask about a run ---


@cached_resource(16)
def measure_repeats(data: Dataset) -> Repeats:
    """Do people choose again what they have seen?"""
    return count_repeats(data)


@cached_data(12)
def example_user(open_run: OpenRun) -> int:
    """The person that the app opens with."""
    if not open_run.dataset.in_baskets or not inspect.memory_size(open_run.model):
        return inspect.good_example(open_run.model, open_run.dataset)
    survey = survey_experts(open_run)
    fitting = count_fitting_names(expert_names(open_run), survey.of_reading or survey.of_people)
    return inspect.good_household(open_run.model, open_run.dataset, fitting)


@cached_resource(64)
def user_prediction(open_run: OpenRun, user: int, edits: Edits, keep_seen: bool, n_events: int | None = None) -> Prediction:
    return predict_user(open_run.model, open_run.dataset, user, edits, keep_seen, n_events)


@cached_resource(256)
def null_edits(open_run: OpenRun, user: int, edits: Edits, keep_seen: bool, n_events: int | None = None) -> NullEdits | None:
    """The last edit of a person beside the same edit elsewhere."""
    return null_of_last_edit(open_run.model, open_run.dataset, user, edits, keep_seen, n_events)


@cached_data(256)
def strongest_expert(open_run: OpenRun, user: int, edits: Edits = ()) -> int | None:
    """The person's strongest expert in the list that Start opens with (`model_trace.strongest_expert`)."""
    return model_trace.strongest_expert(open_run.model, user_prediction(open_run, user, edits, open_run.keep_seen))


@cached_data(6, "Counting how many people retrieve each expert …")
def route_everybody(open_run: OpenRun, split: Split = "test") -> RoutedUsers:
    """Which experts everybody's history retrieves. Only for models that retrieve."""
    return route_users(open_run.model, open_run.dataset, split)


@cached_resource(4, "Asking what everybody’s history retrieves and what each expert reads …")
def survey_experts(open_run: OpenRun) -> overview.Survey:
    """What everybody's history retrieves and what each expert reads. Only for models that retrieve."""
    return overview.survey_experts(EvaluationContext(open_run.model, open_run.dataset, route_everybody(open_run)))


@cached_resource(6)
def expert_names(open_run: OpenRun) -> dict[int, ExpertName]:
    """What experts are called on every screen, chosen on half of the people and tested on the others (`overview.expert_names`).
    No name that does not hold is shown: `expert_name` says it."""
    return overview.expert_names(survey_experts(open_run), open_run.model)


def expert_name(open_run: OpenRun, expert: int) -> str:
    """What an expert is called; empty where no name holds."""
    known_name = expert_names(open_run).get(expert)
    return known_name.genre if known_name is not None and known_name.holds else ""


@cached_resource(6)
def name_check(open_run: OpenRun) -> NameCheck | None:
    """What the names say about held-out choices; None where no name holds."""
    return check_names(expert_names(open_run), open_run.dataset, route_everybody(open_run).experts)


lesson_of_angles = cached_resource(32)(search.lesson_of_angles)  # the 4 × 4, asked for a query of two arrows
