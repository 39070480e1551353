"""Measurements of speed in the background: one at a time, in a process of its own, everything in files.

checkpoints/jobs/speed/slot.lock    held by the process that measures
checkpoints/jobs/speed/<id>/        plan.json      what was asked for
                                    begun.json     the process has it
                                    beat           touched every half second by that process
                                    progress.json  which step of how many
                                    cancel         somebody asked it to end at once
                                    latency.csv, stages.csv, events.csv   what it has found so far
                                    end.json       finished, cancelled or failed, and why
                                    log.txt        everything the process said
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from elastic_core import disk
from elastic_core.bench.latency import SYSTEMS, Setting, contestants
from elastic_core.bench.store import read_rows
from elastic_core.disk import write_text
from elastic_core.errors import InputError
from elastic_core.services import public
from elastic_core.services.background.process import age, next_name, read_object, spawn, tail, whole
from elastic_core.services.background.slot import Slot
from elastic_core.services.speed.curves import MEASURED, table_of, tidy
from elastic_core.services.train.jobs import Jobs

State = Literal["starting", "running", "not responding", "interrupted", "finished", "cancelled", "failed"]
ACTIVE: tuple[State, ...] = ("starting", "running", "not responding")
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
STALE, STARTING = 30.0, 30.0  # seconds
KEPT = 5  # measurements
MOST = 100_000  # a number of a plan beyond this is none
MOST_BYTES = 1.5e9  # of score matrices that eager attention may materialise


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure. `histories` are read at a time; `repeats` rounds of all systems in turn."""

    lengths: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048)
    systems: tuple[str, ...] = SYSTEMS
    histories: int = 8
    threads: int = 1
    repeats: int = 7
    k: int = 8
    side: int = 16
    width: int = 64

    def __post_init__(self) -> None:
        counts = (*self.lengths, self.histories, self.threads, self.repeats, self.k, self.side, self.width)
        if not all(type(n) is int and n < MOST for n in counts) or not all(isinstance(name, str) for name in self.systems):
            raise InputError("a measurement is described by names of systems and whole numbers")
        if not self.lengths or not all(2 <= n <= 65_536 for n in self.lengths):
            raise InputError("choose at least one length between 2 and 65,536")
        if not self.systems or set(self.systems) - set(contestants()):
            raise InputError(f"choose systems among {', '.join(contestants())}")
        if min(self.histories, self.threads, self.repeats, self.k) < 1 or self.side < 2 or self.k > self.side**2:
            raise InputError("histories, threads, repeats and k must be at least 1, √K at least 2, and k at most K")

    def setting(self, length: int) -> Setting:
        return Setting(length=length, histories=self.histories, k=self.k, side=self.side, width=self.width)

    def fits(self, system: str, length: int) -> bool:
        """Eager attention is left out where its score matrices would fill the machine."""
        return system != "sasrec-eager" or self.setting(length).scores_bytes() <= MOST_BYTES

    def left_out(self) -> tuple[int, ...]:
        """Lengths that eager attention does not get."""
        return tuple(n for n in self.lengths if "sasrec-eager" in self.systems and not self.fits("sasrec-eager", n))

    def steps(self) -> int:
        """One a length, one for the stages, one a length for the new event."""
        return 2 * len(self.lengths) + 1


@dataclass(frozen=True)
class Measurement:
    """One measurement as its folder tells it at the moment of asking."""

    path: Path
    plan: Plan
    state: State
    share: float
    text: str
    reason: str

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def active(self) -> bool:
        return self.state in ACTIVE

    @property
    def cut(self) -> str:
        """What it did not get to, in words; nothing for one that finished."""
        if self.state == "finished":
            return ""
        done = self.latencies()["length"].nunique()
        word = "still running" if self.active else self.state
        return f"This measurement is {word}: {done} of {len(self.plan.lengths)} lengths, so it says nothing about the others."

    def latencies(self) -> pd.DataFrame:
        """As from `efficiency_curves.tidy`; empty while nothing is there."""
        try:
            return tidy(read_rows(self.path / "latency.csv"), MEASURED)
        except InputError:
            return tidy([], MEASURED)

    def stages(self) -> pd.DataFrame:
        """length, system, stage, milliseconds per history, and where they were measured."""
        return table_of(self.path / "stages.csv")

    def events(self) -> pd.DataFrame:
        """length, system, milliseconds per person and new event, and where they were measured."""
        return table_of(self.path / "events.csv")

    def log(self) -> str:
        return tail(self.path / "log.txt", 20)


