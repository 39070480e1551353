"""What a study trains and for how long each, so that all get the same and the whole is done in the minutes that were asked for.

    share = (minutes - what reading, counting and measuring take) / trainings - what a training takes besides: its test

As many systems are taken up, in the order of `recipes.STUDIED`, as leave each a share worth having; the first ones by any means.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from elastic_core import models
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.data import Dataset
from elastic_core.recipes import JUDGED, LONGEST, STUDIED, study_recipe
from elastic_core.run_config import DataConfig, RunConfig
from elastic_core.runs.ranks import evaluate
from elastic_core.training_time import estimate_training

Way = Literal["last", "time"]  # how events are held out: everybody's last, or all after a date
WAYS: tuple[Way, ...] = ("last", "time")
SEEDS = 2
LEAST = 56  # events that are read, where histories are so long and the time is short
FEWEST = 50  # people who must be asked
KEPT = 0.97  # of the budget is planned for; the rest is for what takes longer than it did
FLOOR = 0.5  # seconds of a training, in however small a budget
WORTH = 40.0  # seconds that make a training worth having, and
EPOCHS = 6  # so many passes over the data
CHOICES = ((9, WAYS), (6, WAYS), (6, WAYS[:1]), (3, WAYS), (3, WAYS[:1]))  # systems and ways of holding out, the best first
LATE = "the time was up"  # why something was left out
CUTS = (1, 2, 5, 10, 50)  # events that are read, besides all
ASIDE = 5.0  # seconds of timing answers and writing
NOW: dict[str, Callable[[], float]] = {"wall": time.monotonic, "processor": time.process_time}  # of the minutes
TRIED = 256  # people, on whom it is found out what ranking takes


class Probe(NamedTuple):
    """Seconds, of the slowest system."""

    epoch: float  # a pass over the data, with its validation
    judge: float  # ranking those who validate, under one protocol
    test: float  # ranking everybody, under all


def probe(config: RunConfig, dataset: Dataset) -> Probe:
    """A few steps and rankings on this machine, as busy as it is, by the clock of the budget; some seconds."""
    now, began, worked = NOW[config.train.clock], time.perf_counter(), NOW[config.train.clock]()
    found = estimate_training(config, dataset)
    part = (now() - worked) / (time.perf_counter() - began)  # of a second by the clock
    model = models.build(config.model, dataset.catalog).eval()
    asked = dataset.users_with_target("test")
    some = asked[np.linspace(0, len(asked) - 1, min(TRIED, len(asked))).astype(int)]

    def takes(protocols: tuple[str, ...]) -> float:
        return _least(lambda: evaluate(model, dataset, "test", protocols, users=some), now) / len(some)

    judge = takes((config.train.valid_protocol,)) * min(len(asked), JUDGED)
    return Probe(part * found.step_seconds * found.steps + judge, judge, takes(PROTOCOLS) * len(asked))


def _least(job: Callable[[], Any], now: Callable[[], float]) -> float:
    """Seconds of the quickest of three: what others do on the machine makes it slower only."""
    taken = []
    for _ in range(3):
        began = now()
        job()
        taken.append(now() - began)
    return min(taken)


class Plan(NamedTuple):
    """Seconds: each training's `share`, validation included; what its test takes `besides`; what all measuring does `after`.
    `length`: events that are read."""

    minutes: float
    share: float
    besides: float
    after: float
    length: int
    trained: dict[str, list[str]]  # by way of holding out, the labels
    left_out: list[str]


def make(
    minutes: float,
    spent: float,
    found: Probe,
    ways: Sequence[Way],
    longest: int = LONGEST,
    labels: Sequence[str] = tuple(STUDIED),
) -> Plan:
    """`spent`: seconds that were taken by anything but training; `longest`: events that were read when it was probed. Where even
    the least is too much, less of a history is read, and a pass takes so much less."""
    plan = None
    for (systems, wanted), part in [*((choice, 1.0) for choice in CHOICES), (CHOICES[-1], 0.5), (CHOICES[-1], 0.25)]:
        epoch, judge, test = (part * seconds for seconds in found)
        length = max(8 * math.ceil(part * longest / 8), min(longest, LEAST))
        here = [way for way in wanted if way in ways] or list(ways)[:1]
        some = list(labels[:systems])
        after, besides = ASIDE + SEEDS * (1 + len(some) / 2) * judge, 0.5 + judge + test  # with less history; lists
        share = (KEPT * minutes * 60 - spent - after) / (SEEDS * len(some) * len(here)) - besides
        plan = Plan(minutes, max(share, FLOOR), besides, after, length, dict.fromkeys(here, some), list(labels[systems:]))
        if share >= max(WORTH, EPOCHS * epoch):
            break
    assert plan is not None
    return plan


def config(
    label: str,
    seed: int,
    share: float,
    length: int,
    clock: str,
    data: DataConfig,
    dataset: Dataset,
    protocol: str,
    repeat_bias: bool,
) -> RunConfig:
    """What one of the trainings is told."""
    more = {"repeat_bias": True} if repeat_bias else {}
    made = study_recipe(label, data, length, dataset.catalog.n_items, dataset.histories.n_users, protocol, more)
    return made.replace_values({"train.seed": seed, "train.minutes": round(share / 60, 4), "train.clock": clock})
