"""One step: batch → loss sum → gradient → clipped update → averaged weights. And what stands beside the gradient: statistics.

A step's loss is a *sum* over its targets, divided by what a step of this training has on average, the same number for every
step: a target weighs the same in a batch of long histories as in one of short ones.
"""

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from elastic_core.core.batches import ALONE, Batch, SingleProcess, reading_batch
from elastic_core.core.config import TrainConfig
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Dataset
from elastic_core.core.objective import LossSum, Objective
from elastic_core.core.optimizers import Adam, AdamW
from elastic_core.errors import InputError

CALIBRATE_EVERY = 10  # steps between two looks at histories as they are served
CALIBRATE_ROWS, CALIBRATE_RATE = 256, 0.2
MAX_GRAD_NORM = 5.0  # longer gradients are scaled down to it
COMPILERS = {"cuda": "inductor"}  # device → backend of torch.compile
OPTIMIZERS: dict[str, Any] = {"adam": Adam, "adamw": AdamW}
CALIBRATE_MOST = 4_096  # people whose histories set the statistics of the weights that are judged


class StepResult(NamedTuple):
    """What one step learned from: the loss summed over its targets (nats), the targets, the events read, the side losses.

    Losses are numbers that lie on the device, float64: to read one is to wait for it."""

    total: Tensor
    targets: int
    events: int
    auxiliary: Mapping[str, Tensor]


class Optimization:
    """A model, its optimiser and its averaged weights."""

    def __init__(
        self, model: Recommender, objective: Objective, train: TrainConfig, device: torch.device, ranks: SingleProcess = ALONE
    ) -> None:
        self.ranks = ranks
        self.model, self.objective, self.train, self.device = model, objective, train, device
        self.steps, self.targets_per_step = objective.epoch_size(train.batch)
        kind = OPTIMIZERS[train.optimizer]
        self.optimizer = kind(model.parameter_groups(), lr=train.learning_rate, weight_decay=train.weight_decay)
        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(train.ema_decay)) if train.ema_decay else None
        if train.compile != "none":
            compile_in_place(model, train.compile, device)

    def step(self, batch: Batch) -> StepResult:
        """Learns from one batch, or from a rank's share of it, which lies on the model's device; what is returned is of the whole
        batch. The total is NaN if it diverged. Nothing here waits for a device."""
        if self.train.compile != "none":
            torch.compiler.cudagraph_mark_step_begin()  # what the graph of the last step wrote may be written over
        loss = self.loss(batch)
        self.backward(loss)
        self.clip_gradients()
        self.update_weights()
        self.update_average()
        targets, events = (int(number) for number in self.ranks.add_numbers([loss.targets, batch.places.events]))
        losses = [loss.total, *loss.auxiliary.values(), *loss.summed.values()]
        total, *rest = self.ranks.add_tensors(torch.stack([x.detach().double() for x in losses])).unbind()
        by = [*[self.ranks.count] * len(loss.auxiliary), *[max(targets, 1)] * len(loss.summed)]
        names = (*loss.auxiliary, *loss.summed)
        return StepResult(total, targets, events, {n: r / b for n, r, b in zip(names, rest, by, strict=True)})

    # the parts of a step

    def loss(self, batch: Batch) -> LossSum:
        with autocast_context(self.device, self.train.precision), self.ranks.share_loss():
            return self.objective.loss(self.model, batch)

    def backward(self, loss: LossSum) -> None:
        """Leaves the gradients of the whole batch, those of all ranks added up."""
        weights = self.model.auxiliary_weights()
        self.optimizer.zero_grad(set_to_none=True)
        sides = [weights[name] * value for name, value in loss.auxiliary.items()]
        summed = [weights[name] * value for name, value in loss.summed.items()]
        ((loss.total + sum(summed)) / self.targets_per_step + sum(sides) / self.ranks.count).backward()
        self.ranks.add_gradients(self.model)

    def clip_gradients(self) -> None:
        """Clips all gradients by one norm."""
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), MAX_GRAD_NORM)

    def update_weights(self) -> None:
        self.optimizer.step()

    def update_average(self) -> None:
        """The running average of the weights takes a step."""
        if self.average is not None and any(True for _ in self.model.parameters()):  # torch cannot take a step of none
            self.average.update_parameters(self.model)

    def update_statistics(self, dataset: Dataset, epoch: int, step: int) -> None:
        """Now and then: statistics of the live model from random people's histories as serving would read them."""
        if step % CALIBRATE_EVERY:
            return
        rng = np.random.default_rng([self.train.seed, epoch, step])
        users = rng.choice(dataset.histories.n_users, min(CALIBRATE_ROWS, dataset.histories.n_users), replace=False)
        first = epoch == 0 and step == 0
        self.model.calibrate(_serving_batch(dataset, users, self.model.length).to(self.device), 1.0 if first else CALIBRATE_RATE)
        self.ranks.even_out(self.model.buffers())

    def averaged_model(self, dataset: Dataset) -> Recommender:
        """The weights that validation sees and the run keeps, with statistics of their own: the average, where there is one."""
        model = self.model if self.average is None else self.average.module
        assert isinstance(model, Recommender)
        model.eval()  # what is usual is counted by the votes of serving, which are fewer than those of learning
        all_users = np.arange(dataset.histories.n_users)
        users = np.random.default_rng(self.train.seed).permutation(all_users)[:CALIBRATE_MOST]
        for number, at in enumerate(range(0, len(users), 512)):
            chunk = users[at : at + 512]
            rate = len(chunk) / (number * 512 + len(chunk))  # pooled: exactly everybody's statistics in the end
            model.calibrate(_serving_batch(dataset, chunk, model.length).to(self.device), rate)
        self.ranks.even_out(model.buffers())
        return model

    def state(self) -> dict[str, Any]:
        """All that was learned."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return state | ({"average": self.average.state_dict()} if self.average is not None else {})

    def restore(self, state: dict[str, Any]) -> None:
        """Raises RuntimeError for what does not fit."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])


def compile_in_place(model: Recommender, mode: str, device: torch.device) -> None:
    """The model's forward pass from now on runs compiled by torch, one program for every shape of batch. Raises InputError on a
    processor, where compiling took minutes and then failed."""
    if device.type not in COMPILERS:
        raise InputError(f"train.compile = {mode} is for a GPU: leave it out on {device.type}")
    model.compile(backend=COMPILERS[device.type], mode=mode, dynamic=False)


def autocast_context(device: torch.device, name: str) -> contextlib.AbstractContextManager[Any]:
    """bfloat16 autocast, on any device, or nothing."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if name == "bfloat16" else contextlib.nullcontext()


def _serving_batch(dataset: Dataset, users: np.ndarray, length: int) -> Batch:
    """Whole training histories, as a server would read them for the next event."""
    return reading_batch(dataset, users, dataset.split_ends("train")[users], length)
