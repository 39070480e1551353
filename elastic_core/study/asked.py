"""What a study is asked, and the clock that counts what it has taken over all its processes."""

import hashlib
import json
import re
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from elastic_core import files
from elastic_core.errors import InputError
from elastic_core.recipes import STUDIED
from elastic_core.run_config import DataConfig
from elastic_core.study.plan import NOW, WAYS, Way

MOST_BYTES = 2**22


@dataclass(frozen=True)
class StudyAsked:
    """What a study is asked: of these data, in so many minutes, held out in these ways."""

    data: DataConfig
    minutes: float
    ways: tuple[Way, ...] = WAYS
    labels: tuple[str, ...] = tuple(STUDIED)
    clock: Literal["wall", "processor"] = "processor"  # of the minutes: a busy machine stretches no processor time

    def plain(self) -> dict[str, Any]:
        return dict(json.loads(json.dumps(asdict(self))))

    @classmethod
    def read(cls, plain: dict[str, Any]) -> "StudyAsked":
        """Raises InputError for anything that `plain` would not have written."""
        given: dict[str, Any] = {"labels": list(STUDIED), "clock": "wall", "minutes": None, "ways": None} | plain
        minutes, ways, labels, clock = given["minutes"], given["ways"], given["labels"], given["clock"]
        if not _all_known([clock], NOW):
            raise InputError(f"a study counts its minutes by {' or '.join(NOW)}")
        if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes <= 100_000:
            raise InputError("a study needs a number of minutes between 0 and 100,000")
        if not _all_known(ways, WAYS):
            raise InputError(f"a study holds events out by {' or '.join(WAYS)}")
        if not _all_known(labels, STUDIED):
            raise InputError(f"a study trains some of {', '.join(STUDIED)}")
        if not isinstance(plain.get("data"), dict):
            raise InputError("a study needs to be told its data")
        held_out: tuple[Way, ...] = tuple(way for way in WAYS if way in ways)
        trained = tuple(label for label in STUDIED if label in labels)
        return cls(DataConfig.from_dict(plain["data"]), float(minutes), held_out, trained, clock)

    @property
    def name(self) -> str:
        """Of its folder: the same whatever the minutes."""
        known = json.dumps({**self.plain(), "minutes": 0}, sort_keys=True)
        word = re.sub(r"[^a-z0-9]+", "-", Path(self.data.source).name.lower().split(".")[0]).strip("-")[:30]
        return f"{word or 'data'}-{hashlib.sha256(known.encode()).hexdigest()[:8]}"


def _all_known(words: Any, known: Collection[str]) -> bool:
    return isinstance(words, list) and bool(words) and all(isinstance(word, str) and word in known for word in words)


class Clock:
    """Seconds that a study has taken, kept every second: a kill loses one at most."""

    def __init__(self, file: Path, kind: str = "wall") -> None:
        self.file, self.before, self.now = file, 0.0, NOW[kind]
        self.began = self.now()
        with suppress(InputError):
            found = files.read_object(file, MOST_BYTES, file.parent).get("seconds")
            self.before = found if isinstance(found, float) and 0 <= found < 1e9 else 0.0

    @property
    def seconds(self) -> float:
        return self.before + self.now() - self.began

    def keep(self) -> None:
        with suppress(InputError, FileNotFoundError):
            files.write_text(self.file, json.dumps({"seconds": float(round(self.seconds, 2))}))

    @contextmanager
    def running(self) -> Iterator[None]:
        over = threading.Event()

        def beat() -> None:
            while not over.wait(1.0):
                self.keep()

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.keep()
