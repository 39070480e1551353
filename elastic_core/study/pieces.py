"""What the sections of an answer are made of: words, tables and pictures of plain values."""

from collections.abc import Sequence
from typing import Any

from elastic_core.recipes import STUDIED
from elastic_core.results.statistics import wilson_interval
from elastic_core.results.systems import model_label
from elastic_core.runs.ranks import Interval
from elastic_core.study.verdicts import Found

Section = dict[str, Any]
UNKNOWN = "not known"


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
    low, high = wilson_interval(some / of, of)
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
