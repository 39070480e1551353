"""One engine for what takes longer than a visitor waits: a job is a folder and works in a process of its own; nobody has to stay.

    checkpoints/jobs/<place>/<id>/  job.json       what was asked for
                                    begun.json     the process that took it (absent: still queued)
                                    beat           touched every half second by that process
                                    progress.json  how far it is
                                    stop           somebody asked it to stop
                                    end.json       how it ended: finished, stopped or failed, and why
                                    log.txt        everything the process said
    checkpoints/jobs/<lane>/        slot.lock      held by the process that works, freed by the operating system when it ends
                                    slot.json      which job that process works on; removed by whoever sees the slot free
                                    starting       touched when a process was started that has not taken the slot yet

A kind of job is a subclass of `Queue` in its room's `jobs.py`, named in `KINDS`: how it is called, what its `job.json` must say,
and its work. Kinds of one lane take turns, the oldest first, whichever server they were asked of; who asks for what is queued or
worked on already gets that job. A job that was begun, has no end and is not in the slot was interrupted. The process that ends
starts the next one; looking at a list (`pump`) does so too. Each file is written whole or not at all.
"""

import functools
import importlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

from elastic_core import disk
from elastic_core.errors import InputError
from elastic_core.runs import Run, list_runs
from elastic_core.services import public
from elastic_core.services.background.process import ID, MOST_BYTES, Hand, age, next_name, read_object, spawn, tail
from elastic_core.services.background.slot import Slot

State = Literal["queued", "running", "not responding", "interrupted", "finished", "stopped", "failed"]
ACTIVE: tuple[State, ...] = ("queued", "running", "not responding")
HEAVY, LIGHT = "", "light"  # lanes: what fills the machine for long, and what somebody waits for
MOST_QUEUED = 20  # of a kind
STALE = 60.0  # seconds without a beat until a living process counts as not responding
STARTING = 30.0  # seconds that a fresh process gets to take the slot before another is started
STOPPED = "asked to stop"  # the reason of one that was
# Every kind of job: its room among the services, and its class in the room's `jobs.py`.
KINDS = {
    "train": "Jobs", "speed": "Measurements", "map": "Maps", "evidence": "Questions", "experts": "Passes", "study": "Studies",
}  # fmt: skip
Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Task(Generic[Asked]):
    """A job as its folder tells it at the moment of asking."""

    path: Path
    asked: Asked
    plain: dict[str, Any]  # what was asked for as job.json has it
    state: State
    progress: dict[str, Any]
    reason: str
    stopping: bool

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def active(self) -> bool:
        return self.state in ACTIVE

    @property
    def share(self) -> float:
        """How much of it is done, 0 … 1."""
        done, of = self.progress.get("done"), self.progress.get("of")
        return min(done / max(of, 1), 1.0) if disk.is_count(done) and disk.is_count(of) else 0.0

    @property
    def text(self) -> str:
        """What it does, in words; nothing before it says so."""
        return disk.shown(self.progress.get("text", ""))

    @property
    def seconds(self) -> float:
        """Since a process took it, until it ended; 0 before."""
        try:
            until = (self.path / "end.json").stat().st_mtime if (self.path / "end.json").exists() else time.time()
            return max(until - (self.path / "begun.json").stat().st_mtime, 0.0)
        except OSError:
            return 0.0

    @cached_property
    def log(self) -> str:
        """The last lines of what the process said."""
        return tail(self.path / "log.txt", 40)


Kept = TypeVar("Kept", bound=Task[Any])


