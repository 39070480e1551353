"""A training into a run folder: what there is already, what goes on where it broke off, and what is written down, in an order
that survives a kill between any two lines.

resume.pt after every epoch · model.safetensors when validation improves · ranks.safetensors once, when the test is scored ·
then the row `test`, which only repeats what those ranks say · then `end`. A run with ranks is never scored again, unless a larger
budget goes on with it: then the row `reopened` tells that its test was scored before, and resume.pt stays for the next time.
"""

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from elastic_core.core.batches import ALONE, SingleProcess
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.core.config import TrainConfig
from elastic_core.core.contract import Recommender, can_retrieve
from elastic_core.core.evaluate import draw_users
from elastic_core.core.histories import Dataset
from elastic_core.core.step import Optimization
from elastic_core.core.train import (
    ALL_DONE,
    PROGRESS,
    SELECTION,
    STOP_REQUESTED,
    Loop,
    Stop,
    TrainingCallback,
    out_of_minutes,
    out_of_patience,
)
from elastic_core.data.repeats import count_repeats, fitting_protocol
from elastic_core.errors import InputError, out_of_memory, unless_memory, value_text
from elastic_core.machine import CPU, choose_threads, code_commit, device_name, find_device, keep_threads, release_memory
from elastic_core.memory.routing import route_users
from elastic_core.recipes import settings_for
from elastic_core.run_config import RunConfig
from elastic_core.runs import CONFIG, RESUME, Run
from elastic_core.runs.progress import Progress, stop_on_signals
from elastic_core.runs.ranks import evaluate
from elastic_core.scale import budget

OnEvent = Callable[[dict[str, Any]], None]
NO_TRAINING = "needs no training"
# what may be other when a run goes on: how far it goes, where it runs, and what is kept beside it
PLACES = ("data.source", "data.titles")  # and those, where they hold the same events
FREE = ("train.epochs", "train.minutes", "train.patience", "train.device", "train.snapshots")


def train(
    model: str | RunConfig,
    data: Dataset,
    out: Path | str | None = None,
    on_event: OnEvent | None = None,
    stop: Stop | None = None,
    ranks: SingleProcess = ALONE,
    begin: Run | None = None,
    *,
    minutes: float | None = None,
    seed: int | None = None,
    device: str | None = None,
) -> Run:
    """Trains into the folder `out` (default: a temporary one), or goes on with what is there. Returns the finished run.

    model: a name such as "elastic" or "sasrec", whose settings then follow from the size of the data (recipes.py), or all
    settings. minutes (of the clock on the wall), seed and device change these; of a name they are 5, 0 and "auto".

    >>> run = elastic_core.train("elastic", data, minutes=0.02, seed=0)
    >>> run.config.model.name, run.finished
    ('elastic', True)

    A run that has ended goes on if the budget asked for (train.epochs, minutes, patience) has something left; else it is returned
    as it is. Its test is opened again and scored at the new end, and its log says so. `begin` gives a new run its first weights:
    those of a run of such a model over the same items.

    `on_event` sees every row of metrics.jsonl and a `step` event about once a second, in place of a bar; `stop` is asked after
    each step and ends the run early with its best weights, and so does Ctrl-C, where neither is given.
    Raises InputError for settings that cannot work, before anything is written, for a folder that another process is training
    into, and where memory runs out: the last whole epoch is kept then.

    With `ranks` this is one of several processes (scale/distributed.py): rank 0 writes, locks, validates and tells; `stop` of
    any.
    """
    config = _settings(model, data, minutes, seed, device)
    run = Run(Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="elastic-"), config.model.name))
    with contextlib.ExitStack() as stack:
        if on_event is None and stop is None and ranks is ALONE:
            on_event = stack.enter_context(contextlib.closing(Progress(config.train, lines=False)))
            stop = stack.enter_context(stop_on_signals(signal.SIGINT))
        if isinstance(model, str) and find_device(config.train.device).type == "cpu":
            stack.enter_context(keep_threads())
            settle_threads(config, data, run)
        report_event: OnEvent = (not ranks.rank and on_event) or (lambda event: None)
        try:
            training = ranks.run_on_each(
                lambda: RunTraining(config, data, run, report_event, stop or (lambda: False), ranks, begin)
            )
            ranks.run_on_first(lambda: stack.enter_context(run.lock()))
            finished = training.run_all()
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            raise InputError(budget.out_of_memory_text(config, (run.path / RESUME).exists())) from None
    finished.__dict__["dataset"] = data  # it need not be read again
    return finished


