"""The worker: a process that takes the lock, does one job, and starts the next worker.

python -m elastic_core.jobs.worker CHECKPOINTS ID
"""

import os
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from elastic_core.errors import NO_MEMORY, InputError, out_of_memory
from elastic_core.jobs import queue
from elastic_core.jobs.job_kinds import KINDS
from elastic_core.jobs.queue import STOPPED, Job, JobContext, Queue, State
from elastic_core.machine import keep_memory

BEAT = 0.5  # seconds
WAIT = 5.0  # seconds for the lock
SPARE, SPARE_BYTES = "spare", 2**17  # a file that is given up so that a full disk takes the last word


def do_job(root: Path, job_id: str) -> None:
    """Does one job. Returns after `WAIT` if another worker has the lock, and at once if the job is not queued any more."""
    folder, lock = root / "jobs", queue.worker_lock(root / "jobs")
    try:
        lock.acquire(timeout=WAIT)
    except Timeout:  # nobody may wait for this process any more, and who has the lock may just have ended and believed it comes
        with suppress(InputError):
            _remove_claim(folder)
            queue.start_next(root)
        return
    go_on = True
    try:
        _remove_claim(folder)
        queued = _find_job(root, job_id)
        if queued is not None:
            go_on = _run_in_worker(*queued, lock)
    except InputError as error:  # the disk takes nothing: the job stays in the queue, and the next one would fare alike
        sys.stderr.write(f"{job_id} cannot begin: {error}\n")
        go_on = False
    finally:
        _release_lock(root, lock, go_on=go_on)


def _remove_claim(folder: Path) -> None:
    """No worker is on its way any more: this one has come."""
    with queue.open_table(folder, write=True) as table:
        table.execute("DELETE FROM worker")


def _find_job(root: Path, job_id: str) -> tuple[Queue[Any], Job[Any]] | None:
    """The job and its kind; one that cannot be read any more leaves the queue with its reason."""
    row = next((row for row in queue.read_rows(root / "jobs") if f"{row['id']:06}" == job_id), None)
    if row is None or row["state"] != "queued":
        return None
    jobs = KINDS[row["kind"]](root)
    try:
        return jobs, jobs.get_job(job_id)
    except InputError as error:
        if queue.begin_job(root / "jobs", job_id):
            queue.end_job(root / "jobs", job_id, "failed", str(error))
        return None


def _run_in_worker(jobs: Queue[Any], job: Job[Any], lock: FileLock) -> bool:
    """False if it could not begin because the disk takes nothing."""
    context = JobContext(job)
    try:
        (context.path / SPARE).write_bytes(bytes(SPARE_BYTES))
        with (context.path / "log.txt").open("ab") as log:  # standard output and errors go to the job's own file
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        if not queue.begin_job(jobs.folder, job.id):
            return True
    except (InputError, OSError) as error:
        context.print_line(f"{job.id} cannot begin: {error}")
        return False
    over = threading.Event()
    heartbeat = threading.Thread(target=_send_heartbeat, args=(jobs, context, lock, over), daemon=True)
    heartbeat.start()
    try:
        run_job(jobs, job, context)
    finally:
        over.set()
        heartbeat.join()  # else it takes the end for a wish to stop, and ends this process while that starts the next worker
    return True


def run_job(jobs: Queue[Any], job: Job[Any], context: JobContext) -> None:
    """Does the work of a job that has begun and says how it ended, whatever happens."""
    torch.set_num_threads(jobs.thread_count(job.request))
    try:
        reason = jobs.do_work(job, context)
    except InputError as error:
        _end_work(context, "failed", str(error))
    except Exception as error:  # whatever it was belongs on the page, and the next job must start
        traceback.print_exc()
        reason = NO_MEMORY if out_of_memory(error) else f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        _end_work(context, "failed", reason)
    else:
        _end_work(context, "stopped" if reason == STOPPED else "finished", reason)


def _send_heartbeat(jobs: Queue[Any], context: JobContext, lock: FileLock, over: threading.Event) -> None:
    """Says that the worker lives until the work is over, and hears whether the job is to stop. Work that does not look is ended
    here."""
    while not over.is_set():
        with suppress(InputError):
            is_listed = queue.update_job(jobs.folder, context.id, beat=time.time())
            rows = queue.read_rows(jobs.folder) if is_listed else []
            if not any(f"{row['id']:06}" == context.id and not row["stopping"] for row in rows):
                context.request_stop()
        if jobs.stops_at_once and context.is_stopping() and not over.is_set():
            with suppress(InputError, OSError):
                _end_work(context, "stopped", STOPPED)
            with suppress(Exception):
                _release_lock(jobs.root, lock, go_on=True)
            os._exit(0)
        over.wait(BEAT)


def _end_work(context: JobContext, state: State, reason: str) -> None:
    context.print_line(f"{state}: {reason}")
    (context.path / SPARE).unlink(missing_ok=True)
    queue.end_job(context.path.parent, context.id, state, reason)


def _release_lock(root: Path, lock: FileLock, *, go_on: bool) -> None:
    lock.release(force=True)
    if go_on:
        with suppress(InputError):
            queue.start_next(root)


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(max(0, 10 - os.nice(0)))  # the next worker inherits it
    keep_memory()
    do_job(Path(sys.argv[1]), sys.argv[2])
