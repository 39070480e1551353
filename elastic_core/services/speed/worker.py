"""The process behind services/speed/jobs.py: measures one plan, niced, and writes down every step as it is done.

python -m elastic_core.services.speed.worker CHECKPOINTS ID
"""

import json
import os
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import torch

from elastic_core.bench.events import measure_events, readers
from elastic_core.bench.latency import ROWS, Row, measure
from elastic_core.bench.stages import measure_stages
from elastic_core.bench.store import write_rows
from elastic_core.bench.timing import Timing
from elastic_core.disk import write_text
from elastic_core.errors import InputError
from elastic_core.machine import commit, device_name, keep_memory
from elastic_core.services.speed.jobs import Measurement, Measurements, Plan

BEAT = 0.5
CPU = torch.device("cpu")
SECONDS = 12.0  # at most, for the rounds of one setting


def work(root: Path, measurement_id: str) -> None:
    """Returns at once if another process measures."""
    measurements = Measurements(root)
    found = measurements.get(measurement_id)
    if not measurements.slot.take(patience=5.0):
        _end(found.path, "failed", "another measurement is running")
        return
    (found.path / "beat").touch()
    write_text(found.path / "begun.json", json.dumps({"pid": os.getpid()}))
    threading.Thread(target=_watch, args=(found.path,), daemon=True).start()
    try:
        _measure(found)
    except (InputError, RuntimeError, MemoryError) as error:
        traceback.print_exc()
        _end(found.path, "failed", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    else:
        _end(found.path, "finished", "")
    finally:
        measurements.slot.free()


def _watch(path: Path) -> None:
    """Says that the process lives, and ends it when somebody asks: a setting in progress need not be waited for."""
    while True:
        if (path / "cancel").exists():
            _end(path, "cancelled", "asked to stop")
        if (path / "end.json").exists() or not path.exists():
            os._exit(0)
        os.utime(path / "beat")
        time.sleep(BEAT)


def _measure(found: Measurement) -> None:
    plan, rows, done = found.plan, list[Row](), 0
    torch.set_num_threads(plan.threads)
    keep_memory()
    for length in plan.lengths:
        _say(found.path, done, f"All systems read {length:,} events")
        rows += _latencies(plan, length)
        write_rows(found.path / "latency.csv", rows)
        done += 1
    middle = max(plan.lengths)
    _say(found.path, done, f"The stages of ELASTIC at {middle:,} events")
    _stages(plan, found.path, middle)
    done += 1
    events: list[dict[str, object]] = []
    for length in plan.lengths:
        _say(found.path, done, f"One new event after {length:,}")
        reading = tuple(name for name in readers() if name in plan.systems and plan.fits(name, length))
        timings = measure_events(plan.setting(length), CPU, reading, rounds=plan.repeats, warmup=1, seconds=SECONDS)
        events += [
            {"length": length, "system": name, **_milliseconds(timing, plan.histories)} for name, timing in timings.items()
        ]
        _write(found.path / "events.csv", plan, events)
        done += 1
    _say(found.path, done, "Done")


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
        "histories": plan.histories, "width": plan.width, "k": plan.k, "side": plan.side, "threads": plan.threads,
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0, "device": device_name(CPU),
        "torch": torch.__version__, "commit": commit(), "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
    }  # fmt: skip
    write_text(path, pd.DataFrame([{**row, **where} for row in rows]).to_csv(index=False, float_format="%.6g"))


def _say(path: Path, done: int, text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    write_text(path / "progress.json", json.dumps({"done": done, "text": text}))


def _end(path: Path, state: str, reason: str) -> None:
    if path.exists() and not (path / "end.json").exists():
        write_text(path / "end.json", json.dumps({"state": state, "reason": reason, "time": round(time.time(), 1)}))


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(max(0, 10 - os.nice(0)))
    work(Path(sys.argv[1]), sys.argv[2])
