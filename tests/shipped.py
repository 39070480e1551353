"""The runs that came along in checkpoints/."""

import shutil
from pathlib import Path

from elastic_core.results.store import EPOCHS, RUNS, find_run, read_epochs, read_runs, stored_runs
from elastic_core.runs import DEMO, Run

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"
FOLDERS = CHECKPOINTS / DEMO  # of those with weights


def shipped_run(name: str) -> Run:
    """The run of this name: its folder, or what the tables keep."""
    run = find_run(CHECKPOINTS, name)
    assert run is not None, name
    return run


def copy_stored(root: Path, *names: str) -> None:
    """Puts tables with these runs alone into `root`."""
    runs, epochs = read_runs(CHECKPOINTS), read_epochs(CHECKPOINTS)
    runs[runs["name"].isin(names)].to_csv(root / RUNS, index=False)
    epochs[epochs["run"].isin(names)].to_csv(root / EPOCHS, index=False)
    for name in names:
        ranks = stored_runs(CHECKPOINTS)[name].path
        copy = root / ranks.relative_to(CHECKPOINTS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ranks, copy)
