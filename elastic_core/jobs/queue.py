"""The queue of background jobs: one SQLite table, from which one worker process at a time takes the oldest job (worker.py).

    checkpoints/jobs/jobs.sqlite    the table: requests, states, progress and the reason of each end
    checkpoints/jobs/worker.lock    held by the worker; the operating system frees it however the worker ends
    checkpoints/jobs/<id>/          what one job writes: log.txt, and its results where they belong to no run

A kind of job is a subclass of `Queue` in job_kinds.py. A job that is running in the table while nobody holds the lock was
interrupted: its worker was killed, or the machine stopped. Every change is one transaction, so a kill at any moment leaves a
table that is true.
"""

import functools
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

from filelock import FileLock, Timeout

import elastic_core
from elastic_core import files
from elastic_core.errors import InputError
from elastic_core.runs import Run, list_runs
from elastic_core.services import public

State = Literal["queued", "running", "not responding", "interrupted", "finished", "stopped", "failed"]
ACTIVE: tuple[State, ...] = ("queued", "running", "not responding")
MAX_QUEUED = 20  # of a kind
STALE = 60.0  # seconds without a heartbeat until a living worker counts as not responding
PATIENCE = 0.5  # seconds that the lock must be held before its holder counts as a worker when the next one is to start
STARTING = 30.0  # seconds that a fresh worker gets to take the lock before another one is started
STOPPED = "asked to stop"  # the reason of a job that was stopped
LOG_BYTES, LOG_LINES = 2**18, 40  # of a log, what pages show
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    request TEXT NOT NULL,
    threads INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued',
    stopping INTEGER NOT NULL DEFAULT 0,
    pid INTEGER,
    begun REAL,
    beat REAL,
    ended REAL,
    progress TEXT NOT NULL DEFAULT '{}',
    reason TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS worker (started REAL NOT NULL);
