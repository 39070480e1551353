"""What people start as a process, as a fork of one that has everything imported: milliseconds, not the seconds of its imports.

What is tested of the start itself needs a real one. And where either may listen."""

import os
import runpy
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


class Forked:
    """A call in a process and a session of its own; what it prints is kept apart. `children`: the fixture of this name."""

    def __init__(self, children: Any, body: Callable[..., object], *given: Any, folder: Path, **environment: str) -> None:
        ends = [children.Pipe(duplex=False) for _ in ("out", "err")]
        written = [writer for _, writer in ends]
        self.process = children.Process(target=_call, args=(body, given, str(folder), environment, written))
        self.process.start()
        for writer in written:
            writer.close()
        self.readers = ThreadPoolExecutor(len(ends))
        self.said = [self.readers.submit(_read, reader) for reader, _ in ends]

    def send_signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def ended(self, seconds: float = 240) -> tuple[int, str, str]:
        """Exit code, output and errors, when it has ended; it is killed when it does not."""
        self.process.join(seconds)
        self.process.kill()
        self.process.join()
        out, err = (said.result() for said in self.said)
        self.readers.shutdown()
        return self.process.exitcode, out, err


def command(*words: str) -> None:
    """`python -m elastic_core …`"""
    sys.argv = ["elastic_core", *words]
    runpy.run_module("elastic_core", run_name="__main__", alter_sys=True)


def _read(reader: Connection) -> str:
    with reader, os.fdopen(reader.fileno(), encoding="utf-8", closefd=False) as file:
        return file.read()


def _call(
    body: Callable[..., object], given: tuple[Any, ...], folder: str, environment: dict[str, str], written: list[Connection]
) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.update(environment)
    for number, writer in enumerate(written, 1):
        os.dup2(writer.fileno(), number)
        writer.close()
    sys.stdout, sys.stderr = (os.fdopen(number, "w", how, "utf-8", closefd=False) for number, how in ((1, -1), (2, 1)))
    body(*given)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
