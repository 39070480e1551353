"""UMAP in the background (background/queue.py). The layouts go into the run's store (layouts.py), one by one."""

from typing import Any, NamedTuple

import numpy as np

from elastic_core.disk import is_count, is_number, shown
from elastic_core.errors import InputError
from elastic_core.runs import Run
from elastic_core.services.background.process import Hand
from elastic_core.services.background.queue import Queue, Task, name_of_run
from elastic_core.services.map.compute import compute
from elastic_core.services.map.layouts import LAID_OUT, Settings


class MapAsked(NamedTuple):
    run: str
    settings: Settings
    experts: np.ndarray

    @property
    def title(self) -> str:
        """Which map, for a sentence."""
        return f"{shown(self.run)} ({self.settings.neighbours} neighbours, least distance {self.settings.distance:g})"


class Maps(Queue[Task[MapAsked]]):
    """The maps below a checkpoints folder that were asked for."""

    kind, noun, act, kept = "map", "map", "measurement", 5

    @classmethod
    def read(cls, plain: dict[str, Any]) -> MapAsked:
        name, experts = name_of_run(plain), plain.get("experts")
        if not is_count(plain.get("neighbours")) or not is_number(plain.get("distance")) or not isinstance(experts, list):
            raise InputError("what was asked for is no map")
        if not 0 < len(experts) <= LAID_OUT or not all(is_count(expert) for expert in experts):
            raise InputError(f"between 1 and {LAID_OUT:,} experts can be laid out at once, by their numbers")
        settings = Settings(plain["neighbours"], float(plain["distance"]))
        return MapAsked(name, settings, np.array(experts, dtype=np.int64))

    def work(self, task: Task[MapAsked], hand: Hand) -> str:
        asked = task.asked
        compute(self.run(asked.run), [asked.settings], asked.experts, hand.tell)
        return ""

    def submit(self, run: Run, settings: Settings, experts: np.ndarray) -> Task[MapAsked]:
        plain = {"run": run.name, "neighbours": settings.neighbours, "distance": settings.distance}
        return self.ask(lambda: {**plain, "experts": np.asarray(experts).tolist()})
