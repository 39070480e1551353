"""Trainings in the background: one at a time, a visible queue, everything in files, so that nobody has to stay open.

    checkpoints/jobs/slot.lock     held by the process that trains, freed by the operating system when it ends
    checkpoints/jobs/slot.json     which job that process works on
    checkpoints/jobs/<id>/         job.json     what was asked for: the run's name and its configuration
                                   begun.json   the process that took it (absent: still queued)
                                   beat         touched every two seconds by that process
                                   progress.json  the last step event
                                   stop         somebody asked it to stop (the best weights are kept and tested)
                                   end.json     how it ended: finished, stopped or failed, and why
                                   log.txt      everything the process said
    checkpoints/<run>/             the run itself

A job that was begun, has no end and is not in the slot was interrupted: it can be continued or discarded. The process that
finishes starts the next one; looking at the list (`pump`) does so too. Each file is written whole or not at all.
"""

import json
import os
import re
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from elastic_core.config import RunConfig
from elastic_core.errors import InputError
from elastic_core.runs import Run, write_text
from elastic_core.services import public
from elastic_core.services.process import age, read_object, spawn
from elastic_core.services.slot import Slot

State = Literal["queued", "running", "not responding", "interrupted", "finished", "stopped", "failed"]
ACTIVE: tuple[State, ...] = ("queued", "running", "not responding")
PREFIX = "local-"
MOST_QUEUED = 20
STALE = 60.0  # seconds without a beat until a living process counts as not responding
STARTING = 30.0  # seconds that a fresh process gets to take the slot before another is started


@dataclass(frozen=True)
class Job:
    """One training as its folder tells it at the moment of asking."""

    path: Path
    run: Run
    config: RunConfig
    state: State
    progress: dict[str, Any]
    reason: str
    stopping: bool

    @property
    def id(self) -> str:
        return self.path.name

    @cached_property
    def log(self) -> str:
        """The last lines of what the process said."""
        file = self.path / "log.txt"
        return "\n".join(file.read_text(encoding="utf-8", errors="replace").splitlines()[-40:]) if file.exists() else ""


