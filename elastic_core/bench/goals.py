"""What was aimed at, row by row: each goal is read from stored rows, names its peer, and is reached, missed or not measured.

C8 and C9 are of a memory of millions (bank.py), C10 and C11 of kept states (events.py), C12 and C14 of large catalogues
(catalogue.py), C13 of steps of training (training.py).
C1 to C7 compare ELASTIC's two forms with SASRec: `E` writes attention out, `S` is fused, `S1` is fused and computes only the
last row of the last layer, as ELASTIC does. Both sides of a ratio come from the same machine, threads and code. Whoever measures
something else appends to `GOALS`.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from elastic_core.bench import bank, training
from elastic_core.bench.catalogue import c12, c14
from elastic_core.bench.events import streaming_goals
from elastic_core.bench.latency import BOTH, FORWARD, OP, OPS, SYSTEMS, smallest, yardsticks
from elastic_core.bench.store import Row, ratio, read_rows

OURS = ("two-way", "causal")


class Goal(NamedTuple):
    """One figure and what it should be. `value` is given the rows of `file`.csv; None where they lack it."""

    name: str
    what: str
    goal: float
    value: Callable[[Sequence[Row]], float | None]
    peer: str = ""
    most: bool = False  # whether the goal is the most it may be, or the least
    file: str = "latency"

    def reached(self, value: float) -> bool:
        return value <= self.goal if self.most else value >= self.goal


@cache
def contender(form: str) -> str:
    """Our system of this form (`two-way` or `causal`), by what its model says of itself."""
    measured_against = {system for system, _ in yardsticks().values()}
    ours = {smallest(name).causal: name for name in SYSTEMS if name not in measured_against}
    return ours[form == "causal"]


USUAL: dict[str, Any] = {
    "direction": FORWARD, "width": 64, "k": 16, "heads": 1, "layers": 2, "dropout": 0.0, "compiled": "", "dtype": "float32",
}  # fmt: skip


def over_peer(
    rows: Sequence[Row], form: str, peer: str, metric: str, which: str = "last", ours_above: bool = False, **where: Any
) -> float | None:
    """How many times ours the peer takes of a metric, or (`ours_above`) ours over the peer's."""
    system, of = yardsticks()[peer]
    ours, theirs = {"system": contender(form), "rows": which}, {"system": system, "rows": of}
    above, below = (ours, theirs) if ours_above else (theirs, ours)
    return ratio(rows, above, below, metric=metric, **{**USUAL, **where})


slower, longer = (partial(over_peer, metric=time) for time in ("processor", "seconds"))  # of a GPU the second alone tells
peak, saved = (partial(over_peer, metric=kept, ours_above=True, direction=BOTH) for kept in ("peak", "saved"))


def per_token(rows: Sequence[Row], form: str, long: int, short: int) -> float | None:
    """Processor time per event at one length over that at another."""
    one, other = ({"length": length} for length in (long, short))
    return ratio(rows, one, other, each=("batch", "length"), **USUAL, system=contender(form), rows="last")


def operation(rows: Sequence[Row], length: int) -> float | None:
    """How many times the processor time of the causal slots torch's fused attention takes, the operations alone."""
    ours, peer = ({"system": name, "rows": OP, "length": length} for name in OPS)
    return ratio(rows, peer, ours, **{**USUAL, "direction": BOTH})


def _over(
    name: str, what: str, goals: dict[str, float], value: Callable[..., float | None], most: bool = False, file: str = "latency",
    **where: Any,
) -> list[Goal]:  # fmt: skip
    """A goal a peer of `yardsticks`; `value` is told the peer, and where."""
    return [Goal(name, what, goal, partial(value, peer=peer, **where), PEERS[peer], most, file) for peer, goal in goals.items()]


def _slower(name: str, form: str, length: int, goals: dict[str, float], direction: str = FORWARD, k: int = 16) -> list[Goal]:
    what = f"{form}, {direction}, N = {length:,}, k = {k}"
    return _over(name, what, goals, slower, form=form, length=length, direction=direction, k=k)


def _figure(of: Callable[[Any], dict[str, float]], key: str, rows: Sequence[Row]) -> float | None:
    """One of the figures that a part of the bench makes of its rows."""
    return of(rows).get(key)


def _figures(file: str, of: Callable[[Any], dict[str, float]], table: str) -> list[Goal]:
    """A goal a line: name | what | figure | at most or at least | peer."""
    lines = [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]
    return [
        Goal(name, what, float(aim[1:]), partial(_figure, of, key), peer, aim[0] == "≤", file)
        for name, what, key, aim, peer in lines
    ]


