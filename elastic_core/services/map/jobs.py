"""UMAP in the background: one at a time, all in files, so that it survives a reload and can be cancelled.

    checkpoints/jobs/map/slot.lock      held by the process that computes, freed by the operating system when it ends
    checkpoints/jobs/map/request.json   which run, which settings, which experts
    checkpoints/jobs/map/progress.json  how many layouts are done, and of how many
    checkpoints/jobs/map/beat           touched every second by that process
    checkpoints/jobs/map/cancel         somebody asked it to end; it does so within a second
    checkpoints/jobs/map/end.json       how it ended: finished, cancelled or failed, and why

A request without an end whose process is gone, or whose beat is stale, was interrupted.
"""

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from elastic_core import disk
from elastic_core.disk import write_text
from elastic_core.errors import InputError
from elastic_core.runs import Run, list_runs
from elastic_core.services import public
from elastic_core.services.background.process import AHEAD, age, number, read_object, spawn, whole
from elastic_core.services.background.slot import Slot
from elastic_core.services.map.layouts import LAID_OUT, Settings

State = Literal["none", "starting", "running", "interrupted", "finished", "cancelled", "failed"]
STALE, STARTING = 30.0, 20.0  # seconds: without a beat; until a fresh process must have taken the slot


@dataclass(frozen=True)
class Drawing:
    """The last map that was asked for."""

    state: State
    run: str = ""
    settings: Settings = Settings()
    aligned: bool = False
    done: int = 0
    of: int = 1
    phase: str = ""
    reason: str = ""
    seconds: float = 0.0

    @property
    def active(self) -> bool:
        return self.state in ("starting", "running")

    @property
    def share(self) -> float:
        return min(self.done / max(self.of, 1), 1.0)


class Maps:
    """The one place for background maps below a checkpoints folder."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).resolve()
        self.folder = self.root / "jobs" / "map"
        self.slot = Slot(self.folder / "slot.lock")

    def submit(self, run: Run, settings: Settings, experts: np.ndarray, *, aligned: bool = False) -> None:
        """Starts one. Raises InputError while another is being computed."""
        public.refuse("measurement")
        if len(experts) > LAID_OUT:
            raise InputError(f"at most {LAID_OUT:,} experts can be laid out at once")
        with disk.said(self.folder), Slot(self.folder / "submit.lock"):
            if self.now().active:
                raise InputError("a map is being computed already; wait for it or cancel it")
            for name in ("cancel", "end.json", "progress.json", "beat", "log.txt"):
                (self.folder / name).unlink(missing_ok=True)
            request = {
                "run": run.name, "neighbours": settings.neighbours, "distance": settings.distance, "aligned": aligned,
                "experts": np.asarray(experts).tolist(), "time": round(time.time(), 1),
            }  # fmt: skip
            write_text(self.folder / "request.json", json.dumps(request))
            self._spawn()

    def cancel(self) -> None:
        """Asks the process to end. It does within a second, in the middle of a layout too."""
        public.refuse("measurement")
        if self.now().active:
            with suppress(OSError):  # on a disk that takes nothing there is nobody to hear it
                (self.folder / "cancel").touch()

    def now(self) -> Drawing:
        """What the files say. Never fails."""
        request, end, progress = (read_object(self.folder / f"{name}.json") for name in ("request", "end", "progress"))
        began, neighbours, distance = (request.get(name) for name in ("time", "neighbours", "distance"))
        if not number(began) or not whole(neighbours) or not number(distance) or not isinstance(request.get("run"), str):
            return Drawing("none")
        done, of, ended = (progress.get("done", 0), progress.get("of", 1), end.get("time", time.time()))
        return Drawing(
            self._state(end, float(began)),
            run=disk.shown(request["run"]),
            settings=Settings(neighbours, float(distance)),
            aligned=request.get("aligned") is True,
            done=done if whole(done) else 0,
            of=of if whole(of) else 1,
            phase=disk.shown(progress.get("phase", "Starting a process")),
            reason=disk.shown(end.get("reason", ""), 500),
            seconds=max(float(ended) - float(began), 0.0) if number(ended) else 0.0,
        )

    def request(self) -> tuple[Run, Settings, np.ndarray, bool]:
        """What the process is to do; a run is looked up in the list, never made into a path. Raises InputError."""
        plain = read_object(self.folder / "request.json")
        runs = {run.name: run for run in list_runs(self.root)}
        if not isinstance(plain.get("run"), str) or plain["run"] not in runs:
            raise InputError("the run of this map is not there any more")
        experts = plain.get("experts")
        if not whole(plain.get("neighbours")) or not number(plain.get("distance")) or not isinstance(experts, list):
            raise InputError("what was asked for is no map")
        if not 0 < len(experts) <= LAID_OUT or not all(whole(expert) for expert in experts):
            raise InputError(f"between 1 and {LAID_OUT:,} experts can be laid out at once, by their numbers")
        settings = Settings(plain["neighbours"], float(plain["distance"]))
        return runs[plain["run"]], settings, np.array(experts, dtype=np.int64), plain.get("aligned") is True

    def _state(self, end: dict[str, Any], began: float) -> State:
        if end.get("state") in ("finished", "cancelled", "failed"):
            state: State = end["state"]
            return state
        if self.slot.held:
            beat = self.folder / "beat"
            return "interrupted" if beat.exists() and age(beat) > STALE else "running"
        fresh = -AHEAD < time.time() - began < STARTING  # else the clock was set back, and nobody knows when it began
        return "starting" if fresh and not (self.folder / "beat").exists() else "interrupted"

    def _spawn(self) -> None:
        spawn("elastic_core.services.map.worker", self.root, log=self.folder / "log.txt")
