"""What the Memory map page keeps between reruns. See pages/components/cache.py."""

from pathlib import Path

import numpy as np
import pandas as pd

from elastic_core.services.experts import overview
from elastic_core.services.map import layouts
from elastic_core.services.map import trust as projection_trust
from elastic_core.services.map.layouts import Settings, Store
from elastic_core.services.map.picture import NO_INTEREST, NO_NAME
from elastic_core.services.map.trust import Region
from elastic_core.services.traffic import over_time
from pages.components import cache
from pages.components.cache import OpenRun, cached_data, cached_resource


@cached_resource(4)
def expert_values(open_run: OpenRun) -> np.ndarray:
    """The experts of the first memory, `[K, d]`."""
    table = np.asarray(open_run.model.expert_values().detach().numpy(), dtype=np.float32)  # type: ignore[operator]
    table.setflags(write=False)
    return table


@cached_resource(8)
def read_layouts(open_run: OpenRun, file: Path) -> Store | None:
    """The run's stored layouts, read anew when their file changes."""
    return layouts.read_store(open_run.run, expert_values(open_run))


@cached_resource(6, "Asking what each expert’s people have in common …")
def expert_table(open_run: OpenRun, files: int) -> pd.DataFrame:
    """All experts with what can colour them: load, name, row, column, true interest, last epoch in use. `files`: how many epochs
    are kept so far."""
    table = overview.expert_table(cache.survey_experts(open_run))
    if cache.expert_names(open_run):
        table = table.assign(name=[cache.expert_name(open_run, expert) for expert in table["expert"]])
    loads = over_time.load_by_epoch(open_run.run)
    return table.assign(last_used=over_time.last_used(loads)) if loads.shape[1] == len(table) else table


@cached_data(32, "Comparing neighbourhoods on the map with the original ones …")
def trust_table(open_run: OpenRun, file: Path, settings: Settings, laid: np.ndarray) -> pd.DataFrame:
    """The trust panel for one setting."""
    return projection_trust.trust_table(expert_values(open_run), read_layouts(open_run, file), settings, laid)


@cached_data(64)
def measure_region(open_run: OpenRun, laid: np.ndarray, labels: np.ndarray) -> Region:
    """How alike the nearest of those that are laid out are, and what shuffled labels give."""
    return projection_trust.measure_region(expert_values(open_run)[laid], labels, (NO_NAME, NO_INTEREST))
