"""What the Speed page keeps between reruns: the shipped rows, read again when their file changes."""

from pathlib import Path

import pandas as pd

from elastic_core.services.speed import curves
from pages.kit.kept import copied


def shipped(checkpoints: Path) -> pd.DataFrame:
    """The shipped measurement; empty if there is none."""
    return _shipped(str(checkpoints), _changed(checkpoints / "benchmarks" / "latency.csv"))


def steps(checkpoints: Path) -> pd.DataFrame:
    """The shipped steps of training, taken apart; empty if there are none."""
    return _steps(str(checkpoints), _changed(checkpoints / "benchmarks" / "profile.csv"))


def _changed(file: Path) -> int:
    return file.stat().st_mtime_ns if file.is_file() else 0


@copied(4)
def _steps(checkpoints: str, changed: int) -> pd.DataFrame:
    return curves.training_steps(Path(checkpoints))


@copied(4)
def _shipped(checkpoints: str, changed: int) -> pd.DataFrame:
    return curves.shipped(Path(checkpoints))
