"""The tour on paper: a page of HTML that prints, with the 4 × 4, the times and the names of the view it is taken from.

Pure: no streamlit."""

import re
from typing import NamedTuple

from elastic_core import text
from elastic_core.services.keys.search import Lesson
from elastic_core.services.person.inspect import Words
from pages.tour.steps import STEPS, Step

LAST = 8  # items of the person that are named
PAPER = 2  # the stop after which the 4 × 4 is filled in
STYLE = """
body { font: 11pt/1.4 Georgia, serif; max-width: 18cm; margin: 1cm auto; padding: 0 0.5cm; color: #000; background: #fff }
h1 { font-size: 16pt; margin: 0 } h2 { font-size: 12pt; margin: 0 0 1mm } p { margin: 1mm 0 }
section { break-inside: avoid; border-top: 0.5pt solid #999; padding: 3mm 0 }
.line { border-bottom: 0.5pt solid #999; height: 7mm }
.box { display: inline-block; width: 3.2mm; height: 3.2mm; border: 0.7pt solid #000;
       margin: 0 1.5mm 0 5mm; vertical-align: -0.4mm }
"""
GRID = """<style>
.on-paper { border-collapse: collapse; margin: 6px 0 }
.on-paper :is(td, th) { border: 1px solid #999; padding: 2px 8px; text-align: center; min-width: 4.5em; height: 2.2em }
.on-paper .won { font-weight: 700; outline: 2px solid currentColor }
.on-paper .idle { opacity: .5 }
</style>"""


class Sheet(NamedTuple):
    """What a worksheet takes from the view: whose history it is, when each stop has its turn, and the 4 × 4."""

    run: str
    person: int  # from 1
    last: tuple[str, ...]  # titles, oldest first
    minutes: tuple[str, ...]  # of every stop
    lesson: Lesson
    words: Words  # what the data calls its items


def html(sheet: Sheet) -> str:
    """Return the whole worksheet."""
    stops = "".join(_stop(number, step, sheet) for number, step in enumerate(STEPS, start=1))
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>ELASTIC: worksheet</title><style>{STYLE}</style>"
        f"<h1>How a recommender reads a long history</h1><p>Name: ______________________ &nbsp; Person: <b>{sheet.person}</b> "
        f"&nbsp; Run: <b>{text.html(sheet.run)}</b></p><p>The last items of this person: {text.html(', '.join(sheet.last))}.</p>"
        "<p>At every stop: read, and <b>bet before you look</b>. Then do what it asks, and write down what was measured and "
        f"why.</p>{stops}</html>"
    )


def grid(lesson: Lesson, solved: bool = False) -> str:
    """Return the 4 × 4 as a table: keys and empty boxes, or, `solved`, all scores, with sums that nobody needs in grey."""
    (rows, columns), keys = lesson.halves.tolist(), lesson.keys.sub_keys.tolist()
    found = {(pair.row, pair.column): pair for pair in lesson.candidates.fillna({"place": 0}).itertuples()}

    def head(half: int, at: int) -> str:
        score = f"<b>{_score((rows, columns)[half][at])}</b>" if solved else "score: ____"
        return f"<th>{('row', 'column')[half]} {at}<br>{_arrow(keys[half][at])}<br>{score}</th>"

    def cell(row: int, column: int) -> str:
        pair = found.get((row, column))
        won, needed = pair is not None and pair.place > 0, pair is not None and pair.can_win
        look = "won" if won else "" if needed else "idle"
        return (
            f"<td class='{look}'>{_score(round(_exact(rows[row]), 3) + round(_exact(columns[column]), 3))}</td>"
            if solved
            else "<td></td>"
        )

    top = "".join(head(1, column) for column in range(lesson.side))
    lines = "".join(
        f"<tr>{head(0, row)}{''.join(cell(row, column) for column in range(lesson.side))}</tr>" for row in range(lesson.side)
    )
    return f"{GRID}<table class='on-paper'><tr><th></th>{top}</tr>{lines}</table>"


def _on_paper(lesson: Lesson) -> str:
    first, second = (half.tolist() for half in lesson.query.reshape(2, -1))
    key, score = lesson.keys.sub_keys[0][0].tolist(), lesson.halves[0][0].item()
    sums = " + ".join(f"({_figure(a)}) × ({_figure(b)})" for a, b in zip(first, key, strict=True))
    return (
        f"<p><b>On paper.</b> The query has a row part {_arrow(first)} and a column part {_arrow(second)}. A score is a dot "
        f"product. For row 0 it is {sums} = {_score(score)}.</p>{grid(lesson)}"
        f"<p>1. Write down the eight scores. 2. Mark the best {lesson.k} rows and the best {lesson.k} columns. 3. Add row and "
        f"column scores, but only where a square can still be one of the best {lesson.k}. 4. Circle the best {lesson.k} squares."
        "</p><p>How many sums did you need? ______ How many would it be for all squares? ______</p>"
    )


def _stop(number: int, step: Step, sheet: Sheet) -> str:
    step = step.about(sheet.words)
    options = "".join(f"<span class='box'></span>{_plain(option)}" for option in step.options)
    paper = _on_paper(sheet.lesson) if number == PAPER else ""
    return (
        f"<section><h2>{number}. {_plain(step.title)} (minutes {sheet.minutes[number - 1]})</h2><p>{_plain(step.text)}</p>"
        f"<p><b>Bet.</b> {_plain(step.question)}</p><p>{options}</p>"
        f"<p><b>Do.</b> {_plain(step.task)} <b>Look at</b> {_plain(step.look)}</p>{paper}"
        "<p>Measured, and why:</p><div class='line'></div><div class='line'></div></section>"
    )


def _arrow(numbers: list[float]) -> str:
    return f"({', '.join(map(_figure, numbers))})"


def _figure(number: float) -> str:
    return f"{number:.2f}".replace("-", "−")


def _score(number: float) -> str:
    return f"{_exact(number):.3f}".replace("-", "−")


def _exact(number: float) -> float:
    """Return what it is on paper, without the last digits of a 32-bit number."""
    return round(number, 6)


def _plain(words: str) -> str:
    """Bold stays bold, everything else is text."""
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text.html(words))