class Measurements:
    """The measurements below a checkpoints folder. Safe to use from several processes at once."""

    def __init__(self, root: Path | str = "checkpoints") -> None:
        self.root = Path(root).resolve()
        self.folder = self.root / "jobs" / "speed"
        self.slot = Slot(self.folder / "slot.lock")

    def start(self, plan: Plan) -> Measurement:
        """Raises InputError while another measurement or a training runs: both would time each other."""
        public.refuse("measurement")
        with disk.said(self.folder), Slot(self.folder / "start.lock"):
            if any(found.active for found in self.all()):
                raise InputError("a measurement is running already; wait for it or cancel it")
            if Jobs(self.root).slot.held:
                raise InputError("a training is running on this machine and would be timed along; stop it or wait for it")
            path = self.folder / next_name(self.folder)
            path.mkdir(parents=True)
            write_text(path / "plan.json", json.dumps(asdict(plan)))
            for old in list(self._folders())[:-KEPT]:
                disk.remove(old, self.folder)
            self._spawn(path, plan.threads)
        return self.get(path.name)

    def cancel(self, measurement_id: str) -> None:
        """Ends it at once; what is measured so far stays."""
        public.refuse("measurement")
        found = self.get(measurement_id)
        if found.active:
            with disk.said(found.path), suppress(FileNotFoundError):
                (found.path / "cancel").touch()

    def all(self) -> list[Measurement]:
        """Every measurement that can be read, oldest first."""
        return [found for path in self._folders() if (found := self._read(path)) is not None]

    def get(self, measurement_id: str) -> Measurement:
        """Raises InputError if there is no such measurement (ids are looked up, never made into paths)."""
        for found in self.all():
            if found.id == measurement_id:
                return found
        raise InputError(f"there is no measurement {measurement_id!r} any more")

    def shown(self) -> Measurement | None:
        """The one that answers: the latest if it runs or finished. After one that failed or was cut, the last that finished; only
        where there is none, what the latest found until then."""
        found = self.all()
        if found and not found[-1].active:
            return next((each for each in reversed(found) if each.state == "finished"), found[-1])
        return found[-1] if found else None

    def latest(self) -> Measurement | None:
        found = self.all()
        return found[-1] if found else None

    def _folders(self) -> Iterator[Path]:
        return disk.folders(self.folder, "[0-9]*")

    def _read(self, path: Path) -> Measurement | None:
        try:
            disk.check_folder(path)
            disk.refuse_links(path)
            plain = read_object(path / "plan.json")
            plan = Plan(**{**plain, "lengths": tuple(plain["lengths"]), "systems": tuple(plain["systems"])})
        except (InputError, KeyError, TypeError):
            return None
        end, progress = read_object(path / "end.json"), read_object(path / "progress.json")
        state: State
        if end.get("state") in ("finished", "cancelled", "failed"):
            state = end["state"]
        elif not (path / "begun.json").exists():
            state = "starting" if age(path / "plan.json") < STARTING else "interrupted"
        elif self.slot.held:
            state = "running" if age(path / "beat") < STALE else "not responding"
        else:
            state = "interrupted"
        done = progress.get("done")
        share = done / max(plan.steps(), 1) if whole(done) else 0.0
        text, reason = disk.shown(progress.get("text", "Starting")), disk.shown(end.get("reason", ""), 500)
        return Measurement(path, plan, state, min(share, 1.0), text, reason)

    def _spawn(self, path: Path, threads: int) -> None:
        spawn("elastic_core.services.speed.worker", self.root, path.name, log=path / "log.txt", threads=threads)


def cores() -> int:
    """How many threads may be asked for."""
    return os.cpu_count() or 1
