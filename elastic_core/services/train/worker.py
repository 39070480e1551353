"""The background process of services/train/jobs.py: takes the slot, trains the oldest queued job, starts the next process.

python -m elastic_core.services.train.worker CHECKPOINTS
"""

import json
import os
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from elastic_core.data import Dataset, load
from elastic_core.disk import write_text
from elastic_core.errors import InputError
from elastic_core.machine import keep_memory
from elastic_core.services.train import beside
from elastic_core.services.train.jobs import Job, Jobs
from elastic_core.training.loop import train

BEAT = 2.0
SPARE, ROOM = "spare", 2**16  # a file that is given up for the last word, and its bytes


def work(root: Path) -> None:
    """One job, then a fresh process for the next. Returns at once if another process has the slot or nothing waits."""
    jobs = Jobs(root)
    if not jobs.slot.take(patience=5.0):
        return
    job, begun = None, False
    try:
        (jobs.folder / "starting").unlink(missing_ok=True)
        (jobs.folder / "slot.json").unlink(missing_ok=True)  # it may name this very job, from before an interruption
        job = jobs.next()
        begun = job is not None and _begin(jobs, job)
        if job is not None and begun:
            _train(job)
    finally:
        jobs.slot.free()
        if job is not None and (begun or not job.path.exists()):  # else the disk takes nothing, and the next would fare alike
            with suppress(InputError):
                jobs.pump()


def _begin(jobs: Jobs, job: Job) -> bool:
    """False if somebody took the job from the queue at the last moment, or the disk takes nothing: it stays in the queue."""
    try:
        _redirect(job.path / "log.txt")
        (job.path / "beat").touch()
        (job.path / SPARE).write_bytes(bytes(ROOM))
        write_text(jobs.folder / "slot.json", json.dumps({"job": job.id, "pid": os.getpid()}))
        write_text(job.path / "begun.json", json.dumps({"pid": os.getpid(), "time": round(time.time(), 1)}))
    except (InputError, OSError) as error:
        _log(f"{job.id} cannot begin: {error}")
        return False
    threading.Thread(target=_beat, args=(job.path / "beat",), daemon=True).start()
    return True


def _beat(file: Path) -> None:
    while True:
        try:
            os.utime(file)
        except OSError:
            return
        time.sleep(BEAT)


def _train(job: Job) -> None:
    try:
        _say(job, {"event": "data", "source": job.config.data.source})
        dataset = load(job.config.data, progress=_log)
        train(job.config, dataset, job.run.path, on_event=lambda event: _say(job, event), stop=lambda: _asked(job))
        _judge(job, dataset)
    except InputError as error:
        _end(job, "failed", str(error))
    except Exception as error:  # whatever it was belongs on the page, and the next job must start
        traceback.print_exc()
        _end(job, "failed", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    else:
        end = job.run.last("end") or {}
        reason = str(end.get("reason", ""))
        _end(job, "stopped" if reason == "asked to stop" else "finished", reason)


def _judge(job: Job, dataset: Dataset) -> None:
    """What only counts, on the same people. The training is done and tested: nothing here may make it a failed one."""
    if beside.kept(job.run) is not None:
        return
    try:
        beside.keep(job.run, beside.judge(job.run, dataset, lambda name: _say(job, {"event": "beside", "system": name})))
    except Exception:  # the card says that they were not judged
        traceback.print_exc()


def _asked(job: Job) -> bool:
    return (job.path / "stop").exists() or not job.path.exists()


def _say(job: Job, event: dict[str, Any]) -> None:
    """Progress for the page, one line for the log."""
    if event["event"] != "step":
        _log(json.dumps(event))
    if job.path.exists():
        with suppress(InputError, FileNotFoundError):  # a full disk is the training's to notice, when it keeps something
            write_text(job.path / "progress.json", json.dumps(event | {"time": round(time.time(), 1)}))


def _end(job: Job, state: str, reason: str) -> None:
    _log(f"{state}: {reason}")
    (job.path / SPARE).unlink(missing_ok=True)  # so that a disk that is full now takes this one sentence
    if job.path.exists():
        write_text(job.path / "end.json", json.dumps({"state": state, "reason": reason, "time": round(time.time(), 1)}))


def _log(line: str) -> None:
    with suppress(OSError):  # a full disk
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _redirect(log: Path) -> None:
    """Standard output and errors go to the job's own file."""
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(max(0, 10 - os.nice(0)))  # the next process inherits it
    torch.set_num_threads(1)
    keep_memory()
    work(Path(sys.argv[1]))
