"""What people did, in an SQLite file: the last events of everybody, as the raw ids that came in.

States (following/stream.py) are not in the file: they follow from these events, and so do those of another model that takes the
place of today's. What a transaction has taken outlives a process that is killed, and a machine that loses its power.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from elastic_core import disk
from elastic_core.errors import InputError

VERSION = 1
TABLE = "CREATE TABLE events (person TEXT, n INTEGER, item TEXT, PRIMARY KEY (person, n)) WITHOUT ROWID"
TRIM = 64  # events of a person between two looks at what is too old


class KeptEvents(NamedTuple):
    """The last events of somebody: ids of items, oldest first; `total` counts also those that are no longer kept."""

    total: int
    items: list[str]


class Events:
    """The file, for one process at a time; without a path, memory. `keep`: so many events of everybody, at least."""

    def __init__(self, path: Path | None, keep: int) -> None:
        """Raises InputError for a file that is none of these, and where another process has it."""
        self.keep, self._lock = keep, None if path is None else FileLock(path.with_name(f".{path.name}.lock"), timeout=0)
        if path is not None and not path.parent.is_dir():
            raise InputError(f"there is no folder {path.parent} to keep events in")
        with disk.said(path or Path()):
            try:
                if self._lock is not None:
                    self._lock.acquire()
            except Timeout:
                raise InputError(f"another process serves with {path}; give each its own file") from None
        try:
            self._open(path)
        except sqlite3.Error as error:
            self.close()
            raise InputError(f"{path} cannot be used to keep events ({error})") from None
        except InputError:
            self.close()
            raise

    def _open(self, path: Path | None) -> None:
        self._base = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
        for words in ("journal_mode = WAL", "synchronous = FULL"):
            self._base.execute(f"PRAGMA {words}")
        (version,) = self._base.execute("PRAGMA user_version").fetchone()
        there = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version == 0 and not there:
            self._base.execute(TABLE)
            self._base.execute(f"PRAGMA user_version = {VERSION}")
        elif version != VERSION:
            raise InputError(f"{path} holds something else than events of people")

    def of(self, person: str) -> KeptEvents:
        """What is kept of somebody; nothing of a stranger."""
        rows = self._base.execute("SELECT n, item FROM events WHERE person = ? ORDER BY n DESC LIMIT ?", (person, self.keep))
        found = rows.fetchall()
        return KeptEvents(found[0][0] if found else 0, [item for _, item in reversed(found)])

    def add(self, rows: Iterable[tuple[str, int, str]]) -> None:
        """Takes all of these (person, number of the event from 1, item), or none: afterwards they are on the disk."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            added = list(rows)
            self._base.executemany("INSERT INTO events VALUES (?, ?, ?)", added)
            old = [(person, n - self.keep) for person, n, _ in added if n % TRIM == 0 and n > self.keep]
            self._base.executemany("DELETE FROM events WHERE person = ? AND n <= ?", old)
            self._base.execute("COMMIT")
        except BaseException:
            self._base.execute("ROLLBACK")
            raise

    def forget(self, person: str) -> bool:
        """Whether anything was kept of somebody; nothing is afterwards."""
        return self._base.execute("DELETE FROM events WHERE person = ?", (person,)).rowcount > 0

    def people(self) -> int:
        """Of how many people something is kept."""
        return int(self._base.execute("SELECT count(DISTINCT person) FROM events").fetchone()[0])

    def close(self) -> None:
        if hasattr(self, "_base"):
            self._base.close()
        if self._lock is not None:
            self._lock.release()