def _settings(model: str | RunConfig, data: Dataset, minutes: float | None, seed: int | None, device: str | None) -> RunConfig:
    if not isinstance(data, Dataset):
        raise InputError("train takes data that elastic_core.load has read: train('elastic', elastic_core.load(…))")
    if isinstance(model, str):
        return settings_for(model, data, 5.0 if minutes is None else minutes, seed or 0, str(find_device(device or "auto")))
    changes = {"train.minutes": minutes, "train.seed": seed, "train.device": device and str(find_device(device))}
    config = model.replace_values({path: value for path, value in changes.items() if value is not None})
    return replace(config, data=data.config) if data.files else config


def settle_threads(config: RunConfig, dataset: Dataset, run: Run) -> int | None:
    """Set how many threads a training has: those it had, so that it goes on bit for bit, or those that step quickest now, which
    are returned."""
    if thread_count := run.last_event("start").get("threads"):
        torch.set_num_threads(thread_count)
    elif "OMP_NUM_THREADS" not in os.environ and (loop := Loop(config, dataset, TrainingCallback(), CPU)).model.trained:
        learner = loop.new_optimization()
        budget.check_budget(config, learner.model, learner.objective, dataset, learner.device)
        batch = next(iter(learner.objective.epoch_batches(0, config.train.seed, config.train.batch)))
        return choose_threads(lambda: learner.step(batch), rounds=3)
    return None


def _too_many_experts(model: Recommender) -> str:
    from elastic_core.memory.routing import too_many_experts

    return too_many_experts(model)


class RunTraining(Loop):
    """The loop of a run, and what comes before and after it."""

    def __init__(
        self,
        config: RunConfig,
        dataset: Dataset,
        run: Run,
        on_event: Callable[[dict[str, Any]], None],
        stop: Stop,
        ranks: SingleProcess,
        begin: Run | None,
    ) -> None:
        self.run, self.on_event = run, on_event
        self.recorder = RunRecorder(run, config, dataset, on_event, begin)
        super().__init__(config, dataset, self.recorder, find_device(config.train.device), stop, ranks)
        if begin is not None:
            from elastic_core.runs.initial_weights import initial_weights

            self.model.load_state_dict(initial_weights(begin, config.model, dataset).state_dict())
        if config.train.snapshots and (reason := _too_many_experts(self.model)):
            raise InputError(f"train.snapshots keeps every expert after every epoch, but {reason}")

    def run_all(self) -> Run:
        first = self.ranks.run_on_first
        over, resume = first(self.recorder.resume_point, self.device)
        if over:
            self.on_event({"event": "over", "reason": over})
            return self.run
        if self.model.trained:
            self.run_epochs(self.ranks.run_on_each(lambda: self._prepare_learner(resume)), resume)
        else:  # it is fitted when the run is opened for its test
            first(self.recorder.on_begin, self.model, self.device, self.ranks.count)
            first(self.run.save_weights, self.model)
            self.stopped = NO_TRAINING
        first(self.recorder.test_once, self.device)
        first(self.recorder.write_end, self.stopped or ALL_DONE, self.best_epoch, self.seconds)
        return self.run

    def _prepare_learner(self, resume: dict[str, Any] | None) -> Optimization:
        """A learner as it was when the run broke off, or a fresh one."""
        self.model.to(self.device)
        budget.check_budget(self.config, self.model, self.objective(), self.dataset, self.device, self.ranks.count)
        learner = self.new_optimization()
        if resume is not None:
            self._restore_learner(learner, resume)
        return learner

    def _restore_learner(self, learner: Optimization, resume: dict[str, Any]) -> None:
        """Raises InputError if `resume` is not of this training."""
        try:
            learner.restore(resume)
            if missing_fields := [name for name in PROGRESS if name not in resume]:
                raise KeyError(missing_fields[0])
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
            unless_memory(error)
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"{self.run.name}/{RESUME} is damaged; delete it to start this run again ({reason})") from None


