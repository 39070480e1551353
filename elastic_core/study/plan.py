"""How long every training of a study may take, so that the whole is done in the minutes that were asked for.

Successive halving (Jamieson and Talwalkar 2016), a third each time: all systems are trained for a ninth of the full share, the
best third of them, by validation, for a third, and the finalists for all of it, twice, in every way of holding out. Finalists are
the best system with personal experts, the same system with shared ones, and the best of the others: so the best of all is among
them, and what personal experts gain is always asked.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from elastic_core import models
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.data import Dataset
from elastic_core.recipes import JUDGED, LONGEST, MEMORIES, STUDIED
from elastic_core.run_config import RunConfig
from elastic_core.runs.ranks import evaluate
from elastic_core.training_time import estimate_training

Split = Literal["last", "time"]  # how events are held out: everybody's last, or all after a date
SPLITS: tuple[Split, ...] = ("last", "time")
SEEDS = 2  # trainings of a finalist
MAX_SEEDS = 5  # where trainings stop by themselves and leave time for more
FINALISTS = 3
PARTS = (1 / 9, 1 / 3, 1.0)  # of the full share, by round
TRIALS = 4  # recipes that are tried where people often return to what they know (train.py)
SHORTEST = 56  # events that are read, where histories are long and the time is short
MIN_USERS = 50  # who must have a test
PLANNED = 0.97  # of the budget; the rest is for what takes longer than it did
FLOOR = 0.5  # seconds of a training, in however small a budget
MIN_SHARE = 60.0  # seconds that make a finalist's training worth having, and
MIN_EPOCHS = 10  # so many passes over the data
CHOICES = ((9, SPLITS), (6, SPLITS), (6, SPLITS[:1]), (3, SPLITS), (3, SPLITS[:1]))  # systems and ways of holding out, best first
OUT_OF_TIME = "the time was up"  # why something was left out
CUTS = (1, 2, 5, 10, 50)  # how many last events are read, besides all
FINISH = 5.0  # seconds of timing answers and writing
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.monotonic, "processor": time.process_time}  # of the minutes
PROBED = 256  # users, on whom it is measured what ranking takes


class Probe(NamedTuple):
    """Seconds, of the slowest system."""

    epoch: float  # a pass over the data, with its validation
    validation: float  # ranking the users who validate, under one protocol
    test: float  # ranking everybody, under all protocols


def probe(config: RunConfig, dataset: Dataset) -> Probe:
    """A few steps and rankings on this machine, as busy as it is, by the clock of the budget; some seconds."""
    now, began, worked = CLOCKS[config.train.clock], time.perf_counter(), CLOCKS[config.train.clock]()
    estimate = estimate_training(config, dataset)
    pace = (now() - worked) / (time.perf_counter() - began)  # seconds by the budget's clock, per second
    model = models.build(config.model, dataset.catalog).eval()
    users = dataset.users_with_target("test")
    sample = users[np.linspace(0, len(users) - 1, min(PROBED, len(users))).astype(int)]

    def seconds_per_user(protocols: tuple[str, ...]) -> float:
        return _least_seconds(lambda: evaluate(model, dataset, "test", protocols, users=sample), now) / len(sample)

    validation = seconds_per_user((config.train.valid_protocol,)) * min(len(users), JUDGED)
    return Probe(pace * estimate.step_seconds * estimate.steps + validation, validation, seconds_per_user(PROTOCOLS) * len(users))


def _least_seconds(job: Callable[[], Any], now: Callable[[], float]) -> float:
    """Seconds of the quickest of three: what others do on the machine makes it slower only."""
    seconds = []
    for _ in range(3):
        began = now()
        job()
        seconds.append(now() - began)
    return min(seconds)


class Plan(NamedTuple):
    """Seconds: `share` that a finalist's training has, validation included; what the test of a training takes `besides`; what all
    measuring takes `after`. `length`: events that are read."""

    minutes: float
    share: float
    besides: float
    after: float
    length: int
    splits: list[Split]
    systems: list[str]  # of the first round
    left_out: list[str]

    @property
    def rounds(self) -> tuple[float, ...]:
        """Seconds that a training has had after each round. Where all systems are finalists, there is one round."""
        return tuple(max(part * self.share, FLOOR) for part in (PARTS if len(self.systems) > FINALISTS else PARTS[-1:]))


def plan_study(
    minutes: float,
    spent: float,
    probed: Probe,
    splits: Sequence[Split],
    longest: int = LONGEST,
    systems: Sequence[str] = tuple(STUDIED),
    trials: int = 0,
) -> Plan:
    """`spent`: seconds that anything but training has taken; `longest`: events that were read when it was probed; `trials`:
    trainings of a ninth that choose a recipe. Where even the least is too much, less of a history is read, and a pass takes so
    much less."""
    plan = None
    for (count, allowed), part in [*((choice, 1.0) for choice in CHOICES), (CHOICES[-1], 0.5), (CHOICES[-1], 0.25)]:
        epoch, validation, test = (part * seconds for seconds in probed)
        length = max(8 * math.ceil(part * longest / 8), min(longest, SHORTEST))
        chosen: list[Split] = [split for split in allowed if split in splits] or list(splits)[:1]
        first = list(systems[:count])
        after, besides = FINISH + SEEDS * (1 + FINALISTS / 2) * validation, 0.5 + validation + test  # with less history; lists
        shares, trainings = count_work(len(first), len(chosen), trials)
        share = (PLANNED * minutes * 60 - spent - after - trainings * besides) / shares
        plan = Plan(minutes, max(share, FLOOR), besides, after, length, chosen, first, list(systems[count:]))
        if share >= max(MIN_SHARE, MIN_EPOCHS * epoch) and plan.rounds[0] >= epoch:
            break
    assert plan is not None
    return plan


def count_work(systems: int, splits: int, trials: int = 0) -> tuple[float, int]:
    """Full shares that all trainings take together, at most, and how often a training ends with a test."""
    finals = SEEDS * splits * min(systems, FINALISTS)
    shares, trainings = finals + trials * PARTS[0], finals + trials
    if systems > FINALISTS:  # finalists go on from where the rounds left them, from the first one at worst
        second = math.ceil(systems / 3) + 1
        shares += systems * PARTS[0] + second * (PARTS[1] - PARTS[0]) - FINALISTS * PARTS[0]
        trainings += systems + second
    return shares, trainings


def choose_third(valid: Mapping[str, float]) -> list[str]:
    """Who goes on after the first round: the best third by validation, and the best with personal experts."""
    best = sorted(valid, key=lambda label: -valid[label])[: math.ceil(len(valid) / 3)]
    return list(dict.fromkeys([*best, *_best_own(valid)]))


def choose_finalists(valid: Mapping[str, float], systems: Sequence[str]) -> list[str]:
    """The best with personal experts, the same with shared ones, the best of the others; all, where there are no more."""
    if len(systems) <= FINALISTS:
        return list(systems)
    own = _best_own(valid)
    pair = [*own, *(shared for each, shared in MEMORIES if [each] == own and shared in systems)]
    others = sorted((label for label in valid if label not in pair), key=lambda label: -valid[label])
    return [*pair, *others[: FINALISTS - len(pair)]]


def _best_own(valid: Mapping[str, float]) -> list[str]:
    """At most one."""
    own = [label for label, _ in MEMORIES if label in valid]
    return [max(own, key=lambda label: valid[label])] if own else []
