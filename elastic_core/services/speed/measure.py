"""Measurements of speed on this machine, one length after the other."""

import os
from collections.abc import Callable
from pathlib import Path

import torch

from elastic_core.bench.events import causal_systems, measure_events
from elastic_core.bench.latency import measure_latency
from elastic_core.bench.rows import write_rows
from elastic_core.services.speed.plan import Plan

CPU, ROWS_FILE = torch.device("cpu"), "rows.csv"
SECONDS = 12.0  # at most, for the rounds of one setting
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


def usable_cores() -> int:
    """How many threads may be asked for."""
    return os.cpu_count() or 1


def measure_plan(plan: Plan, path: Path, report_progress: Callable[[int, int, str], None]) -> None:
    """Write rows.csv into the folder `path`; `report_progress` hears each step first."""
    harness, file, done = {"rounds": plan.repeats, "warmup": 1, "seconds": SECONDS}, path / ROWS_FILE, 0
    for length in plan.lengths:
        report_progress(done, plan.steps(), f"All systems read {length:,} events")
        write_rows(file, measure_latency(plan.setting(length), CPU, plan.systems_at(length), ["last"], **harness))
        done += 1
    for length in plan.lengths:
        report_progress(done, plan.steps(), f"One new event after {length:,}")
        systems = [name for name in causal_systems() if name in plan.systems_at(length)]
        write_rows(file, measure_events(plan.setting(length), CPU, systems, **harness))
        done += 1
    report_progress(done, plan.steps(), "Done")
