"""A crowd in front of the app: a real server and many visitors at once, each with think time, over Streamlit's websocket.

  python tests/load/crowd.py --users 20 --seconds 180 --out checkpoints/benchmarks.csv
  python tests/load/crowd.py --users 30 --processes 2 --think 4 12          a class, the app behind its proxy
  python tests/load/crowd.py --users 1 --seconds 60 --app ../elsewhere      one visitor, another checkout

Printed is a line for each kind of act: seconds from sending until the script had finished, errors (tracebacks on the page,
lost connections, no answer). Written is the row of all acts together, with the server's processor time for each act (of all its
processes, since the first visitor came) and its memory: at the start,
after a third (median of the next sixth), at the end (of the last), and what it grew by in a minute between. Everything runs on
one machine: what else it does makes the visitors wait, but changes the processor time little.
"""

import argparse
import asyncio
import contextlib
import importlib
import os
import random
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import websockets
from visitor import Refused, Visitor

ROOT = Path(__file__).resolve().parents[2]
THINK = (1.0, 4.0)  # seconds between two acts
PAGES = {
    "": 4, "journey": 4, "experts": 4, "traffic": 2, "memory-map": 2, "product-keys": 1, "data": 1, "method": 1,
    "speed": 1, "train": 1, "evidence": 3,
}  # fmt: skip
# What a visitor can do besides going on: kind, key of the widget. Only what is on the screen is done.
ACTS = {
    "another person": ("user", 4), "surprise me": ("Surprise me", 2), "another expert": ("expert", 3), "another page": ("", 4),
    "start: remove the last": ("start_remove", 2), "start: silence an expert": ("start_silence", 2),
    "journey: remove the last": ("jrn_last", 3), "journey: undo": ("jrn_undo", 1), "journey: another moment": ("jrn_t", 2),
    "experts: another part": ("exp_part", 3), "traffic: closer look": ("trf_part", 2),
    "traffic: people or gate": ("trf_measure", 1), "map: another colour": ("map_colour", 2),
}  # fmt: skip


@dataclass
class Log:
    """What happened: seconds and errors by kind of act, the server's memory in MB by second."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, list[str]] = field(default_factory=dict)
    memory: list[tuple[float, float]] = field(default_factory=list)
    received: int = 0
    processor: float = 0.0  # seconds since the first came

    def add(self, kind: str, seconds: float) -> None:
        self.seconds.setdefault(kind, []).append(seconds)

    def fail(self, kind: str, error: Exception) -> None:
        self.errors.setdefault(kind, []).append(f"{type(error).__name__}: {error}")


async def act(visitor: Visitor, kind: str, chance: random.Random) -> float:
    """One act of this kind with a random value."""
    key = ACTS[kind][0]
    if kind == "another page":
        away = [path for path in PAGES if visitor.pages[path] != visitor.at]
        return await visitor.go(chance.choices(away, [PAGES[path] for path in away])[0])
    drawn = visitor.drawn(key)
    if hasattr(drawn, "is_form_submitter"):
        return await visitor.press(key)
    if hasattr(drawn, "click_mode"):
        return await visitor.set(key, [chance.choice([option.content for option in drawn.options])])
    if hasattr(drawn, "accept_new_options"):
        return await visitor.set(key, chance.choice(list(drawn.options)))
    value = float(chance.randint(int(drawn.min), int(drawn.max)))
    return await visitor.set(key, [value] if key == "jrn_t" else value)


async def visit(address: str, number: int, until: float, log: Log, think: tuple[float, float] = THINK) -> None:
    """Comes, looks around until the time is over, leaves. After an error the visit starts anew, as with F5."""
    chance, visitor, kind = random.Random(number), None, "open"
    while time.monotonic() < until:
        try:
            if visitor is None:
                kind, visitor = "open", Visitor(address)
                log.add(kind, await visitor.open())
            else:
                able = [name for name, (key, _) in ACTS.items() if not key or visitor.has(key)]
                kind = chance.choices(able, [ACTS[name][1] for name in able])[0]
                log.add(kind, await act(visitor, kind, chance))
        except (Refused, KeyError, OSError, TimeoutError, websockets.WebSocketException) as error:
            log.fail(kind, error)
            if visitor is not None and not isinstance(error, Refused):
                log.received += visitor.received
                await visitor.close()
                visitor = None
        await asyncio.sleep(chance.uniform(*think))
    if visitor is not None:
        log.received += visitor.received
        await visitor.close()


async def crowd(address: str, process: int, users: int, seconds: float, think: tuple[float, float] = THINK) -> Log:
    """`users` visitors, arriving within the first seconds."""
    log, began, before = Log(), time.monotonic(), processor(process)

    async def arrive(number: int) -> None:
        await asyncio.sleep(0.25 * number)
        await visit(address, number, began + seconds, log, think)

    async def watch() -> None:
        while True:
            log.memory.append((time.monotonic() - began, resident(process)))
            await asyncio.sleep(min(1.0, seconds / 24))

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(arrive(number) for number in range(users)))
    watching.cancel()
    log.processor = processor(process) - before
    return log


def resident(process: int) -> float:
    """Memory that a process and its children have taken, in MB; mapped files left out, which the system drops and reads again as
    it likes."""
    total = 0.0
    for one in family(process):
        with contextlib.suppress(OSError):
            found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{one}/status").read_text())
            total += int(found[1]) / 1024 if found else 0.0
    return total


def processor(process: int) -> float:
    """Seconds of processor time that a process and its children have had."""
    ticks = 0
    for one in family(process):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def family(process: int) -> list[int]:
    """A process and those that it started: with `serve`, the app's processes and the proxy."""
    try:
        return [process, *map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]
    except OSError:
        return [process]