"""
Request = TypeVar("Request")


@dataclass(frozen=True)
class Job(Generic[Request]):
    """One row of the table at the moment of reading."""

    id: str
    path: Path  # its folder, which may not be there yet
    request: Request
    plain: dict[str, Any]  # the request as the table has it
    state: State
    stopping: bool
    progress: dict[str, Any]
    reason: str
    begun: float | None  # seconds since 1970
    ended: float | None

    @property
    def active(self) -> bool:
        return self.state in ACTIVE

    @property
    def share(self) -> float:
        """How much of it is done, 0 … 1."""
        done, total = self.progress.get("done"), self.progress.get("of")
        return min(done / max(total, 1), 1.0) if files.is_count(done) and files.is_count(total) else 0.0

    @property
    def text(self) -> str:
        """What it does at the moment, in words; empty before it says so."""
        return files.printable_text(self.progress.get("text", ""))

    @property
    def seconds(self) -> float:
        """Since a worker took it, until it ended; 0 before."""
        return max((self.ended or time.time()) - self.begun, 0.0) if self.begun is not None else 0.0

    @cached_property
    def log(self) -> str:
        """The last lines of what its worker printed."""
        try:
            with (self.path / "log.txt").open("rb") as file:
                file.seek(max(os.fstat(file.fileno()).st_size - LOG_BYTES, 0))
                text = file.read(LOG_BYTES).decode("utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(files.printable_text(line, 500) for line in text.splitlines()[-LOG_LINES:])


AnyJob = TypeVar("AnyJob", bound=Job[Any])


class Queue(Generic[AnyJob]):
    """The jobs of one kind below a checkpoints folder. Several processes may use it at once."""

    kind: ClassVar[str]  # its name in the table
    noun: ClassVar[str]  # its name in sentences
    act: ClassVar[public.Act]
    job_class: ClassVar[type[Job[Any]]] = Job
    stops_at_once: ClassVar[bool] = True  # else the work looks at `JobContext.is_stopping` and ends by itself
    max_ended: ClassVar[int | None] = 20  # jobs that are over and stay in the list; None: until somebody removes them

    def __init__(self, root: Path | str = "checkpoints") -> None:
        self.root = Path(root).resolve()
        self.folder = self.root / "jobs"

    # --- what a kind says ---------------------------------------------------------------------------------------------

    @classmethod
    def parse_request(cls, plain: dict[str, Any]) -> Any:
        """The request that a row holds. Raises InputError for one that cannot be done."""
        raise NotImplementedError

    def do_work(self, job: AnyJob, context: "JobContext") -> str:
        """Do the job, in the worker; return the reason of its end, which may be empty. InputError: it failed for that reason."""
        raise NotImplementedError

    def has_result(self, request: Any) -> bool:
        """Whether the result of an interrupted job is there all the same. InputError where no result could be put there."""
        return False

    def can_resume(self, job: AnyJob) -> bool:
        return job.state in ("interrupted", "failed")

    def remove_unfinished(self, job: AnyJob) -> None:
        """Removes what only an unfinished job has, when it is discarded."""

    def thread_count(self, request: Any) -> int:
        return 1

    # --- what people ask for ------------------------------------------------------------------------------------------

    def add_job(self, make_request: Callable[[], dict[str, Any]]) -> AnyJob:
        """Queues a job and starts a worker if there is none, or returns the active job with the same request.

        `make_request` is called while nobody else can add a job. Raises InputError where it cannot make one, where the queue is
        full, and where the disk does not take it.
        """
        public.refuse_in_public(self.act)
        with open_table(self.folder, write=True) as table:
            plain = json.loads(json.dumps(make_request()))
            request = self.parse_request(plain)
            jobs = self.list_jobs()
            for job in jobs:
                if job.active and not job.stopping and job.plain == plain:
                    return job
            self._check_room(jobs)
            values = (self.kind, json.dumps(plain), self.thread_count(request))
            number = table.execute("INSERT INTO jobs (kind, request, threads) VALUES (?, ?, ?)", values).lastrowid
            over = [job for job in jobs if not job.active]
            expired_jobs = over[: -self.max_ended or None] if self.max_ended is not None else []
            table.executemany("DELETE FROM jobs WHERE id = ?", [(int(job.id),) for job in expired_jobs])
        for job in expired_jobs:
            with suppress(InputError, FileNotFoundError):
                files.remove_folder(job.path, self.folder)
        start_next(self.root)
        return self.get_job(f"{number:06}")

    def stop(self, job_id: str) -> None:
        """Takes a queued job from the queue; a running one ends, and what it has found so far stays."""
        public.refuse_in_public(self.act)
        job = self.get_job(job_id)
        with open_table(self.folder, write=True) as table:
            if table.execute("DELETE FROM jobs WHERE id = ? AND state = 'queued'", (int(job.id),)).rowcount == 0:
                table.execute("UPDATE jobs SET stopping = 1 WHERE id = ? AND state = 'running'", (int(job.id),))

    def resume(self, job_id: str) -> None:
        """Queues an interrupted or failed job once more; it goes on from what it has kept."""
        public.refuse_in_public(self.act)
        self._check_room(self.list_jobs())
        job = self.get_job(job_id)
        if not self.can_resume(job):
            raise InputError(f"the {self.noun} {job.id} is {job.state}; only an interrupted or failed one can be continued")
        with open_table(self.folder, write=True) as table:
            table.execute(
                "UPDATE jobs SET state = 'queued', stopping = 0, pid = NULL, begun = NULL, beat = NULL, ended = NULL, "
                "progress = '{}', reason = '' WHERE id = ?", (int(job.id),)
            )  # fmt: skip
        start_next(self.root)

    def discard(self, job_id: str) -> None:
        """Removes a job that is not running, and its folder. One that cannot be read is removed alone."""
        public.refuse_in_public("deletion")
        fault = next((fault for fault in self.list_unreadable() if fault.path.name == job_id), None)
        if fault is None:
            job = self.get_job(job_id)
            if job.state in ("running", "not responding"):
                raise InputError(f"the {self.noun} {job.id} is still running; stop it first")
            self.remove_unfinished(job)
        path = self.folder / job_id if fault is None else fault.path
        with open_table(self.folder, write=True) as table:
            table.execute("DELETE FROM jobs WHERE id = ?", (int(job_id),))
        if path.exists():
            files.remove_folder(path, self.folder)

    # --- what is there ------------------------------------------------------------------------------------------------

    def list_jobs(self) -> list[AnyJob]:
        """Every job that can be read, oldest first."""
        return [job for job in self._read_rows() if not isinstance(job, files.UnreadableFolder)]

    def list_unreadable(self) -> list[files.UnreadableFolder]:
        """The jobs that cannot be read, and why."""
        return [job for job in self._read_rows() if isinstance(job, files.UnreadableFolder)]

    def get_job(self, job_id: str) -> AnyJob:
        """Raises InputError if there is no such job: ids are looked up in the list, never made into paths."""
        for job in self.list_jobs():
            if job.id == job_id:
                return job
        raise InputError(f"there is no {self.noun} {job_id!r} any more")

    def latest_job(self, state: State | None = None, **fields: Any) -> AnyJob | None:
        """The last job in this state, or in any, whose request has these fields."""
        for job in reversed(self.list_jobs()):
            if state in (None, job.state) and all(job.plain.get(name) == value for name, value in fields.items()):
                return job
        return None

    def find_run(self, name: str) -> Run:
        """The run of a request: looked up in the list, never made into a path. Raises InputError."""
        run = next((run for run in list_runs(self.root) if run.name == name), None)
        if run is None:
            raise InputError(f"the run of this {self.noun} is not there any more")
        return run

    def _read_rows(self) -> Iterator[AnyJob | files.UnreadableFolder]:
        for row in read_rows(self.folder):
            if row["kind"] != self.kind:
                continue
            path = self.folder / f"{row['id']:06}"
            try:
                plain, request = _parse_request(self.parse_request, row["request"])
                done = self.has_result(request)
            except InputError as error:
                yield files.UnreadableFolder(path, str(error))
                continue
            state: State = "finished" if row["state"] == "interrupted" and done else row["state"]
            job: AnyJob = self.job_class(  # type: ignore[assignment]
                path.name, path, request, plain, state, bool(row["stopping"]), json.loads(row["progress"]),
                files.printable_text(row["reason"], 1_000), row["begun"], row["ended"],
            )  # fmt: skip
            yield job

    def _check_room(self, jobs: list[AnyJob]) -> None:
        if sum(job.state == "queued" for job in jobs) >= MAX_QUEUED:
            raise InputError(f"{MAX_QUEUED} {self.noun}s wait already, which is all that the queue holds; take one out, or wait")


class JobContext:
    """What the work of a job reaches the page with."""

    def __init__(self, job: Job[Any]) -> None:
        self.id, self.path = job.id, job.path
        self.path.mkdir(parents=True, exist_ok=True)
        self._stop = threading.Event()

    def report_step(self, done: int, total: int, text: str) -> None:
        """How far it is, for a bar; one line for the log."""
        self.print_line(f"{done}/{total} {text}")
        self.write_progress({"done": done, "of": total, "text": text})

    def write_progress(self, progress: dict[str, Any]) -> None:
        with suppress(InputError):  # a full disk is for the work to notice, when it writes its results
            update_job(self.path.parent, self.id, progress=json.dumps(progress))

    def is_stopping(self) -> bool:
        """Whether somebody asked it to stop, or removed it; the worker's heartbeat looks every half second."""
        return self._stop.is_set()

    def request_stop(self) -> None:
        self._stop.set()

    def print_line(self, line: str) -> None:
        with suppress(OSError):  # a full disk
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


