"""What a training would take of the machine's memory, from formulas: asked before the first step, and nothing is tried out.

    weights       parameters x (weight, gradient, two moments[, running average])
    the step      rows x columns x layers x what a layer keeps of an event for the backward pass (`saved_per_event`)
    the scores    of the step's targets against the catalogue or the negatives, three copies; or of those who are judged.

All in float32, for the step that meets the longest histories. The price is an upper one, several times what some of them keep; a
training beyond half of the memory there is ends in a sentence before it begins, and not in the machine's way.
"""

import math
from typing import NamedTuple

import numpy as np
import torch

from elastic_core.core.batches import needed_columns
from elastic_core.core.config import FitConfig
from elastic_core.core.contract import Recommender
from elastic_core.core.evaluate import MOST_SCORES
from elastic_core.core.histories import Dataset
from elastic_core.core.objective import Objective
from elastic_core.errors import InputError
from elastic_core.files import size_text
from elastic_core.machine import memory_bytes

SHARE = 0.5  # of the memory there is, for one training
FLOAT = 4  # bytes
RANKED_ROWS = 256 * 6  # rows that are ranked at a time, and the copies of their scores that this takes


class MemoryCost(NamedTuple):
    """Bytes. `held`: scores of the step's targets."""

    weights: int
    step: int
    held: int
    validation: int

    @property
    def scores(self) -> int:
        return max(self.held, self.validation)

    @property
    def total(self) -> int:
        return self.weights + self.step + self.scores


def estimate_memory(config: FitConfig, model: Recommender, objective: Objective, dataset: Dataset) -> MemoryCost:
    """Of training this model on these data."""
    settings, train = config.model, config.train
    parameters = sum(parameter.numel() for parameter in model.parameters())
    steps, targets = objective.epoch_size(train.batch)
    rows = math.ceil(len(objective.epoch_rows(np.random.default_rng(0)).users) / steps)
    columns = needed_columns(dataset.histories.lengths, settings.length)
    items = dataset.catalog.n_items + 1
    validation_scores = min(min(RANKED_ROWS, 6 * len(dataset.histories.lengths)) * items, 6 * max(MOST_SCORES, items))
    return MemoryCost(
        FLOAT * parameters * (5 if train.ema_decay else 4),
        FLOAT * rows * columns * settings.layers * model.saved_per_event(columns),
        FLOAT * 3 * _scores_at_a_time(config, math.ceil(targets), items),
        FLOAT * validation_scores,
    )


def _scores_at_a_time(config: FitConfig, targets: int, items: int) -> int:
    """Scores that a step holds at a time."""
    return targets * (config.objective.negatives if config.objective.loss == "sampled" else items)


def check_budget(
    config: FitConfig, model: Recommender, objective: Objective, dataset: Dataset, device: torch.device, processes: int = 1
) -> None:
    """Raises InputError with the number and the bound if the training would take more than its share of the memory.

    Of several `processes` each has weights of its own, on a GPU of its own or all in one memory, and a share of the step."""
    cost, most = estimate_memory(config, model, objective, dataset), int(SHARE * memory_bytes(device))
    if device.type == "cpu":
        cost = cost._replace(weights=cost.weights * processes)
    if cost.total > most:
        parts = f"{size_text(cost.weights)} of weights, {size_text(cost.step)} of a step, {size_text(cost.scores)} of scores"
        raise InputError(
            f"this training would take about {size_text(cost.total)} of memory ({parts}); at most {size_text(most)} are "
            "allowed here: try a smaller train.batch, model.length or model.width"
        )


def out_of_memory_text(config: FitConfig, has_epoch: bool) -> str:
    """What to say where there was less memory than was thought: what takes it, and whether a whole epoch is stored."""
    model, train, objective = config.model, config.train, config.objective
    sizes = {"train.batch": train.batch, "model.length": model.length, "model.width": model.width, "model.layers": model.layers}
    sizes |= {f"model.{name}": getattr(model, name) for name in ("k", "n_subkeys") if hasattr(model, name)}
    sizes |= {"objective.negatives": objective.negatives} if objective.loss == "sampled" else {}
    reduce = ", ".join(f"{name} ({value:,})" for name, value in sizes.items())
    advice = "the last whole epoch is kept, and the same command goes on from it where there is more memory"
    return f"memory ran out: reduce one of {reduce}; {advice if has_epoch else 'no epoch was done yet'}"
