"""Every expert taken from its people, one after the other, in the background (background/queue.py).

checkpoints/jobs/experts/<id>/   the job; effects.csv: `ablation.remove_each`'s table
"""

import functools
import io
from pathlib import Path

import pandas as pd

from elastic_core import disk
from elastic_core.errors import InputError
from elastic_core.memory.routing import routing
from elastic_core.runs import Run
from elastic_core.services.background.everybody import OverEverybody, RunAsked
from elastic_core.services.background.process import Hand
from elastic_core.services.background.queue import Task
from elastic_core.services.experts import ablation

EFFECTS, MOST_BYTES = "effects.csv", 2**27
COLUMNS = ("expert", "n", "d_rank_median", "d_ndcg", "low", "high")


class Passes(OverEverybody):
    """The removals below a checkpoints folder that were asked for; they stay in the list with what they found."""

    kind, noun = "experts", "pass"

    def work(self, task: Task[RunAsked], hand: Hand) -> str:
        run, model, dataset = self.opened(task, hand)
        if not model.retrieves:
            raise InputError(f"{run.name} has no interest memory, so it has no experts")
        tell = lambda share: hand.tell(round(100 * share), 100, "Removing every expert from its people")  # noqa: E731
        tell(0.0)
        found = ablation.remove_each(ablation.Population(model, dataset, routing(model, dataset, "test")), tell)
        disk.write_text(task.path / EFFECTS, found.to_csv(index=False))
        return ""

    def effects(self, run: Run, data: str) -> pd.DataFrame | None:
        """Return what a finished pass found, as `ablation.remove_each` returns it; None where there is none."""
        found = self.latest("finished", **self.about(run, data))
        return None if found is None else _effects(found.path / EFFECTS, disk.stamp(found.path / EFFECTS))


@functools.lru_cache(maxsize=16)
def _effects(file: Path, stamp: tuple[int, ...]) -> pd.DataFrame | None:
    try:
        table = pd.read_csv(io.BytesIO(disk.read_bytes(file, MOST_BYTES, file.parent)))
        return table[list(COLUMNS)].astype("float64").astype({"expert": "int64", "n": "int64"})
    except (ValueError, KeyError, OverflowError):  # what is not found, no file, no table, no number
        return None