# --- the table -----------------------------------------------------------------------------------------------------------


@contextmanager
def open_table(folder: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection for one transaction: all of it is kept, or none. Raises InputError for what the disk refuses."""
    with files.explain_write_errors(folder):
        try:
            _make_table(folder)
            table = sqlite3.connect(folder / "jobs.sqlite", timeout=10.0, isolation_level=None)
            try:
                table.row_factory = sqlite3.Row
                table.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield table
                table.execute("COMMIT")
            finally:
                table.close()  # what was not committed is rolled back
        except sqlite3.Error as error:
            raise InputError(f"the queue of jobs in {folder} cannot be written ({error})") from None


def _make_table(folder: Path) -> None:
    """Makes the file in another place and moves it here, so that nobody ever opens half a table."""
    if (folder / "jobs.sqlite").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "create.lock", timeout=10.0):
        if (folder / "jobs.sqlite").exists():
            return
        new_table = folder / ".new-jobs.sqlite"
        for path in folder.glob(f"{new_table.name}*"):  # of a process that was killed while it made one
            path.unlink()
        table = sqlite3.connect(new_table, isolation_level=None)
        try:
            table.execute("PRAGMA journal_mode = WAL")  # readers wait for nobody
            table.executescript(TABLES)
        finally:
            table.close()
        os.replace(new_table, folder / "jobs.sqlite")


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """All jobs, oldest first, with the state that they are in now."""
    rows = _select_rows(folder)
    if not any(row["state"] == "running" for row in rows):
        return rows
    if worker_alive(folder):
        for row in rows:
            if row["state"] == "running" and not -2 < time.time() - row["beat"] < STALE:
                row["state"] = "not responding"
        return rows
    # Nobody works. What is still running in a second look has lost its worker: one that ends says so before it frees the lock.
    begun = {row["id"]: row["begun"] for row in rows if row["state"] == "running"}
    rows = _select_rows(folder)
    for row in rows:
        if row["state"] == "running" and begun.get(row["id"]) == row["begun"]:
            row["state"] = "interrupted"
    return rows


def _select_rows(folder: Path) -> list[dict[str, Any]]:
    file = folder / "jobs.sqlite"
    if not file.exists():
        return []
    # A disk that is full or read-only takes no file beside the table, as readers need; then the table is read as it lies there.
    for options in ("mode=rw", "immutable=1"):
        with suppress(sqlite3.Error):
            table = sqlite3.connect(f"{file.as_uri()}?{options}", uri=True, timeout=10.0)
            try:
                table.row_factory = sqlite3.Row
                return [dict(row) for row in table.execute("SELECT * FROM jobs ORDER BY id")]
            finally:
                table.close()
    return []


def update_job(folder: Path, job_id: str, **columns: object) -> bool:
    """Changes a running job; False if it is not running any more. Raises InputError for what the disk refuses."""
    names = ", ".join(f"{name} = ?" for name in columns)
    with open_table(folder, write=True) as table:
        values = (*columns.values(), int(job_id))
        return table.execute(f"UPDATE jobs SET {names} WHERE id = ? AND state = 'running'", values).rowcount > 0


def begin_job(folder: Path, job_id: str) -> bool:
    """Takes a job from the queue; False if it is not queued any more. Whatever else is running has lost its worker: only the
    process that holds the lock may call this."""
    now = time.time()
    with open_table(folder, write=True) as table:
        table.execute("UPDATE jobs SET state = 'interrupted' WHERE state = 'running'")
        change = "UPDATE jobs SET state = 'running', pid = ?, begun = ?, beat = ? WHERE id = ? AND state = 'queued'"
        return table.execute(change, (os.getpid(), now, now, int(job_id))).rowcount > 0


def end_job(folder: Path, job_id: str, state: State, reason: str) -> None:
    """Says how a running job ended; the first word counts."""
    update_job(folder, job_id, state=state, reason=reason, ended=time.time())


@functools.lru_cache(maxsize=1024)
def _parse_request(read: Callable[[dict[str, Any]], Any], text: str) -> tuple[dict[str, Any], Any]:
    plain = json.loads(text)
    return plain, read(plain)


# --- the worker ----------------------------------------------------------------------------------------------------------


def worker_lock(folder: Path) -> FileLock:
    return FileLock(folder / "worker.lock", thread_local=False)


def worker_alive(folder: Path, patience: float = 0.0) -> bool:
    """Whether any process holds the lock, for as many seconds as `patience`. Asking holds it for an instant, so
    those who act on the answer are a little patient."""
    if not (folder / "worker.lock").exists():
        return False
    try:
        with worker_lock(folder).acquire(timeout=patience):
            return False
    except Timeout:
        return True
    except OSError:  # a disk that cannot be written: nobody works there
        return False


def start_next(root: Path) -> None:
    """Starts a worker for the oldest queued job, unless one works or is on its way. Raises InputError where the disk refuses.

    In public mode nothing is started: nobody who asked for it is here.
    """
    folder = root / "jobs"
    states = {row["state"] for row in read_rows(folder)}
    if public.is_public() or "queued" not in states or states & {"running", "not responding"} or worker_alive(folder, PATIENCE):
        return
    with open_table(folder, write=True) as table:
        waiting = table.execute("SELECT id, threads FROM jobs WHERE state = 'queued' ORDER BY id LIMIT 1").fetchone()
        started = table.execute("SELECT started FROM worker").fetchone()
        on_its_way = started is not None and -2 < time.time() - started[0] < STARTING  # later than now: the clock was set back
        # A worker removes its row when it has the lock, so one that came since the look above is seen here.
        if waiting is None or on_its_way or worker_alive(folder, PATIENCE):
            return
        table.execute("DELETE FROM worker")
        table.execute("INSERT INTO worker VALUES (?)", (time.time(),))
    start_worker(root, f"{waiting['id']:06}", waiting["threads"])


def start_worker(root: Path, job_id: str, threads: int) -> None:
    """A process in a session of its own, which an interrupt in the app's terminal does not reach.

    The number of threads must be set before anything is imported there.
    """
    package = str(Path(elastic_core.__file__).resolve().parents[1])
    paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
    with files.explain_write_errors(root), (root / "jobs" / "worker.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "elastic_core.jobs.worker", str(root), job_id],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, **dict.fromkeys(THREADS, str(threads)), "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
    threading.Thread(target=process.wait, daemon=True).start()  # so that no zombie is left while the app lives
