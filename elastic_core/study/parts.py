"""What the sections of an answer are made of: words, tables and charts of plain values."""

from collections.abc import Sequence
from typing import Any

from elastic_core.recipes import STUDIED
from elastic_core.results.compare import p_text
from elastic_core.results.statistics import wilson_interval
from elastic_core.results.systems import model_label
from elastic_core.runs.ranks import Interval
from elastic_core.study.questions import Finding

Section = dict[str, Any]
UNKNOWN, LEVEL = "not known", "level"


# --- words --------------------------------------------------------------------------------------------------------------


def system_name(label: str) -> str:
    """What a system is called in a study."""
    return STUDIED[label][2] if label in STUDIED else model_label(label)


def system_names(labels: Sequence[str]) -> str:
    return ", ".join(map(system_name, labels))


def answer_word(finding: Finding, yes: str, no: str, level: str = LEVEL) -> str:
    return {"yes": yes, "no": no, LEVEL: level, UNKNOWN: UNKNOWN}[finding.answer]


def numbers_text(finding: Finding) -> str:
    """Its numbers, of an unknown answer what would have been found, of a level one what can be ruled out."""
    if finding.answer == LEVEL:
        margin, p = finding.question.margin, p_text(finding.adjusted_large)
        return f"{finding.numbers}; a difference of {margin:.4f} or more can be ruled out, adjusted p {p}"
    return finding.numbers + (f"; {finding.why_unknown}" if finding.answer == UNKNOWN else "")


def combine_answers(answers: Sequence[str]) -> str:
    """One word for several answers."""
    known = set(answers) - {UNKNOWN}
    return UNKNOWN if not known else known.pop() if len(known) == 1 else "it depends"


def share_text(count: int, total: int) -> str:
    """`12.0% (95% 10.1% to 14.2%)`."""
    low, high = wilson_interval(count / total, total)
    return f"{count / total:.1%} (95% {max(float(low), 0.0):.1%} to {float(high):.1%})"


def percent_text(interval: Interval) -> str:
    return f"{interval.mean:.1%} (95% {interval.low:.1%} to {interval.high:.1%})"


def megabytes_text(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:.2f} MB"


# --- sections, tables and charts ------------------------------------------------------------------------------------------


def make_section(key: str, question: str, answer: str, sentences: Sequence[str], *parts: dict[str, Any] | None) -> Section:
    """`parts`: tables and charts, in the order in which they are shown."""
    present = [part for part in parts if part]
    return {"key": key, "question": question, "answer": answer, "sentences": list(sentences), "parts": present}


def make_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    return {"kind": "table", "columns": list(columns), "rows": [list(map(str, row)) for row in rows]}


def make_series(name: str, intervals: Sequence[Interval]) -> dict[str, Any]:
    fields = {"y": "mean", "low": "low", "high": "high"}
    return {"name": name, **{key: [float(getattr(one, of)) for one in intervals] for key, of in fields.items()}}


def make_lines(x_title: str, y_title: str, x: list[str], series: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": "lines", "x_title": x_title, "y_title": y_title, "x": x, "series": series}


def make_points(x_title: str, y_title: str, points: list[dict[str, Any]]) -> dict[str, Any]:
    """Each point with name, x, y, low and high."""
    return {"kind": "points", "x_title": x_title, "y_title": y_title, "points": points}
