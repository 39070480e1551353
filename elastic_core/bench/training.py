"""How many targets a second of training learns from, on one core: whole steps of `train`, and where they go (goal C13).

A step is all that an epoch repeats: drawing batch and negatives, the pass, the loss, the way back, clipping, the optimiser,
the running average, and the statistics of queries every tenth step. Targets are those that the loss sums over.
Contestants take turns in one process, step by step; times are of the processor. They learn as the recipe `ml-1m-cpu` says (64
rows of up to 200 events, 512 shared negatives), on one of two worlds:

    full      planted, 3,416 items; every row has 200 events (every other one 199), so people's lengths play no part
    ml-1m     MovieLens-1M itself: rows of about 110 events, for half of the people have fewer than a hundred

`window` cuts a history into windows of `span` targets, each read with up to 200 events: of span 200 every event read is a target,
of span 100 (the recipe's) half of them. `last` has one target a row, whatever is read for it.
"""

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from elastic_core import models, objectives, recipes
from elastic_core.bench.store import Figure, Row, figures
from elastic_core.bench.timing import PartClock, in_turns, quartiles, row_of
from elastic_core.core.step import Learner
from elastic_core.data import Dataset, load
from elastic_core.machine import CPU, keep_memory
from elastic_core.recipes import DEFAULT, PEER
from elastic_core.run_config import DataConfig, PlantedConfig

WORLDS = {
    "full": DataConfig(source="planted", planted=PlantedConfig(users=640, items=3_416, mean_length=402, max_length=402)),
    "ml-1m": DataConfig(source="ml-1m"),
}
PARTS = "sampling calibration forward loss backward clipping optimiser averaging".split()
LEARNER_PARTS = {
    "calibrate": "calibration", "loss": "loss", "backward": "backward", "clip": "clipping", "update": "optimiser",
    "follow": "averaging",
}  # fmt: skip


class Contestant(NamedTuple):
    model: str
    objective: str
    span: int = 0
    settings: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.model} {self.objective}" + (f" {self.span}" if self.span else "")


CONTESTANTS = (
    Contestant(PEER, "all"),
    Contestant(DEFAULT, "window", 200),
    Contestant(DEFAULT, "window", 100),
    Contestant(DEFAULT, "last", 0, ("model.bidirectional=true", "model.conv_width=0")),
)


class Trainee:
    """One contestant in training, epoch after epoch."""

    def __init__(self, contestant: Contestant, world: str, dataset: Dataset) -> None:
        name, recipe, clock = contestant.model, recipes.ml_1m_cpu(contestant.model), PartClock(CPU)
        loss, negatives, span = recipe.objective.loss, recipe.objective.negatives, contestant.span or 1
        taught = recipes.objective_settings(name, contestant.objective, loss=loss, negatives=negatives, span=span)
        self.config = replace(recipe, data=WORLDS[world], objective=taught).override(*contestant.settings)
        self.dataset, self.clock = dataset, clock
        self.taken = list[tuple[float, ...]]()  # of every step: targets, events, seconds, and those of its parts
        torch.manual_seed(0)
        model = models.build(self.config.model, dataset.catalog).train()
        objective = objectives.build(self.config.objective, dataset, self.config.model.length)
        self.learner = Learner(model, objective, self.config.train, CPU)
        model.forward = clock.timed("forward", model.forward)  # type: ignore[method-assign]
        for method, part in LEARNER_PARTS.items():
            setattr(self.learner, method, clock.timed(part, getattr(self.learner, method)))
        epochs = (objective.epoch(epoch, 0, self.config.train.batch) for epoch in itertools.count())
        self.draw = clock.timed("sampling", itertools.chain.from_iterable(epochs).__next__)

    def step(self) -> None:
        """One step; what it learned from and took is kept."""
        before, began = self._parts(), time.process_time()
        batch = self.draw().to("cpu")
        self.learner.calibrate(self.dataset, 0, len(self.taken))
        learned = self.learner.step(batch)
        self.taken.append((learned.targets, learned.events, time.process_time() - began, *(self._parts() - before)))

    def _parts(self) -> np.ndarray:
        """Seconds of the processor so far, by part."""
        return np.array([self.clock.taken[part, False][1] for part in PARTS])

    def told(self, rounds: int) -> dict[str, float | Figure]:
        """What the last steps took of the processor, part by part, and targets a second: the median over steps, and `overall` all
        targets over all seconds."""
        targets, events, whole, *parts = np.array(self.taken[-rounds:]).T
        found: dict[str, float | Figure] = {part: quartiles(each) for part, each in zip(PARTS, parts, strict=True)}
        means = {"overall": targets.sum() / whole.sum(), "targets": targets.mean(), "events": events.mean()}
        found |= {"processor": quartiles(whole), "rate": quartiles(targets / whole, 1)}
        return found | {name: round(float(x), 1) for name, x in means.items()}


def measure_training(
    world: str, contestants: Sequence[Contestant] = CONTESTANTS, dataset: Dataset | None = None, **harness: Any
) -> list[Row]:
    """A row a contestant, its parts metrics. `dataset` stands for the world, in tests."""
    keep_memory()
    data = dataset or load(WORLDS[world])
    trainees = [Trainee(each, world, data) for each in contestants]
    taken, rows = in_turns([trainee.step for trainee in trainees], CPU, seconds=math.inf, **harness), list[Row]()
    for each, trainee, mine in zip(contestants, trainees, taken, strict=True):
        model = trainee.config.model
        told = {
            "objective": each.objective, "span": each.span, "world": world, "batch": trainee.config.train.batch,
            "length": model.length, "width": model.width, "layers": model.layers, "items": data.catalog.n_items,
            "negatives": trainee.config.objective.negatives, "dropout": model.dropout,
        }  # fmt: skip
        rows.append(row_of("training", each.model, told, mine, trainee.told(len(mine)), CPU))
    return rows


def rates(rows: Sequence[Row]) -> dict[str, float]:
    """Targets a second of every contestant on the world of full rows with one thread; of several measurements the last."""
    told = [f"{one.label} | rate | system={one.model}; objective={one.objective}; span={one.span}" for one in CONTESTANTS]
    return figures(rows, "\n".join(told), world="full", threads=1)


def training_table(rows: Sequence[Row]) -> str:
    """Of every measurement the targets a second, with quartiles over steps, and the milliseconds of each part."""
    head = f"{'':<21}{'world':<7}{'targets':>8}{'events':>8}{'targets/s':>11}{'quartiles':>17}{'ms':>8}  "
    head = "processor time\n" + head + " ".join(f"{part:>11}" for part in PARTS) + "  commit"
    lines = [
        f"{Contestant(row.system, row.objective, row.span).label:<21}"
        f"{row.world:<7}{row.targets:>8,.0f}{row.events:>8,.0f}{row.rate:>11,.0f}"
        f"{row.spread('rate', 1, ',.0f'):>17}{row.processor * 1e3:>8.1f}  "
        + " ".join(f"{getattr(row, part) * 1e3:>11.1f}" if part in row.figures else f"{'':>11}" for part in PARTS)
        + f"  {row.commit}"
        for row in rows
    ]
    return "\n".join([head, *lines])