PEERS = {"E": "E: SASRec eager", "S": "S: SASRec fused", "S1": "S1: SASRec fused, last row"}
NO_LOSS = {"S1": 1.0}
LONG: dict[str, Any] = {"length": 1_024}
GPU: dict[str, Any] = {**LONG, "form": "two-way", "dtype": "bfloat16"}  # 2^18 events a batch, or one person
DROPOUT: dict[str, Any] = {"heads": 2, "dropout": 0.1}
GOALS: list[Goal] = [
    *_slower("C1", "two-way", 1_024, {"E": 18, "S": 4, "S1": 2.5}),
    *_slower("C2", "two-way", 256, {"E": 3.5, "S": 2.3, "S1": 1.5}),
    *_slower("C3", "two-way", 64, NO_LOSS, k=8),
    *(goal for n in (128, 256, 512, 1_024) for goal in _slower("C3", "causal", n, NO_LOSS, k=8)),
    *_slower("C4", "two-way", 4_096, {"S1": 5}),
    *_slower("C4", "two-way", 16_384, {"S1": 25}),
    *(
        Goal(
            "C5", f"{form}, forward, time per event", 1.3, partial(per_token, form=form, long=65_536, short=1_024),
            "itself: N = 65,536 over 1,024", most=True,
        )
        for form in OURS
    ),
    *_slower("C6", "two-way", 1_024, {"E": 12, "S": 4}, BOTH),
    *(
        Goal("C6", f"causal operation, {BOTH}, N = {n:,}, k = 16", goal, partial(operation, length=n), "SDPA's causal operation")
        for n, goal in ((1_024, 2.5), (4_096, 7))
    ),
    *(
        goal
        for form, which in (("two-way", "last"), ("two-way", "all"), ("causal", "all"))
        for goal in _over(
            "C7", f"{form}, {which} rows, bytes kept, N = 1,024", {"S": 0.75}, saved, True, form=form, which=which, **LONG
        )
    ),
    Goal(
        "C7", "two-way, last rows, bytes kept, N = 1,024", 0.1, partial(saved, form="two-way", peer="E", **LONG, **DROPOUT),
        "E, two heads, dropout", most=True,
    ),
    *_figures("bank", bank.figures, """
        C8 | a search of a million experts, microseconds | search, us | ≤ 15 |
        C8 | a search of 262,144 experts | flat search | ≥ 100 | flat search
        C8 | share of queries for which it is exact | exact | ≥ 1 | flat search
        C9 | a step of 4 million experts | 4 million | ≤ 1.5 | itself: 262,144 experts
        C9 | a step of a million experts | SparseAdam | ≥ 2.5 | torch's SparseAdam
        C9 | a step of a million experts | fused Adam | ≥ 10 | torch's fused dense Adam
        C9 | whole model, forward, a million experts | forward | ≤ 1.1 | itself: 256 experts
        C9 | whole model, training step, a million experts | training | ≤ 1.25 | itself: 256 experts
    """),
    *_figures("streaming", streaming_goals, """
        C10 | an event of 64 people after 1,024 | C10 SASRec / ELASTIC, T = 1024 | ≥ 5 | SASRec, keys and values kept
        C10 | an event of 64 people after 4,096 | C10 SASRec / ELASTIC, T = 4096 | ≥ 20 | SASRec, keys and values kept
        C10 | an event of 64 people after 65,536 | C10 ELASTIC, T = 65536 / T = 256 | ≤ 1.05 | itself: 256 events
        C11 | an event of one person, microseconds | C11 microseconds | ≤ 150 |
        C11 | an event of one person after 1,024 | C11 SASRec / ELASTIC, T = 1024 | ≥ 1 | SASRec, keys and values kept
    """),
    *_figures("catalogue", lambda rows: c12(rows) | c14(rows), """
        C12 | exact loss, 2.1 million items, memory | memory | ≤ 0.15 | plain cross-entropy
        C12 | exact loss, 2.1 million items, time | time | ≤ 1.15 | plain cross-entropy
        C12 | sampled loss, 2.1 million items | sampled | ≥ 200 | plain cross-entropy
        C14 | a step by rows, 2.1 million items | over a small catalogue | ≤ 1.25 | itself: 10,000 items, dense
    """),
    *_figures("training", training.rates, """
        C13 | SASRec, targets a second of training, one core | sasrec all | ≥ 55_000 |
        C13 | ELASTIC, the same, windows of 200 targets | elastic window 200 | ≥ 40_000 |
        C13 | ELASTIC, the same, windows of 100 (the recipe's) | elastic window 100 | ≥ 40_000 |
    """),
    *_over(
        "G1", "GPU, bfloat16, compiled, two-way, N = 1,024", {"E": 4, "S": 1.4}, longer, file="gpu", compiled="reduce-overhead",
        batch=256, **GPU,
    ),
    *_over("G8", "GPU, bfloat16, as it is, one person, N = 1,024", {"S1": 0.33}, longer, file="gpu", batch=1, **GPU),
    *_over(
        "G10", "GPU, bfloat16, memory of a training step, N = 1,024", {"S": 0.75, "E": 0.1}, peak, True, "gpu", batch=256, **GPU
    ),
]  # fmt: skip


def goals_table(folder: Path, latency: str = "latency") -> str:
    """Every goal from the rows in this folder, those of the latency bench from that file: name, what, peer, value, goal, and
    whether it is reached."""
    read = {file: read_rows(folder / f"{latency if file == 'latency' else file}.csv") for file in {goal.file for goal in GOALS}}
    lines = [f"{'':<5}{'what':<56}{'against':<32}{'value':>8}  goal"]
    for goal in GOALS:
        value = goal.value(read[goal.file])
        said = f"{value:.2f}" if value is not None else "—"
        verdict = "not measured" if value is None else "reached" if goal.reached(value) else "missed"
        sign = "≤" if goal.most else "≥"
        lines.append(f"{goal.name:<5}{goal.what:<56}{goal.peer:<32}{said:>8}  {sign} {goal.goal:<5g} {verdict}")
    return "\n".join([*lines, "ratios of processor time, or of bytes; how many times more the peer takes, unless it says ≤"])
