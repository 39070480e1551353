"""What the Memory map page keeps between reruns. See kit/cache.py for how runs and data are told apart."""

from pathlib import Path

import numpy as np
import pandas as pd

from elastic_core.runs import Run
from elastic_core.services.experts import overview
from elastic_core.services.map import layouts
from elastic_core.services.map import trust as projection_trust
from elastic_core.services.map.layouts import FOLDER, STORE, Settings, Store
from elastic_core.services.map.picture import NO_GENRE, NO_INTEREST
from elastic_core.services.traffic import over_time
from pages.experts import answers
from pages.kit.cache import Opened
from pages.kit.kept import copied, kept


@kept(4)
def values(of: Opened) -> np.ndarray:
    """The experts of the first memory, `[K, d]`."""
    table = np.asarray(of.model.expert_values().detach().numpy(), dtype=np.float32)  # type: ignore[operator]
    table.setflags(write=False)
    return table


@kept(16)
def pca(vectors: np.ndarray) -> np.ndarray:
    """Each vector along the two principal axes of all."""
    laid = layouts.pca(vectors)
    laid.setflags(write=False)
    return laid


def store(of: Opened) -> Store | None:
    """The run's stored layouts, read anew when the file changes."""
    return _store(of, of.run.path / FOLDER / STORE)


@kept(8)
def _store(of: Opened, file: Path) -> Store | None:
    return layouts.read_store(of.run, values(of))


@kept(6, "Asking what each expert’s people have in common …")
def table(of: Opened, files: int) -> pd.DataFrame:
    """All experts with what can colour them: load, genre of their people, row, column, true interest, last epoch in use. `files`:
    how many epochs are kept so far."""
    found = overview.expert_table(answers.subject(of).survey)
    epochs, loads = over_time.load_by_epoch(of.run)
    return found.assign(last_used=over_time.last_used(epochs, loads)) if epochs and loads.shape[1] == len(found) else found


def trust(of: Opened, settings: Settings, laid: np.ndarray) -> pd.DataFrame:
    """The trust panel for one setting."""
    return _trust(of, of.run.path / FOLDER / STORE, settings, laid)


@copied(32, "Comparing neighbourhoods on the map with the original ones …")
def _trust(of: Opened, file: Path, settings: Settings, laid: np.ndarray) -> pd.DataFrame:
    return projection_trust.panel(values(of), _store(of, file), settings, laid)


@copied(64)
def region(of: Opened, laid: np.ndarray, colour: str, labels: np.ndarray) -> tuple[float, float, float]:
    """How alike an expert's nearest are, and what shuffled labels give. At most 1,500 experts are asked."""
    some = layouts.sample(np.arange(len(laid)), projection_trust.MOST)
    count = projection_trust.neighbours(len(some))
    return projection_trust.region(values(of)[laid[some]], labels[some], count, (NO_GENRE, NO_INTEREST))


@copied(4, "Turning the epochs onto each other …")
def epochs(run: Run, files: int) -> tuple[list[int], np.ndarray]:
    """The epochs that were kept and PCA of each, turned onto the next, `[E, K, 2]`. For memories that fit one layout."""
    numbers, tables = layouts.snapshots(run)
    return numbers, layouts.aligned_pca(tables)
