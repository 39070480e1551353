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

import functools
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from elastic_core import disk
from elastic_core.config import DataConfig, RunConfig
from elastic_core.data.sources import called
from elastic_core.disk import write_text
from elastic_core.errors import InputError
from elastic_core.runs import Run
from elastic_core.services import public
from elastic_core.services.background.process import ID, MOST_BYTES, age, next_name, number, read_object, spawn, tail, whole
from elastic_core.services.background.slot import Slot
from elastic_core.services.data.shelf import same_source
from elastic_core.services.train import beside

State = Literal["queued", "running", "not responding", "interrupted", "finished", "stopped", "failed"]
ACTIVE: tuple[State, ...] = ("queued", "running", "not responding")
PREFIX = "local-"
MOST_QUEUED = 20
NAME = re.compile(PREFIX + r"[A-Za-z0-9_.-]{1,90}")  # of a run that a job trains: a name and never a way
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
        return tail(self.path / "log.txt", 40)


class Jobs:
    """The list of trainings below a checkpoints folder. Safe to use from several processes at once."""

    def __init__(self, root: Path | str = "checkpoints") -> None:
        self.root = Path(root).resolve()
        self.folder = self.root / "jobs"
        self.slot = Slot(self.folder / "slot.lock")

    # --- what people ask for ------------------------------------------------------------------------------------------

    def submit(self, config: RunConfig, name: str = "") -> Job:
        """Queues a training and starts it if the slot is free. Raises InputError for a name that is taken or unusable, where the
        queue is full and where the disk does not take it."""
        public.refuse("training")
        with self._told():
            with Slot(self.folder / "submit.lock"):
                self._room()
                run = self.root / self._name(config, name)
                path = self.folder / next_name(self.folder)
                fresh = path.with_name(f".new-{path.name}")
                fresh.mkdir(parents=True)
                try:
                    write_text(fresh / "job.json", json.dumps({"run": run.name, "config": config.to_dict()}, indent=1))
                    os.replace(fresh, path)  # in the list as a whole, or not at all
                finally:
                    shutil.rmtree(fresh, ignore_errors=True)
            self.pump()
            return self.get(path.name)

    def stop(self, job_id: str) -> None:
        """A queued job is taken from the queue; a running one ends after its current step and keeps its best weights."""
        public.refuse("training")
        job = self.get(job_id)
        with self._told():
            if job.state == "queued":
                disk.remove(job.path, self.folder)
            elif job.state in ACTIVE:
                (job.path / "stop").touch()

    def resume(self, job_id: str) -> None:
        """Puts an interrupted or failed job back in the queue; it goes on from its last whole epoch. A finished one whose
        rivals were not judged (beside.py) has only that left to do."""
        public.refuse("training")
        self._room()
        job = self.get(job_id)
        unjudged = job.state in ("finished", "stopped") and beside.kept(job.run) is None
        if job.state not in ("interrupted", "failed") and not unjudged:
            raise InputError(f"the training {job.run.name} is {job.state}; only an interrupted or failed one can be continued")
        with self._told():
            for name in ("stop", "end.json", "progress.json", "begun.json"):
                (job.path / name).unlink(missing_ok=True)
            self.pump()

    def discard(self, job_id: str) -> None:
        """Removes a training that is not running, its run folder included unless that run is finished.

        A folder of the list that cannot be read is removed alone: what it says of a run is not believed."""
        public.refuse("deletion")
        with self._told():
            for path in (fault.path for fault in self.unreadable()):
                if path.name == job_id:
                    disk.remove(path, self.folder)
                    return
            job = self.get(job_id)
            if job.state in ("running", "not responding"):
                raise InputError(f"the training {job.run.name} is still running; stop it first")
            if job.run.path.is_dir() and not job.run.finished:
                disk.remove(job.run.path, self.folder)
            disk.remove(job.path, self.folder)

    # --- what is there ------------------------------------------------------------------------------------------------

    def all(self) -> list[Job]:
        """Every job that can be read, oldest first."""
        current = self._current()
        return [job for path in self._folders() if not isinstance(job := self._read(path, current), disk.Unreadable)]

    def unreadable(self) -> list[disk.Unreadable]:
        """The folders in the list that are no job, and why."""
        found = (self._read(path, "") for path in self._folders())
        return [fault for fault in found if isinstance(fault, disk.Unreadable)]

    def get(self, job_id: str) -> Job:
        """Raises InputError if there is no such job (ids are looked up in the list, never made into paths)."""
        for job in self.all():
            if job.id == job_id:
                return job
        raise InputError(f"there is no training {job_id!r} any more")

    def ended(self) -> Job | None:
        """The training that was tested last, as long as it is in the list."""
        done = [job for job in self.all() if job.state in ("finished", "stopped") and job.run.finished]
        return max(done, key=lambda job: (disk.stamp(job.path / "end.json")[-1:] or (0,), job.id), default=None)

    def needing(self, data: DataConfig) -> list[Job]:
        """Trainings that are not over and read these data."""
        return [job for job in self.all() if job.state in (*ACTIVE, "interrupted") and same_source(job.config.data, data)]

    def next(self) -> Job | None:
        """The oldest queued job."""
        return next((job for job in self.all() if job.state == "queued"), None)

    def pump(self) -> None:
        """Starts a process for the queue if something waits, nothing runs and no process is on its way already.

        Raises InputError where the disk does not let it. In public mode nothing is started: who asked for it is not here.
        """
        if public.on():
            return
        with self._told():
            if self.next() is None or self.slot.held:
                return
            mark = self.folder / "starting"
            with Slot(self.folder / "start.lock"):
                if age(mark) < STARTING:
                    return
                mark.unlink(missing_ok=True)
                mark.touch()
                self._spawn()

    # --- files --------------------------------------------------------------------------------------------------------

    def _current(self) -> str:
        """The id of the job in the slot, or nothing."""
        return str(read_object(self.folder / "slot.json").get("job", "")) if self.slot.held else ""

    def _folders(self) -> Iterator[Path]:
        return disk.folders(self.folder, "[0-9]*")

    def _read(self, path: Path, current: str) -> Job | disk.Unreadable:
        try:
            disk.check_folder(path)
            if not ID.fullmatch(path.name):
                raise InputError("its name is none that a training is given")
            disk.refuse_links(path)
            name, config = _asked(path, disk.stamp(path / "job.json"))
            run = Run(self.root / name)
            if os.path.lexists(run.path):
                disk.check_folder(run.path)
            finished = run.finished
            end = _end(path)
        except InputError as error:
            return disk.Unreadable(path, str(error))
        state: State
        if end is not None:
            state = end[0]
        elif not (path / "begun.json").exists():
            state = "queued"
        elif path.name == current:
            state = "running" if age(path / "beat") < STALE else "not responding"
        else:
            state = "finished" if finished else "interrupted"
        reason = end[1] if end is not None else ""
        return Job(path, run, config, state, _progress(path), reason, (path / "stop").exists())

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the disk refuses, as one sentence."""
        try:
            with disk.said(self.folder):
                yield
        except FileNotFoundError:
            raise InputError("that training is not there any more") from None

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
        file = Path(config.data.source)  # what was uploaded lies in a file of ours, and has its own name on its card
        words = called(file).rpartition(" · ")[0] or file.stem
        source = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:20]
        model = re.sub(r"[^A-Za-z0-9_.]+", "-", config.model.name)[:40]
        name = f"{PREFIX}{model}-{source or 'data'}"
        return next(free for i in range(1, len(taken) + 2) if (free := name if i == 1 else f"{name}-{i}") not in taken)

    def _spawn(self) -> None:
        spawn("elastic_core.services.train.worker", self.root, log=self.folder / "worker.log")


# --- one job's files, which may be anybody's -----------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _asked(path: Path, stamp: tuple[int, ...]) -> tuple[str, RunConfig]:
    """The name of the run and its configuration. Raises InputError."""
    plain = disk.read_object(path / "job.json", MOST_BYTES, path)
    name = plain.get("run")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError("its job.json names no run that this app could have made")
    if not isinstance(plain.get("config"), dict):
        raise InputError("its job.json holds no configuration")
    return name, RunConfig.from_dict(plain["config"])


def _end(path: Path) -> tuple[State, str] | None:
    """How it ended and why; None while it has not."""
    try:
        plain = disk.read_object(path / "end.json", MOST_BYTES, path)
    except disk.Absent:
        return None
    state, reason = plain.get("state"), plain.get("reason", "")
    if state not in ("finished", "stopped", "failed") or not isinstance(reason, str):
        raise InputError("its end.json does not say how it ended")
    return state, disk.shown(reason, 1_000)


def _progress(path: Path) -> dict[str, Any]:
    """The last event that was said, if it is one."""
    plain = read_object(path / "progress.json")
    if plain.get("event") != "step":
        return {"event": plain["event"]} if isinstance(plain.get("event"), str) else {}
    counted = all(whole(plain.get(name)) for name in ("epoch", "done", "of"))
    return plain if counted and number(plain.get("loss")) else {}
