"""Studies in the background (background/queue.py); each has a folder, checkpoints/studies/<name>, and goes on there."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from elastic_core import disk
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig
from elastic_core.services.background.durations import about
from elastic_core.services.background.process import Hand
from elastic_core.services.background.queue import HEAVY, Queue, Task
from elastic_core.study.asked import MOST_BYTES, StudyAsked
from elastic_core.study.conduct import ANSWER, Study

FOLDER = "studies"


class Studies(Queue[Task[StudyAsked]]):
    """The studies below a checkpoints folder. One that is stopped ends at once, and goes on from its last whole step."""

    kind, noun, act, lane = "study", "study", "training", HEAVY

    @classmethod
    def read(cls, plain: dict[str, Any]) -> StudyAsked:
        return StudyAsked.read(plain)

    def work(self, task: Task[StudyAsked], hand: Hand) -> str:
        told = [""]

        def tell(done: float, of: float, text: str) -> None:
            if text.partition(",")[0] != told[0]:
                told[0] = text.partition(",")[0]
                hand.log(text)
            hand.say({"done": round(done), "of": max(round(of), 1), "text": f"{text} · {about(max(of - done, 0))} left"})

        Study(task.asked, self.path(task.asked), tell).conduct()
        return ""

    def done(self, asked: StudyAsked) -> bool:
        found = self.answer(asked)
        return found is not None and found["minutes"] == asked.minutes

    def again(self, task: Task[StudyAsked]) -> bool:
        return super().again(task) or task.state == "stopped"

    def path(self, asked: StudyAsked) -> Path:
        return self.root / FOLDER / asked.name

    def submit(self, data: DataConfig, minutes: float) -> Task[StudyAsked]:
        """Queues a study of these data, or lets the one that is there go on with so many minutes."""
        return self.ask(lambda: self.about(data, minutes).plain())

    def about(self, data: DataConfig, minutes: float) -> StudyAsked:
        """What is asked. Raises InputError for minutes that are none."""
        return StudyAsked.read(StudyAsked(data, minutes).plain())

    def of(self, data: DataConfig) -> Task[StudyAsked] | None:
        """The last study of these data, whatever its minutes."""
        name = StudyAsked(data, 1.0).name
        return next((job for job in reversed(self.all()) if job.asked.name == name), None)

    def answer(self, asked: StudyAsked) -> dict[str, Any] | None:
        """What a study has answered; None while it has not, and for a file that is none that a study writes."""
        with suppress(InputError, KeyError, TypeError, ValueError, AttributeError):
            plain = disk.read_object(self.path(asked) / ANSWER, MOST_BYTES, self.path(asked))
            if disk.is_number(plain["minutes"]) and disk.is_number(plain["seconds"]):
                texts = {name: str(plain[name]) for name in ("title", "headline", "data", "protocol")}
                sections = [_read_section(section) for section in plain["sections"]]
                return {**texts, "minutes": plain["minutes"], "seconds": plain["seconds"], "sections": sections}
        return None


def _read_section(plain: dict[str, Any]) -> dict[str, Any]:
    key = str(plain["key"])
    if not key.isidentifier() or not all(isinstance(sentence, str) for sentence in plain["sentences"]):
        raise ValueError("no section")
    parts = [_read_part(part) for part in plain["parts"]]
    texts = {name: str(plain[name]) for name in ("question", "answer")}
    return {"key": key, **texts, "sentences": list(plain["sentences"]), "parts": parts}


def _read_part(plain: dict[str, Any]) -> dict[str, Any]:
    """A table or a picture in its own form only. Raises ValueError, KeyError or TypeError."""
    if plain["kind"] == "table":
        columns, rows = list(map(str, plain["columns"])), [list(map(str, row)) for row in plain["rows"]]
        if any(len(row) != len(columns) for row in rows):
            raise ValueError("no table")
        return {"kind": "table", "columns": columns, "rows": rows}
    titles = {"kind": str(plain["kind"]), "x_title": str(plain["x_title"]), "y_title": str(plain["y_title"])}
    if plain["kind"] == "points":
        names = ("x", "y", "low", "high")
        return titles | {"points": [{"name": str(p["name"]), **{n: float(p[n]) for n in names}} for p in plain["points"]]}
    x = list(map(str, plain["x"]))
    series = [{"name": str(s["name"]), **{n: list(map(float, s[n])) for n in ("y", "low", "high")}} for s in plain["series"]]
    if titles["kind"] != "lines" or any(len(s[n]) != len(x) for s in series for n in ("y", "low", "high")):
        raise ValueError("no picture")
    return titles | {"x": x, "series": series}
