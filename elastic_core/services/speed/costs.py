"""The operation calculator: floating-point operations and bytes of one history, formula by formula.

One forward pass that scores the next item: every row in all layers but the last, one row in the last (both systems get
that). A multiplication and its addition count as two operations; norms, softmaxes and what is done once per batch are left
out. The formulas are held against torch's own counter in tests/test_efficiency.py.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import pandas as pd

from elastic_core.bench.latency import ITEMS

CHUNK = 32  # of the causal form's prefix sums
FLOAT = 4  # bytes
LABELS = {
    "elastic": "ELASTIC",
    "elastic-two-way": "ELASTIC, reading both ways",
    "sasrec-fused": "SASRec",
    "sasrec-eager": "SASRec, storing N × N",
}


class Shape(NamedTuple):
    """The sizes that the formulas speak of."""

    n: int = 200
    d: int = 64
    k: int = 8
    side: int = 16  # √K
    layers: int = 2
    heads: int = 1
    local: int = 8
    stride: int = 8
    window: int = 64
    items: int = ITEMS


Cost = tuple[str, str, float, str]  # one term: in which stage, its formula, its value, and how it grows with N


def operations(system: str, shape: Shape) -> pd.DataFrame:
    """stage, formula, operations, growth with N; one row a stage."""
    makers: dict[str, Callable[[Shape], Iterator[Cost]]] = {
        "elastic": _causal,
        "elastic-two-way": _two_way,
        "sasrec-fused": _sasrec,
        "sasrec-eager": partial(_sasrec, pairs=1.0),
    }
    scoring = ("scoring", "2·V·d", 2 * shape.items * shape.d, "constant")
    return pd.DataFrame([*makers[system](shape), scoring], columns=["stage", "formula", "operations", "grows"])


def totals(shape: Shape) -> pd.DataFrame:
    """system, operations, and how many times the cheapest."""
    rows = [(LABELS[system], operations(system, shape)["operations"].sum()) for system in LABELS]
    table = pd.DataFrame(rows, columns=["system", "operations"])
    return table.assign(times=table["operations"] / table["operations"].min())


LENGTHS = tuple(2**i for i in range(5, 17))


def against_length(shape: Shape) -> pd.DataFrame:
    """system, label, length, operations, for the lengths of the calculator's chart."""
    rows = [
        (system, label, n, operations(system, shape._replace(n=n))["operations"].sum())
        for system, label in LABELS.items()
        for n in LENGTHS
    ]
    return pd.DataFrame(rows, columns=["system", "label", "length", "operations"])


def cost_sentence(shape: Shape) -> str:
    """Who needs how many operations at this length, in words."""
    table = totals(shape).set_index("system")["operations"]
    ours, fused, eager = (table[LABELS[name]] for name in ("elastic", "sasrec-fused", "sasrec-eager"))
    return (
        f"At N = {shape.n:,} ELASTIC needs {ours / 1e6:,.1f} million operations to score {shape.items:,} items. SASRec "
        f"needs {fused / ours:.1f} times as many, {LABELS['sasrec-eager']} {eager / ours:.1f} times."
    )


