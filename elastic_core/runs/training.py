"""The training loop: shuffle, learn, validate, keep the best; resumable at every epoch border with the same numbers.

All randomness of an epoch follows from (seed, epoch), so a run that was killed repeats the epoch it was in and goes on
as if nothing had happened (bit for bit on the CPU, if the number of threads stays the same). So does one whose budget (epochs,
minutes, patience) is raised after its end: no setting of a step depends on the budget, the learning rate is constant, and an
epoch that the clock cut short is gone through again, as a whole.
"""

import contextlib
import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elastic_core import models, objectives
from elastic_core.core.config import RunConfig
from elastic_core.core.evaluate import drawn_people, evaluate
from elastic_core.core.step import Learner
from elastic_core.data import Dataset
from elastic_core.errors import InputError, out_of_memory
from elastic_core.machine import find_device
from elastic_core.memory import whole
from elastic_core.models import Recommender
from elastic_core.runs import RESUME, Run, resuming
from elastic_core.runs.recorder import (
    ALL_DONE,
    ASKED,
    NO_TRAINING,
    SELECTION,
    OnEvent,
    Recorder,
    out_of_minutes,
    out_of_patience,
)
from elastic_core.runs.resuming import PROGRESS
from elastic_core.scale import budget
from elastic_core.scale.ahead import ahead
from elastic_core.scale.distributed import ALONE, Ranks

Stop = Callable[[], bool]


def train(
    config: RunConfig,
    dataset: Dataset,
    out: Path | str,
    on_event: OnEvent | None = None,
    stop: Stop | None = None,
    ranks: Ranks = ALONE,
    begin: Run | None = None,
) -> Run:
    """Trains into the folder `out`, or goes on with what is there. Returns the finished run.

    A run that has ended goes on if the budget asked for (train.epochs, minutes, patience) has something left; else it is returned
    as it is. Its test is opened again and scored at the new end, and its log says so. `begin` gives a new run its first weights:
    those of a run of such a model over the same items.

    `on_event` sees every row of metrics.jsonl and a `step` event about once a second; `stop` is asked after each step and
    ends the run early with its best weights. Raises InputError for settings that cannot work, before anything is written,
    for a folder that another process is training into, and where memory runs out: the last whole epoch is kept then.

    With `ranks` this is one of several processes (distributed.py): rank 0 writes, locks, validates and tells; `stop` of any.
    """
    run = Run(Path(out))
    try:
        loop = ranks.together(
            lambda: Loop(
                config, dataset, run, (not ranks.rank and on_event) or (lambda event: None), stop or (lambda: False), ranks, begin
            )
        )
        with contextlib.ExitStack() as held:
            ranks.first(lambda: held.enter_context(run.lock()))
            return loop.run_all()
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise InputError(budget.ran_out(config, (run.path / RESUME).exists())) from None


