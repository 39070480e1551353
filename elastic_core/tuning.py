"""Equal tuning: every model is trained at the same few points (`recipes.GRID`), and validation chooses. All outcomes are kept.

The test split of these runs is nobody's to look at: only validation is written down.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import get_type_hints

from elastic_core import disk
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.recipes import GRID, grid_point
from elastic_core.reproduce import PlannedRun, System, reproduce, status
from elastic_core.run_config import RunConfig
from elastic_core.runs import Run
from elastic_core.runs.training import OnEvent

TABLE = "tuning.csv"  # below checkpoints/
MOST_BYTES = 2**22


@dataclass(frozen=True)
class TuningOutcome:
    """What one training came to on the validation split (NDCG@10, all items a person has not met)."""

    data: str
    data_hash: str
    model: str
    point: str
    seed: int
    valid: float
    best_epoch: int
    epochs: int
    seconds: float
    parameters: int
    commit: str

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return self.data, self.data_hash, self.model, self.point, self.seed


def folder(root: Path, model: str, point: str) -> Path:
    """Where a point is trained; a chosen one is the model's first seed, ready to be moved to its row of `reproduce`."""
    return root / f"tuning-ml-100k-{model}-{point}"


def tune(
    model: str,
    dataset: Dataset,
    root: Path,
    device: str = "cpu",
    at: float = math.inf,
    on_event: OnEvent = lambda event: None,
    config: Callable[[str, str], RunConfig] = grid_point,
    points: Iterable[str] = tuple(GRID),
) -> bool:
    """Trains a model at every point, or goes on with it, until `at` (monotonic time). True if all are finished."""
    for point in points:
        where = folder(root, model, point)
        row = PlannedRun(where.name, dataset.name, System(model, point), config(model, point))
        if not reproduce(row, dataset, root, device, at, on_event):
            return False
        keep_outcome(root / TABLE, outcome(row, root, model, point))
    return True


def outcome(row: PlannedRun, root: Path, model: str, point: str) -> TuningOutcome:
    """A finished run, as validation saw it. Raises InputError if it is not finished."""
    if status(row, root) != "finished":
        raise InputError(f"{row.name} is {status(row, root)}, so it has no outcome yet")
    run = Run(row.folder(root))
    start, epochs = run.last("start"), run.events("epoch")
    best = max(epochs, key=lambda epoch: float(epoch["valid"]["NDCG@10"]))
    return TuningOutcome(
        data=str(start["data"]), data_hash=str(start["data_hash"]), model=model, point=point, seed=run.config.train.seed,
        valid=best["valid"]["NDCG@10"], best_epoch=best["epoch"], epochs=len(epochs), seconds=epochs[-1]["seconds"],
        parameters=start["parameters"], commit=str(start.get("commit", "")),
    )  # fmt: skip


def outcomes(path: Path) -> list[TuningOutcome]:
    """All that are kept; none if there is no table. Raises InputError if it cannot be read as one."""
    try:
        text = disk.read_text(path, MOST_BYTES, path.parent)
    except disk.Absent:
        return []
    kinds = get_type_hints(TuningOutcome)
    try:
        found = [TuningOutcome(**{name: kinds[name](line[name]) for name in kinds}) for line in csv.DictReader(io.StringIO(text))]
        if not all(0 <= each.valid <= 1 for each in found):
            raise ValueError
    except (KeyError, TypeError, ValueError, csv.Error):
        raise InputError(f"{path} is not a table of trainings") from None
    return found


def keep_outcome(path: Path, found: TuningOutcome) -> None:
    """Adds an outcome; the same point of the same model and data is replaced."""
    rows = {each.key: each for each in outcomes(path)} | {found.key: found}
    out = io.StringIO()
    writer = csv.DictWriter(out, [f.name for f in fields(TuningOutcome)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(rows[key]) for key in sorted(rows))
    with disk.said(path):
        disk.write_text(path, out.getvalue())


def best(found: list[TuningOutcome], model: str) -> TuningOutcome | None:
    """The point of the grid that validation chooses for a model: the highest mean, ties to the first of the grid.

    Raises InputError where it was tried on different data."""
    mine = [each for each in found if each.model == model and each.point in GRID]
    if len({each.data_hash for each in mine}) > 1:
        raise InputError(f"the trainings of {model} were judged on different data; no best of them can be named")
    return max(mine, key=lambda each: (each.valid, -list(GRID).index(each.point))) if mine else None
