"""One training at a time: a file lock that the operating system frees when its holder ends, however it ends.

A process id can be reused and a pid file can be left behind by kill -9; a lock cannot.
"""

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self


class Slot:
    """`take` and `free` for the process that works, `held` for everybody who only wants to know."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def take(self, patience: float = 0.0) -> bool:
        """True once this process has the slot; False if somebody else still has it after `patience` seconds."""
        deadline = time.monotonic() + patience
        while not self._try():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        return True

    def free(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def held(self) -> bool:
        """Does any process have it? Asking holds it for an instant, so takers should have a little patience."""
        if self._file is not None:
            return True
        if not self.path.exists():
            return False
        with self.path.open("r+b") as file:
            return not _lock(file, shared=True)

    def __enter__(self) -> Self:
        """Waits, if need be, for the short while that others hold it."""
        if not self.take(patience=10.0):
            raise TimeoutError(f"{self.path.name} stayed taken for ten seconds")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.free()

    def _try(self) -> bool:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("a+b")
        if _lock(file):
            self._file = file
            return True
        file.close()
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes], shared: bool = False) -> bool:
        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(file: IO[bytes], shared: bool = False) -> bool:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