def _retrieval(s: Shape) -> Iterator[Cost]:
    rows, total, network = s.n, 0.0, "Σ 2·n·d² + 8·(n/s)·d² + 4·(n/s)·min(n/s, w)·d over levels n = N, N/s, …"
    while rows > 1:
        left = -(-rows // s.stride)
        total += 2 * left * s.stride * s.d**2
        if left > 1:
            total += 8 * left * s.d**2 + 4 * left * min(left, s.window) * s.d
        rows = left
    yield "query network", network, total, "linear"
    yield "product keys", "2·√K·d + 2·d²", 2 * s.side * s.d + 2 * s.d**2, "constant"


def _common(s: Shape) -> Iterator[Cost]:
    full = (s.layers - 1) * s.n + 1
    if s.local:
        yield "local convolution", "2·w·d per row", 2 * s.local * s.d * full, "linear"
    yield "feed-forward", "4·d² per row", 4 * s.d**2 * full, "linear"


def _causal(s: Shape) -> Iterator[Cost]:
    full, hkd = s.layers - 1, s.heads * s.k * s.d
    yield from _retrieval(s)
    yield "aggregation", "L·(2·N·H·k·d + 2·H·k·d²)", s.layers * (2 * s.n * hkd + 2 * hkd * s.d), "linear"
    row = 4 * s.heads * s.d**2 + 10 * hkd + 4 * min(CHUNK, s.n) * s.heads * (s.d + s.k)
    once = 4 * s.heads * s.d**2 + 8 * hkd + 2 * s.n * hkd
    formula = "(L − 1)·N·(4·H·d² + 10·H·k·d + 4·C·H·(d + k)) + 2·N·H·k·d + 4·H·d² + 8·H·k·d + 4·L·H·k·d², C = 32"
    yield "dispatch", formula, full * s.n * row + once + s.layers * 4 * hkd * s.d, "linear"
    yield from _common(s)


def _two_way(s: Shape) -> Iterator[Cost]:
    hkd = s.heads * s.k * s.d
    yield from _retrieval(s)
    own = 2 * hkd * s.d + 6 * s.k * s.d**2
    yield "aggregation", "L·(4·N·H·k·d + (2·H + 6)·k·d²)", s.layers * (4 * s.n * hkd + own), "linear"
    rows = (s.layers - 1) * s.n + 1
    yield "dispatch", "4·H·k·d per row + 4·L·H·k·d²", 4 * hkd * rows + s.layers * 4 * hkd * s.d, "linear"
    yield from _common(s._replace(local=0))


def _sasrec(s: Shape, pairs: float = 0.5) -> Iterator[Cost]:
    full = s.layers - 1
    yield "projections", "(L − 1)·8·N·d² + 4·N·d² + 4·d²", full * 8 * s.n * s.d**2 + 4 * s.n * s.d**2 + 4 * s.d**2, "linear"
    formula = f"(L − 1)·{'2' if pairs < 1 else '4'}·N²·d + 4·N·d"
    yield "attention", formula, full * pairs * 4 * s.n**2 * s.d + 4 * s.n * s.d, "quadratic"
    yield from _common(s._replace(local=0))


def memory(shape: Shape) -> pd.DataFrame:
    """what, formula, bytes: what grows with N while a history is read, what the memory holds, what is kept online."""
    s, c = shape, min(CHUNK, shape.n)
    rows = [
        ("SASRec eager: one score matrix", "4·H·N²", FLOAT * s.heads * s.n**2, "quadratic"),
        ("SASRec fused: queries, keys, values", "12·N·d", 3 * FLOAT * s.n * s.d, "linear"),
        (
            "ELASTIC causal: slot weights, chunk states and scores", "4·H·N·(2·k + k·d/C + 2·C)",
            FLOAT * s.heads * s.n * (2 * s.k + s.k * s.d / c + 2 * c), "linear",
        ),
        ("ELASTIC two-way: slot weights", "8·H·N·k", 2 * FLOAT * s.heads * s.n * s.k, "linear"),
        ("Experts and sub-keys (shared by everybody)", "4·(K·d + √K·d)", FLOAT * (s.side**2 + s.side) * s.d, "constant"),
        (
            "Kept per person, ELASTIC streaming", "4·(L·(H·k·(4·d + 1) + w·d) + k·d + 1)",
            FLOAT * (s.layers * (s.heads * s.k * (4 * s.d + 1) + s.local * s.d) + s.k * s.d + 1), "constant",
        ),
        (
            "of it the state proper; the rest follows from the interests", "4·L·(H·k·(d + 1) + w·d)",
            FLOAT * s.layers * (s.heads * s.k * (s.d + 1) + s.local * s.d), "constant",
        ),
        ("Kept per person, SASRec with keys and values", "8·L·N·d", 2 * FLOAT * s.layers * s.n * s.d, "linear"),
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["what", "formula", "bytes", "grows"])
