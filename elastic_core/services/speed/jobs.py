"""Measurements of speed in the background (background/queue.py), in turn with trainings: either would time the other along.

checkpoints/jobs/speed/<id>/   the job; latency.csv, stages.csv, events.csv: what it has found so far
"""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from elastic_core.bench.events import measure_events, readers
from elastic_core.bench.latency import ROWS, measure_latency
from elastic_core.bench.stages import measure_profile
from elastic_core.bench.store import Row, write_rows
from elastic_core.errors import InputError
from elastic_core.services.background.process import Hand
from elastic_core.services.background.queue import HEAVY, Queue, Task
from elastic_core.services.speed.curves import MEASURED, of_passes, table_of
from elastic_core.services.speed.plan import Plan

CPU = torch.device("cpu")
SECONDS = 12.0  # at most, for the rounds of one setting
FORMS = ("elastic", "elastic-two-way")
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


@dataclass(frozen=True)
class Measurement(Task[Plan]):
    """One measurement."""

    @property
    def cut(self) -> str:
        """What it did not get to, in words; nothing for one that finished."""
        if self.state == "finished":
            return ""
        done = self.latencies()["length"].nunique()
        word = "still running" if self.active else "cancelled" if self.state == "stopped" else self.state
        return f"This measurement is {word}: {done} of {len(self.asked.lengths)} lengths, so it says nothing about the others."

    def latencies(self) -> pd.DataFrame:
        """As from `curves.tidy`; empty while nothing is there."""
        return of_passes(self.path / "latency.csv", MEASURED)

    def stages(self) -> pd.DataFrame:
        """length, system, stage, milliseconds per history, and where they were measured."""
        return table_of(self.path / "stages.csv")

    def events(self) -> pd.DataFrame:
        """length, system, milliseconds per person and new event, and where they were measured."""
        return table_of(self.path / "events.csv")


class Measurements(Queue[Measurement]):
    """The measurements below a checkpoints folder."""

    kind, noun, act, task = "speed", "measurement", "measurement", Measurement
    lane, kept = HEAVY, 5

    @classmethod
    def read(cls, plain: dict[str, Any]) -> Plan:
        try:
            return Plan(**{**plain, "lengths": tuple(plain["lengths"]), "systems": tuple(plain["systems"])})
        except (KeyError, TypeError):
            raise InputError("its job.json holds no plan of a measurement") from None

    def work(self, task: Measurement, hand: Hand) -> str:
        measure_plan(task.asked, task.path, hand)
        return ""

    def threads(self, task: Measurement) -> int:
        return task.asked.threads

    def submit(self, plan: Plan) -> Measurement:
        return self.ask(lambda: asdict(plan))

    def shown(self) -> Measurement | None:
        """The one that answers: the latest if it runs or finished. After one that failed or was cut, the last that finished; only
        where there is none, what the latest found until then."""
        last = self.latest()
        return last if last is None or last.active else self.latest("finished") or last


def cores() -> int:
    """How many threads may be asked for."""
    return os.cpu_count() or 1


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
        keep("latency", measure_latency(plan.setting(length), CPU, plan.systems_at(length), rows=ROWS[:1], **harness))
        done += 1
    tell(f"The stages of ELASTIC at {middle:,} events")
    for system in FORMS:
        keep("stages", measure_profile(plan.setting(middle), CPU, [system], **harness))
    done += 1
    for length in plan.lengths:
        tell(f"One new event after {length:,}")
        reading = tuple(name for name in readers() if name in plan.systems_at(length))
        keep("events", measure_events(plan.setting(length), CPU, reading, **harness))
        done += 1
    tell("Done")