class Jobs:
    """The list of trainings below a checkpoints folder. Safe to use from several processes at once."""

    def __init__(self, root: Path | str = "checkpoints") -> None:
        self.root = Path(root).resolve()
        self.folder = self.root / "jobs"
        self.slot = Slot(self.folder / "slot.lock")

    # --- what people ask for ------------------------------------------------------------------------------------------

    def submit(self, config: RunConfig, name: str = "") -> Job:
        """Queues a training and starts it if the slot is free. Raises InputError for a name that is taken or unusable, and where
        the queue is full."""
        public.refuse("training")
        with Slot(self.folder / "submit.lock"):
            self._room()
            run = self.root / self._name(config, name)
            path = self.folder / datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
            path.mkdir(parents=True)
            write_text(path / "job.json", json.dumps({"run": run.name, "config": config.to_dict()}, indent=1))
        self.pump()
        return self.get(path.name)

    def stop(self, job_id: str) -> None:
        """A queued job is taken from the queue; a running one ends after its current step and keeps its best weights."""
        public.refuse("training")
        job = self.get(job_id)
        if job.state == "queued":
            self._remove(job.path)
        elif job.state in ACTIVE:
            (job.path / "stop").touch()

    def resume(self, job_id: str) -> None:
        """Puts an interrupted or failed job back in the queue; it goes on from its last whole epoch."""
        public.refuse("training")
        self._room()
        job = self.get(job_id)
        if job.state not in ("interrupted", "failed"):
            raise InputError(f"the training {job.run.name} is {job.state}; only an interrupted or failed one can be continued")
        for name in ("stop", "end.json", "progress.json", "begun.json"):
            (job.path / name).unlink(missing_ok=True)
        self.pump()

    def discard(self, job_id: str) -> None:
        """Removes a training that is not running, its run folder included unless that run is finished."""
        public.refuse("deletion")
        job = self.get(job_id)
        if job.state in ("running", "not responding"):
            raise InputError(f"the training {job.run.name} is still running; stop it first")
        if not job.run.finished and job.run.path.is_dir():
            self._remove(job.run.path)
        self._remove(job.path)

    # --- what is there ------------------------------------------------------------------------------------------------

    def all(self) -> list[Job]:
        """Every job, oldest first. Folders that cannot be read are left out."""
        current = self._current()
        found = (self._read(path, current) for path in sorted(self.folder.glob("[0-9]*")))
        return [job for job in found if job is not None]

    def get(self, job_id: str) -> Job:
        """Raises InputError if there is no such job (ids are looked up in the list, never made into paths)."""
        for job in self.all():
            if job.id == job_id:
                return job
        raise InputError(f"there is no training {job_id!r} any more")

    def next(self) -> Job | None:
        """The oldest queued job."""
        return next((job for job in self.all() if job.state == "queued"), None)

    def pump(self) -> None:
        """Starts a process for the queue if something waits, nothing runs and no process is on its way already. In public mode
        nothing is started: what waits is somebody's who is not here."""
        if public.on() or self.next() is None or self.slot.held:
            return
        mark = self.folder / "starting"
        with Slot(self.folder / "start.lock"):
            if mark.exists() and time.time() - mark.stat().st_mtime < STARTING:
                return
            mark.touch()
            self._spawn()

    # --- files --------------------------------------------------------------------------------------------------------

    def _current(self) -> str:
        """The id of the job in the slot, or nothing."""
        return str(read_object(self.folder / "slot.json").get("job", "")) if self.slot.held else ""

    def _read(self, path: Path, current: str) -> Job | None:
        plain = read_object(path / "job.json")
        try:
            config, run = RunConfig.from_dict(plain["config"]), Run(self.root / plain["run"])
        except (InputError, KeyError, TypeError):
            return None
        end = read_object(path / "end.json")
        state: State
        if end:
            state = end["state"]
        elif not (path / "begun.json").exists():
            state = "queued"
        elif path.name == current:
            state = "running" if age(path / "beat") < STALE else "not responding"
        else:
            state = "finished" if run.finished else "interrupted"
        return Job(path, run, config, state, read_object(path / "progress.json"), end.get("reason", ""), (path / "stop").exists())

    def _room(self) -> None:
        """Raises InputError where as many trainings wait as the queue holds."""
        if sum(job.state == "queued" for job in self.all()) >= MOST_QUEUED:
            raise InputError(f"{MOST_QUEUED} trainings wait already, which is all that the queue holds; take one out, or wait")

    def _name(self, config: RunConfig, wanted: str) -> str:
        """A free run name: the wanted one, or one that says model and data."""
        taken = {p.name for p in self.root.glob("*")} | {job.run.name for job in self.all()}
        if wanted:
            name = wanted if wanted.startswith(PREFIX) else PREFIX + wanted
            if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,59}", name):
                raise InputError("a run's name may have small letters, digits and hyphens, at most 54 of them")
            if name in taken:
                raise InputError(f"there is a run named {name} already; choose another name")
            return name
        source = re.sub(r"[^a-z0-9]+", "-", Path(config.data.source).stem.lower()).strip("-")[:20]
        name = f"{PREFIX}{config.model.name}-{source or 'data'}"
        return next(free for i in range(1, len(taken) + 2) if (free := name if i == 1 else f"{name}-{i}") not in taken)

    def _remove(self, path: Path) -> None:
        """Out of sight in one step, then gone."""
        away = self.folder / f".gone-{path.name}-{time.time_ns()}"
        try:
            os.replace(path, away)
        except FileNotFoundError:
            return
        shutil.rmtree(away, ignore_errors=True)

    def _spawn(self) -> None:
        spawn("elastic_core.services.worker", self.root, log=self.folder / "worker.log")
