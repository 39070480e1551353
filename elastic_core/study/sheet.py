"""The answer of a study as one page of HTML that stands alone: no script, no font, no picture and no address from elsewhere."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from elastic_core import text

WIDTH, HEIGHT, LEFT, BELOW, TOP = 640, 300, 64, 46, 14
COLOURS = "#2563a8 #c2571a #3b7d3b #7a4fa3 #8a6d1d #5b6470 #b03070 #1f8a8a #9a4a2f #4b4bd0 #6d8a1f".split()
INK = "currentColor"
STYLE = """
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{line-height:1.2}h2{margin:2.4rem 0 .4rem}table{border-collapse:collapse;font-size:.86rem;margin:.8rem 0}
td,th{border-bottom:1px solid #8886;padding:.25rem .6rem;text-align:left;vertical-align:top}.scroll{overflow-x:auto}
.answer{border:1px solid;border-radius:.5rem;padding:0 .5rem;font-size:.9rem;font-weight:600;white-space:nowrap}
.yes{color:#2c7a3f}.no{color:#b3401f}.small{font-size:.86rem;opacity:.8}svg{max-width:100%;height:auto}
"""


def page(answer: dict[str, Any]) -> str:
    """HTML, UTF-8. Whatever comes from the data is text and does nothing."""
    body = "".join(map(_section_html, answer["sections"]))
    asked = [section for section in answer["sections"] if section["answer"]]
    short = "".join(
        f"<li><a href='#{section['key']}'>{_e(section['question'])}</a> {_badge(section['answer'])}</li>" for section in asked
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>{_e(answer['title'])}</title><style>{STYLE}</style></head><body><h1>{_e(answer['title'])}</h1>"
        f"<p>{_e(answer['headline'])}</p><ul>{short}</ul>{body}</body></html>\n"
    )


def _section_html(section: dict[str, Any]) -> str:
    said = "".join(f"<p>{_e(sentence)}</p>" for sentence in section["sentences"])
    parts = "".join(_table(part) if part["kind"] == "table" else _chart(part) for part in section["parts"])
    badge = _badge(section["answer"]) if section["answer"] else ""
    return f"<section id='{section['key']}'><h2>{_e(section['question'])} {badge}</h2>{said}{parts}</section>"


def _badge(answer: str) -> str:
    return f"<span class='answer {answer if answer in ('yes', 'no') else ''}'>{_e(answer)}</span>"


def _table(table: dict[str, Any]) -> str:
    head = "".join(f"<th scope='col'>{_e(name)}</th>" for name in table["columns"])
    rows = "".join("<tr>" + "".join(f"<td>{_e(cell)}</td>" for cell in row) + "</tr>" for row in table["rows"])
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _chart(chart: dict[str, Any]) -> str:
    """Lines over even places, or points by a logarithm; with 95% intervals."""
    spots = chart["kind"] == "points"
    some: list[dict[str, Any]] = chart["points"] if spots else chart["series"]
    highs = [high for one in some for high in ([one["high"]] if spots else one["high"]) if math.isfinite(high)]
    if not some or not highs:
        return ""
    top = max(highs) * 1.05 or 1.0
    place = _log([one["x"] for one in some]) if spots else _even(len(chart["x"]))
    parts = [_axes(chart, top, place)]
    for at, one in enumerate(some):
        colour = COLOURS[at % len(COLOURS)]
        if spots:
            parts.append(_point(place(one["x"]), one, top, colour))
            parts.append(_word(LEFT + 8, HEIGHT - BELOW - 8 - 15 * at, one["name"], colour))
            continue
        where = " ".join(f"{place(i):.1f},{_y(y, top):.1f}" for i, y in enumerate(one["y"]))
        parts.append(f"<polyline points='{where}' fill='none' stroke='{colour}' stroke-width='2'/>")
        parts += [_point(place(i), {key: one[key][i] for key in ("y", "low", "high")}, top, colour) for i in range(len(one["y"]))]
        parts.append(_word(LEFT + 8, HEIGHT - BELOW - 8 - 15 * at, one["name"], colour))
    name = f"{chart['y_title']} by {chart['x_title']}, with 95% intervals over people; a table has the numbers"
    return f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{_e(name)}'>{''.join(parts)}</svg>"


def _axes(chart: dict[str, Any], top: float, place: Callable[[float], float]) -> str:
    right, floor = WIDTH - 10, HEIGHT - BELOW
    parts = [f"<path d='M{LEFT} {TOP}V{floor}H{right}' fill='none' stroke='currentColor' opacity='.5'/>"]
    parts += [_word(LEFT - 6, _y(part * top, top) + 4, f"{part * top:.3f}", INK, "end") for part in (0, 0.25, 0.5, 0.75, 1)]
    if chart["kind"] == "points":
        values = [one["x"] for one in chart["points"]]
        marks = [(place(value), f"{value:.2g}") for value in sorted({min(values), max(values)})]
    else:
        marks = [(place(i), name) for i, name in enumerate(chart["x"])]
    parts += [_word(x, floor + 17, name, INK, "middle") for x, name in marks]
    parts.append(_word((LEFT + right) / 2, HEIGHT - 6, chart["x_title"], INK, "middle"))
    return "".join([*parts, _word(LEFT + 4, 12, chart["y_title"], INK)])


def _point(x: float, one: dict[str, float], top: float, colour: str) -> str:
    dot = f"<circle cx='{x:.1f}' cy='{_y(one['y'], top):.1f}' r='4' fill='{colour}'/>"
    if not (math.isfinite(one["low"]) and math.isfinite(one["high"])):
        return dot
    return f"<path d='M{x:.1f} {_y(one['low'], top):.1f}V{_y(one['high'], top):.1f}' stroke='{colour}' stroke-width='1.5'/>{dot}"


def _y(value: float, top: float) -> float:
    return HEIGHT - BELOW - max(value, 0.0) / top * (HEIGHT - BELOW - TOP)


def _even(many: int) -> Callable[[float], float]:
    return lambda i: LEFT + (i + 0.5) * (WIDTH - 10 - LEFT) / max(many, 1)


def _log(values: Sequence[float]) -> Callable[[float], float]:
    """A logarithmic axis."""
    low, high = math.log(min(values)), math.log(max(values))
    return lambda value: LEFT + 24 + (math.log(value) - low) / max(high - low, 1e-9) * (WIDTH - LEFT - 60)


def _word(x: float, y: float, word: str, colour: str, anchor: str = "start") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' font-size='12' fill='{colour}' text-anchor='{anchor}'>{_e(word)}</text>"


def _e(word: object) -> str:
    return text.escape_html(word)
