"""The training loop: shuffle, learn, validate, keep the best; the same numbers from every epoch border on.

All randomness of an epoch follows from (seed, epoch), so a training that broke off repeats the epoch it was in and goes on as if
nothing had happened (bit for bit on the CPU, if the number of threads stays the same). So does one whose budget (epochs, minutes,
patience) is raised after its end: no setting of a step depends on the budget, the learning rate is constant, and an epoch that
the clock cut short is gone through again, as a whole.
"""

import copy
import math
import random
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from elastic_core.core import objective as objectives
from elastic_core.core.batches import ALONE, Batch, SingleProcess
from elastic_core.core.building import build
from elastic_core.core.config import FitConfig, TrainConfig
from elastic_core.core.contract import Recommender, check_data
from elastic_core.core.evaluate import draw_users, mean_metrics, rank_users
from elastic_core.core.histories import Dataset
from elastic_core.core.prefetch import prefetch_batches
from elastic_core.core.step import Optimization
from elastic_core.errors import InputError

Stop = Callable[[], bool]
SELECTION = "NDCG@10"
PROGRESS = ("epoch", "step", "seconds", "best", "best_epoch")  # what the loop itself goes on from
ALL_DONE, STOP_REQUESTED = "all epochs done", "asked to stop"
NO_PATIENCE, NO_MINUTES = "no better validation", "budget of"  # the other reasons begin so


def out_of_patience(train: TrainConfig, epoch: int, best_epoch: int) -> str:
    """Return why a training ends for want of a better validation, "" while it does not."""
    return f"{NO_PATIENCE} {SELECTION} in {train.patience} epochs" if epoch - best_epoch >= train.patience else ""


def training_clock(train: TrainConfig) -> Callable[[], float]:
    """The clock of a training's budget, in seconds. A processor's is what each of its threads worked."""
    if train.clock == "wall":
        return time.monotonic
    threads = torch.get_num_threads() if train.device == "cpu" else 1
    return lambda: time.process_time() / threads


def out_of_minutes(minutes: float) -> str:
    return f"{NO_MINUTES} {minutes:g} minutes spent"


class TrainingCallback:
    """What a loop tells of a training, in this order every epoch. This one keeps the best weights in memory; a run folder's is
    runs/training.py."""

    best_weights: dict[str, torch.Tensor]

    def on_begin(self, model: Recommender, device: torch.device, processes: int) -> None:
        """Before the first step of a fresh training."""

    def on_resume(self, epochs: int) -> None:
        """Before the first step of one that has had so many epochs."""

    def on_best(self, model: Recommender, cut: bool) -> None:
        """The weights validate better than all before."""
        self.best_weights = copy.deepcopy(model.state_dict())

    def on_epoch(self, row: dict[str, Any], model: Recommender) -> None:
        """What an epoch came to."""

    def on_whole_epoch(self, state: dict[str, Any]) -> None:
        """What going on from here needs, after every epoch that was not cut short."""

    def on_progress(self, event: dict[str, Any]) -> None:
        """How far an epoch is, about once a second."""


def fit(config: FitConfig, dataset: Dataset, device: str = "cpu") -> Recommender:
    """Return the model with its best weights by validation, trained from nothing and kept nowhere.

    Raises InputError for settings that cannot work."""
    keeper = TrainingCallback()
    loop = Loop(config, dataset, keeper, torch.device(device))
    loop.run_epochs(loop.new_optimization(), None)
    loop.model.load_state_dict(keeper.best_weights)
    return loop.model.eval()


