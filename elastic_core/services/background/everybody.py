"""Passes over everybody: what they are about, a run with the weights it had when somebody asked."""

import functools
import hashlib
from pathlib import Path

from elastic_core import disk
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.runs import MOST_WEIGHTS, WEIGHTS, Run
from elastic_core.services.background.process import Hand


def fingerprint(run: Run) -> str:
    """Of the weights, sixteen hex digits; empty where they cannot be read."""
    return _fingerprint(run.path, disk.stamp(run.path / WEIGHTS))


@functools.lru_cache(maxsize=1024)
def _fingerprint(path: Path, stamp: tuple[int, ...]) -> str:
    try:
        return hashlib.sha256(disk.read_bytes(path / WEIGHTS, MOST_WEIGHTS, path)).hexdigest()[:16]
    except InputError:
        return ""


def opened(run: Run, weights: str, hand: Hand) -> tuple[Recommender, Dataset]:
    """The run's model in eval mode and its data. Raises InputError where its weights are others by now."""
    if fingerprint(run) != weights:
        raise InputError(f"{run.name} was trained again since this was asked for")
    dataset = load(run.config.data, progress=hand.log)
    return run.model(dataset), dataset
