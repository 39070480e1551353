"""What was aimed at, row by row: each goal is read from stored rows, names its peer, and is reached, missed or not measured.

C8 and C9 are of a memory of millions (bank.py), C10 and C11 of kept states (events.py), C12 and C14 of large catalogues
(catalogue.py), C13 of steps of training (training.py).
C1 to C7 compare ELASTIC's two forms with SASRec: `E` writes attention out, `S` is fused, `S1` is fused and computes only the
last row of the last layer, as ELASTIC does. Both sides of a ratio come from the same machine, threads and code.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from elastic_core.bench import bank, catalogue, events, training
from elastic_core.bench.store import Row, figures, parse_setting, read_rows

# Files whose figures have names of their own, and who works them out.
FIGURES: dict[str, Callable[[Sequence[Row]], dict[str, float]]] = {
    "bank": bank.bank_figures,
    "streaming": events.streaming_goals,
    "catalogue": lambda rows: catalogue.c12(rows) | catalogue.c14(rows),
    "training": training.rates,
}
USUAL = parse_setting("direction=forward; width=64; k=16; heads=1; layers=2; dropout=0.0; compiled=; dtype=float32")


class Goal(NamedTuple):
    """A figure of the rows of `file`.csv and what it should be: at most (`≤`) or at least (`≥`) so much. It is one of the file's
    own `FIGURES`, or else a line of `store.figures` without its name, of passes that are as `USUAL` where they do not say."""

    file: str
    name: str
    what: str
    peer: str
    aim: str
    figure: str

    def value(self, rows: Sequence[Row]) -> float | None:
        """Work it out; None where the rows lack it."""
        if self.file in FIGURES:
            return FIGURES[self.file](rows).get(self.figure)
        return figures(rows, f"value | {self.figure}", **USUAL).get("value")

    def reached(self, value: float) -> bool:
        goal = float(self.aim[1:])
        return value <= goal if self.aim[0] == "≤" else value >= goal


def read_goals(file: str, table: str) -> list[Goal]:
    """Read a goal a line: name | what | peer | aim | figure."""
    lines = [line.split("|", 4) for line in table.strip().splitlines()]
    return [Goal(file, *(cell.strip() for cell in line)) for line in lines]


E, S, S1 = "system=sasrec-eager; rows=all", "system=sasrec-fused; rows=all", "system=sasrec-fused; rows=last"
TWO_WAY, CAUSAL = "system=elastic-two-way; rows=last", "system=elastic; rows=last"
BACK, N = "direction=forward+backward", "N = 1,024, k = 16"
OPS = f"{BACK}; rows=op; system=SDPA"
GPU = "length=1024; dtype=bfloat16; batch"
GOALS = [
    *read_goals("latency", f"""
        C1 | two-way, forward, {N} | E: SASRec eager | ≥ 18 | processor | {E}; length=1024 | {TWO_WAY}
        C1 | two-way, forward, {N} | S: SASRec fused | ≥ 4 | processor | {S}; length=1024 | {TWO_WAY}
        C1 | two-way, forward, {N} | S1: SASRec fused, last row | ≥ 2.5 | processor | {S1}; length=1024 | {TWO_WAY}
        C2 | two-way, forward, N = 256, k = 16 | E: SASRec eager | ≥ 3.5 | processor | {E}; length=256 | {TWO_WAY}
        C2 | two-way, forward, N = 256, k = 16 | S: SASRec fused | ≥ 2.3 | processor | {S}; length=256 | {TWO_WAY}
        C2 | two-way, forward, N = 256, k = 16 | S1: SASRec fused, last row | ≥ 1.5 | processor | {S1}; length=256 | {TWO_WAY}
        C3 | two-way, forward, N = 64, k = 8 | S1: SASRec fused, last row | ≥ 1 | processor | {S1}; length=64; k=8 | {TWO_WAY}
        C3 | causal, forward, N = 128, k = 8 | S1: SASRec fused, last row | ≥ 1 | processor | {S1}; length=128; k=8 | {CAUSAL}
        C3 | causal, forward, N = 256, k = 8 | S1: SASRec fused, last row | ≥ 1 | processor | {S1}; length=256; k=8 | {CAUSAL}
        C3 | causal, forward, N = 512, k = 8 | S1: SASRec fused, last row | ≥ 1 | processor | {S1}; length=512; k=8 | {CAUSAL}
        C3 | causal, forward, N = 1,024, k = 8 | S1: SASRec fused, last row | ≥ 1 | processor | {S1}; length=1024; k=8 | {CAUSAL}
        C4 | two-way, forward, N = 4,096, k = 16 | S1: SASRec fused, last row | ≥ 5 | processor | {S1}; length=4096 | {TWO_WAY}
        C4 | two-way, forward, N = 16,384, k = 16 | S1: SASRec fused, last row | ≥ 25 | processor | {S1}; length=16384 | {TWO_WAY}
        C5 | two-way, forward, time per event | itself: N = 65,536 over 1,024 | ≤ 1.3 | \
processor/batch/length | {TWO_WAY}; length=65536 | length=1024
        C5 | causal, forward, time per event | itself: N = 65,536 over 1,024 | ≤ 1.3 | \