class Loop:
    """One training: a fresh model, how far it is, and why it stopped. With `ranks` it is one of several processes: rank 0 keeps,
    validates and tells; `stop` of any ends it."""

    def __init__(
        self,
        config: FitConfig,
        dataset: Dataset,
        keeper: TrainingCallback,
        device: torch.device,
        stop: Stop = lambda: False,
        ranks: SingleProcess = ALONE,
    ) -> None:
        self.config, self.dataset, self.keeper, self.stop, self.ranks = config, dataset, keeper, stop, ranks
        self.device = ranks.choose_device(device)
        _set_seed(config.train.seed, 0)
        self.model = build(config.model, dataset.catalog)
        if self.model.trained:
            objectives.check_objective(config.objective.name, self.model)
        check_data(self.model, dataset)
        self.now = training_clock(config.train)
        self.epoch, self.step, self.seconds = 0, 0, 0.0
        self.best, self.best_epoch = -math.inf, 0
        self.stopped = ""

    def objective(self) -> objectives.Objective:
        return objectives.build(self.config.objective, self.dataset, self.config.model.length)

    def new_optimization(self) -> Optimization:
        return Optimization(self.model.to(self.device), self.objective(), self.config.train, self.device, self.ranks)

    def run_epochs(self, learner: Optimization, resume: dict[str, Any] | None) -> None:
        """Learn until something stops it. `resume`: what a training that broke off left, which `learner` has restored."""
        first, train, self.learner = self.ranks.run_on_first, self.config.train, learner
        if resume is not None:
            for name in PROGRESS:
                setattr(self, name, resume[name])
            first(self.keeper.on_resume, self.epoch)
            self.stopped = out_of_patience(train, self.epoch, self.best_epoch)
        else:
            first(self.keeper.on_begin, self.model, self.device, self.ranks.count)
        while not self.stopped and self.epoch < train.epochs:
            began, row = self.now(), self.ranks.run_alike(self._train_epoch)
            if self.stopped == STOP_REQUESTED and self.epoch > 0:
                break
            cut = self.stopped
            self.epoch += 1
            model = learner.averaged_model(self.dataset)
            valid = first(self._validate, model)
            if valid[SELECTION] > self.best:
                self.best, self.best_epoch = valid[SELECTION], self.epoch
                first(self.keeper.on_best, model, bool(cut))
            self.seconds += self.now() - began
            scores = {name: round(value, 6) for name, value in valid.items()}
            row = {"epoch": self.epoch, "step": self.step} | row | {"seconds": round(self.seconds, 2), "valid": scores}
            row |= {"cut": cut} if cut else {}
            first(self.keeper.on_epoch, row, model)
            if cut:  # what continuing needs stays that of the last whole epoch
                break
            self.stopped = out_of_patience(train, self.epoch, self.best_epoch)
            first(lambda: self.keeper.on_whole_epoch({name: getattr(self, name) for name in PROGRESS} | learner.state()))

    def _validate(self, model: Recommender) -> dict[str, float]:
        protocol, users = self.config.train.valid_protocol, draw_users(self.dataset, self.config.train.valid_users)
        return mean_metrics(rank_users(model, self.dataset, "valid", (protocol,), users, device=self.device)[protocol])

    def _train_epoch(self) -> dict[str, Any]:
        """One pass over the targets; returns the loss per target (nats), the side losses, the targets and the events read."""
        seed, batch_size = self.config.train.seed, self.config.train.batch
        _set_seed(seed, self.epoch + 1, self.ranks.rank)
        self.model.train()
        total, targets, events, sides = torch.zeros((), dtype=torch.float64, device=self.device), 0, 0, dict[str, torch.Tensor]()
        began, reported_at, done = self.now(), 0.0, 0
        shares = self.learner.objective.epoch_batches(self.epoch, seed, batch_size, self.ranks.rank, self.ranks.count)
        for done, batch in enumerate(self._move_to_device(shares), start=1):
            try:
                self.learner.update_statistics(self.dataset, self.epoch, done - 1)
                learned = self.learner.step(batch)
            except torch.linalg.LinAlgError:  # the whitening of queries that are no longer numbers
                total = total + math.nan
                break
            total, targets, events = total + learned.total, targets + learned.targets, events + learned.events
            sides = {name: value + sides.get(name, 0.0) for name, value in learned.auxiliary.items()}
            self.step += 1
            now = time.monotonic()
            if now - reported_at > 1:
                reported_at, loss = now, float(total) / max(targets, 1)
                self.keeper.on_progress(
                    {"event": "step", "epoch": self.epoch + 1, "done": done, "of": self.learner.steps, "loss": loss}
                )
            if self._out_of_time(self.now() - began):
                break
        if not math.isfinite(total):  # read only now, and for who watches: a device that is read from has to be waited for
            raise InputError(f"the loss is no longer a number in epoch {self.epoch + 1}; try a smaller train.learning_rate")
        side_losses = {name: round(float(value) / max(done, 1), 6) for name, value in sides.items()}
        return {"loss": round(float(total) / max(targets, 1), 6), "auxiliary": side_losses, "targets": targets, "events": events}

    def _move_to_device(self, batches: Iterable[Batch]) -> Iterable[Batch]:
        """The batches on the device; for a GPU, one ahead of it (prefetch.py)."""
        if self.device.type == "cuda":
            return prefetch_batches(iter(batches), self.device)
        return (batch.to(self.device) for batch in batches)

    def _out_of_time(self, seconds: float) -> bool:
        """Any process may be asked to stop; the clock is rank 0's."""
        minutes, stop_requested, time_spent = self.config.train.minutes, 2, 1
        is_late = minutes and not self.ranks.rank and self.seconds + seconds > minutes * 60
        decision = self.ranks.find_largest(stop_requested if self.stop() else time_spent if is_late else 0)
        if decision:
            self.stopped = STOP_REQUESTED if decision == stop_requested else out_of_minutes(minutes)
        return bool(self.stopped)


def _set_seed(seed: int, epoch: int, rank: int = 0) -> None:
    """Each rank has noise of its own; rank 0 that of a process alone."""
    mixed = int(np.random.SeedSequence([seed, epoch, rank][: 3 if rank else 2]).generate_state(1)[0])
    random.seed(mixed)
    torch.manual_seed(mixed)
