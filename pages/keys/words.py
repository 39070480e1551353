"""The short words of the page on product keys; its sentences are in words.md."""

from typing import Any

from pages.kit import prose

SAYS = prose.of(__file__)
TITLE = "How can a few comparisons find the best experts, exactly?"
TOY, OWN, MILLION = "4 × 4", "This person", "A million"
SURE = "Proofs"

PICTURE: dict[str, Any] = {
    "steps": "Steps of the search", "back": "Back", "next": "Next", "play": "Play", "pause": "Pause",
    "counts": "Work so far", "halves": "by halves", "each": "one by one",
    "dots": "dot products", "multiplications": "multiplications", "pairs": "pairs looked at",
    "short": "{n} short", "long": "{n} long",
    "agree": "Brute force, all {long} one by one, finds the same {k}. So far: **{agreed} of {tried}** searches.",
    "wrong": "Brute force finds others: only **{agreed} of {tried}** searches agree.",
    "query": "query", "half": ["q₁: rows", "q₂: columns"], "row": "row", "column": "column", "expert": "expert",
    "square": "row {row}, column {column}", "at_least": "row place {i} × column place {j} = {all} squares at least as good",
    "dials": ["Black: query. Thin: keys. All have length 1.", "Small angle: high score."],
    "vectors": "the experts’ vectors", "shares": "share",
    "sliders": ["Turn q₁", "Turn q₂", "How many, k"],
    "dot": "Row {row}: {sum}",
    "bet": "Your bet: click the best square.", "betted": "Your bet: {square}.",
    "placed": "Your square ({square}) took place **{place}** of {k}.", "lost": "Your square ({square}) is not among the "
    "best {k}.",
    "rule": "First is always the best row with the best column.",
    "alt": "Grid of {side} × {side} experts with row scores on the left and column scores above, at step {step}.",
}  # fmt: skip
