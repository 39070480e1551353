"""A training into a run folder: what there is already, what is written down, and what goes on where it broke off."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elastic_core.core.batches import ALONE, Alone
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Dataset
from elastic_core.core.step import Learner
from elastic_core.core.train import ALL_DONE, Loop, Stop
from elastic_core.errors import InputError, out_of_memory
from elastic_core.machine import find_device
from elastic_core.run_config import RunConfig
from elastic_core.runs import RESUME, Run
from elastic_core.runs.recorder import NO_TRAINING, OnEvent, Recorder
from elastic_core.scale import budget


def train(
    config: RunConfig,
    dataset: Dataset,
    out: Path | str,
    on_event: OnEvent | None = None,
    stop: Stop | None = None,
    ranks: Alone = ALONE,
    begin: Run | None = None,
) -> Run:
    """Trains into the folder `out`, or goes on with what is there. Returns the finished run.

    A run that has ended goes on if the budget asked for (train.epochs, minutes, patience) has something left; else it is returned
    as it is. Its test is opened again and scored at the new end, and its log says so. `begin` gives a new run its first weights:
    those of a run of such a model over the same items.

    `on_event` sees every row of metrics.jsonl and a `step` event about once a second; `stop` is asked after each step and
    ends the run early with its best weights. Raises InputError for settings that cannot work, before anything is written,
    for a folder that another process is training into, and where memory runs out: the last whole epoch is kept then.

    With `ranks` this is one of several processes (scale/distributed.py): rank 0 writes, locks, validates and tells; `stop` of
    any.
    """
    run = Run(Path(out))
    try:
        training = ranks.together(
            lambda: Training(
                config, dataset, run, (not ranks.rank and on_event) or (lambda event: None), stop or (lambda: False), ranks, begin
            )
        )
        with contextlib.ExitStack() as held:
            ranks.first(lambda: held.enter_context(run.lock()))
            return training.run_all()
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise InputError(budget.ran_out(config, (run.path / RESUME).exists())) from None


def _too_many(model: Recommender) -> str:
    from elastic_core.memory.whole import too_many

    return too_many(model)


class Training(Loop):
    """The loop of a run, and what comes before and after it."""

    def __init__(
        self,
        config: RunConfig,
        dataset: Dataset,
        run: Run,
        on_event: Callable[[dict[str, Any]], None],
        stop: Stop,
        ranks: Alone,
        begin: Run | None,
    ) -> None:
        self.run, self.on_event = run, on_event
        self.recorder = Recorder(run, config, dataset, on_event, begin)
        super().__init__(config, dataset, self.recorder, find_device(config.train.device), stop, ranks)
        if begin is not None:
            from elastic_core.runs.cold_start import weights_for

            self.model.load_state_dict(weights_for(begin, config.model, dataset).state_dict())
        if config.train.snapshots and (reason := _too_many(self.model)):
            raise InputError(f"train.snapshots keeps every expert after every epoch, but {reason}")

    def run_all(self) -> Run:
        first = self.ranks.first
        over, resume = first(self.recorder.left, self.device)
        if over:
            self.on_event({"event": "over", "reason": over})
            return self.run
        if resume is not None:
            self.ranks.alike(lambda: self._check(resume, None))
        if self.model.trained:
            self.learn(self.ranks.together(lambda: self._prepared(resume)), resume)
        else:  # it is fitted when the run is opened for its test
            first(self.recorder.begin, self.model, self.device, self.ranks.count)
            first(self.run.save_weights, self.model)
            self.stopped = NO_TRAINING
        first(self.recorder.test, self.device)
        first(self.recorder.end, self.stopped or ALL_DONE, self.best_epoch, self.seconds)
        return self.run

    def _prepared(self, resume: dict[str, Any] | None) -> Learner:
        """A learner as it was when the run broke off, or a fresh one."""
        self.model.to(self.device)
        budget.check_budget(self.config, self.model, self.objective(), self.dataset, self.device, self.ranks.count)
        if resume is not None:
            self.run.load_bank(self.model)
        learner = self.fresh_learner()
        if resume is not None:
            self._check(resume, learner)
            learner.restore(resume)
        return learner

    def _check(self, resume: dict[str, Any], learner: Learner | None) -> None:
        from elastic_core.runs import resuming

        resuming.check_resume(resume, learner, self.config.train.epochs, f"{self.run.name}/{RESUME}")
