"""Classes: visitors with one code bet on the tour's questions together, and whoever has the key releases the answers.

Nobody is named. What is written down is a small SQLite file that all processes of a server share: codes, names that were made up
for a visit and then hashed, numbers of stops and options; the key is never in it. A class that was silent for six hours is gone
from it when the next one is heard of. The code follows from the key (SHA-256), so a class opens again by itself. All is bounded:
strangers may make up codes.
"""

import hashlib
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

LETTERS = "ABCDEFGHJKLMNPQRTUVWXYZ234679"  # none that is read for another
LENGTH = 6
CLASSES, VISITORS = 64, 300  # of a server, of a class; beyond, the class that was silent longest goes, and newcomers only look on
SILENT = 6 * 3600.0  # seconds after which a class is over
OFTEN = 60.0  # seconds between two notes that a class was heard of: thirty browsers that only look need not write
PATIENCE = 5.0  # seconds to wait for another process
TABLES = """
PRAGMA synchronous = OFF;
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS class (code TEXT PRIMARY KEY, heard REAL NOT NULL, stop INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS visitor (code TEXT, who BLOB, PRIMARY KEY (code, who)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS bet (code TEXT, stop INTEGER, who BLOB, option INTEGER, PRIMARY KEY (code, stop, who)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS released (code TEXT, stop INTEGER, PRIMARY KEY (code, stop)) WITHOUT ROWID;
"""
Answer = TypeVar("Answer")


def new_key() -> str:
    """A teacher's key: whoever has it holds the class."""
    return secrets.token_urlsafe(12)


