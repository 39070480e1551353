"""Several processes behind one address: visitors are spread and stay, one may fall over, and none outlives the command."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from crowd import family
from forked import free_port
from visitor import Visitor

from elastic_core.commands import main, serve_class

ROOT = Path(__file__).resolve().parents[2]
APP = """
import os
import streamlit as st
st.number_input("Process", value=os.getpid(), key="process")
st.button("Again", key="again")
"""
needs_proxy = pytest.mark.skipif(not serve_class.find_proxy(), reason="haproxy is not installed")


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.1)
    return holds()


def lives(process: int) -> bool:
    """Not ended, and no zombie that waits for being noticed."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A page that says which process it is, in two processes."""
    shutil.copytree(ROOT / "elastic_core", tmp_path / "elastic_core", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "app.py").write_text(APP)
    port = free_port()
    words = [sys.executable, "-m", "elastic_core", "serve-class", "--processes", "2", "--port", str(port)]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as running:
        started = [running.pid]
        try:
            assert running.stdout is not None and f"2 processes at http://localhost:{port};" in running.stdout.readline()
            started = family(running.pid)
            yield f"http://127.0.0.1:{port}", running
        finally:
            for process in started:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)


async def _visits(address: str) -> list[int]:
    """Six visitors; the process of each, the same at every act."""
    visitors, met = [Visitor(address) for _ in range(6)], []
    for visitor in visitors:
        await visitor.open()
        met.append(int(str(visitor.value("process")).removesuffix(".0")))
    for visitor, process in zip(visitors, met, strict=True):
        await visitor.press("again")
        assert visitor.value("process") == process
        await visitor.close()
    return met


def visits(address: str) -> list[int]:
    with ThreadPoolExecutor(1) as thread:  # a browser of other tests may have an event loop on this one
        return thread.submit(asyncio.run, _visits(address)).result()


@needs_proxy
@pytest.mark.slow
def test_visitors_are_spread_and_stay_and_no_process_is_left(served: tuple[str, subprocess.Popen[str]]) -> None:
    address, running = served
    met = visits(address)
    first, second = set(met)
    assert met.count(first) == met.count(second) == 3 and {first, second} < set(family(running.pid))
    time.sleep(serve_class.SHORT)
    os.kill(first, signal.SIGKILL)
    again = visits(address)
    assert first not in again and second in again, "who comes is served by the other, or by the one that took its place"
    started = family(running.pid)
    running.kill()
    assert within(20, lambda: not any(map(lives, started))), "kill -9 of the command ends all of it"


def test_what_it_cannot_do_it_says_in_one_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(serve_class, "find_proxy", lambda: "/bin/true")
        assert main(["serve-class", "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot be listened on" in capsys.readouterr().err
    assert main(["serve-class", "--processes", "0"]) == 2 and "must be 1 to" in capsys.readouterr().err
    monkeypatch.setattr(serve_class, "find_proxy", lambda: None)
    assert main(["serve-class"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "haproxy is not installed" in said
