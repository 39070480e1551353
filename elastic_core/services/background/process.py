"""Long work has a process of its own. It outlives the app, and what it has to say lies in small files beside it."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import elastic_core
from elastic_core import disk
from elastic_core.errors import InputError

MOST_BYTES, MOST_LOG = 2**18, 2**32  # of a file that is read whole, and of a log
AHEAD = 2.0  # seconds that a file's time may be ahead of the clock: file systems round
FORM, ID = "%Y%m%d-%H%M%S-%f", re.compile(r"\d{8}-\d{6}-\d{6}")  # of such a name
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def spawn(module: str, *arguments: Path | str, log: Path, threads: int = 1) -> None:
    """Runs a module of ours in a session of its own: an interrupt in the app's terminal does not reach it.

    How many threads it may have must be told before it imports anything. What it prints is added to `log`.
    """
    package = str(Path(elastic_core.__file__).resolve().parents[1])
    paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
    if log.is_symlink():
        log.unlink()  # what it says belongs here, and not where a link leads
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
            env={**os.environ, **dict.fromkeys(THREADS, str(threads)), "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
    threading.Thread(target=process.wait, daemon=True).start()  # so that no zombie is left while the app lives


class Hand(NamedTuple):
    """What the work of a job reaches the page with."""

    path: Path

    def tell(self, done: int, of: int, text: str) -> None:
        """How far it is, for a bar; one line for the log."""
        self.log(f"{done}/{of} {text}")
        self.say({"done": done, "of": of, "text": text})

    def say(self, progress: dict[str, Any]) -> None:
        if self.path.exists():
            with suppress(InputError, FileNotFoundError):  # a full disk is the work's to notice, when it keeps something
                disk.write_text(self.path / "progress.json", json.dumps(progress | {"time": round(time.time(), 1)}))

    def stop(self) -> bool:
        """Whether somebody asked it to stop, or took it away."""
        return (self.path / "stop").exists() or not self.path.exists()

    def log(self, line: str) -> None:
        with suppress(OSError):  # a full disk
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


def read_object(path: Path) -> dict[str, Any]:
    """The object in a small JSON file of a job; empty if there is none or it cannot be read."""
    try:
        return disk.read_object(path, MOST_BYTES, path.parent)
    except InputError:
        return {}


def tail(path: Path, lines: int) -> str:
    """The last lines of a log, of which no more than the end is read; nothing where there is none."""
    try:
        disk.regular(path, MOST_LOG, path.parent)
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - MOST_BYTES, 0))
            text = file.read(MOST_BYTES).decode("utf-8", errors="replace")
    except (InputError, OSError):
        return ""
    return "\n".join(disk.shown(line, 500) for line in text.splitlines()[-lines:])


def next_name(folder: Path) -> str:
    """A name for a new folder in a list that is in the order of its names: the time, and later than all that are there even if
    the clock was set back. A name of next year is none that a clock has given."""
    now = datetime.now(UTC).replace(tzinfo=None)
    latest, given = now + timedelta(days=366), now
    for path in disk.folders(folder, "[0-9]*"):
        with suppress(ValueError):
            found = datetime.strptime(path.name, FORM)
            given = max(given, found + timedelta(microseconds=1)) if found < latest else given
    return given.strftime(FORM)


def age(path: Path) -> float:
    """Seconds since the file was touched; without end if there is none, or if it was touched at a time that is still to come:
    then the clock was set back, and nobody has touched it since."""
    try:
        passed = time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")
    return passed if passed > -AHEAD else float("inf")
