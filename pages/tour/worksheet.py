"""The tour on paper: a page of HTML that prints, with the 4 × 4, the times and the names of the view it is taken from.

Pure: no streamlit."""

import re
from typing import NamedTuple

from elastic_core import text
from elastic_core.services.keys.search import Lesson
from elastic_core.services.person.inspect import ItemWords
from pages.tour.steps import FIRST_LESSON, STEPS, Step

LAST = 8  # items of the person that are named
PAPER = 2  # the stop after which the 4 × 4 is filled in
STYLE = """
body { font: 11pt/1.4 Georgia, serif; max-width: 18cm; margin: 1cm auto; padding: 0 0.5cm; color: #000; background: #fff }
h1 { font-size: 16pt; margin: 0 } h2 { font-size: 12pt; margin: 0 0 1mm } p { margin: 1mm 0 }
.next { break-before: page; padding-top: 5mm }
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


class Worksheet(NamedTuple):
    """What a worksheet takes from the view: whose history it is, when each stop has its turn, and the 4 × 4."""

    run: str
    user_number: int  # from 1
    last: tuple[str, ...]  # titles, oldest first
    minutes: tuple[str, ...]  # of every stop
    lesson: Lesson
    words: ItemWords  # what the data calls its items


def worksheet_html(worksheet: Worksheet) -> str:
    """Return the whole worksheet."""
    stops = [_stop_html(number, step, worksheet) for number, step in enumerate(STEPS, start=1)]
    first, second = "".join(stops[:FIRST_LESSON]), "".join(stops[FIRST_LESSON:])
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>ELASTIC: worksheet</title><style>{STYLE}</style>"
        "<h1>How a recommender reads a long history</h1><p>Name: ______________________ &nbsp; Person: "
        f"<b>{worksheet.user_number}</b> "
        f"&nbsp; Run: <b>{text.escape_html(worksheet.run)}</b></p><p>The last items of this person: "
        f"{text.escape_html('; '.join(worksheet.last))}.</p>"
        "<p>At every stop, read the text and <b>bet before you look</b>. Then do what it asks, and write down what was measured "
        f"and why.</p>{first}<h1 class='next'>Second lesson</h1>{second}</html>"
    )


def grid_html(lesson: Lesson, with_solution: bool = False) -> str:
    """Return the 4 × 4 as a table: keys and empty boxes, or, `with_solution`, all scores, with sums that nobody needs in grey."""
    (rows, columns), keys = lesson.halves.tolist(), lesson.keys.sub_keys.tolist()
    pairs = {(pair.row, pair.column): pair for pair in lesson.candidates.fillna({"place": 0}).itertuples()}

    def head(half: int, at: int) -> str:
        score = f"<b>{_format_score((rows, columns)[half][at])}</b>" if with_solution else "score: ____"
        return f"<th>{('row', 'column')[half]} {at}<br>{_format_vector(keys[half][at])}<br>{score}</th>"

    def cell(row: int, column: int) -> str:
        pair = pairs.get((row, column))
        won, needed = pair is not None and pair.place > 0, pair is not None and pair.can_win
        look = "won" if won else "" if needed else "idle"
        total = round(_round_float32(rows[row]), 3) + round(_round_float32(columns[column]), 3)
        return f"<td class='{look}'>{_format_score(total)}</td>" if with_solution else "<td></td>"

    top = "".join(head(1, column) for column in range(lesson.n_subkeys))
    lines = "".join(
        f"<tr>{head(0, row)}{''.join(cell(row, column) for column in range(lesson.n_subkeys))}</tr>"
        for row in range(lesson.n_subkeys)
    )
    return f"{GRID}<table class='on-paper'><tr><th></th>{top}</tr>{lines}</table>"


def _exercise_html(lesson: Lesson) -> str:
    first, second = (half.tolist() for half in lesson.query.reshape(2, -1))
    key, score = lesson.keys.sub_keys[0][0].tolist(), lesson.halves[0][0].item()
    sums = " + ".join(f"({_format_component(a)}) × ({_format_component(b)})" for a, b in zip(first, key, strict=True))
    return (
        f"<p><b>On paper.</b> The query has a row part {_format_vector(first)} and a column part "
        f"{_format_vector(second)}. A score is a dot "
        f"product. For row 0 it is {sums} = {_format_score(score)}.</p>{grid_html(lesson)}"
        f"<p>1. Write down the eight scores. 2. Mark the best {lesson.k} rows and the best {lesson.k} columns. 3. Add row and "
        f"column scores, but only where a square can still be one of the best {lesson.k}. 4. Circle the best {lesson.k} squares."
        "</p><p>How many sums did you need? ______ How many would all squares need? ______</p>"
    )


def _stop_html(number: int, step: Step, worksheet: Worksheet) -> str:
    step = step.with_item_words(worksheet.words)
    options = "".join(f"<span class='box'></span>{_escape_html(option)}" for option in step.options)
    paper = _exercise_html(worksheet.lesson) if number == PAPER else ""
    return (
        f"<section><h2>{number}. {_escape_html(step.title)} (minutes "
        f"{worksheet.minutes[number - 1]})</h2><p>{_escape_html(step.text)}</p>"
        f"<p><b>Bet.</b> {_escape_html(step.question)}</p><p>{options}</p>"
        f"<p><b>Do.</b> {_escape_html(step.task)} Look at {_escape_html(step.look)}</p>{paper}"
        "<p>What was measured, and why?</p><div class='line'></div><div class='line'></div></section>"
    )


def _format_vector(numbers: list[float]) -> str:
    return f"({', '.join(map(_format_component, numbers))})"


def _format_component(number: float) -> str:
    return f"{number:.2f}".replace("-", "−")


def _format_score(number: float) -> str:
    return f"{_round_float32(number):.3f}".replace("-", "−")


def _round_float32(number: float) -> float:
    """Return what it is on paper, without the last digits of a 32-bit number."""
    return round(number, 6)


def _escape_html(words: str) -> str:
    """Bold stays bold and italics italics, everything else is text."""
    bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text.escape_html(words))
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", bold)
