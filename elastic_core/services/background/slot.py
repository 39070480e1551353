"""One training at a time: a file lock that the operating system frees when its holder ends, however it ends.

A process id can be reused and a pid file can be left behind by kill -9; a lock cannot.
"""

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout


class Slot:
    """`take` and `free` for the process that works, `held` for everybody who only wants to know.

    `note` is a file of the holder's: whoever sees that nobody has the slot removes it while nobody can, so that the note of one
    that was killed never passes for the next holder's.
    """

    def __init__(self, path: Path, note: Path | None = None) -> None:
        self.path, self.note = path, note
        self._lock = FileLock(path, thread_local=False)

    def take(self, patience: float = 0.0) -> bool:
        """True once this process has the slot; False if somebody else still has it after `patience` seconds."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=patience)
        except Timeout:
            return False
        return True

    def free(self) -> None:
        self._lock.release(force=True)

    @property
    def held(self) -> bool:
        """Does any process have it? Asking holds it for an instant, so takers should have a little patience."""
        if self._lock.is_locked or not self.path.exists():
            return self._lock.is_locked
        probe = Slot(self.path)
        try:
            if not probe.take():
                return True
        except OSError:  # a disk that cannot be written, or no lock at all: nobody works here
            return False
        with suppress(OSError):
            if self.note is not None:
                self.note.unlink(missing_ok=True)
        probe.free()
        return False

    def __enter__(self) -> Self:
        """Waits, if need be, for the short while that others hold it."""
        if not self.take(patience=10.0):
            raise TimeoutError(f"{self.path.name} stayed taken for ten seconds")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.free()
