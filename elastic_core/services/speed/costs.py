"""What reading one history costs by formula, whatever the machine: operations, and bytes.

One forward pass that scores the next item: every row in all layers but the last, one row in the last (all systems get
that). A multiplication and its addition count as two operations; norms, softmaxes and what is done once per batch are left
out. tests/test_efficiency.py holds the formulas against torch's own counter, which cannot replace them: it does not see products
that are added in place, and counts causal attention as all N × N pairs.
"""

from dataclasses import dataclass

import pandas as pd

from elastic_core.bench.latency import ITEMS

CHUNK = 32  # events of the causal form's prefix sums
FLOAT = 4  # bytes
LABELS = {
    "elastic": "ELASTIC",
    "elastic-two-way": "ELASTIC, reading both ways",
    "sasrec-fused": "SASRec",
    "sasrec-eager": "SASRec, storing N × N",
}
TIMED_LABELS = LABELS | {"sasrec-folded": "SASRec, attention folded"}  # and of what is timed, but not calculated


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of a history and of the models that read it."""

    length: int = 200
    width: int = 64
    k: int = 8
    n_subkeys: int = 16
    layers: int = 2
    heads: int = 1
    conv_width: int = 8
    stride: int = 8
    window: int = 64
    items: int = ITEMS


def cost_table(sizes: Sizes) -> pd.DataFrame:
    """Return a row a system: operations, how many times the cheapest's, and bytes while reading and kept of one user."""
    rows = [
        {
            "system": label,
            "operations": count_operations(system, sizes),
            "reading": reading_bytes(system, sizes),
            "kept": kept_bytes(system, sizes),
        }
        for system, label in LABELS.items()
    ]
    table = pd.DataFrame(rows)
    table.insert(2, "times", table["operations"] / table["operations"].min())
    return table


def count_operations(system: str, sizes: Sizes) -> float:
    """Return the operations of one history, the scores of all items included."""
    scoring = 2.0 * sizes.items * sizes.width
    if system == "elastic":
        return scoring + _retrieval_costs(sizes) + _causal_dispatch(sizes) + _cost_rows(sizes, sizes.conv_width)
    if system == "elastic-two-way":
        return scoring + _retrieval_costs(sizes) + _two_way_dispatch(sizes) + _cost_rows(sizes, 0)
    pairs = 0.5 if system == "sasrec-fused" else 1.0  # a fused kernel skips the half that causal attention does not need
    return scoring + _attention_costs(sizes, pairs) + _cost_rows(sizes, 0)


def reading_bytes(system: str, sizes: Sizes) -> float:
    """Return the bytes that grow with the history while it is read."""
    n, d, k, chunk = sizes.length, sizes.width, sizes.k, min(CHUNK, sizes.length)
    numbers = {
        "elastic": sizes.heads * n * (2 * k + k * d / chunk + 2 * chunk),  # slot weights, states and scores of chunks
        "elastic-two-way": 2 * sizes.heads * n * k,  # slot weights there and back
        "sasrec-fused": 3 * n * d,  # queries, keys and values
        "sasrec-eager": sizes.heads * n**2,  # one matrix of scores
    }
    return float(FLOAT * numbers[system])


def kept_bytes(system: str, sizes: Sizes) -> float:
    """Return the bytes that are kept of one user between two events, so that one more event needs no second reading; NaN for
    the two-way form, which has to read again."""
    d, slots = sizes.width, sizes.heads * sizes.k
    if system == "elastic-two-way":
        return float("nan")
    if system == "elastic":  # per layer slots, their masses, what is asked of them and the convolution's window; interests
        return float(FLOAT * (sizes.layers * (slots * (4 * d + 1) + sizes.conv_width * d) + sizes.k * d + 1))
    return float(2 * FLOAT * sizes.layers * sizes.length * d)  # keys and values of every event


def _retrieval_costs(sizes: Sizes) -> float:
    """The query network, level by level, and the search by product keys."""
    d, rows, total = sizes.width, sizes.length, 0.0
    while rows > 1:
        groups = -(-rows // sizes.stride)
        total += 2 * groups * sizes.stride * d**2
        if groups > 1:
            total += 8 * groups * d**2 + 4 * groups * min(groups, sizes.window) * d
        rows = groups
    return total + 2 * sizes.n_subkeys * d + 2 * d**2


def _causal_dispatch(sizes: Sizes) -> float:
    """Aggregation and dispatch of every prefix by running sums, in chunks."""
    n, d, slots = sizes.length, sizes.width, sizes.heads * sizes.k * sizes.width
    chunk = min(CHUNK, n)
    aggregation = sizes.layers * (2 * n * slots + 2 * slots * d)
    row = 4 * sizes.heads * d**2 + 10 * slots + 4 * chunk * sizes.heads * (d + sizes.k)
    last_layer = 4 * sizes.heads * d**2 + 8 * slots + 2 * n * slots
    return aggregation + (sizes.layers - 1) * n * row + last_layer + sizes.layers * 4 * slots * d


def _two_way_dispatch(sizes: Sizes) -> float:
    n, d, slots = sizes.length, sizes.width, sizes.heads * sizes.k * sizes.width
    aggregation = sizes.layers * (4 * n * slots + 2 * slots * d + 6 * sizes.k * d**2)
    return aggregation + 4 * slots * _full_rows(sizes) + sizes.layers * 4 * slots * d


def _attention_costs(sizes: Sizes, pairs: float) -> float:
    n, d, full_layers = sizes.length, sizes.width, sizes.layers - 1
    projections = full_layers * 8 * n * d**2 + 4 * n * d**2 + 4 * d**2
    return projections + full_layers * pairs * 4 * n**2 * d + 4 * n * d


def _cost_rows(sizes: Sizes, conv_width: int) -> float:
    """What every row costs by itself: the local convolution and the feed-forward network."""
    return (2 * conv_width * sizes.width + 4 * sizes.width**2) * _full_rows(sizes)


def _full_rows(sizes: Sizes) -> int:
    return (sizes.layers - 1) * sizes.length + 1
