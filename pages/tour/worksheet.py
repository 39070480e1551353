"""The tour on paper: a page of HTML that prints. Pure: no streamlit."""

import re

from elastic_core import text
from pages.tour.steps import STEPS, Step

STYLE = """
body { font: 11pt/1.4 Georgia, serif; max-width: 18cm; margin: 1cm auto; padding: 0 0.5cm; color: #000; background: #fff }
h1 { font-size: 16pt; margin: 0 } h2 { font-size: 12pt; margin: 0 0 1mm } p { margin: 1mm 0 }
section { break-inside: avoid; border-top: 0.5pt solid #999; padding: 3mm 0 }
.line { border-bottom: 0.5pt solid #999; height: 7mm }
.box { display: inline-block; width: 3.2mm; height: 3.2mm; border: 0.7pt solid #000;
       margin: 0 1.5mm 0 5mm; vertical-align: -0.4mm }
"""


def html() -> str:
    """The whole worksheet."""
    stops = "".join(_stop(number, step) for number, step in enumerate(STEPS, start=1))
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>ELASTIC: worksheet</title><style>{STYLE}</style>"
        "<h1>How a recommender reads a long history</h1><p>Name: ______________________ &nbsp; Person: ________ &nbsp; Run: "
        "______________________</p><p>At every stop: read, do what it asks, <b>bet before you look</b>, then write down what was "
        f"measured and why you think so.</p>{stops}</html>"
    )


def _stop(number: int, step: Step) -> str:
    options = "".join(f"<span class='box'></span>{_plain(option)}" for option in step.options)
    return (
        f"<section><h2>{number}. {_plain(step.title)}</h2><p>{_plain(step.text)}</p><p><b>Look at</b> {_plain(step.look)}</p>"
        f"<p><b>Do.</b> {_plain(step.task)}</p><p><b>Bet.</b> {_plain(step.question)}</p><p>{options}</p>"
        "<p>Measured, and why:</p><div class='line'></div><div class='line'></div></section>"
    )


def _plain(words: str) -> str:
    """Bold stays bold, everything else is text."""
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text.html(words))
