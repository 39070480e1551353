"""What the sections of an answer are made of: numbers of a study's systems, and words, tables and pictures of plain values."""

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from elastic_core.core.evaluate import Interval
from elastic_core.evaluation.verdict import wilson
from elastic_core.labels import model_label
from elastic_core.recipes import STUDIED
from elastic_core.study.asking import METRIC
from elastic_core.study.plan import EPOCHS, Way
from elastic_core.study.verdicts import Found

if TYPE_CHECKING:
    from elastic_core.study.conduct import Study

Section = dict[str, Any]
UNKNOWN = "not known"


def values(study: "Study", way: Way, label: str, metric: str = METRIC) -> np.ndarray:
    """A metric of the test by training and person, [S, n]."""
    return np.stack([run.report().values(study.protocol, metric) for run in study.runs(way, label)])


def mean_of(study: "Study", way: Way, label: str) -> Interval:
    """A system's score over its trainings, with the interval over people."""
    return Interval.of(values(study, way, label).mean(0))


def best_first(study: "Study", way: Way) -> list[str]:
    """The finished systems, the best test first: the order of a table, and no choice of anything."""
    return sorted(study.systems(way), key=lambda label: -float(values(study, way, label).mean()))


def passes(study: "Study", way: Way, label: str) -> float:
    """Passes over the data, the mean over trainings; the last may be a part of one."""
    return statistics.fmean(len(run.events("epoch")) for run in study.runs(way, label))


def still_rising(study: "Study", way: Way, label: str) -> bool:
    """Whether a training that the clock ended was best in its last pass or the one before."""
    for run in study.runs(way, label):
        end, epochs = run.last("end") or {}, run.events("epoch")
        if "budget of" in str(end.get("reason")) and int(end.get("best_epoch") or 0) >= len(epochs) - 1:
            return True
    return False


def trained(study: "Study", way: Way, label: str) -> str:
    if label not in STUDIED:
        return "needs no training"
    many = passes(study, way, label)
    said = [f"{many:.0f} passes", *(["hardly trained"] if many < EPOCHS else [])]
    return ", ".join([*said, *(["still getting better"] if still_rising(study, way, label) else [])])


# --- words --------------------------------------------------------------------------------------------------------------


def name(label: str) -> str:
    """What a system is called in a study."""
    return STUDIED[label][2] if label in STUDIED else model_label(label)


def word(found: Found, yes: str, no: str) -> str:
    return {"yes": yes, "no": no, UNKNOWN: UNKNOWN}[found.answer]


def numbers_text(found: Found) -> str:
    """Its numbers, and of an unknown answer what would have been found."""
    return found.numbers + (f"; {found.missed}" if found.answer == UNKNOWN else "")


def together(answers: Sequence[str]) -> str:
    """One word for several answers."""
    known = set(answers) - {UNKNOWN}
    return UNKNOWN if not known else known.pop() if len(known) == 1 else "it depends"


def share(some: int, of: int) -> str:
    """`12.0% (95% 10.1% to 14.2%)` of so many people."""
    low, high = wilson(some / of, of)
    return f"{some / of:.1%} (95% {max(float(low), 0.0):.1%} to {float(high):.1%})"


def percent(one: Interval) -> str:
    return f"{one.mean:.1%} (95% {one.low:.1%} to {one.high:.1%})"


def megabytes(n: float) -> str:
    return f"{n / 1e6:.2f} MB"


def system_names(names: Sequence[str]) -> str:
    """Systems by their names."""
    return ", ".join(map(name, names))


# --- tables and pictures ------------------------------------------------------------------------------------------------


def section(
    key: str, question: str, result: str, sentences: Sequence[str], *parts: dict[str, Any] | None
) -> Section:  # fmt: skip
    """`parts`: tables and pictures, in the order in which they are shown."""
    return {"key": key, "question": question, "answer": result, "sentences": list(sentences), "parts": [x for x in parts if x]}


def table_part(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    return {"kind": "table", "columns": list(columns), "rows": [list(map(str, row)) for row in rows]}


def series(called: str, found: Sequence[Interval]) -> dict[str, Any]:
    parts = {"y": "mean", "low": "low", "high": "high"}
    return {"name": called, **{key: [float(getattr(one, of)) for one in found] for key, of in parts.items()}}


def lines_part(x_title: str, y_title: str, x: list[str], some: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": "lines", "x_title": x_title, "y_title": y_title, "x": x, "series": some}


def points(x_title: str, y_title: str, some: list[dict[str, Any]]) -> dict[str, Any]:
    """Each with name, x, y, low and high."""
    return {"kind": "points", "x_title": x_title, "y_title": y_title, "points": some}
