"""Trainings in the background: one at a time, a visible queue (background/queue.py).

checkpoints/jobs/<id>/   the job; `progress.json` is the last event of the training
checkpoints/<run>/       the run itself
"""

import json
import os
import re
import traceback
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from elastic_core import disk
from elastic_core.data import load
from elastic_core.data.source_catalog import card_label
from elastic_core.errors import InputError
from elastic_core.results import baselines
from elastic_core.run_config import DataConfig, RunConfig
from elastic_core.runs import Run
from elastic_core.runs.training import train
from elastic_core.services import public
from elastic_core.services.background.process import Hand
from elastic_core.services.background.queue import HEAVY, Queue, Task
from elastic_core.services.data.shelf import same_source

PREFIX = "local-"
NAME = re.compile(PREFIX + r"[A-Za-z0-9_.-]{1,90}")  # of a run that a job trains: a name and never a way


class TrainingAsked(NamedTuple):
    """The name of the run and its configuration."""

    name: str
    config: RunConfig


@dataclass(frozen=True)
class Job(Task[TrainingAsked]):
    """One training."""

    @cached_property
    def run(self) -> Run:
        return Run(self.path.parents[1] / self.asked.name)

    @property
    def config(self) -> RunConfig:
        return self.asked.config

    @property
    def event(self) -> dict[str, Any]:
        """The last event that was said, if it is one."""
        plain = self.progress
        if plain.get("event") != "step":
            return {"event": plain["event"]} if isinstance(plain.get("event"), str) else {}
        counted = all(disk.is_count(plain.get(name)) for name in ("epoch", "done", "of"))
        return plain if counted and disk.is_number(plain.get("loss")) else {}


class Jobs(Queue[Job]):
    """The trainings below a checkpoints folder."""

    kind, noun, act, task = "train", "training", "training", Job
    lane, at_once, kept = HEAVY, False, None

    @classmethod
    def place(cls) -> str:
        return ""

    @classmethod
    def read(cls, plain: dict[str, Any]) -> TrainingAsked:
        name = plain.get("run")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError("its job.json names no run that this app could have made")
        if not isinstance(plain.get("config"), dict):
            raise InputError("its job.json holds no configuration")
        return TrainingAsked(name, RunConfig.from_dict(plain["config"]))

    def work(self, task: Job, hand: Hand) -> str:
        """Ends after the current step where somebody asks it to; the best weights are kept and tested."""

        def say(event: dict[str, Any]) -> None:
            if event["event"] != "step":
                hand.log(json.dumps(event))
            hand.say(event)

        say({"event": "data", "source": task.config.data.source})
        dataset = load(task.config.data, progress=hand.log)
        if not task.run.finished:
            train(task.config, dataset, task.run.path, on_event=say, stop=hand.stop)
        if baselines.read(task.run) is None:  # what only counts, on the same people
            try:
                protocol = baselines.usual_protocol(dataset)
                tell = lambda name: hand.say({"event": "beside", "system": name})  # noqa: E731
                baselines.write(task.run, baselines.judge(task.run, dataset, protocol, tell))
            except Exception:  # the training is done and tested: nothing here may make it a failed one, and the card says it
                traceback.print_exc()
        return str((task.run.last("end") or {}).get("reason", ""))

    def done(self, asked: TrainingAsked) -> bool:
        run = Run(self.root / asked.name)
        if os.path.lexists(run.path):
            disk.check_folder(run.path)
        return run.finished

    def again(self, task: Job) -> bool:
        """A finished one that has no baselines beside it (results/baselines.py) has only that left to do; any other goes on from
        its last whole epoch."""
        return super().again(task) or (task.state in ("finished", "stopped") and baselines.read(task.run) is None)

    def forget(self, task: Job) -> None:
        if task.run.path.is_dir() and not task.run.finished:
            disk.remove(task.run.path, self.folder)

    def submit(self, config: RunConfig, name: str = "") -> Job:
        """Queues a training. Raises InputError for a name that is taken or unusable, and as `ask` does."""
        return self.ask(lambda: {"run": self._name(config, name), "config": config.to_dict()})

    def remove(self, name: str) -> None:
        """Deletes a run that was trained here, and what the list says of it, for good. Raises InputError for one that came along,
        and while somebody trains it or a training of it waits to go on."""
        public.refuse("deletion")
        run = Run(self.root / name)
        if not NAME.fullmatch(name) or not run.path.is_dir():
            raise InputError(f"only runs that were trained here can be deleted, whose names begin with {PREFIX}")
        mine = [job for job in self.all() if job.run.name == name]
        if any(job.active or job.state == "interrupted" for job in mine):
            raise InputError(f"the training {name} is not over; stop or discard it first")
        with run.lock():
            disk.remove(run.path, self.folder)
        for job in mine:
            self.discard(job.id)

    def ended(self) -> Job | None:
        """The training that was tested last, as long as it is in the list."""
        done = [job for job in self.all() if job.state in ("finished", "stopped") and job.run.finished]
        return max(done, key=lambda job: (disk.stamp(job.path / "end.json")[-1:] or (0,), job.id), default=None)

    def needing(self, data: DataConfig) -> list[Job]:
        """Trainings that are not over and read these data."""
        return [job for job in self.all() if (job.active or job.state == "interrupted") and same_source(job.config.data, data)]

    def _name(self, config: RunConfig, wanted: str) -> str:
        """A free run name: the wanted one, or one that says model and data."""
        taken = {p.name for p in self.root.glob("*")} | {job.run.name for job in self.all()}
        if wanted:
            name = wanted if wanted.startswith(PREFIX) else PREFIX + wanted
            if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,59}", name):
                raise InputError("a run's name may have small letters, digits and the sign -, at most 54 of them")
            if name in taken:
                raise InputError(f"there is a run named {name} already; choose another name")
            return name
        file = Path(config.data.source)  # what was uploaded lies in a file of ours, and has its own name on its card
        words = card_label(file).rpartition(" · ")[0] or file.stem
        source = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:20]
        model = re.sub(r"[^A-Za-z0-9_.]+", "-", config.model.name)[:40]
        name = f"{PREFIX}{model}-{source or 'data'}"
        return next(free for i in range(1, len(taken) + 2) if (free := name if i == 1 else f"{name}-{i}") not in taken)