@contextlib.contextmanager
def server(app: Path, log: Path, keep: int = 120, processes: int = 1) -> Iterator[tuple[str, int]]:
    """The app of a checkout on a free port: its address and process. Who has left is kept for so many seconds. With more than
    one, it is served by so many processes behind a proxy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true", "--server.port", str(port)]
    if processes > 1:
        words = [sys.executable, "-m", "elastic_core", "serve-class", "--processes", str(processes), "--port", str(port)]
    own = {**os.environ, "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": str(keep)}
    address = f"http://127.0.0.1:{port}"
    with log.open("wb") as out, subprocess.Popen(words, cwd=app, stdout=out, stderr=out, env=own) as running:
        try:
            until = time.monotonic() + 180
            while not _answers(address):
                if running.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(log.read_text())
                time.sleep(0.2)
            yield address, running.pid
        finally:
            running.terminate() if processes > 1 else running.kill()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def rows(log: Log, about: dict[str, str | int | float]) -> list[dict[str, str | int | float]]:
    """One row a kind of act, and one for all."""
    when, used = np.array(log.memory).T
    early, late = (when >= when[-1] / 3) & (when <= when[-1] / 2), when >= when[-1] * 5 / 6
    grown = (np.median(used[late]) - np.median(used[early])) / max((when[late].mean() - when[early].mean()) / 60, 1 / 60)
    kinds = dict(log.seconds)
    kinds["all"] = [seconds for held in log.seconds.values() for seconds in held]
    memory = {
        "processor": round(log.processor / max(len(kinds["all"]), 1), 3), "start_mb": round(used[0]),
        "warm_mb": round(float(np.median(used[early]))), "end_mb": round(float(np.median(used[late]))),
        "mb_per_minute": round(float(grown), 1),
    }  # fmt: skip
    errors = {**{kind: len(held) for kind, held in log.errors.items()}, "all": sum(map(len, log.errors.values()))}
    found = []
    for kind in sorted({*kinds, *errors}, key=lambda kind: (kind != "all", kind)):
        held = kinds.get(kind) or [float("nan")]
        times = {"p50": np.median(held), "p95": np.quantile(held, 0.95), "max": max(held)}
        found.append(
            {**about, "act": kind, "n": len(kinds.get(kind, [])), **{name: round(float(s), 3) for name, s in times.items()},
             "errors": errors.get(kind, 0), **memory}
        )  # fmt: skip
    return found


def about(app: Path, **act: int | float) -> dict[str, str | int | float]:
    """When, what code, where, how busy the machine was before, and the numbers of the act (users, seconds)."""
    words = ["git", "-C", str(app), "describe", "--always", "--dirty=+", "--abbrev=10"]
    commit = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    device = f"cpu ({os.uname().machine}, {os.cpu_count()} cores)"
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"), "commit": commit, "device": device,
        "load_average": round(os.getloadavg()[0], 1), **act,
    }  # fmt: skip


def write(path: Path, row: dict[str, str | int | float]) -> None:
    """Add a row of the app to a file of benchmark rows; one of the same crowd, code and machine is replaced."""
    sys.path[:0] = [str(ROOT)]
    table = importlib.import_module("elastic_core.bench.rows")  # not while it asks: this process is to stay small
    named = {COLUMNS.get(name, name): value for name, value in row.items() if name != "act"}
    table.write_rows(path, table.as_table([{"system": "app", "threads": 0, "rounds": 1, **named}]))


# How a row's columns are called in a file of benchmark rows.
COLUMNS = {"seconds": "duration", "n": "rounds", "p50": "seconds", "max": "longest"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--rest", type=float, default=0.0, help="seconds that the server is up before anybody comes")
    parser.add_argument("--processes", type=int, default=1, help="of the app; more than one stand behind a proxy")
    parser.add_argument("--think", type=float, nargs=2, default=THINK, metavar="SECONDS", help="least and most between two acts")
    parser.add_argument("--app", type=Path, default=ROOT, help="a checkout (default: this one)")
    parser.add_argument("--out", type=Path, default=ROOT / "checkpoints" / "local-benchmarks.csv")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="where the server's own words go")
    given = parser.parse_args()
    how = {"rest": given.rest, "processes": given.processes, "think": "{:g}-{:g}".format(*given.think)}
    before: dict[str, str | int | float] = {**about(given.app, users=given.users, seconds=given.seconds), **how}
    with server(given.app, given.log, processes=given.processes) as (address, process):
        time.sleep(given.rest)
        log = asyncio.run(crowd(address, process, given.users, given.seconds, tuple(given.think)))
    found = rows(log, before)
    write(given.out, {"bench": "crowd", **found[0]})
    for row in found:
        print(f"{row['act']:<28}{row['n']:>5}   p50 {row['p50']:>7.2f} s   p95 {row['p95']:>7.2f} s   max {row['max']:>7.2f} s"
              f"   errors {row['errors']}")  # fmt: skip
    print("processor: {processor} s for each act".format(**found[0]))
    print("memory: {start_mb} MB, {warm_mb} MB after a third, {end_mb} MB, {mb_per_minute:+} MB a minute".format(**found[0]))
    print("memory every 10 s:", " ".join(f"{used:.0f}" for _, used in log.memory[::10]))
    print(f"sent to the visitors: {log.received / 1e6:.0f} MB")
    for kind, errors in log.errors.items():
        for error in dict.fromkeys(errors):
            print(f"{kind}: {error}")
    return 1 if log.errors else 0


if __name__ == "__main__":
    sys.exit(main())
