"""The layouts that take UMAP, and the command that computes those a run is shipped with. Slow: the app has it done by jobs.py.

python -m elastic_core.services.map.compute CHECKPOINTS --run NAME --grid     all settings of one run
python -m elastic_core.services.map.compute CHECKPOINTS --run NAME --neighbours 15 --distance 0.1
"""

import argparse
import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from elastic_core.errors import InputError
from elastic_core.memory.routing import check_expert_count
from elastic_core.models import as_retrieving_model, model_class
from elastic_core.runs import Run, list_runs
from elastic_core.services.map import layouts
from elastic_core.services.map.layouts import DISTANCES, LAID_OUT, MAPS, NEIGHBOURS, Settings, Store

Progress = Callable[[int, int, str], None]


def _fit_umap() -> Any:
    """The package, told to keep what it compiles: it says so of none of its functions, and each process that lays out anything
    would compile them for half a minute. Where nothing can be kept, neither beside the packages nor at home, it is kept for this
    process alone."""
    try:
        import umap
    except RuntimeError:
        import numba

        folder = tempfile.mkdtemp(prefix="numba-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["NUMBA_CACHE_DIR"] = folder
        numba.config.reload_config()
        import umap

    for name, module in list(sys.modules.items()):
        for function in list(vars(module).values()) if name.startswith("umap.") else ():
            if hasattr(function, "enable_caching") and not function.signatures:
                with suppress(RuntimeError):
                    function.enable_caching()
    return umap


def lay_out(values: np.ndarray, settings: Settings, seed: int) -> np.ndarray:
    """float32 [n, 2]: seeded UMAP by angle. Fewer neighbours where there are fewer experts."""
    n_neighbours = min(settings.neighbours, len(values) - 1)
    return np.asarray(
        _fit_umap().UMAP(
            n_neighbors=n_neighbours, min_dist=settings.distance, metric="cosine", random_state=seed, n_jobs=1,
            init="spectral" if len(values) > 12 else "random",
        ).fit_transform(layouts.unit_vectors(values)),
        dtype=np.float32,
    )  # fmt: skip


def compute_layouts(run: Run, settings_list: list[Settings], experts: np.ndarray | None, report_progress: Progress) -> Store:
    """Adds what is missing to the run's store, writing after every layout."""
    values = values_of(run)
    if experts is None:
        if len(values) > LAID_OUT:
            raise InputError(f"{run.name} has {len(values):,} experts; ask for its map in the app, which draws a sample")
        experts = np.arange(len(values))
    store = layouts.read_store(run, values)
    if store is None or not np.array_equal(store.experts, experts):
        store = Store(experts)  # layouts of another sample never share a store
    versions = {name: version(name) for name in ("umap-learn", "numba", "scikit-learn", "numpy")}
    store.about.update({"hash": layouts.values_fingerprint(values), "versions": versions, "metric": "cosine"})
    vectors = {"umap": values[experts], "null": layouts.random_like(values[experts])}
    tasks = [(each, *of) for each in settings_list for of in MAPS if each.key(*of) not in store.layouts]
    steps = len(tasks)
    for done, (settings, seed, kind) in enumerate(tasks):
        report_progress(done, steps, f"UMAP of {'the experts' if kind == 'umap' else 'random vectors'}, seed {seed}")
        store.layouts[settings.key(seed, kind)] = lay_out(vectors[kind], settings, seed)
        layouts.write_store(run, store)
    layouts.write_store(run, store)
    report_progress(steps, max(steps, 1), "Done")
    return store


def values_of(run: Run) -> np.ndarray:
    """The value table of a run's first memory, `[K, d]`. Raises InputError where there is none, or one of too many experts."""
    model = run.model() if model_class(run.config.model.name).objective else None
    if model is None or not model.retrieves:
        raise InputError(f"{run.name} has no interest memory")
    check_expert_count(model)
    return np.asarray(as_retrieving_model(model).expert_values().detach().numpy(), dtype=np.float32)


def _print_progress(done: int, total: int, phase: str) -> None:
    sys.stdout.write(f"{done}/{total} {phase}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m elastic_core.services.map.compute", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--run", required=True, help="a run's name")
    parser.add_argument("--grid", action="store_true", help="every setting that the app offers")
    parser.add_argument("--neighbours", type=int, default=15)
    parser.add_argument("--distance", type=float, default=0.1)
    arguments = parser.parse_args()
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):  # before numba is imported: a seeded layout uses one thread
        os.environ.setdefault(name, "1")
    if hasattr(os, "nice"):
        os.nice(max(0, 10 - os.nice(0)))
    run = next((run for run in list_runs(arguments.root) if run.name == arguments.run), None)
    if run is None:
        parser.error(f"there is no run {arguments.run!r}")
    grid = (
        [Settings(n, d) for n in NEIGHBOURS for d in DISTANCES]
        if arguments.grid
        else [Settings(arguments.neighbours, arguments.distance)]
    )
    compute_layouts(run, grid, None, _print_progress)


if __name__ == "__main__":
    main()
