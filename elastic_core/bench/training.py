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

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from elastic_core import models, objectives, recipes
from elastic_core.bench import timing
from elastic_core.bench.store import Figure, Row, as_lines, select_rows
from elastic_core.bench.timing import PartClock, Timing, quartiles
from elastic_core.core.batches import Batch
from elastic_core.core.step import Learner
from elastic_core.data import Dataset, load
from elastic_core.machine import CPU, keep_memory
from elastic_core.recipes import DEFAULT, PEER
from elastic_core.run_config import DataConfig, PlantedConfig, RunConfig

WORLDS = {
    "full": DataConfig(source="planted", planted=PlantedConfig(users=640, items=3_416, mean_length=402, max_length=402)),
    "ml-1m": DataConfig(source="ml-1m"),
}
PARTS = "sampling calibration forward loss backward clipping optimiser averaging".split()


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

    def __init__(self, contestant: Contestant, world: str, dataset: Dataset, seed: int = 0) -> None:
        self.config, self.dataset, self.clock = configured(contestant, world), dataset, PartClock(CPU)
        self.taken = list[tuple[float, ...]]()  # of every step: targets, events, seconds, and those of its parts
        torch.manual_seed(seed)
        model = models.build(self.config.model, dataset.catalog).train()
        objective = objectives.build(self.config.objective, dataset, self.config.model.length)
        self.learner = Learner(model, objective, self.config.train, CPU)
        self.batches, self.steps = self._batches(), 0
        learner, timed = self.learner, self.clock.timed
        model.forward = timed("forward", model.forward)  # type: ignore[method-assign]
        for name, part in (("loss", "loss"), ("backward", "backward"), ("clip", "clipping"), ("update", "optimiser"),
                           ("follow", "averaging"), ("calibrate", "calibration")):  # fmt: skip
            setattr(learner, name, timed(part, getattr(learner, name)))
        self.draw = timed("sampling", self.batches.__next__)

    def step(self) -> None:
        """One step; what it learned from and took is kept."""
        before, began = self._parts(), time.process_time()
        batch = self.draw().to("cpu")
        self.learner.calibrate(self.dataset, 0, self.steps)
        self.steps += 1
        learned = self.learner.step(batch)
        self.taken.append((learned.targets, learned.events, time.process_time() - began, *(self._parts() - before)))

    def _parts(self) -> np.ndarray:
        """Seconds of the processor so far, by part."""
        return np.array([self.clock.taken[part, False][1] for part in PARTS])

    def told(self, timed: Timing) -> dict[str, float | Figure]:
        """What the steps that were timed took of the processor, part by part, and targets a second: the median over steps, and
        `overall` all targets over all seconds."""
        targets, events, whole, *parts = np.array(self.taken[-timed.rounds :]).T
        names = ("processor", *PARTS)
        found: dict[str, float | Figure] = {name: quartiles(each) for name, each in zip(names, (whole, *parts), strict=True)}
        means = {"overall": targets.sum() / whole.sum(), "targets": targets.mean(), "events": events.mean()}
        return found | {"rate": quartiles(targets / whole, 1)} | {name: round(float(x), 1) for name, x in means.items()}

    def _batches(self) -> Iterator[Batch]:
        epoch = 0
        while True:
            yield from self.learner.objective.epoch(epoch, 0, self.config.train.batch)
            epoch += 1


def configured(contestant: Contestant, world: str) -> RunConfig:
    recipe = recipes.ml_1m_cpu(contestant.model)
    taught = recipes.objective_settings(
        contestant.model, contestant.objective, loss=recipe.objective.loss, negatives=recipe.objective.negatives,
        span=contestant.span or 1,
    )  # fmt: skip
    return RunConfig(data=WORLDS[world], model=recipe.model, objective=taught, train=recipe.train).override(*contestant.settings)


def measure_training(
    world: str, contestants: Sequence[Contestant] = CONTESTANTS, dataset: Dataset | None = None, **harness: Any
) -> list[Row]:
    """A row a contestant, its parts metrics. `dataset` stands for the world, in tests."""
    keep_memory()
    data, found = dataset or load(WORLDS[world]), list[timing.Contestant]()
    for each in contestants:
        trainee = Trainee(each, world, data)
        model, train = trainee.config.model, trainee.config.train
        told = {
            "objective": each.objective, "span": each.span, "world": world, "batch": train.batch, "length": model.length,
            "width": model.width, "layers": model.layers, "items": data.catalog.n_items,
            "negatives": trainee.config.objective.negatives, "dropout": model.dropout,
        }  # fmt: skip
        found.append(timing.Contestant(each.model, told, trainee.step, also=trainee.told))
    return timing.measure_rows("training", found, CPU, seconds=math.inf, **harness)


def label(row: Row) -> str:
    return Contestant(row.system, row.objective, row.span).label


def rates(rows: Sequence[Row]) -> dict[str, float]:
    """Targets a second of every contestant on the world of full rows with one thread; of several measurements the last."""
    full = select_rows(rows, world="full", threads=1)
    return {label(row): row.rate for row in sorted(full, key=lambda row: str(row.date))}


def training_table(rows: Sequence[Row]) -> str:
    """Of every measurement the targets a second, with quartiles over steps, and the milliseconds of each part."""
    head = f"{'':<21}{'world':<7}{'targets':>8}{'events':>8}{'targets/s':>11}{'quartiles':>17}{'ms':>8}  "
    return as_lines(
        rows,
        "processor time\n" + head + " ".join(f"{part:>11}" for part in PARTS) + "  commit",
        lambda row: (
            f"{label(row):<21}{row.world:<7}{row.targets:>8,.0f}{row.events:>8,.0f}{row.rate:>11,.0f}"
            f"{row.spread('rate', 1, ',.0f'):>17}{row.processor * 1e3:>8.1f}  "
            + " ".join(f"{getattr(row, part) * 1e3:>11.1f}" if part in row.figures else f"{'':>11}" for part in PARTS)
            + f"  {row.commit}"
        ),
    )