class Queue(Generic[Kept]):
    """The jobs of one kind below a checkpoints folder. Safe to use from several processes at once."""

    kind: ClassVar[str]  # its name in `KINDS`
    noun: ClassVar[str]  # as sentences call one
    act: ClassVar[public.Act]
    task: ClassVar[type[Task[Any]]] = Task
    lane: ClassVar[str] = LIGHT
    at_once: ClassVar[bool] = True  # one that is stopped ends in the middle of whatever it does; else its work asks `Hand.stop`
    kept: ClassVar[int | None] = 20  # jobs that are over and stay in the list; None: until somebody removes them

    def __init__(self, root: Path | str = "checkpoints") -> None:
        self.root = Path(root).resolve()
        self.folder = self.root / "jobs" / self.place()
        self.hall = self.root / "jobs" / self.lane
        self.slot = Slot(self.hall / "slot.lock", note=self.hall / "slot.json")

    # --- what a kind says ---------------------------------------------------------------------------------------------

    @classmethod
    def place(cls) -> str:
        """Where its jobs lie below `jobs`."""
        return cls.kind

    @classmethod
    def read(cls, plain: dict[str, Any]) -> Any:
        """What a job.json asks for. Raises InputError for anything that this app would not have written."""
        raise NotImplementedError

    def work(self, task: Kept, hand: Hand) -> str:
        """Does it, in the job's own process; returns what there is to say of its end. InputError: it failed for that reason."""
        raise NotImplementedError

    def done(self, asked: Any) -> bool:
        """Whether its result is there even where its last word is not. Raises InputError where nothing could be put there."""
        return False

    def again(self, task: Kept) -> bool:
        """Whether it may be continued."""
        return task.state in ("interrupted", "failed")

    def forget(self, task: Kept) -> None:
        """Takes along what only an unfinished job has, when it is discarded."""

    def threads(self, task: Kept) -> int:
        return 1

    # --- what people ask for ------------------------------------------------------------------------------------------

    def ask(self, wanted: Callable[[], dict[str, Any]]) -> Kept:
        """Queues a job and starts it if the slot is free, or returns the one that was asked for the same and is not over.

        `wanted` makes its job.json while nobody else asks. Raises InputError where it cannot, where the queue is full and where
        the disk does not take it.
        """
        public.refuse(self.act)
        with self._told():
            with Slot(self.folder / "submit.lock"):
                plain = json.loads(json.dumps(wanted()))
                self.read(plain)
                listed = self.all()
                for job in listed:
                    if job.active and not job.stopping and job.plain == plain:
                        return job
                self._room(listed)
                path = self.folder / next_name(self.folder)
                fresh = path.with_name(f".new-{path.name}")
                fresh.mkdir(parents=True)
                try:
                    disk.write_text(fresh / "job.json", json.dumps(plain, indent=1))
                    os.replace(fresh, path)  # in the list as a whole, or not at all
                finally:
                    shutil.rmtree(fresh, ignore_errors=True)
                needed = {job.path for job in listed if job.active} | {path}
                over = [old for old in self._folders() if old not in needed]
                for old in over[: -self.kept] if self.kept is not None else ():
                    with suppress(InputError):
                        disk.remove(old, self.folder)
            self.pump()
            return self.get(path.name)

    def stop(self, job_id: str) -> None:
        """A queued job is taken from the queue, a running one ends; what it has found so far stays."""
        public.refuse(self.act)
        job = self.get(job_id)
        with self._told():
            if job.state == "queued":
                disk.remove(job.path, self.folder)
            elif job.active:
                (job.path / "stop").touch()

    def resume(self, job_id: str) -> None:
        """Puts an interrupted or failed job back in the queue; it goes on from what it has kept."""
        public.refuse(self.act)
        self._room(self.all())
        job = self.get(job_id)
        if not self.again(job):
            raise InputError(f"the {self.noun} {job.id} is {job.state}; only an interrupted or failed one can be continued")
        with self._told():
            for name in ("stop", "end.json", "progress.json", "begun.json"):
                (job.path / name).unlink(missing_ok=True)
            self.pump()

    def discard(self, job_id: str) -> None:
        """Removes a job that is not running. A folder of the list that cannot be read is removed alone: what it says of anything
        else is not believed."""
        public.refuse("deletion")
        with self._told():
            for path in (fault.path for fault in self.unreadable()):
                if path.name == job_id:
                    disk.remove(path, self.folder)
                    return
            job = self.get(job_id)
            if job.state in ("running", "not responding"):
                raise InputError(f"the {self.noun} {job.id} is still running; stop it first")
            self.forget(job)
            disk.remove(job.path, self.folder)

    # --- what is there ------------------------------------------------------------------------------------------------

    def all(self) -> list[Kept]:
        """Every job that can be read, oldest first."""
        return [*self._each(self._folders())]

    def unreadable(self) -> list[disk.Unreadable]:
        """The folders in the list that are no job, and why."""
        found = (self._read(path, str) for path in self._folders())
        return [fault for fault in found if isinstance(fault, disk.Unreadable)]

    def get(self, job_id: str) -> Kept:
        """Raises InputError if there is no such job (ids are looked up in the list, never made into paths)."""
        for job in self.all():
            if job.id == job_id:
                return job
        raise InputError(f"there is no {self.noun} {job_id!r} any more")

    def next(self) -> Kept | None:
        """The oldest queued job."""
        return next((job for job in self.all() if job.state == "queued"), None)

    def latest(self, state: State | None = None, **asked: Any) -> Kept | None:
        """The last in this state, or in any, of those whose job.json says so."""
        for job in self._each(reversed([*self._folders()])):
            if state in (None, job.state) and all(job.plain.get(name) == value for name, value in asked.items()):
                return job
        return None

    def run(self, name: str) -> Run:
        """A run that a job.json names: looked up in the list, never made into a path. Raises InputError."""
        found = next((run for run in list_runs(self.root) if run.name == name), None)
        if found is None:
            raise InputError(f"the run of this {self.noun} is not there any more")
        return found

    def pump(self) -> None:
        """Starts a process for the lane if something waits, nothing runs and no process is on its way already.

        Raises InputError where the disk does not let it. In public mode nothing is started: who asked for it is not here.
        """
        if public.on():
            return
        with self._told():
            lane = [each for kind in KINDS if (each := queue(self.root, kind)).lane == self.lane]
            waiting = [(each, job) for each in lane if (job := each.next()) is not None]
            if not waiting or self.slot.held:
                return
            mark = self.hall / "starting"
            with Slot(self.hall / "start.lock"):
                if age(mark) < STARTING:
                    return
                mark.unlink(missing_ok=True)
                mark.touch()
                first, job = min(waiting, key=lambda found: found[1].id)  # the oldest queued job of the lane
                first._spawn(job)

    # --- files --------------------------------------------------------------------------------------------------------

    def _current(self) -> str:
        """The id of the job in the slot, if it is of this kind."""
        note = read_object(self.hall / "slot.json") if self.slot.held else {}
        return str(note.get("job", "")) if note.get("kind", self.kind) == self.kind else ""

    def _folders(self) -> Iterator[Path]:
        return disk.folders(self.folder, "[0-9]*")

    def _each(self, paths: Iterable[Path]) -> Iterator[Kept]:
        current = functools.cache(self._current)  # asked once, and only where a job may be in the slot
        for path in paths:
            if not isinstance(job := self._read(path, current), disk.Unreadable):
                yield job

    def _read(self, path: Path, current: Callable[[], str]) -> Kept | disk.Unreadable:
        try:
            disk.check_folder(path)
            if not ID.fullmatch(path.name):
                raise InputError(f"its name is none that a {self.noun} is given")
            plain, asked = _read_job(self.read, path, disk.stamp(path / "job.json"))
            done = self.done(asked)
            end = _end(path)
        except InputError as error:
            return disk.Unreadable(path, str(error))
        state: State
        if end is not None:
            state = end[0]
        elif not (path / "begun.json").exists():
            state = "queued"
        elif path.name in (current(), self._current()):  # asked again: it may have begun since the list was
            state = "running" if age(path / "beat") < STALE else "not responding"
        else:
            state = "finished" if done else "interrupted"
        reason, progress = end[1] if end is not None else "", read_object(path / "progress.json")
        job: Kept = self.task(path, asked, plain, state, progress, reason, (path / "stop").exists())  # type: ignore[assignment]
        return job

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the disk refuses, as one sentence."""
        try:
            with disk.said(self.folder):
                yield
        except FileNotFoundError:
            raise InputError(f"that {self.noun} is not there any more") from None

    def _room(self, listed: list[Kept]) -> None:
        """Raises InputError where as many jobs wait as the queue holds."""
        if sum(job.state == "queued" for job in listed) >= MOST_QUEUED:
            raise InputError(f"{MOST_QUEUED} {self.noun}s wait already, which is all that the queue holds; take one out, or wait")

    def _spawn(self, task: Kept) -> None:
        log = self.hall / "worker.log"
        spawn("elastic_core.services.background.worker", self.root, self.kind, task.id, log=log, threads=self.threads(task))


def queue(root: Path | str, kind: str) -> Queue[Any]:
    """The queue of a kind. Raises KeyError for a name that is none."""
    made: Queue[Any] = getattr(importlib.import_module(f"elastic_core.services.{kind}.jobs"), KINDS[kind])(root)
    return made


def name_of_run(plain: dict[str, Any]) -> str:
    """The run that a job.json asks about; whether there is one is seen when it is begun. Raises InputError."""
    name = plain.get("run")
    if not isinstance(name, str) or len(name) > disk.LONGEST_NAME or not re.fullmatch(r"[^/\\\0]+", name):
        raise InputError("its job.json names no run")
    return name


# --- one job's files, which may be anybody's -----------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _read_job(read: Callable[[dict[str, Any]], Any], path: Path, stamp: tuple[int, ...]) -> tuple[dict[str, Any], Any]:
    plain = disk.read_object(path / "job.json", MOST_BYTES, path)
    return plain, read(plain)


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
