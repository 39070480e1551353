"""Measurements of speed in the background (background/queue.py), in turn with trainings: either would time the other along.

checkpoints/jobs/speed/<id>/   the job; rows.csv: what it has measured so far
"""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from elastic_core.bench.events import causal_systems, measure_events
from elastic_core.bench.latency import measure_latency
from elastic_core.bench.rows import write_rows
from elastic_core.errors import InputError
from elastic_core.services.background.process import Hand
from elastic_core.services.background.queue import HEAVY, Queue, Task
from elastic_core.services.speed.curves import new_events, passes
from elastic_core.services.speed.plan import Plan

CPU, ROWS_FILE = torch.device("cpu"), "rows.csv"
SECONDS = 12.0  # at most, for the rounds of one setting
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
        """As from `curves.passes`; empty while nothing is there."""
        return passes(self.path / ROWS_FILE)

    def events(self) -> pd.DataFrame:
        """length, system, milliseconds per person and new event, and where they were measured."""
        return new_events(self.path / ROWS_FILE)


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
    """Write rows.csv into the folder `path`; `hand` hears each step first."""
    harness, file, done = {"rounds": plan.repeats, "warmup": 1, "seconds": SECONDS}, path / ROWS_FILE, 0
    for length in plan.lengths:
        hand.tell(done, plan.steps(), f"All systems read {length:,} events")
        write_rows(file, measure_latency(plan.setting(length), CPU, plan.systems_at(length), ["last"], **harness))
        done += 1
    for length in plan.lengths:
        hand.tell(done, plan.steps(), f"One new event after {length:,}")
        systems = [name for name in causal_systems() if name in plan.systems_at(length)]
        write_rows(file, measure_events(plan.setting(length), CPU, systems, **harness))
        done += 1
    hand.tell(done, plan.steps(), "Done")
