"""Equal tuning: every model is trained at the same few points (`recipes.GRID`), and validation chooses. All outcomes are kept.

    checkpoints/tuning.csv   a row a model, point and seed: what validation said (NDCG@10 among all unseen items)

The test split of these runs is nobody's to look at: only validation is written down.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from elastic_core import files
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.recipes import GRID, grid_point
from elastic_core.results.reproduce import PlannedRun, System, planned_status, train_planned
from elastic_core.run_config import RunConfig
from elastic_core.runs import Run
from elastic_core.runs.training import OnEvent

FILE = "tuning.csv"  # below checkpoints/
VALID = "valid.NDCG@10"
KEY = ["data", "data_hash", "model", "point", "seed"]
COLUMNS = [*KEY, VALID, "best_epoch", "epochs", "seconds", "parameters", "commit"]


def grid_folder(root: Path, model: str, point: str) -> Path:
    """Where a point is trained; a chosen one is the model's first seed, ready to be moved to its row of `reproduce`."""
    return root / f"tuning-ml-100k-{model}-{point}"


def train_grid(
    model: str,
    dataset: Dataset,
    root: Path,
    device: str = "cpu",
    at: float = math.inf,
    on_event: OnEvent = lambda event: None,
    config: Callable[[str, str], RunConfig] = grid_point,
    points: Sequence[str] = tuple(GRID),
) -> bool:
    """Trains a model at every point, or goes on with it, until `at` (monotonic time). True if all are finished."""
    for point in points:
        folder = grid_folder(root, model, point)
        row = PlannedRun(folder.name, dataset.name, System(model, point), config(model, point))
        if not train_planned(row, dataset, root, device, at, on_event):
            return False
        add_outcome(root / FILE, grid_outcome(row, root, model, point))
    return True


def grid_outcome(row: PlannedRun, root: Path, model: str, point: str) -> dict[str, object]:
    """A finished run, as validation saw it. Raises InputError if it is not finished."""
    if planned_status(row, root) != "finished":
        raise InputError(f"{row.name} is {planned_status(row, root)}, so it has no outcome yet")
    run = Run(row.run_folder(root))
    start, epochs = run.last_event("start"), run.events("epoch")
    best = max(epochs, key=lambda epoch: float(epoch["valid"]["NDCG@10"]))
    return {
        "data": start["data"], "data_hash": start["data_hash"], "model": model, "point": point, "seed": run.config.train.seed,
        VALID: best["valid"]["NDCG@10"], "best_epoch": best["epoch"], "epochs": len(epochs), "seconds": epochs[-1]["seconds"],
        "parameters": start["parameters"], "commit": start.get("commit", ""),
    }  # fmt: skip


def read_outcomes(path: Path) -> pd.DataFrame:
    """All that are kept; no rows if there is no table. Raises InputError if it cannot be read as one."""
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    try:
        return pd.read_csv(path, dtype={"data_hash": str, "commit": str}, keep_default_na=False)[COLUMNS]
    except (ValueError, KeyError, OSError):
        raise InputError(f"{path} is not a table of trainings") from None


def add_outcome(path: Path, outcome: dict[str, object]) -> None:
    """Adds an outcome; the same point of the same model and data is replaced."""
    table = pd.DataFrame([*read_outcomes(path).to_dict("records"), outcome], columns=COLUMNS)
    table = table.drop_duplicates(KEY, keep="last").sort_values(KEY)
    with files.explain_write_errors(path):
        files.write_text(path, table.to_csv(index=False))
