"""How long would this training take here? A few real steps on a fresh model, timed, before anything is started; of a model
that would take more of the server's memory than `ROOM`, only what its formulas say.

The whole run costs about  min(budget, epochs x (steps x step + validation)) + one truncated epoch's validation + test.
Memory counts weights, gradients and two moments of the optimiser (4 x parameters x 4 bytes),
what the backward pass of one step keeps, and the process itself. By formula it is an upper bound (scale/budget.py).
"""

import time
from math import nan
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elastic_core import models, objectives
from elastic_core.bench.harness import use_threads
from elastic_core.core.batches import Batch, reading_batch
from elastic_core.core.step import Optimization
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.run_config import RunConfig
from elastic_core.scale import budget

ROWS = 8  # of the first, untimed step
STEP_SECONDS = 0.6  # the timed batch is cut so that one step of it stays below this
TIMED = 1.2  # seconds of timed steps
ROOM = 300_000_000  # bytes that a probe may take of the server; of a larger step it times as many rows as fit
PROCESS_MB = 350  # Python, PyTorch and pandas before the first weight
TEST_FACTOR = 1.5  # the test is ranked under all protocols, validation under one


class Estimate(NamedTuple):
    """Seconds on one core of this machine as busy as it was during the probe."""

    parameters: int
    memory_mb: float
    step_seconds: float
    steps: int  # of one epoch
    judge_seconds: float  # of one validation
    test_seconds: float
    budget_seconds: float  # 0 = none
    epochs: int  # the most that are asked for

    @property
    def is_timed(self) -> bool:
        """False if it would have taken too much memory to find out: the seconds are NaN, the memory is by formula."""
        return not self.steps or self.step_seconds > 0

    @property
    def epoch_seconds(self) -> float:
        return self.step_seconds * self.steps + self.judge_seconds

    @property
    def fitting_epochs(self) -> float:
        """Epochs that fit into the budget."""
        if not self.steps:
            return 0.0
        return min(self.epochs, self.budget_seconds / self.epoch_seconds) if self.budget_seconds else float(self.epochs)

    @property
    def is_tight(self) -> bool:
        """Fewer than two epochs fit: too little to see anything learned."""
        return self.steps > 0 and self.fitting_epochs < min(2, self.epochs)

    @property
    def seconds(self) -> float:
        """From start to tested, if it does not stop early."""
        cut_short = self.judge_seconds if self.fitting_epochs < self.epochs else 0.0
        return self.fitting_epochs * self.epoch_seconds + cut_short + self.test_seconds


def estimate_training(config: RunConfig, dataset: Dataset) -> Estimate:
    """Takes up to about three seconds. Raises InputError for settings that cannot work."""
    with use_threads(1), torch.random.fork_rng(devices=[]):  # one, as the background process will have
        return _probe_training(config, dataset)


def _probe_training(config: RunConfig, dataset: Dataset) -> Estimate:
    train, length = config.train, config.model.length
    model = models.outline(config.model, dataset.catalog) or models.build(config.model, dataset.catalog)
    steps, step, rows = 0, 0.0, 64  # to be judged
    memory, count = 0.0, sum(parameter.numel() for parameter in model.parameters())
    if model.trained:
        objectives.check_objective(config.objective.name, model)
        models.check_data(model, dataset)
        objective = objectives.build(config.objective, dataset, length)
        budget.check_budget(config, model, objective, dataset, torch.device("cpu"))
        cost, (steps, _) = budget.estimate_memory(config, model, objective, dataset), objective.epoch_size(train.batch)
        size = -(-len(objective.epoch_rows(np.random.default_rng(0)).users) // steps)
        rows = min(size, (ROOM - cost.weights) * size // (cost.step + cost.held))
        if rows < min(ROWS, size):
            return Estimate(count, cost.total / 1e6 + PROCESS_MB, nan, steps, nan, nan, train.minutes * 60, train.epochs)
        model = models.build(config.model, dataset.catalog)
        learner = Optimization(model, objective, train, torch.device("cpu"))
        step, memory = _time_step(learner, next(objective.epoch_batches(0, train.seed, min(rows, train.batch))), size)
        memory += 4 * 4 * count / 1e6  # a weight, its gradient and two moments
    else:
        model.fit(dataset)
    judge = _time_ranking(model, dataset, min(rows, 64))
    return Estimate(count, memory + PROCESS_MB, step, steps, judge, judge * TEST_FACTOR, train.minutes * 60, train.epochs)


def _time_step(learner: Optimization, batch: Batch, size: int) -> tuple[float, float]:
    """Seconds of one step of `size` rows, of which the batch has as many as may be tried, and the megabytes that its backward
    pass keeps."""
    learner.model.train()

    def step(rows: int) -> tuple[float, float]:
        part, saved_tensors = batch.select_rows(slice(rows)), _SavedTensors()
        if part.targets is not None and not (part.targets > 0).any():
            raise InputError("the data has too few events to learn from")
        began = time.perf_counter()
        with torch.autograd.graph.saved_tensors_hooks(saved_tensors.pack, lambda saved: saved):
            learner.step(part)
        return time.perf_counter() - began, saved_tensors.megabytes

    most = len(batch.items)
    few = min(ROWS, most)
    step(few)  # the first step of a process pays for things that later ones do not
    first, _ = step(few)
    rows = max(few, min(most, int(few * STEP_SECONDS / first)))
    times, megabytes = list[float](), 0.0
    while not times or (sum(times) + times[-1] < TIMED and len(times) < 5):
        seconds, megabytes = step(rows)
        times.append(seconds)
    return float(np.median(times)) * size / rows, megabytes * size / rows


def _time_ranking(model: models.Recommender, dataset: Dataset, rows: int) -> float:
    """Seconds of ranking everybody's held-out item, from one small batch."""
    users = np.arange(min(rows, dataset.histories.n_users))
    model.eval()
    batch = reading_batch(dataset, users, dataset.split_ends("valid")[users], model.length)
    began = time.perf_counter()
    with torch.inference_mode():
        scores = model.prepare_scores()(batch)
        (scores > scores[:, 1:2]).sum(1)
    return (time.perf_counter() - began) * dataset.histories.n_users / len(users)


class _SavedTensors:
    """Counts the storage that autograd keeps for the backward pass, each piece once."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}

    def pack(self, saved: Tensor) -> Tensor:
        storage = saved.untyped_storage()
        self.sizes[storage.data_ptr()] = storage.nbytes()
        return saved

    @property
    def megabytes(self) -> float:
        return sum(self.sizes.values()) / 1e6
