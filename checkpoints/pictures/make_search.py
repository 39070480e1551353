"""The moving picture of the README: how product keys find the best 2 of 4 × 4 experts. Writes search.svg beside itself.

    python checkpoints/pictures/make_search.py

Four row scores and four column scores stand for the two halves of a query against the sub-keys. The score of an expert is the sum
of its row and its column (Eq. 6 and 7 of the paper), so the best two lie where the best two rows cross the best two columns. What
is marked is what the search of `elastic_core` finds; the script draws nothing if all 16 sums say otherwise.
"""

from collections.abc import Iterator
from pathlib import Path

import torch

from elastic_core.core.elastic import search_exhaustively, top_pairs

ROWS, COLUMNS, K = (0.9, 0.2, 0.6, 0.1), (0.3, 0.8, 0.1, 0.4), 2
SECONDS = 14
STEPS = (  # when each begins, in percent of a round, and its sentence
    (0, "The query is scored against 4 rows and 4 columns, not against 16 experts."),
    (24, "Keep the best 2 rows and the best 2 columns."),
    (44, "Pair them: only 4 of the 16 sums can be among the best 2."),
    (64, "The best 2 of these 4 are the best 2 of all 16, always."),
)
CELL, LEFT, TOP, WIDTH = 64, 190, 78, 640
HEIGHT = TOP + 4 * CELL + 60
STYLE = """
text { font: 16px system-ui, sans-serif; fill: #222; text-anchor: middle; dominant-baseline: central }
.name { font-size: 14px; fill: #555 } .half { fill: #eef1f5; stroke: #b8c0cc } .cell { fill: #fafbfc; stroke: #d5dae1 }
.kept { fill: #cfe3fb; stroke: #2f6fb5; stroke-width: 2 } .pair { fill: #fff3cf; stroke: #c99700; stroke-width: 2 }
.win { fill: #bfe8c5; stroke: #22863a; stroke-width: 3 }
@media (prefers-reduced-motion: reduce) { g { animation: none !important } .passing { opacity: 0 } }
"""


def find_winners() -> set[int]:
    """The numbers (row · 4 + column) of the two experts that the search finds, after all 16 sums have agreed."""
    halves = torch.tensor([[ROWS, COLUMNS]])
    winners = set(top_pairs(halves, K).indices.flatten().tolist())
    if winners != set(search_exhaustively(halves, K).indices.flatten().tolist()):
        raise ValueError("the search missed one of the best")
    return winners


def draw_box(x: int, y: int, kind: str, text: str = "") -> str:
    words = f'<text x="{x + CELL // 2}" y="{y + CELL // 2}">{text}</text>' if text else ""
    return f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" rx="6" class="{kind}"/>{words}'


def draw_step(step: int, marks: str) -> str:
    """What appears with a step and stays; its sentence goes when the next one comes."""
    sentence = f'<text x="{WIDTH // 2}" y="{HEIGHT - 26}">{STEPS[step][1]}</text>'
    passing = "" if step == len(STEPS) - 1 else ' class="passing"'
    return f'<g style="animation: stay{step} {SECONDS}s infinite">{marks}</g>' + (
        f'<g{passing} style="animation: say{step} {SECONDS}s infinite">{sentence}</g>'
    )


def key_frames() -> Iterator[str]:
    """Marks fade in when their step begins; sentences also fade out when it ends."""
    for step, (begin, _) in enumerate(STEPS):
        end = STEPS[step + 1][0] if step + 1 < len(STEPS) else 100
        before = f"0%, {begin}% {{ opacity: 0 }} {begin + 3}%" if begin else "0%"
        after = f"{end}%, 100% {{ opacity: 0 }}" if end < 100 else ""
        yield f"@keyframes stay{step} {{ {before}, 100% {{ opacity: 1 }} }}"
        yield f"@keyframes say{step} {{ {before}, {end - 1}% {{ opacity: 1 }} {after} }}"


def draw() -> str:
    rows = sorted(range(4), key=lambda row: -ROWS[row])[:K]
    columns = sorted(range(4), key=lambda column: -COLUMNS[column])[:K]
    places = {row * 4 + column: (LEFT + column * CELL, TOP + row * CELL) for row in range(4) for column in range(4)}
    sums = {place: f"{ROWS[place // 4] + COLUMNS[place % 4]:.1f}" for place in places}
    side, above = LEFT - CELL - 12, TOP - CELL - 10
    grid = "".join(draw_box(*at, "cell") for at in places.values())
    halves = "".join(draw_box(side, TOP + row * CELL, "half", f"{score}") for row, score in enumerate(ROWS))
    halves += "".join(draw_box(LEFT + column * CELL, above, "half", f"{score}") for column, score in enumerate(COLUMNS))
    halves += f'<text class="name" x="{side - 56}" y="{TOP + 2 * CELL}">row scores</text>'
    halves += f'<text class="name" x="{LEFT + 4 * CELL + 74}" y="{above + CELL // 2}">column scores</text>'
    kept = "".join(draw_box(side, TOP + row * CELL, "kept", f"{ROWS[row]}") for row in rows)
    kept += "".join(draw_box(LEFT + column * CELL, above, "kept", f"{COLUMNS[column]}") for column in columns)
    pairs = "".join(draw_box(*places[row * 4 + column], "pair", sums[row * 4 + column]) for row in rows for column in columns)
    wins = "".join(draw_box(*places[place], "win", sums[place]) for place in sorted(find_winners()))
    steps = "".join(draw_step(step, marks) for step, marks in enumerate((halves, kept, pairs, wins)))
    title = "The best 2 of 4 × 4 experts are found from 4 row scores and 4 column scores"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">'
        f"<title>{title}</title><style>{STYLE}{' '.join(key_frames())}</style>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#fff"/>{grid}{steps}</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_name("search.svg").write_text(draw(), encoding="utf-8")
