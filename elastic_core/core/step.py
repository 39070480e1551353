"""One step: batch → loss sum → gradient → clipped update → averaged weights. And what stands beside the gradient: statistics.

A step's loss is a *sum* over its targets, divided by what a step of this training has on average, the same number for every
step: a target weighs the same in a batch of long histories as in one of short ones.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from elastic_core.core.batches import ALONE, Alone, Batch, reading_batch
from elastic_core.core.config import TrainConfig
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Dataset
from elastic_core.core.objective import Loss, Objective
from elastic_core.core.plugs import needed, plugged

CALIBRATE_EVERY = 10  # steps between two looks at histories as they are served
CALIBRATE_ROWS, CALIBRATE_RATE = 256, 0.2
OPTIMIZERS: dict[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
CALIBRATE_MOST = 4_096  # people whose histories set the statistics of the weights that are judged


class Learned(NamedTuple):
    """What one step learned from: the loss summed over its targets (nats), the targets, the events read, the side losses.

    Losses are numbers that lie on the device, float64: to read one is to wait for it."""

    total: Tensor
    targets: int
    events: int
    auxiliary: Mapping[str, Tensor]


class Learner:
    """A model, its optimiser and its averaged weights."""

    def __init__(
        self, model: Recommender, objective: Objective, train: TrainConfig, device: torch.device, ranks: Alone = ALONE
    ) -> None:
        self.ranks = ranks
        self.model, self.objective, self.train, self.device = model, objective, train, device
        self.steps, self.targets_per_step = objective.size(train.batch)
        kind = (plugged("optimizers") or OPTIMIZERS)[train.optimizer]
        self.optimizer = kind(model.parameter_groups(), lr=train.learning_rate, weight_decay=train.weight_decay)
        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(train.ema_decay)) if train.ema_decay else None
        learner = needed("a learner of rows") if model.banks() else Untabled
        self.rows = learner(model, self.average and self.average.module, train, objective, ranks)
        if train.compile != "none":
            needed("compiled models")(model, train.compile, device)

    def step(self, batch: Batch) -> Learned:
        """Learns from one batch, or from a rank's share of it, which lies on the model's device; what is returned is of the whole
        batch. The total is NaN if it diverged. Nothing here waits for a device."""
        if self.train.compile != "none":
            torch.compiler.cudagraph_mark_step_begin()  # what the graph of the last step wrote may be written over
        with self.rows.recorded() as looked_up:
            loss = self.loss(batch)
        self.backward(loss)
        self.update(self.clipped(looked_up))
        self.follow()
        targets, events = (int(number) for number in self.ranks.sums([loss.targets, batch.places.events]))
        losses = [loss.total, *loss.auxiliary.values(), *loss.summed.values()]
        total, *rest = self.ranks.summed(torch.stack([x.detach().double() for x in losses])).unbind()
        by = [*[self.ranks.count] * len(loss.auxiliary), *[max(targets, 1)] * len(loss.summed)]
        names = (*loss.auxiliary, *loss.summed)
        return Learned(total, targets, events, {n: r / b for n, r, b in zip(names, rest, by, strict=True)})

    # the parts of a step, which the bench times apart (bench/training.py)

    def loss(self, batch: Batch) -> Loss:
        with precision(self.device, self.train.precision), self.ranks.sharing():
            return self.objective.loss(self.model, batch)

    def backward(self, loss: Loss) -> None:
        """Leaves the gradients of the whole batch, those of all ranks added up."""
        weights = self.model.auxiliary_weights()
        self.optimizer.zero_grad(set_to_none=True)
        sides = [weights[name] * value for name, value in loss.auxiliary.items()]
        summed = [weights[name] * value for name, value in loss.summed.items()]
        ((loss.total + sum(summed)) / self.targets_per_step + sum(sides) / self.ranks.count).backward()
        self.ranks.add_gradients(self.model)

    def clipped(self, looked_up: dict[str, Any]) -> dict[str, Any]:
        """Clips all gradients by one norm; returns those of the rows of banks."""
        touched = self.rows.summed(looked_up)
        every = [*self.model.parameters(), *(found.standing_in for found in touched.values())]
        torch.nn.utils.clip_grad_norm_(every, self.train.max_grad_norm)
        return touched

    def update(self, touched: dict[str, Any]) -> None:
        self.optimizer.step()
        self.rows.step(touched)

    def follow(self) -> None:
        """The running average of the weights takes a step."""
        if self.average is not None and any(True for _ in self.model.parameters()):  # torch cannot take a step of none
            self.average.update_parameters(self.model)

    def calibrate(self, dataset: Dataset, epoch: int, step: int) -> None:
        """Now and then: statistics of the live model from random people's histories as serving would read them."""
        if step % CALIBRATE_EVERY:
            return
        rng = np.random.default_rng([self.train.seed, epoch, step])
        users = rng.choice(dataset.histories.n_users, min(CALIBRATE_ROWS, dataset.histories.n_users), replace=False)
        first = epoch == 0 and step == 0
        self.model.calibrate(_served(dataset, users, self.model.length).to(self.device), 1.0 if first else CALIBRATE_RATE)
        self.ranks.even_out(self.model.buffers())

    def judged(self, dataset: Dataset) -> Recommender:
        """The weights that validation sees and the run keeps, with statistics of their own: the average, where there is one."""
        self.rows.follow()
        model = self.model if self.average is None else self.average.module
        assert isinstance(model, Recommender)
        model.eval()  # what is usual is counted by the votes of serving, which are fewer than those of learning
        everybody = np.arange(dataset.histories.n_users)
        users = np.random.default_rng(self.train.seed).permutation(everybody)[:CALIBRATE_MOST]
        for number, at in enumerate(range(0, len(users), 512)):
            chunk = users[at : at + 512]
            rate = len(chunk) / (number * 512 + len(chunk))  # pooled: exactly everybody's statistics in the end
            model.calibrate(_served(dataset, chunk, model.length).to(self.device), rate)
        self.ranks.even_out(model.buffers())
        return model

    def state(self) -> dict[str, Any]:
        """All that was learned: of banks the rows that were ever changed, of everything else the whole."""
        kept = {"model": self.rows.small(self.model), "optimizer": self.optimizer.state_dict()}
        kept |= {"average": self.rows.small(self.average)} if self.average is not None else {}
        return kept | ({"rows": self.rows.state()} if self.rows.banks else {})

    def restore(self, kept: dict[str, Any]) -> None:
        """Banks must be what they were before the first step."""
        self.rows.put(self.model, kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        if self.average is not None:
            self.rows.put(self.average, kept["average"])
        if self.rows.banks:
            self.rows.restore(kept["rows"])


class Untabled:
    """What a learner asks of tables that are learned by rows (scale/rows.py), where a model has none."""

    def __init__(self, *_: Any) -> None:
        self.banks: dict[str, Any] = {}

    @contextlib.contextmanager
    def recorded(self) -> Iterator[dict[str, Any]]:
        yield {}

    def summed(self, looked_up: dict[str, Any]) -> dict[str, Any]:
        return {}

    def step(self, touched: dict[str, Any]) -> None:
        pass

    def follow(self) -> None:
        pass

    def known(self) -> dict[str, Tensor]:
        return {}

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass

    def small(self, model: nn.Module) -> dict[str, Tensor]:
        """A model's state without the tables of its banks."""
        return model.state_dict()

    def put(self, model: nn.Module, state: dict[str, Tensor]) -> None:
        """The inverse: the tables stay as they are. Raises RuntimeError for what does not fit."""
        model.load_state_dict(state)


def precision(device: torch.device, name: str) -> contextlib.AbstractContextManager[Any]:
    """bfloat16 autocast, on any device, or nothing."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if name == "bfloat16" else contextlib.nullcontext()


def _served(dataset: Dataset, users: np.ndarray, length: int) -> Batch:
    """Whole training histories, as a server would read them for the next event."""
    return reading_batch(dataset, users, dataset.ends("train")[users], length)