def new_class_code(key: str) -> str:
    """The code of the class that a key holds: six letters or digits, the same on every server."""
    number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
    return "".join(LETTERS[number // len(LETTERS) ** place % len(LETTERS)] for place in range(LENGTH))


def is_code(text: str) -> bool:
    return re.fullmatch(f"[{LETTERS}]{{{LENGTH}}}", text) is not None


class Classes:
    """All classes of one server, in a file that its processes share. May be asked by many sessions at once.

    Without a file, or where the disk does not take it, they live in this process's memory: a lesson goes on, in one process.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._file = _open_file(file) if file is not None else None
        self._shared = self._file or _new_class(":memory:")

    def count_visitor(self, code: str, visitor: str) -> int:
        """Somebody is here; how many are."""

        def add_visitor(shared: sqlite3.Connection) -> int:
            count = _fetch_count(shared, "SELECT count(*) FROM visitor WHERE code = ?", code)
            if count < VISITORS and not _is_here(shared, code, visitor):
                shared.execute("INSERT INTO visitor VALUES (?, ?)", (code, _hash_visitor(visitor)))
                count += 1
            return count

        return self._ask(code, add_visitor)

    def place_bet(self, code: str, visitor: str, stop: int, option: int) -> None:
        """A visitor's bet on a stop's question; the last one counts, and none once the answer is out."""

        def write_bet(shared: sqlite3.Connection) -> None:
            if _is_here(shared, code, visitor) and not _is_out(shared, code, stop):
                same_bet = "SELECT count(*) FROM bet WHERE code = ? AND stop = ? AND who = ? AND option = ?"
                if not _fetch_count(shared, same_bet, code, stop, _hash_visitor(visitor), option):  # every rerun says it again
                    shared.execute("INSERT OR REPLACE INTO bet VALUES (?, ?, ?, ?)", (code, stop, _hash_visitor(visitor), option))

        self._ask(code, write_bet)

    def count_bets(self, code: str, stop: int, options: int) -> list[int]:
        """How many bet on each option, `[options]`."""
        words = "SELECT option, count(*) FROM bet WHERE code = ? AND stop = ? GROUP BY option"
        counts = self._ask(code, lambda shared: dict(shared.execute(words, (code, stop)).fetchall()))
        return [counts.get(option, 0) for option in range(options)]

    def release_answer(self, key: str, stop: int, out: bool = True) -> None:
        """Show the answer of a stop to the class that this key holds; with `out=False`, hide it again."""
        class_code = new_class_code(key)
        words = "INSERT OR IGNORE INTO released VALUES (?, ?)" if out else "DELETE FROM released WHERE code = ? AND stop = ?"
        self._ask(class_code, lambda shared: shared.execute(words, (class_code, stop)))

    def is_released(self, code: str, stop: int) -> bool:
        return self._ask(code, lambda shared: _is_out(shared, code, stop))

    def set_teacher_stop(self, key: str, stop: int) -> None:
        """The teacher is at this stop now."""
        class_code = new_class_code(key)
        self._ask(class_code, lambda shared: shared.execute("UPDATE class SET stop = ? WHERE code = ?", (stop, class_code)))

    def teacher_stop(self, code: str) -> int:
        """The stop at which the teacher is; 0 if nowhere."""
        return self._ask(code, lambda shared: _fetch_count(shared, "SELECT stop FROM class WHERE code = ?", code))

    def __len__(self) -> int:
        with self._lock:
            return _fetch_count(self._shared, "SELECT count(*) FROM class")

    def _ask(self, code: str, act: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """What `act` says of a class, which is new if it was not known; nobody else writes meanwhile."""
        with self._lock:
            try:
                return _note_and_act(self._shared, code, act)
            except sqlite3.Error:
                if self._file is None:
                    raise
                self._file, self._shared = None, _new_class(":memory:")
                return _note_and_act(self._shared, code, act)


def _note_and_act(shared: sqlite3.Connection, code: str, act: Callable[[sqlite3.Connection], Answer]) -> Answer:
    """What `act` says once it is noted that the class is alive, and those that are over or too many are let go."""
    with shared:
        shared.execute("BEGIN IMMEDIATE")
        heard, now = shared.execute("SELECT heard FROM class WHERE code = ?", (code,)).fetchone(), time.time()
        if heard is None or abs(now - heard[0]) >= OFTEN:  # a clock may be set back
            _forget_classes(shared, "abs(? - heard) > ?", now, SILENT)
            words = "INSERT INTO class (code, heard) VALUES (?, ?) ON CONFLICT (code) DO UPDATE SET heard = excluded.heard"
            shared.execute(words, (code, now))
            latest = "SELECT code FROM class WHERE code != ? ORDER BY heard DESC, rowid DESC LIMIT ?"
            _forget_classes(shared, f"code != ? AND code NOT IN ({latest})", code, code, CLASSES - 1)
        return act(shared)


def _forget_classes(shared: sqlite3.Connection, which: str, *values: str | float) -> None:
    """Lets go of classes with all that was said in them."""
    for (code,) in shared.execute(f"SELECT code FROM class WHERE {which}", values).fetchall():
        for table in ("visitor", "bet", "released", "class"):
            shared.execute(f"DELETE FROM {table} WHERE code = ?", (code,))


def _is_here(shared: sqlite3.Connection, code: str, visitor: str) -> bool:
    return bool(_fetch_count(shared, "SELECT count(*) FROM visitor WHERE code = ? AND who = ?", code, _hash_visitor(visitor)))


def _is_out(shared: sqlite3.Connection, code: str, stop: int) -> bool:
    return bool(_fetch_count(shared, "SELECT count(*) FROM released WHERE code = ? AND stop = ?", code, stop))


def _hash_visitor(visitor: str) -> bytes:
    return hashlib.sha256(visitor.encode()).digest()[:8]


def _fetch_count(shared: sqlite3.Connection, words: str, *values: str | int | bytes) -> int:
    row: tuple[int] = shared.execute(words, values).fetchone()
    return row[0]


def _open_file(file: Path) -> sqlite3.Connection | None:
    """The file of all processes; begun anew if it is none of ours, nothing where the disk does not take it."""
    for _ in range(2):
        with suppress(sqlite3.OperationalError, OSError):
            if file.is_symlink():  # what is written belongs here, and not where a link leads
                file.unlink()
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                return _new_class(str(file))
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                file.unlink()
    return None


def _new_class(place: str) -> sqlite3.Connection:
    shared = sqlite3.connect(place, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    shared.executescript(TABLES)
    _forget_classes(shared, "abs(? - heard) > ?", time.time(), SILENT)
    shared.execute("UPDATE class SET heard = heard WHERE 0")  # says now, and not in a lesson, that the disk takes nothing
    return shared