class Loop:
    def __init__(
        self,
        config: RunConfig,
        dataset: Dataset,
        run: Run,
        on_event: OnEvent,
        stop: Stop,
        ranks: Ranks,
        begin: Run | None,
    ) -> None:
        if dataset.peeks:
            raise InputError(f"{dataset.label}: these times tell of what is to be predicted, so nothing learned here is a run")
        self.config, self.dataset, self.run, self.on_event, self.stop = config, dataset, run, on_event, stop
        self.ranks = ranks
        self.recorder = Recorder(run, config, dataset, on_event, begin)
        self.device = ranks.place(find_device(config.train.device))
        _seed(config.train.seed, 0)
        self.model = models.build(config.model, dataset.catalog)
        if self.model.trained:
            objectives.check(config.objective.name, self.model)
        models.check_data(self.model, dataset)
        if begin is not None:
            self.model.load_state_dict(begin.weights_for(config.model, dataset).state_dict())
        if config.train.snapshots and (reason := whole.too_many(self.model)):
            raise InputError(f"train.snapshots keeps every expert after every epoch, but {reason}")
        self.model.to(self.device)
        self.now = {"wall": time.monotonic, "processor": time.process_time}[config.train.clock]
        self.epoch, self.step, self.seconds = 0, 0, 0.0
        self.best, self.best_epoch = -math.inf, 0
        self.stopped = ""

    def run_all(self) -> Run:
        first = self.ranks.first
        over, resume = first(self.recorder.left, self.device)
        if over:
            self.on_event({"event": "over", "reason": over})
            return self.run
        if resume is not None:
            self.ranks.alike(lambda: self._check(resume, None))
        if self.model.trained:
            self._learn(resume)
        else:  # it is fitted when the run is opened for its test
            first(self.recorder.start, self.model, self.device, self.ranks.count)
            first(self.run.save_weights, self.model)
            self.stopped = NO_TRAINING
        first(self.recorder.test, self.device)
        first(self.recorder.end, self.stopped or ALL_DONE, self.best_epoch, self.seconds)
        return self.run

    def _learn(self, resume: dict[str, Any] | None) -> None:
        first, train = self.ranks.first, self.config.train
        self.learner = self.ranks.together(lambda: self._prepared(resume))
        if resume is not None:
            for name in PROGRESS:
                setattr(self, name, resume[name])
            first(self.recorder.go_on, self.epoch)
            self.stopped = out_of_patience(train, self.epoch, self.best_epoch)
        else:
            first(self.recorder.start, self.model, self.device, self.ranks.count)
        while not self.stopped and self.epoch < train.epochs:
            began, row = self.now(), self.ranks.alike(self._epoch)
            if self.stopped == ASKED and self.epoch > 0:
                break
            cut = self.stopped
            self.epoch += 1
            judged = self.learner.judged(self.dataset)
            valid = first(self._valid, judged)
            if valid[SELECTION] > self.best:
                self.best, self.best_epoch = valid[SELECTION], self.epoch
                if cut:
                    first(self.run.set_aside)
                first(self.run.save_weights, judged, self.learner.rows.known())
            self.seconds += self.now() - began
            scores = {name: round(value, 6) for name, value in valid.items()}
            row = {"epoch": self.epoch, "step": self.step} | row | {"seconds": round(self.seconds, 2), "valid": scores}
            row |= {"cut": cut} if cut else {}
            first(self.recorder.epoch, row, judged)
            if cut:  # what continuing needs stays that of the last whole epoch
                break
            self.stopped = out_of_patience(train, self.epoch, self.best_epoch)
            first(lambda: self.run.save_resume({name: getattr(self, name) for name in PROGRESS} | self.learner.state()))

    def _prepared(self, resume: dict[str, Any] | None) -> Learner:
        """A learner as it was when the run broke off, or a fresh one."""
        objective = objectives.build(self.config.objective, self.dataset, self.config.model.length)
        budget.check(self.config, self.model, objective, self.dataset, self.device, self.ranks.count)
        if resume is not None:
            self.run.load_bank(self.model)
        learner = Learner(self.model, objective, self.config.train, self.device, self.ranks)
        if resume is not None:
            self._check(resume, learner)
            learner.restore(resume)
        return learner

    def _valid(self, judged: Recommender) -> dict[str, float]:
        protocol, some = self.config.train.judged_by, drawn_people(self.dataset, self.config.train.judged_people)
        return evaluate(judged, self.dataset, "valid", (protocol,), device=str(self.device), users=some).metrics[protocol]

    def _check(self, resume: dict[str, Any], learner: Learner | None) -> None:
        resuming.check(resume, learner, self.config.train.epochs, f"{self.run.name}/{RESUME}")

    def _epoch(self) -> dict[str, Any]:
        """One pass over the targets; returns the loss per target (nats), the side losses, the targets and the events read."""
        seed, batch_size = self.config.train.seed, self.config.train.batch
        _seed(seed, self.epoch + 1, self.ranks.rank)
        self.model.train()
        total, targets, events, sides = torch.zeros((), dtype=torch.float64, device=self.device), 0, 0, dict[str, torch.Tensor]()
        began, told, done = self.now(), 0.0, 0
        shares = self.learner.objective.epoch(self.epoch, seed, batch_size, self.ranks.rank, self.ranks.count)
        for done, batch in enumerate(ahead(shares, self.device), start=1):
            try:
                self.learner.calibrate(self.dataset, self.epoch, done - 1)
                learned = self.learner.step(batch)
            except torch.linalg.LinAlgError:  # the whitening of queries that are no longer numbers
                total = total + math.nan
                break
            total, targets, events = total + learned.total, targets + learned.targets, events + learned.events
            sides = {name: value + sides.get(name, 0.0) for name, value in learned.auxiliary.items()}
            self.step += 1
            now = time.monotonic()
            if now - told > 1:
                told, loss = now, float(total) / max(targets, 1)
                self.on_event({"event": "step", "epoch": self.epoch + 1, "done": done, "of": self.learner.steps, "loss": loss})
            if self._out_of_time(self.now() - began):
                break
        if not math.isfinite(total):  # read only now, and for who watches: a device that is read from has to be waited for
            raise InputError(f"the loss is no longer a number in epoch {self.epoch + 1}; try a smaller train.learning_rate")
        shown = {name: round(float(value) / max(done, 1), 6) for name, value in sides.items()}
        return {"loss": round(float(total) / max(targets, 1), 6), "auxiliary": shown, "targets": targets, "events": events}

    def _out_of_time(self, seconds: float) -> bool:
        """Any process may be asked to stop; the clock is rank 0's, and a processor's counts all its threads."""
        minutes, asked, spent = self.config.train.minutes, 2, 1
        late = minutes and not self.ranks.rank and self.seconds + seconds > minutes * 60
        decided = self.ranks.largest(asked if self.stop() else spent if late else 0)
        if decided:
            self.stopped = ASKED if decided == asked else out_of_minutes(minutes)
        return bool(self.stopped)


def _seed(seed: int, epoch: int, rank: int = 0) -> None:
    """Each rank has noise of its own; rank 0 that of a process alone."""
    mixed = int(np.random.SeedSequence([seed, epoch, rank][: 3 if rank else 2]).generate_state(1)[0])
    random.seed(mixed)
    torch.manual_seed(mixed)
