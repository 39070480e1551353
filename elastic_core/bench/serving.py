"""What a service costs (`serve-model`): it runs in a process of its own on one thread, and is asked from this one.

`history`: a list after a history, as long as a person's of the data. `person`: an event of a person and a list after it; people
are followed. `people` ask at the same time, one connection each; so many requests may be answered `together`. `rate`, `seconds`
and `p99` are by the clock, with whatever else the machine does, this process too; `processor` is what the service itself used for
a request, so that `capacity`, 1 / `processor`, is what a core that is its own would answer in a second.
"""

import dataclasses
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from json import dumps, loads
from pathlib import Path

import numpy as np
from numpy.random import Generator

from elastic_core.bench.store import Row
from elastic_core.bench.timing import row_of
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.machine import CPU
from elastic_core.run_config import DataConfig

CROWDS = ((1, 64), (16, 1), (16, 64))  # people who ask at the same time, requests that may be answered together
BEGINS = 180.0  # seconds that a start may take
Ask = Callable[[Generator], tuple[str, dict[str, object]]]


def measure_crowds(run: Path, config: DataConfig, seconds: float, told: Callable[[str], None]) -> Iterator[Row]:
    """Yield rows of both parts, of one person who asks, and of many, each for themselves and together. Raises InputError where
    the service does not start."""
    data = load(config, told)
    ids = data.catalog.ids

    def history(rng: Generator) -> tuple[str, dict[str, object]]:
        items = data.histories.of(int(rng.integers(data.histories.n_users)))
        return "/recommend", {"history": [str(ids[item]) for item in items], "k": 10}

    def person(rng: Generator) -> tuple[str, dict[str, object]]:
        who = str(data.histories.user_ids[int(rng.integers(data.histories.n_users))])
        return "/events", {"user": who, "items": [str(ids[int(rng.integers(1, data.catalog.n_items + 1))])], "k": 10}

    for people, together in CROWDS:
        told(f"{people} at a time, at most {together} answered together")
        with tempfile.TemporaryDirectory() as folder, _serving(str(run), Path(folder), together) as (port, process):
            for part, ask in (("history", history), ("person", person)):
                _load(port, ask, people, min(seconds, 2.0))
                before = _processor(process.pid)
                took, clock = _load(port, ask, people, seconds)
                each = (_processor(process.pid) - before) / len(took)
                more = {"p99": np.quantile(took, 0.99), "rate": len(took) / clock, "capacity": 1 / max(each, 1e-9)}
                found = {name: round(float(x), 6) for name, x in more.items()}
                setting = {"part": part, "people": people, "together": together}
                row = row_of("serving", run.name, setting, [(one, each) for one in took], found, CPU)
                yield dataclasses.replace(row, where={**row.where, "threads": 1})


@contextmanager
def _serving(run: str, folder: Path, together: int) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = int(found.getsockname()[1])
    words = [
        "serve-model", run, "--port", str(port), "--rate", "0", "--together", str(together),
        "--states", str(folder / "people.sqlite"),
    ]  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "elastic_core", *words], stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + BEGINS
        while True:
            try:
                _request(HTTPConnection("127.0.0.1", port, timeout=5), "/ready", None)
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    process.kill()
                    said = process.communicate()[1].decode("utf-8", "replace").strip().splitlines()
                    raise InputError(f"the service does not start: {said[-1] if said else 'it says nothing'}") from None
                time.sleep(0.2)
        yield port, process
    finally:
        process.terminate()
        process.wait()


def _load(port: int, ask: Ask, people: int, seconds: float) -> tuple[list[float], float]:
    """Seconds of every request, and how long all took."""
    took, began = list[float](), time.perf_counter()

    def one(seed: int) -> None:
        rng, connection = np.random.default_rng(seed), HTTPConnection("127.0.0.1", port, timeout=60)
        while time.perf_counter() - began < seconds:
            path, body = ask(rng)
            start = time.perf_counter()
            found = _request(connection, path, body)
            if not found.get("items"):
                raise InputError(f"the service gave no list: {found}")
            took.append(time.perf_counter() - start)

    with ThreadPoolExecutor(people) as pool:
        list(pool.map(one, range(people)))  # raises what one of them raised
    return took, time.perf_counter() - began


def _request(connection: HTTPConnection, path: str, body: dict[str, object] | None) -> dict[str, object]:
    method = "GET" if body is None else "POST"
    connection.request(method, path, None if body is None else dumps(body), {"Content-Type": "application/json"})
    return dict(loads(connection.getresponse().read()))


def _processor(pid: int) -> float:
    """Seconds of the processor that a process has used. Raises InputError on a system that does not tell."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        raise InputError("this system does not tell what a process uses: the service is measured on Linux") from None
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def serving_table(rows: list[Row]) -> str:
    head = f"{'part':<9}{'run':<28}{'people':>7}{'together':>9}{'a second':>9}{'p50 ms':>8}{'p99 ms':>8}{'cpu ms':>8}"
    head += f"{'a core':>8}"
    lines = [
        f"{row.part:<9}{row.system:<28}{row.people:>7}{row.together:>9}{row.rate:>9.0f}{1e3 * row.seconds:>8.1f}"
        f"{1e3 * row.p99:>8.1f}{1e3 * row.processor:>8.2f}{row.capacity:>8.0f}  load {row.load:g}"
        for row in rows
    ]
    return "\n".join([head, *lines])
