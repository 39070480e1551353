"""Classes: visitors with one code bet on the tour's questions together, and whoever has the key releases the answers.

Nobody is named and nothing is written down. The code follows from the key (SHA-256), so a class opens again by itself after the
server was restarted: only the bets are gone. All is bounded: strangers may make up codes.
"""

import hashlib
import re
import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

LETTERS = "ABCDEFGHJKLMNPQRTUVWXYZ234679"  # none that is read for another
LENGTH = 6
CLASSES, VISITORS = 64, 300  # of a server, of a class; beyond, the class that was silent longest goes, and newcomers only look on
SILENT = 6 * 3600.0  # seconds after which a class is over


@dataclass
class _Class:
    heard: float
    visitors: set[str] = field(default_factory=set)
    bets: dict[int, dict[str, int]] = field(default_factory=dict)  # stop → visitor → option
    released: set[int] = field(default_factory=set)
    stop: int = 0  # where the teacher is; 0: nowhere


def new_key() -> str:
    """A teacher's key: whoever has it holds the class."""
    return secrets.token_urlsafe(12)


def code(key: str) -> str:
    """The code of the class that a key holds: six letters or digits, the same on every server."""
    number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
    return "".join(LETTERS[number // len(LETTERS) ** place % len(LETTERS)] for place in range(LENGTH))


def is_code(text: str) -> bool:
    return re.fullmatch(f"[{LETTERS}]{{{LENGTH}}}", text) is not None


class Classes:
    """All classes of one server. May be asked by many sessions at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._classes: OrderedDict[str, _Class] = OrderedDict()

    def come(self, code: str, visitor: str) -> int:
        """Somebody is here; how many are."""
        with self._lock:
            found = self._of(code)
            if len(found.visitors) < VISITORS:
                found.visitors.add(visitor)
            return len(found.visitors)

    def bet(self, code: str, visitor: str, stop: int, option: int) -> None:
        """A visitor's bet on a stop's question; the last one counts, and none once the answer is out."""
        with self._lock:
            found = self._of(code)
            if visitor in found.visitors and stop not in found.released:
                found.bets.setdefault(stop, {})[visitor] = option

    def counts(self, code: str, stop: int, options: int) -> list[int]:
        """How many bet on each option, `[options]`."""
        with self._lock:
            bets = list(self._of(code).bets.get(stop, {}).values())
            return [bets.count(option) for option in range(options)]

    def release(self, key: str, stop: int, out: bool = True) -> None:
        """Show the answer of a stop to the class that this key holds; with `out=False`, hide it again."""
        with self._lock:
            found = self._of(code(key))
            (found.released.add if out else found.released.discard)(stop)

    def released(self, code: str, stop: int) -> bool:
        with self._lock:
            return stop in self._of(code).released

    def lead(self, key: str, stop: int) -> None:
        """The teacher is at this stop now."""
        with self._lock:
            self._of(code(key)).stop = stop

    def leads(self, code: str) -> int:
        """The stop at which the teacher is; 0 if nowhere."""
        with self._lock:
            return self._of(code).stop

    def __len__(self) -> int:
        return len(self._classes)

    def _of(self, code: str) -> _Class:
        """The class of a code, new if it is not known. The lock is held."""
        now = time.monotonic()
        found = self._classes.get(code)
        if found is None or now - found.heard > SILENT:
            found = self._classes[code] = _Class(now)
        found.heard = now
        self._classes.move_to_end(code)
        while len(self._classes) > CLASSES:
            self._classes.popitem(last=False)
        return found
