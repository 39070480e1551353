"""Measures one plan and writes down every step as it is done."""

from pathlib import Path

import pandas as pd
import torch

from elastic_core.bench.events import measure_events, readers
from elastic_core.bench.latency import ROWS, Row, measure
from elastic_core.bench.stages import measure_stages
from elastic_core.bench.store import write_rows
from elastic_core.bench.timing import Timing
from elastic_core.disk import write_text
from elastic_core.machine import here
from elastic_core.services.background.process import Hand
from elastic_core.services.speed.plan import Plan

CPU = torch.device("cpu")
SECONDS = 12.0  # at most, for the rounds of one setting


def measure_plan(plan: Plan, path: Path, hand: Hand) -> None:
    """Writes latency.csv, stages.csv and events.csv into the folder `path`; `hand` hears each step first."""
    rows, done, of = list[Row](), 0, plan.steps()
    for length in plan.lengths:
        hand.tell(done, of, f"All systems read {length:,} events")
        rows += _latencies(plan, length)
        write_rows(path / "latency.csv", rows)
        done += 1
    middle = max(plan.lengths)
    hand.tell(done, of, f"The stages of ELASTIC at {middle:,} events")
    _stages(plan, path, middle)
    done += 1
    events: list[dict[str, object]] = []
    for length in plan.lengths:
        hand.tell(done, of, f"One new event after {length:,}")
        reading = tuple(name for name in readers() if name in plan.systems and plan.fits(name, length))
        timings = measure_events(plan.setting(length), CPU, reading, rounds=plan.repeats, warmup=1, seconds=SECONDS)
        events += [
            {"length": length, "system": name, **_milliseconds(timing, plan.histories)} for name, timing in timings.items()
        ]
        _write(path / "events.csv", plan, events)
        done += 1
    hand.tell(done, of, "Done")


def _latencies(plan: Plan, length: int) -> list[Row]:
    systems = tuple(name for name in plan.systems if plan.fits(name, length))
    return measure(plan.setting(length), CPU, systems, rows=ROWS[:1], rounds=plan.repeats, warmup=1, seconds=SECONDS)


def _stages(plan: Plan, path: Path, length: int) -> None:
    rows: list[dict[str, object]] = []
    for system in ("elastic", "elastic-two-way"):
        found = measure_stages(plan.setting(length), CPU, system, rounds=plan.repeats, warmup=1, seconds=SECONDS)
        rows += [
            {
                "length": length, "system": system, "stage": stage, **_milliseconds(each.timing, plan.histories),
                "megabytes": each.moved / plan.histories / 1e6,
            }
            for stage, each in found.items()
        ]  # fmt: skip
    _write(path / "stages.csv", plan, rows)


def _milliseconds(timing: Timing, people: int) -> dict[str, float]:
    """Per person."""
    each = timing.times(1e3 / people)
    return {"ms": each.median, "low": each.low, "high": each.high, "processor": each.processor, "rounds": each.rounds}


def _write(path: Path, plan: Plan, rows: list[dict[str, object]]) -> None:
    """With everything that a number must carry."""
    where = {
        "histories": plan.histories, "width": plan.width, "k": plan.k, "side": plan.side, **here(CPU), "threads": plan.threads,
    }  # fmt: skip
    write_text(path, pd.DataFrame([{**row, **where} for row in rows]).to_csv(index=False, float_format="%.6g"))