# --- what is written down --------------------------------------------------------------------------------------------


class RunRecorder(TrainingCallback):
    """The run folder of one training. Every row of metrics.jsonl also goes to `on_event`."""

    def __init__(self, run: Run, config: RunConfig, dataset: Dataset, on_event: OnEvent, begin: Run | None = None) -> None:
        self.run, self.config, self.dataset, self.on_event, self.first = run, config, dataset, on_event, begin

    def resume_point(self, device: torch.device) -> tuple[str, dict[str, Any] | None]:
        """Why there is nothing left to do, "" if there is; and what going on needs, None for a beginning.

        Raises InputError if the folder holds another run, or an ended one that keeps nothing to go on from."""
        run = self.run
        if not (run.path / CONFIG).exists():
            return "", None
        self._check_same()
        if run.has_report and not run.finished:  # killed between the test's ranks and the last row: what was judged stays
            self.test_once(device)
            rows = run.events("epoch")
            self.write_end(
                self._why_over(run.config.train) or STOP_REQUESTED, _best_epoch(rows), rows[-1]["seconds"] if rows else 0.0
            )
        if run.finished and (over := self._why_over(self.config.train)):
            return over, None
        resume, whole_epochs = run.load_resume(), self._whole_epochs()
        if run.finished and whole_epochs and resume is None:
            if run.config.to_dict() == self.config.to_dict():
                return str((run.last_event("end") or {})["reason"]), None
            raise InputError(
                f"{run.name} keeps no {RESUME} to go on from; train --from {run.path} begins a new run with its weights"
            )
        done = resume.get("epoch") if resume else 0
        if isinstance(done, int) and self.config.train.epochs < done <= len(whole_epochs):
            raise InputError(f"{run.name} has {done} epochs already, more than the {self.config.train.epochs} asked for")
        return "", resume

    def _check_same(self) -> None:
        """Raises InputError if the run in the folder is not the one that is asked for, whatever its budget."""
        start = self.run.last_event("start") or {}
        other_settings = self.run.config.differences(self.config)
        same_data = start.get("data_hash") == self.dataset.hash
        other_settings = [other for other in other_settings if other[0] not in FREE and not (other[0] in PLACES and same_data)]
        if self.first is not None and start.get("from", self.first.name) != self.first.name:
            other_settings.append(("the run it began with", start["from"], self.first.name))
        if other_settings:
            differences = "; ".join(
                f"{path} is {value_text(old)} there, {value_text(new)} here" for path, old, new in other_settings[:3]
            )
            raise InputError(f"{self.run.path} already holds a run with other settings ({differences}); choose another folder")
        if start.get("data_hash", self.dataset.hash) != self.dataset.hash:
            raise InputError(f"{self.dataset.label} has changed since {self.run.name} began; choose another folder")

    def _whole_epochs(self) -> list[dict[str, Any]]:
        """The log's epochs that were not cut short."""
        return [row for row in self.run.events("epoch") if "cut" not in row]

    def _why_over(self, train: TrainConfig) -> str:
        """Why a training with this budget would be over by now, as the log tells."""
        rows, whole_epochs = self.run.events("epoch"), self._whole_epochs()
        if not rows:
            return NO_TRAINING
        if train.minutes and rows[-1]["seconds"] >= train.minutes * 60:
            return out_of_minutes(train.minutes)
        return out_of_patience(train, len(whole_epochs), _best_epoch(whole_epochs)) or ALL_DONE * (
            len(whole_epochs) >= train.epochs
        )

    def on_resume(self, epochs: int) -> None:
        """Before the first new step: an ended run is opened again, and the budget that holds from now on is written down."""
        self._reopen_run(epochs)
        self.run.restore_whole_weights()
        if self.run.config.to_dict() != self.config.to_dict():
            self.run.save_config(self.config)

    def _reopen_run(self, epochs: int) -> None:
        if self.run.finished:
            reason = self.run.last_event("end")["reason"]
            self.run.forget_report()
            self.write_event({"event": "reopened", "time": round(time.time(), 1), "epoch": epochs, "reason": reason})

    def on_begin(self, model: Recommender, device: torch.device, processes: int = 1) -> None:
        """A fresh attempt: what an earlier one left half-done does not count."""
        self._reopen_run(0)
        self.run.write_start(self.config, self.dataset)
        self.write_event(
            {
                "event": "start",
                "time": round(time.time(), 1),
                "commit": code_commit(),
                "torch": torch.__version__,
                "device": device_name(device),
                "threads": torch.get_num_threads(),
                "seed": self.config.train.seed,
                "data": self.dataset.label,
                "data_hash": self.dataset.hash,
                "repeats": round(count_repeats(self.dataset, "valid").share, 4),
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
            }
            | ({"processes": processes} if processes > 1 else {})
            | ({"tied": round(self.dataset.ties.test, 4)} if self.dataset.ties else {})
            | ({"from": self.first.name} if self.first else {})
        )

    def on_epoch(self, row: dict[str, Any], model: Recommender) -> None:
        if can_retrieve(model):
            traffic = route_users(model, self.dataset, users=draw_users(self.dataset, self.config.train.valid_users))
            row = row | traffic.usage_summary()
            if self.config.train.snapshots:
                self.run.save_snapshot(row["epoch"], traffic.load, model.expert_values())
        self.write_event({"event": "epoch"} | row)
        release_memory()

    def on_best(self, model: Recommender, cut: bool) -> None:
        if cut:
            self.run.keep_whole_weights()
        self.run.save_weights(model)

    def on_whole_epoch(self, state: dict[str, Any]) -> None:
        self.run.save_resume(state)

    def on_progress(self, event: dict[str, Any]) -> None:
        self.on_event(event)

    def test_once(self, device: torch.device) -> None:
        """Scores the test split with the kept weights under every protocol, unless that was done already, and says so."""
        if self.run.last_event("test"):
            return
        best = self.run.model(self.dataset).to(device)
        if not self.run.has_report:
            self.run.save_report(evaluate(best, self.dataset, split="test", protocols=PROTOCOLS, device=str(device)))
        report = self.run.report()
        opened = len(self.run.events("reopened"))
        row = {"event": "test", "protocol": fitting_protocol(self.dataset), "users": len(report.users)}
        row |= {"protocols": report.metrics, "errors": report.errors}
        row |= {"scored": opened + 1} if opened else {}
        if self.dataset.in_baskets:
            from elastic_core.runs.basket_scores import basket_scores  # of the few data that have baskets

            row |= {"basket": basket_scores(best, self.dataset, device=device)}
        self.write_event(row | (route_users(best, self.dataset, split="test").usage_summary() if can_retrieve(best) else {}))

    def write_end(self, reason: str, best_epoch: int, seconds: float) -> None:
        self.write_event({"event": "end", "reason": reason, "best_epoch": best_epoch, "seconds": round(seconds, 2)})

    def write_event(self, event: dict[str, Any]) -> None:
        self.run.append_event(event)
        self.on_event(event)


def _best_epoch(rows: list[dict[str, Any]]) -> int:
    """The epoch of the best validation, 0 for none."""
    return int(max(rows, key=lambda row: float(row["valid"][SELECTION]))["epoch"]) if rows else 0
