"""What people start as a process, as a fork of one that has everything imported: milliseconds, not the seconds of its imports.

What is tested of the start itself needs a real one."""

import os
import runpy
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Forked:
    """A call in a process and a session of its own; what it prints is kept apart. `children`: the fixture of this name."""

    def __init__(self, children: Any, body: Callable[..., object], *given: Any, folder: Path, **environment: str) -> None:
        self.kept = tempfile.TemporaryDirectory()
        files = [str(Path(self.kept.name, name)) for name in ("out", "err")]
        self.process = children.Process(target=_call, args=(body, given, str(folder), environment, files))
        self.process.start()

    def send_signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def ended(self, seconds: float = 240) -> tuple[int, str, str]:
        """Exit code, output and errors, when it has ended; it is killed when it does not."""
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        out, err = (Path(self.kept.name, name).read_text() for name in ("out", "err"))
        self.kept.cleanup()
        return self.process.exitcode, out, err


def command(*words: str) -> None:
    """`python -m elastic_core …`"""
    sys.argv = ["elastic_core", *words]
    runpy.run_module("elastic_core", run_name="__main__", alter_sys=True)


def _call(
    body: Callable[..., object], given: tuple[Any, ...], folder: str, environment: dict[str, str], files: list[str]
) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.update(environment)
    for number, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False, buffering=1) for number in (1, 2))
    body(*given)
