"""The process of one job: takes the slot of its lane, does the job, starts the next process.

python -m elastic_core.services.background.worker CHECKPOINTS KIND ID
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

from elastic_core.disk import write_text
from elastic_core.errors import NO_MEMORY, InputError, out_of_memory
from elastic_core.machine import keep_memory
from elastic_core.services.background.process import Hand
from elastic_core.services.background.queue import STOPPED, Queue, Task, queue

BEAT = 0.5
SPARE, ROOM = "spare", 2**16  # a file that is given up for the last word, and its bytes


def work(root: Path, kind: str, job_id: str) -> None:
    """One job, then a fresh process for the next. Returns at once if another process has the slot or the job is not queued."""
    jobs = queue(root, kind)
    if not jobs.slot.take(patience=5.0):
        return
    job, begun = None, False
    try:
        (jobs.hall / "starting").unlink(missing_ok=True)
        (jobs.hall / "slot.json").unlink(missing_ok=True)  # it may name this very job, from before an interruption
        job = next((job for job in jobs.all() if job.id == job_id and job.state == "queued"), None)
        begun = job is not None and _begin(jobs, job)
        if job is not None and begun:
            _work(jobs, job)
    finally:
        # one that cannot begin: the disk takes nothing, and the next would fare alike
        _leave(jobs, pump=job is None or begun or not job.path.exists())


def _begin(jobs: Queue[Any], job: Task[Any]) -> bool:
    """False if somebody took the job from the queue at the last moment, or the disk takes nothing: it stays in the queue."""
    hand = Hand(job.path)
    try:
        with (job.path / "log.txt").open("ab") as log:  # standard output and errors go to the job's own file
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        (job.path / "beat").touch()
        (job.path / SPARE).write_bytes(bytes(ROOM))
        write_text(jobs.hall / "slot.json", json.dumps({"kind": jobs.kind, "job": job.id, "pid": os.getpid()}))
        write_text(job.path / "begun.json", json.dumps({"pid": os.getpid(), "time": round(time.time(), 1)}))
    except (InputError, OSError) as error:
        hand.log(f"{job.id} cannot begin: {error}")
        return False
    threading.Thread(target=_beat, args=(jobs, job), daemon=True).start()
    return True


def _work(jobs: Queue[Any], job: Task[Any]) -> None:
    torch.set_num_threads(jobs.threads(job))
    try:
        reason = jobs.work(job, Hand(job.path))
    except InputError as error:
        _end(job, "failed", str(error))
    except Exception as error:  # whatever it was belongs on the page, and the next job must start
        traceback.print_exc()
        said = NO_MEMORY if out_of_memory(error) else f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        _end(job, "failed", said)
    else:
        _end(job, "stopped" if reason == STOPPED else "finished", reason)


def _beat(jobs: Queue[Any], job: Task[Any]) -> None:
    """Says that the process lives. Work that cannot be asked to stop is ended here, in the middle of whatever it does."""
    while True:
        if jobs.at_once and Hand(job.path).stop():
            with suppress(InputError, OSError):
                _end(job, "stopped", STOPPED)
            with suppress(Exception):
                _leave(jobs, pump=True)
            os._exit(0)
        try:
            os.utime(job.path / "beat")
        except OSError:
            if not jobs.at_once:
                return
        time.sleep(BEAT)


def _leave(jobs: Queue[Any], *, pump: bool) -> None:
    jobs.slot.free()
    if pump:
        with suppress(InputError):
            jobs.pump()


def _end(job: Task[Any], state: str, reason: str) -> None:
    Hand(job.path).log(f"{state}: {reason}")
    (job.path / SPARE).unlink(missing_ok=True)  # so that a disk that is full now takes this one sentence
    if job.path.exists() and not (job.path / "end.json").exists():
        write_text(job.path / "end.json", json.dumps({"state": state, "reason": reason, "time": round(time.time(), 1)}))


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(max(0, 10 - os.nice(0)))  # the next process inherits it
    keep_memory()
    work(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
