"""Measures one plan and writes down every step as it is done."""

from pathlib import Path

import torch

from elastic_core.bench.events import measure_events, readers
from elastic_core.bench.latency import ROWS, measure
from elastic_core.bench.stages import measure_profile
from elastic_core.bench.store import Row, write_rows
from elastic_core.services.background.process import Hand
from elastic_core.services.speed.plan import Plan

CPU = torch.device("cpu")
SECONDS = 12.0  # at most, for the rounds of one setting
FORMS = ("elastic", "elastic-two-way")


def measure_plan(plan: Plan, path: Path, hand: Hand) -> None:
    """Write latency.csv, stages.csv and events.csv into the folder `path`; `hand` hears each step first."""
    found: dict[str, list[Row]] = {"latency": [], "stages": [], "events": []}
    harness, middle = {"rounds": plan.repeats, "warmup": 1, "seconds": SECONDS}, max(plan.lengths)

    def keep(bench: str, rows: list[Row]) -> None:
        found[bench] += rows
        write_rows(path / f"{bench}.csv", found[bench])

    def tell(words: str) -> None:
        hand.tell(done, plan.steps(), words)

    done = 0
    for length in plan.lengths:
        tell(f"All systems read {length:,} events")
        keep("latency", measure(plan.setting(length), CPU, plan.systems_at(length), rows=ROWS[:1], **harness))
        done += 1
    tell(f"The stages of ELASTIC at {middle:,} events")
    for system in FORMS:
        keep("stages", measure_profile([plan.setting(middle)], CPU, [system], **harness))
    done += 1
    for length in plan.lengths:
        tell(f"One new event after {length:,}")
        reading = tuple(name for name in readers() if name in plan.systems_at(length))
        keep("events", measure_events(plan.setting(length), CPU, reading, **harness))
        done += 1
    tell("Done")
