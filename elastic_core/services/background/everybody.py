"""Passes over everybody in the background (queue.py): what they are about, a run with the weights it had when somebody asked."""

import functools
import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from elastic_core import disk
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.runs import MOST_WEIGHTS, WEIGHTS, Run
from elastic_core.services.background.process import Hand
from elastic_core.services.background.queue import Queue, Task, name_of_run


def weights_fingerprint(run: Run) -> str:
    """Of the weights, sixteen hex digits; empty where they cannot be read."""
    return _fingerprint(run.path, disk.stamp(run.path / WEIGHTS))


@functools.lru_cache(maxsize=1024)
def _fingerprint(path: Path, stamp: tuple[int, ...]) -> str:
    try:
        return hashlib.sha256(disk.read_bytes(path / WEIGHTS, MOST_WEIGHTS, path)).hexdigest()[:16]
    except InputError:
        return ""


class RunAsked(NamedTuple):
    run: str
    weights: str
    data: str = ""  # the dataset's hash, where what is found is of these data alone


class OverEverybody(Queue[Task[RunAsked]]):
    """Such passes of one kind."""

    act = "measurement"

    @classmethod
    def read(cls, plain: dict[str, Any]) -> RunAsked:
        weights, data = plain.get("weights"), plain.get("data", "")
        if not isinstance(weights, str) or not isinstance(data, str):
            raise InputError("its job.json does not say of which weights")
        return RunAsked(name_of_run(plain), weights, data)

    def opened(self, task: Task[RunAsked], hand: Hand) -> tuple[Run, Recommender, Dataset]:
        """The run, its model in eval mode and its data. Raises InputError where weights or data are others by now."""
        name, weights, data = task.asked
        run = self.run(name)
        if weights_fingerprint(run) != weights:
            raise InputError(f"{name} was trained again since this was asked for")
        dataset = load(run.config.data, progress=hand.log)
        if data and dataset.hash != data:
            raise InputError(f"the data of {name} are others by now")
        return run, run.model(dataset), dataset

    def submit(self, run: Run, data: str = "") -> Task[RunAsked]:
        return self.ask(lambda: self.about(run, data))

    def about(self, run: Run, data: str = "") -> dict[str, str]:
        """What a job.json says that asks for this pass; `data`: the dataset's hash."""
        return {"run": run.name, "weights": weights_fingerprint(run)} | ({"data": data} if data else {})
