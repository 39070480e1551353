"""One way of holding out events: its data, the systems that were trained on them or only count, and what is known of these."""

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray

from elastic_core import files, models
from elastic_core.core.train import NO_MINUTES
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.recipes import STUDIED
from elastic_core.runs import Run
from elastic_core.runs.ranks import Interval
from elastic_core.study.measurements import METRIC
from elastic_core.study.plan import CUTS, MIN_EPOCHS, SEEDS, Split
from elastic_core.study.request import MAX_BYTES

STUDY = "study.json"
MAX_MEASURED = 2**28  # bytes that are read


@dataclass(frozen=True, eq=False)
class Holdout:
    """Runs lie in the study's `folder`, below the name of the split; `candidates` may be trained; `protocol`: of all numbers."""

    split: Split
    data: Dataset
    folder: Path
    candidates: Sequence[str]
    protocol: str

    def run(self, label: str, seed: int = 0) -> Run:
        name = re.sub(r"[^a-z0-9]+", "-", label).strip("-")
        return Run(self.folder / self.split / (f"{name}-seed{seed}" if label in STUDIED else name))

    @property
    def seeds(self) -> int:
        """Trainings of a finalist: more than `SEEDS` where time was left for them."""
        return int(read_study(self.folder).get("seeds", {}).get(self.split, SEEDS))

    def all_runs(self, label: str) -> list[Run]:
        return [self.run(label, seed) for seed in range(self.seeds if label in STUDIED else 1)]

    def finished_runs(self, label: str) -> list[Run]:
        """By seed."""
        return [run for run in self.all_runs(label) if run.finished and run.has_report]

    @property
    def systems(self) -> list[str]:
        """What is compared: the baselines, then the finalists, each where all its trainings are finished."""
        labels = (*baselines(), *read_study(self.folder).get("finalists", ()))
        return [label for label in labels if len(self.finished_runs(label)) == len(self.all_runs(label))]

    @property
    def trained(self) -> list[str]:
        """Those of them that learn."""
        return [label for label in self.systems if label in STUDIED]

    @property
    def stopped(self) -> list[str]:
        """What was trained in an earlier round and did not go on."""
        return [label for label in self.candidates if label not in self.systems and self.finished_runs(label)]

    def valid(self, label: str) -> float:
        """NDCG@10 on validation, by which systems are chosen: the mean over trainings of their best epoch."""
        best = []
        for run in self.finished_runs(label):
            scores = [float(row["valid"][METRIC]) for row in run.events("epoch")]
            best.append(max(scores) if scores else read_study(self.folder)["valid"][f"{self.split} {label}"])
        return float(np.mean(best))

    @property
    def best(self) -> str | None:
        """The best system by validation, of those that learn."""
        return max(self.trained, key=self.valid, default=None)

    @property
    def best_baseline(self) -> str | None:
        return max((label for label in self.systems if label not in STUDIED), key=self.valid, default=None)

    def values(self, label: str, metric: str = METRIC) -> ndarray:
        """A metric of the test by training and user, [S, users]."""
        return np.stack([run.report().user_values(self.protocol, metric) for run in self.finished_runs(label)])

    def mean_of(self, label: str) -> Interval:
        """A system's score over its trainings, with the interval over users."""
        return Interval.from_values(self.values(label).mean(0))

    def best_first(self, labels: Sequence[str]) -> list[str]:
        """The best test first: the order of a table, and no choice of anything."""
        return sorted(labels, key=lambda label: -float(self.values(label).mean()))

    def mean_epochs(self, label: str) -> float:
        """Passes over the data, the mean over trainings; the last may be a part of one."""
        return statistics.fmean(len(run.events("epoch")) for run in self.finished_runs(label))

    def still_rising(self, label: str) -> bool:
        """Whether a training that the clock ended was best in its last pass or the one before."""
        for run in self.finished_runs(label):
            end, epochs = run.last_event("end"), run.events("epoch")
            if NO_MINUTES in str(end.get("reason")) and int(end.get("best_epoch") or 0) >= len(epochs) - 1:
                return True
        return False

    def describe_training(self, label: str) -> str:
        """How a system was trained, in words."""
        if label not in STUDIED:
            return "needs no training"
        epochs = self.mean_epochs(label)
        words = [f"{epochs:.0f} passes"]
        if label in self.stopped:
            return f"{words[0]}, one training; others were ahead on validation"
        words += ["hardly trained"] if epochs < MIN_EPOCHS else []
        words += ["still getting better"] if self.still_rising(label) else []
        return ", ".join(words)

    # --- what was measured of runs besides their ranks: a file beside each ------------------------------------------------

    def read_measured(self, run: Run) -> dict[str, ndarray]:
        """What was measured of a run; nothing where it was not, or where the run has gone on since."""
        try:
            file = files.check_regular_file(self._beside(run), MAX_MEASURED, self.folder)
            with np.load(file, allow_pickle=False) as arrays:
                measured = dict(arrays)
        except (InputError, OSError, ValueError, KeyError):
            return {}
        return measured if str(measured.pop("of", "")) == stamp(run) else {}

    def write_measured(self, run: Run, measured: dict[str, ndarray]) -> None:
        def fill(path: Path) -> None:
            with path.open("wb") as file:
                np.savez(file, of=np.array(stamp(run)), **measured)  # type: ignore[arg-type]

        files.write_whole(self._beside(run), fill)

    def _beside(self, run: Run) -> Path:
        return run.path.with_name(f"{run.name}.npz")


def baselines() -> list[str]:
    """The systems that only count."""
    return [name for name in models.model_names() if not models.model_class(name).objective]


def read_study(folder: Path) -> dict[str, Any]:
    """What a study keeps of itself: its request, plan, recipe and finalists, and the baselines' validation."""
    try:
        return files.read_object(folder / STUDY, MAX_BYTES, folder)
    except files.FileAbsent:
        return {}


def cuts_of(run: Run) -> list[int]:
    """The lengths below what a run's model reads."""
    return [cut for cut in CUTS if cut < run.config.model.length]


def stamp(run: Run) -> str:
    """Of its weights: what was asked of others does not count."""
    end, start = run.last_event("end"), run.last_event("start")
    return f"{start.get('time')} {end.get('seconds')} {end.get('best_epoch')}"
