"""Where a background training stands, in numbers a page can print as they are."""

import time
from typing import NamedTuple

from elastic_core.jobs.job_kinds import Training
from elastic_core.runs import EVENTS
from elastic_core.services.durations import format_clock

PHASES = {
    "data": "Reading the data", "test": "Testing the best weights", "end": "Tested",
    "beside": "Tested. Now simple counting is tested on the same people",
}  # fmt: skip


class TrainingWatch(NamedTuple):
    """`share` (0 … 1) is of the time budget if there is one, else of the epochs asked for."""

    phase: str
    share: float
    epochs: int  # whole ones
    loss: float | None
    best: float | None  # validation NDCG@10
    best_epoch: int
    used: float | None  # share of experts that anybody retrieves
    seconds: float

    @property
    def clock(self) -> str:
        return format_clock(self.seconds)


def watch_training(job: Training) -> TrainingWatch:
    """Reads the run's files; nothing in them can make it fail."""
    epochs = job.run.events("epoch")
    last = epochs[-1] if epochs else {}
    best = max(epochs, key=lambda row: row["valid"]["NDCG@10"], default=None)
    # Since the last row of the run, or since a worker took the job, whichever is later.
    marks = [job.begun or 0.0, (job.run.path / EVENTS).stat().st_mtime if (job.run.path / EVENTS).exists() else 0.0]
    since = time.time() - max(marks) if job.state == "running" else 0.0
    seconds = last.get("seconds", 0.0) + max(since, 0.0)
    train, step = job.config.train, job.event
    event = step.get("event")
    done = step["done"] / max(step["of"], 1) if event == "step" else 0.0
    share = seconds / (train.minutes * 60) if train.minutes else (len(epochs) + done) / train.epochs
    phase = PHASES.get(str(event), f"Epoch {len(epochs) + 1}")
    if job.stopping and event != "end":
        phase = "Stopping: the best weights are being tested"
    elif event == "step":
        phase = f"Epoch {step['epoch']}, step {step['done']} of {step['of']}"
    return TrainingWatch(
        phase=phase,
        share=min(max(share, 0.0), 1.0),
        epochs=len(epochs),
        loss=step.get("loss", last.get("loss")),
        best=best["valid"]["NDCG@10"] if best else None,
        best_epoch=best["epoch"] if best else 0,
        used=last.get("used"),
        seconds=seconds,
    )
