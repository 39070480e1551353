"""The events of users in an SQLite file: of everybody the last ones, as the raw item ids that came in.

Another model may take the place of today's: what it needs follows from these events. What a transaction has taken outlives a
process that is killed, and a machine that loses its power.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from elastic_core import files
from elastic_core.errors import InputError

VERSION = 1
TABLE = "CREATE TABLE events (person TEXT, n INTEGER, item TEXT, PRIMARY KEY (person, n)) WITHOUT ROWID"
TRIM = 64  # events of a user between two looks at what is too old


class Events:
    """The file, for one process at a time; without a path, memory. `keep`: so many last events of every user, at least."""

    def __init__(self, path: Path | None, keep: int) -> None:
        """Raises InputError for a file that is no such database, and where another process has it."""
        self.keep = keep
        self._lock = None if path is None else FileLock(path.with_name(f".{path.name}.lock"), timeout=files.LOCK_SECONDS)
        if path is not None and not path.parent.is_dir():
            raise InputError(f"there is no folder {path.parent} to keep events in")
        with files.explain_write_errors(path or Path()):
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
        self._database = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
        # Every committed transaction is on the disk, also if the power fails (FULL); readers wait for nobody (WAL).
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and not tables:
            self._database.execute(TABLE)
            self._database.execute(f"PRAGMA user_version = {VERSION}")
        elif version != VERSION:
            raise InputError(f"{path} holds something else than events of users")

    def count_events(self, user: str) -> int:
        """How many events there were of a user, those that are no longer kept among them."""
        (total,) = self._database.execute("SELECT max(n) FROM events WHERE person = ?", (user,)).fetchone()
        return int(total or 0)

    def last_items(self, user: str) -> list[str]:
        """The last `keep` items of a user, oldest first."""
        rows = self._database.execute(
            "SELECT item FROM events WHERE person = ? ORDER BY n DESC LIMIT ?", (user, self.keep)
        ).fetchall()
        return [item for (item,) in reversed(rows)]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is added inside is on the disk afterwards, or, where anything fails, none of it."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            self._database.execute("ROLLBACK")
            raise

    def add_items(self, user: str, total: int, items: Sequence[str]) -> None:
        """Adds items, oldest first, behind the `total` events that there were of a user. Inside of a transaction."""
        rows = [(user, number, item) for number, item in enumerate(items, start=total + 1)]
        self._database.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
        end = total + len(items)
        if end // TRIM > total // TRIM:
            self._database.execute("DELETE FROM events WHERE person = ? AND n <= ?", (user, end - self.keep))

    def forget_user(self, user: str) -> bool:
        """Removes the events of a user; whether there were any."""
        return self._database.execute("DELETE FROM events WHERE person = ?", (user,)).rowcount > 0

    def close(self) -> None:
        if hasattr(self, "_database"):
            self._database.close()
        if self._lock is not None:
            self._lock.release()
