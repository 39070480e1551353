"""What the Memory map page keeps between reruns. See kit/cache.py for how runs and data are told apart."""

import numpy as np
import pandas as pd
import streamlit as st

from elastic_core.models import Recommender
from elastic_core.runs import Run
from elastic_core.services.experts import overview
from elastic_core.services.map import layouts
from elastic_core.services.map import trust as projection_trust
from elastic_core.services.map.layouts import FOLDER, STORE, Settings, Store
from elastic_core.services.map.picture import NO_GENRE, NO_INTEREST
from elastic_core.services.traffic import over_time
from pages.experts import answers
from pages.frame.shell import Context
from pages.kit import cache
from pages.kit.kept import kept


def values(run: Run, model: Recommender) -> np.ndarray:
    """The experts of the first memory, `[K, d]`."""
    return _values(str(run.path), cache.stamp(run), model)


@kept(4)
def _values(path: str, stamp: str, _model: Recommender) -> np.ndarray:
    table = np.asarray(_model.expert_values().detach().numpy(), dtype=np.float32)  # type: ignore[operator]
    table.setflags(write=False)
    return table


@kept(16)
def pca(vectors: np.ndarray) -> np.ndarray:
    """Each vector along the two principal axes of all."""
    laid = layouts.pca(vectors)
    laid.setflags(write=False)
    return laid


def store(run: Run, model: Recommender) -> Store | None:
    """The run's stored layouts, read anew when the file changes."""
    path = run.path / FOLDER / STORE
    found = path.stat() if path.is_file() else None
    mark = f"{found.st_mtime_ns}-{found.st_size}" if found else "none"
    return _store(str(run.path), cache.stamp(run), mark, run, values(run, model))


@kept(8)
def _store(path: str, stamp: str, mark: str, _run: Run, _values: np.ndarray) -> Store | None:
    return layouts.read_store(_run, _values)


def table(now: Context) -> pd.DataFrame:
    """All experts with what can colour them: load, genre of their people, row, column, true interest, last epoch in use."""
    return _table(str(now.run.path), cache.stamp(now.run), now.dataset.hash, now.split, len(now.run.snapshots()), now)


@st.cache_data(max_entries=6, show_spinner="Asking what each expert’s people have in common …")
def _table(path: str, stamp: str, data_hash: str, split: str, files: int, _now: Context) -> pd.DataFrame:
    subject = answers.subject(_now.run, _now.model, _now.dataset, _now.split)
    found = overview.table(subject.survey)
    epochs, loads = over_time.load_by_epoch(_now.run)
    return found.assign(last_used=over_time.last_used(epochs, loads)) if epochs and loads.shape[1] == len(found) else found


def trust(run: Run, model: Recommender, settings: Settings, laid: np.ndarray) -> pd.DataFrame:
    """The trust panel for one setting."""
    held = store(run, model)
    mark = "none" if held is None else f"{len(held.layouts)}-{id(held)}"
    return _trust(str(run.path), cache.stamp(run), mark, settings, laid, values(run, model), held)


@st.cache_data(max_entries=32, show_spinner="Comparing neighbourhoods on the map with the original ones …")
def _trust(
    path: str, stamp: str, mark: str, settings: Settings, laid: np.ndarray, _values: np.ndarray, _store: Store | None
) -> pd.DataFrame:
    return projection_trust.panel(_values, _store, settings, laid)


def region(run: Run, model: Recommender, laid: np.ndarray, colour: str, labels: np.ndarray) -> tuple[float, float, float]:
    """How alike an expert's nearest are, and what shuffled labels give. At most 1,500 experts are asked."""
    return _region(str(run.path), cache.stamp(run), laid, colour, labels, values(run, model))


@st.cache_data(max_entries=64, show_spinner=False)
def _region(
    path: str, stamp: str, laid: np.ndarray, colour: str, labels: np.ndarray, _values: np.ndarray
) -> tuple[float, float, float]:
    kept = layouts.sample(np.arange(len(laid)), projection_trust.MOST)
    count = projection_trust.neighbours(len(kept))
    return projection_trust.region(_values[laid[kept]], labels[kept], count, (NO_GENRE, NO_INTEREST))


def epochs(run: Run) -> tuple[list[int], np.ndarray]:
    """The epochs that were kept and PCA of each, turned onto the next, `[E, K, 2]`. For memories that fit one layout."""
    return _epochs(str(run.path), cache.stamp(run), len(run.snapshots()), run)


@st.cache_data(max_entries=4, show_spinner="Turning the epochs onto each other …")
def _epochs(path: str, stamp: str, files: int, _run: Run) -> tuple[list[int], np.ndarray]:
    numbers, tables = layouts.snapshots(_run)
    return numbers, layouts.aligned_pca(tables)