processor/batch/length | {CAUSAL}; length=65536 | length=1024
        C6 | two-way, forward+backward, {N} | E: SASRec eager | ≥ 12 | processor | {E}; length=1024; {BACK} | {TWO_WAY}
        C6 | two-way, forward+backward, {N} | S: SASRec fused | ≥ 4 | processor | {S}; length=1024; {BACK} | {TWO_WAY}
        C6 | causal operation, forward+backward, {N} | SDPA's causal operation | ≥ 2.5 | \
processor | {OPS}; length=1024 | system=causal slots
        C6 | causal operation, forward+backward, N = 4,096, k = 16 | SDPA's causal operation | ≥ 7 | \
processor | {OPS}; length=4096 | system=causal slots
        C7 | two-way, last rows, bytes kept, N = 1,024 | S: SASRec fused | ≤ 0.75 | saved | {TWO_WAY}; length=1024; {BACK} | {S}
        C7 | two-way, all rows, bytes kept, N = 1,024 | S: SASRec fused | ≤ 0.75 | \
saved | system=elastic-two-way; rows=all; length=1024; {BACK} | {S}
        C7 | causal, all rows, bytes kept, N = 1,024 | S: SASRec fused | ≤ 0.75 | \
saved | system=elastic; rows=all; length=1024; {BACK} | {S}
        C7 | two-way, last rows, bytes kept, N = 1,024 | E, two heads, dropout | ≤ 0.1 | \
saved | {TWO_WAY}; length=1024; {BACK}; heads=2; dropout=0.1 | {E}
    """),
    *read_goals("bank", """
        C8 | a search of a million experts, microseconds | | ≤ 15 | search, us
        C8 | a search of 262,144 experts | flat search | ≥ 100 | flat search
        C8 | share of queries for which it is exact | flat search | ≥ 1 | exact
        C9 | a step of 4 million experts | itself: 262,144 experts | ≤ 1.5 | 4 million
        C9 | a step of a million experts | torch's SparseAdam | ≥ 2.5 | SparseAdam
        C9 | a step of a million experts | torch's fused dense Adam | ≥ 10 | fused Adam
        C9 | whole model, forward, a million experts | itself: 256 experts | ≤ 1.1 | forward
        C9 | whole model, training step, a million experts | itself: 256 experts | ≤ 1.25 | training
    """),
    *read_goals("streaming", """
        C10 | an event of 64 people after 1,024 | SASRec, keys and values kept | ≥ 5 | C10 SASRec / ELASTIC, T = 1024
        C10 | an event of 64 people after 4,096 | SASRec, keys and values kept | ≥ 20 | C10 SASRec / ELASTIC, T = 4096
        C10 | an event of 64 people after 65,536 | itself: 256 events | ≤ 1.05 | C10 ELASTIC, T = 65536 / T = 256
        C11 | an event of one person, microseconds | | ≤ 150 | C11 microseconds
        C11 | an event of one person after 1,024 | SASRec, keys and values kept | ≥ 1 | C11 SASRec / ELASTIC, T = 1024
    """),
    *read_goals("catalogue", """
        C12 | exact loss, 2.1 million items, memory | plain cross-entropy | ≤ 0.15 | memory
        C12 | exact loss, 2.1 million items, time | plain cross-entropy | ≤ 1.15 | time
        C12 | sampled loss, 2.1 million items | plain cross-entropy | ≥ 200 | sampled
        C14 | a step by rows, 2.1 million items | itself: 10,000 items, dense | ≤ 1.25 | over a small catalogue
    """),
    *read_goals("training", """
        C13 | SASRec, targets a second of training, one core | | ≥ 55_000 | sasrec all
        C13 | ELASTIC, the same, windows of 200 targets | | ≥ 40_000 | elastic window 200
        C13 | ELASTIC, the same, windows of 100 (the recipe's) | | ≥ 40_000 | elastic window 100
    """),
    *read_goals("gpu", f"""
        G1 | GPU, bfloat16, compiled, two-way, N = 1,024 | E: SASRec eager | ≥ 4 | \
seconds | {E}; {GPU}=256; compiled=reduce-overhead | {TWO_WAY}
        G1 | GPU, bfloat16, compiled, two-way, N = 1,024 | S: SASRec fused | ≥ 1.4 | \
seconds | {S}; {GPU}=256; compiled=reduce-overhead | {TWO_WAY}
        G8 | GPU, bfloat16, as it is, one person, N = 1,024 | S1: SASRec fused, last row | ≥ 0.33 | \
seconds | {S1}; {GPU}=1 | {TWO_WAY}
        G10 | GPU, bfloat16, memory of a training step, N = 1,024 | S: SASRec fused | ≤ 0.75 | \
peak | {TWO_WAY}; {GPU}=256; {BACK} | {S}
        G10 | GPU, bfloat16, memory of a training step, N = 1,024 | E: SASRec eager | ≤ 0.1 | \
peak | {TWO_WAY}; {GPU}=256; {BACK} | {E}
    """),
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
        lines.append(f"{goal.name:<5}{goal.what:<56}{goal.peer:<32}{said:>8}  {goal.aim[0]} {float(goal.aim[1:]):<5g} {verdict}")
    return "\n".join([*lines, "ratios of processor time, or of bytes; how many times more the peer takes, unless it says ≤"])
