"""Long work has a process of its own. It outlives the app, and what it has to say lies in small files beside it."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import elastic_core

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def spawn(module: str, *arguments: Path | str, log: Path, threads: int = 1) -> None:
    """Runs a module of ours in a session of its own: an interrupt in the app's terminal does not reach it.

    How many threads it may have must be told before it imports anything. What it prints is added to `log`.
    """
    package = str(Path(elastic_core.__file__).resolve().parents[1])
    paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
            env={**os.environ, **dict.fromkeys(THREADS, str(threads)), "PYTHONPATH": paths},
        )  # fmt: skip
    threading.Thread(target=process.wait, daemon=True).start()  # so that no zombie is left while the app lives


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if there is none or it cannot be read."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) else {}


def age(path: Path) -> float:
    """Seconds since the file was touched; without end if there is none."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")
