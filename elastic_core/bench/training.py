"""A step of training: how many targets a second it learns from, and how much memory a process that trains takes.

A step is all that an epoch repeats: drawing batch and negatives, the pass, the loss, the way back, clipping, the optimiser,
the running average, and the statistics of queries every tenth step. Targets are those that the loss sums over. Systems take
turns in one process, step by step. They learn as the recipe `ml-1m-cpu` says (64 rows of up to 200 events, 512 shared
negatives), on one of two worlds:

    full      planted, 3,416 items; every row has 200 events (every other one 199), so lengths of histories play no part
    ml-1m     MovieLens-1M itself: rows of about 110 events, for half of the users have fewer than a hundred

`window` cuts a history into windows of `span` targets, each read with up to 200 events: of span 200 every event read is a
target, of span 100 (the recipe's) half of them.
"""

import itertools
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
import torch

from elastic_core import models, objectives, recipes
from elastic_core.bench.harness import name_quartiles, row_of, time_in_turns
from elastic_core.bench.rows import as_table
from elastic_core.core.step import Optimization
from elastic_core.data import Dataset, load
from elastic_core.machine import find_device, keep_memory, peak_memory
from elastic_core.recipes import DEFAULT, PEER
from elastic_core.run_config import DataConfig, PlantedConfig, RunConfig

WORLDS = {
    "full": DataConfig(source="planted", planted=PlantedConfig(users=640, items=3_416, mean_length=402, max_length=402)),
    "ml-1m": DataConfig(source="ml-1m"),
}
SYSTEMS = (PEER, DEFAULT)


def training_config(system: str, world: str, changes: Sequence[str] = ()) -> RunConfig:
    """Return the recipe `ml-1m-cpu` of a model on this world, with changes such as `objective.span=200`."""
    return replace(recipes.ml_1m_cpu(system), data=WORLDS[world]).override(*changes)


class Trainee:
    """A model in training, epoch after epoch."""

    def __init__(self, config: RunConfig, dataset: Dataset, device: torch.device) -> None:
        self.config, self.dataset, self.device = config, dataset, device
        self.learned = list[tuple[int, int]]()  # of every step: targets and events
        torch.manual_seed(0)
        model = models.build(config.model, dataset.catalog).to(device).train()
        objective = objectives.build(config.objective, dataset, config.model.length)
        self.learner = Optimization(model, objective, config.train, device)
        epochs = (objective.epoch_batches(epoch, 0, config.train.batch) for epoch in itertools.count())
        self.batches = itertools.chain.from_iterable(epochs)

    def take_step(self) -> None:
        """Take one step."""
        batch = next(self.batches).to(self.device)
        self.learner.update_statistics(self.dataset, 0, len(self.learned))
        step = self.learner.step(batch)
        self.learned.append((step.targets, step.events))

    def row_setting(self, world: str) -> dict[str, Any]:
        """Return what a row says of it."""
        model, objective, train = self.config.model, self.config.objective, self.config.train
        sizes = {name: getattr(model, name) for name in "length width k n_subkeys layers dropout".split() if hasattr(model, name)}
        return {
            "objective": objective.name, "span": getattr(objective, "span", 0), "negatives": objective.negatives, "world": world,
            "items": self.dataset.catalog.n_items, "batch": train.batch, **sizes,
        }  # fmt: skip


def measure_training(
    configs: Sequence[RunConfig], world: str, device: torch.device, dataset: Dataset | None = None, **harness: Any
) -> pd.DataFrame:
    """Time steps of training in turns and return a row for each configuration; `dataset` stands for the world, in tests."""
    keep_memory()
    data = dataset or load(WORLDS[world])
    trainees = [Trainee(config, data, device) for config in configs]
    times = time_in_turns([trainee.take_step for trainee in trainees], device, **{"seconds": math.inf, **harness})
    rows = []
    for trainee, seconds in zip(trainees, times, strict=True):
        step_seconds = seconds[:, 0 if device.type == "cuda" else 1]  # of a GPU the clock tells, else the processor
        targets, events = np.array(trainee.learned[-len(seconds) :]).T
        rows.append(
            row_of("training", trainee.config.model.name, trainee.row_setting(world), seconds, device)
            | name_quartiles("processor", seconds[:, 1])
            | name_quartiles("rate", targets / step_seconds, 1)
            | {"rate_overall": round(float(targets.sum() / step_seconds.sum()), 1)}
            | {"targets": round(float(targets.mean()), 1), "events": round(float(events.mean()), 1)}
        )
    return as_table(rows)


def measure_memory(
    configs: Sequence[RunConfig], world: str, device: torch.device, steps: int = 5, dataset: Dataset | None = None
) -> pd.DataFrame:
    """Return the most memory of a process that takes so many steps of training, a fresh process for each configuration."""
    rows = []
    for config in configs:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh_process:
            training = fresh_process.submit(_train_alone, config, world, str(device), torch.get_num_threads(), steps, dataset)
            rows.append(training.result())
    return as_table(rows)


def _train_alone(
    config: RunConfig, world: str, device_name: str, threads: int, steps: int, dataset: Dataset | None
) -> dict[str, Any]:
    torch.set_num_threads(threads)
    device = find_device(device_name)
    trainee = Trainee(config, dataset or load(WORLDS[world]), device)
    (seconds,) = time_in_turns([trainee.take_step], device, rounds=steps, warmup=0, seconds=math.inf)
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else peak_memory()
    return row_of("memory", config.model.name, trainee.row_setting(world), seconds, device) | {"peak_bytes": peak}
