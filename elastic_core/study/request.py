"""What is studied, and the clock that counts what a study has taken over all its processes."""

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
from elastic_core.study.plan import CLOCKS, SPLITS, Split

MAX_BYTES = 2**22


@dataclass(frozen=True)
class StudyRequest:
    """Which data are studied, in how many minutes, with events held out in which ways, and which systems may be trained."""

    data: DataConfig
    minutes: float
    splits: tuple[Split, ...] = SPLITS
    systems: tuple[str, ...] = tuple(STUDIED)
    clock: Literal["wall", "processor"] = "processor"  # of the minutes: a busy machine stretches no processor time

    def to_dict(self) -> dict[str, Any]:
        return dict(json.loads(json.dumps(asdict(self))))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "StudyRequest":
        """Raises InputError for anything that `to_dict` would not have written."""
        minutes, splits, systems, clock = (values.get(key) for key in ("minutes", "splits", "systems", "clock"))
        if not _all_known([clock], CLOCKS):
            raise InputError(f"a study counts its minutes by {' or '.join(CLOCKS)}")
        if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes <= 100_000:
            raise InputError("a study needs a number of minutes between 0 and 100,000")
        if not _all_known(splits, SPLITS):
            raise InputError(f"a study holds events out by {' or '.join(SPLITS)}")
        if not _all_known(systems, STUDIED):
            raise InputError(f"a study trains some of {', '.join(STUDIED)}")
        if not isinstance(values.get("data"), dict):
            raise InputError("a study needs to be told its data")
        in_order: tuple[Split, ...] = tuple(split for split in SPLITS if split in (splits or ()))
        trained = tuple(label for label in STUDIED if label in (systems or ()))
        return cls(
            DataConfig.from_dict(values["data"]), float(minutes), in_order, trained, "wall" if clock == "wall" else "processor"
        )

    @property
    def name(self) -> str:
        """The name of its folder: the same whatever the minutes."""
        identity = json.dumps({**self.to_dict(), "minutes": 0}, sort_keys=True)
        source = re.sub(r"[^a-z0-9]+", "-", Path(self.data.source).name.lower().split(".")[0]).strip("-")[:30]
        return f"{source or 'data'}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def _all_known(words: Any, known: Collection[str]) -> bool:
    return isinstance(words, list) and bool(words) and all(isinstance(word, str) and word in known for word in words)


class StudyClock:
    """Seconds that a study has taken, written every second: a kill loses one at most."""

    def __init__(self, file: Path, kind: str = "wall") -> None:
        self.file, self.earlier, self.now = file, 0.0, CLOCKS[kind]
        self.began = self.now()
        with suppress(InputError):
            seconds = files.read_object(file, MAX_BYTES, file.parent).get("seconds")
            self.earlier = seconds if isinstance(seconds, float) and 0 <= seconds < 1e9 else 0.0

    @property
    def seconds(self) -> float:
        return self.earlier + self.now() - self.began

    def write(self) -> None:
        with suppress(InputError, FileNotFoundError):
            files.write_text(self.file, json.dumps({"seconds": float(round(self.seconds, 2))}))

    @contextmanager
    def running(self) -> Iterator[None]:
        over = threading.Event()

        def beat() -> None:
            while not over.wait(1.0):
                self.write()

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.write()
