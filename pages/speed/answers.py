"""What the Speed page keeps between reruns: the shipped rows, read again when their file changes."""

from pathlib import Path
from typing import Any

from elastic_core.services.speed import curves
from pages.kit.kept import copied

READ = {"latency": curves.shipped, "profile": curves.training_steps, "gpu": curves.graphics_card}


def shipped(checkpoints: Path, name: str = "latency") -> Any:
    """What a shipped file of `READ` says; empty if there is none."""
    return _shipped(checkpoints, name, checkpoints / "benchmarks" / f"{name}.csv")


@copied(12)
def _shipped(checkpoints: Path, name: str, file: Path) -> Any:
    return READ[name](checkpoints)
