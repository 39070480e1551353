"""One way of holding out events: its data, the systems that were trained on them or fitted, and what is known of these."""

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray

from elastic_core import files, models
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.recipes import STUDIED
from elastic_core.runs import Run
from elastic_core.runs.ranks import Interval
from elastic_core.study.asked import MOST_BYTES
from elastic_core.study.asking import METRIC
from elastic_core.study.plan import CUTS, EPOCHS, SEEDS, Way

STUDY = "study.json"
MOST_MEASURES = 2**28  # bytes that are read


@dataclass(frozen=True, eq=False)
class Side:
    """Runs lie in the study's `folder`, below the name of the way; `labels` are to be trained; `protocol`: of all numbers."""

    way: Way
    data: Dataset
    folder: Path
    labels: Sequence[str]
    protocol: str

    def run(self, label: str, seed: int = 0) -> Run:
        word = re.sub(r"[^a-z0-9]+", "-", label).strip("-")
        return Run(self.folder / self.way / (f"{word}-seed{seed}" if label in STUDIED else word))

    def all_runs(self, label: str) -> list[Run]:
        return [self.run(label, seed) for seed in range(SEEDS if label in STUDIED else 1)]

    def runs(self, label: str) -> list[Run]:
        """Those that are finished, by seed."""
        return [run for run in self.all_runs(label) if run.finished and run.has_report]

    @property
    def systems(self) -> list[str]:
        """The labels of which all trainings are finished: baselines, then what was trained."""
        return [label for label in (*baselines(), *self.labels) if len(self.runs(label)) == len(self.all_runs(label))]

    @property
    def trained(self) -> list[str]:
        """Those of them that learn."""
        return [label for label in self.systems if label in STUDIED]

    def valid(self, label: str) -> float:
        """NDCG@10 on validation, by which systems are chosen: the mean over trainings of their best epoch."""
        best = []
        for run in self.runs(label):
            rows = [float(row["valid"][METRIC]) for row in run.events("epoch")]
            best.append(max(rows) if rows else read_kept(self.folder)["valid"][f"{self.way} {label}"])
        return float(np.mean(best))

    @property
    def best(self) -> str | None:
        """The best system by validation, of those that learn."""
        return max(self.trained, key=self.valid, default=None)

    @property
    def floor(self) -> str | None:
        """The best of those that only count."""
        return max((label for label in self.systems if label not in STUDIED), key=self.valid, default=None)

    def values(self, label: str, metric: str = METRIC) -> ndarray:
        """A metric of the test by training and person, [S, n]."""
        return np.stack([run.report().user_values(self.protocol, metric) for run in self.runs(label)])

    def mean_of(self, label: str) -> Interval:
        """A system's score over its trainings, with the interval over people."""
        return Interval.from_values(self.values(label).mean(0))

    def best_first(self) -> list[str]:
        """The finished systems, the best test first: the order of a table, and no choice of anything."""
        return sorted(self.systems, key=lambda label: -float(self.values(label).mean()))

    def passes(self, label: str) -> float:
        """Passes over the data, the mean over trainings; the last may be a part of one."""
        return statistics.fmean(len(run.events("epoch")) for run in self.runs(label))

    def still_rising(self, label: str) -> bool:
        """Whether a training that the clock ended was best in its last pass or the one before."""
        for run in self.runs(label):
            end, epochs = run.last_event("end"), run.events("epoch")
            if "budget of" in str(end.get("reason")) and int(end.get("best_epoch") or 0) >= len(epochs) - 1:
                return True
        return False

    def training(self, label: str) -> str:
        """How a system was trained, in words."""
        if label not in STUDIED:
            return "needs no training"
        many = self.passes(label)
        said = [f"{many:.0f} passes", *(["hardly trained"] if many < EPOCHS else [])]
        return ", ".join([*said, *(["still getting better"] if self.still_rising(label) else [])])

    # --- what was asked of runs besides their ranks: a file beside each ---------------------------------------------------

    def measured(self, run: Run) -> dict[str, ndarray]:
        """What was asked of a run; nothing where it was not asked, or has gone on since."""
        try:
            file = files.check_regular_file(self._beside(run), MOST_MEASURES, self.folder)
            with np.load(file, allow_pickle=False) as kept:
                found = dict(kept)
        except (InputError, OSError, ValueError, KeyError):
            return {}
        return found if str(found.pop("of", "")) == stamp(run) else {}

    def keep_measured(self, run: Run, found: dict[str, ndarray]) -> None:
        def fill(path: Path) -> None:
            with path.open("wb") as file:
                np.savez(file, of=np.array(stamp(run)), **found)  # type: ignore[arg-type]

        files.write_whole(self._beside(run), fill)

    def _beside(self, run: Run) -> Path:
        return run.path.with_name(f"{run.name}.npz")


def baselines() -> list[str]:
    """The systems that only count."""
    return [name for name in models.model_names() if not models.model_class(name).objective]


def read_kept(folder: Path) -> dict[str, Any]:
    """What a study keeps of itself: what was asked, the plan, the baselines' validation."""
    try:
        return files.read_object(folder / STUDY, MOST_BYTES, folder)
    except files.FileAbsent:
        return {}


def cuts_of(run: Run) -> list[int]:
    """The lengths below what a run's model reads."""
    return [cut for cut in CUTS if cut < run.config.model.length]


def stamp(run: Run) -> str:
    """Of its weights: what was asked of others does not count."""
    end, start = run.last_event("end"), run.last_event("start")
    return f"{start.get('time')} {end.get('seconds')} {end.get('best_epoch')}"
