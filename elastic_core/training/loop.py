"""The training loop: shuffle, learn, validate, keep the best; resumable at every epoch border with the same numbers.

All randomness of an epoch follows from (seed, epoch), so a run that was killed repeats the epoch it was in and goes on
as if nothing had happened (bit for bit on the CPU, if the number of threads stays the same).
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
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import elastic_core.models as models
from elastic_core.config import RunConfig, TrainConfig
from elastic_core.data import Dataset
from elastic_core.data.batches import Sampler
from elastic_core.errors import InputError
from elastic_core.evaluation.evaluate import PROTOCOLS, evaluate
from elastic_core.machine import commit, device_name, find_device
from elastic_core.memory.routing import routing
from elastic_core.objectives import negative_proposal, next_item_loss
from elastic_core.runs import Run

SELECTION = "NDCG@10"
OnEvent = Callable[[dict[str, Any]], None]
Stop = Callable[[], bool]


def train(config: RunConfig, dataset: Dataset, out: Path, on_event: OnEvent | None = None, stop: Stop | None = None) -> Run:
    """Trains into the folder `out`, or goes on with what is there. Returns the finished run.

    `on_event` sees every row of metrics.jsonl and a `step` event about once a second; `stop` is asked after each step and
    ends the run early with its best weights. Raises InputError for settings that cannot work, before anything is written.
    """
    return Trainer(config, dataset, out, on_event or (lambda event: None), stop or (lambda: False)).run_all()


class Trainer:
    def __init__(self, config: RunConfig, dataset: Dataset, out: Path, on_event: OnEvent, stop: Stop) -> None:
        self.config, self.dataset, self.run = config, dataset, Run(out)
        self.on_event, self.stop = on_event, stop
        self.device = find_device(config.train.device)
        _seed(config.train.seed, 0)
        self.model = models.build(config.model, dataset.catalog.n_items)
        if self.model.objectives:
            self.model.check(config.train.objective)
        self.model.to(self.device)
        self.average = _average(self.model, config.train)
        self.sampler = Sampler(dataset, config.train, config.model.length)
        self.epoch, self.step, self.seconds = 0, 0, 0.0
        self.best, self.best_epoch = -math.inf, 0
        self.stopped = ""

    def run_all(self) -> Run:
        if self.run.finished and self.run.config.to_dict() == self.config.to_dict():
            self.run.forget_resume()  # left over if the process ended right after the last row
            return self.run
        self._start()
        if not self.model.objectives:  # nothing to learn: it is fitted when the run is opened for its test
            self.run.save_weights(self.model)
            self.stopped = "needs no training"
        else:
            self._learn()
        self._finish()
        return self.run

    # --- one run -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        resume = self.run.load_resume()
        self.optimizer = _optimizer(self.model, self.config.train) if self.model.objectives else None
        if resume is not None and self.run.config.to_dict() == self.config.to_dict():
            if (self.run.last("start") or {}).get("data_hash", self.dataset.hash) != self.dataset.hash:
                raise InputError(f"{self.dataset.label} has changed since {self.run.name} began; choose another folder")
            self._restore(resume)
            return
        if (self.run.path / "config.json").exists() and self.run.config.to_dict() != self.config.to_dict():
            raise InputError(f"{self.run.path} already holds a run with other settings; choose another folder")
        self.run.start(self.config, self.dataset)
        self._emit(
            {
                "event": "start",
                "time": round(time.time(), 1),
                "commit": commit(),
                "torch": torch.__version__,
                "device": device_name(self.device),
                "threads": torch.get_num_threads(),
                "seed": self.config.train.seed,
                "data": self.dataset.label,
                "data_hash": self.dataset.hash,
                "parameters": sum(p.numel() for p in self.model.parameters()),
            }
        )

    def _restore(self, resume: dict[str, Any]) -> None:
        self.model.load_state_dict(resume["model"])
        assert self.optimizer is not None
        self.optimizer.load_state_dict(resume["optimizer"])
        if self.average is not None:
            self.average.load_state_dict(resume["average"])
        for name in ("epoch", "step", "seconds", "best", "best_epoch", "stopped"):
            setattr(self, name, resume[name])

    def _learn(self) -> None:
        while not self.stopped and self.epoch < self.config.train.epochs:
            began, loss = time.monotonic(), self._epoch()
            if self.stopped == "asked to stop" and self.epoch > 0:
                break
            self.epoch += 1
            judged = self.judged()
            report = evaluate(judged, self.dataset, split="valid", protocols=("full",), device=str(self.device))
            valid = report.metrics["full"]
            if valid[SELECTION] > self.best:
                self.best, self.best_epoch = valid[SELECTION], self.epoch
                self.run.save_weights(judged)
            self.seconds += time.monotonic() - began
            row = {"event": "epoch", "epoch": self.epoch, "step": self.step, "loss": loss, "seconds": round(self.seconds, 2)}
            row["valid"] = {name: round(value, 6) for name, value in valid.items()}
            if judged.retrieves:
                traffic = routing(judged, self.dataset)
                row |= traffic.summary()
                if self.config.train.snapshots:
                    self.run.save_snapshot(self.epoch, traffic.load, judged.expert_values())
            self._emit(row)
            if self.epoch - self.best_epoch >= self.config.train.patience:
                self.stopped = f"no better validation {SELECTION} in {self.config.train.patience} epochs"
            self._save_resume()

    def judged(self) -> models.Recommender:
        """The weights that validation sees and the run keeps: the running average, where there is one."""
        if self.average is None:
            return self.model
        assert isinstance(self.average.module, models.Recommender)
        return self.average.module

    def _epoch(self) -> float:
        """One pass over the targets; returns the mean loss."""
        train, proposal = self.config.train, None
        _seed(train.seed, self.epoch + 1)
        if train.loss == "sampled":
            proposal = negative_proposal(torch.from_numpy(self.dataset.counts())).to(self.device)
        self.model.train()
        total, batches, began, told = 0.0, 0, time.monotonic(), 0.0
        steps = self.sampler.steps()
        for batch in self.sampler.epoch(self.epoch):
            assert self.optimizer is not None
            try:
                with _precision(self.device, train.precision):
                    loss, penalty = next_item_loss(self.model, batch.to(self.device), train, proposal)
            except torch.linalg.LinAlgError:  # the whitening of queries that are no longer numbers
                total = math.nan
                break
            self.optimizer.zero_grad(set_to_none=True)
            (loss + train.balance * penalty).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), train.clip)
            self.optimizer.step()
            if self.average is not None:
                self.average.update_parameters(self.model)
            total, batches, self.step = total + float(loss.detach()), batches + 1, self.step + 1
            now = time.monotonic()
            if now - told > 1:
                told = now
                self.on_event({"event": "step", "epoch": self.epoch + 1, "done": batches, "of": steps, "loss": total / batches})
            if self._out_of_time(now - began):
                break
        if not math.isfinite(total):
            raise InputError(f"the loss is no longer a number in epoch {self.epoch + 1}; try a smaller train.learning_rate")
        return round(total / max(batches, 1), 6)

    def _out_of_time(self, seconds: float) -> bool:
        if self.stop():
            self.stopped = "asked to stop"
        elif self.config.train.minutes and self.seconds + seconds > self.config.train.minutes * 60:
            self.stopped = f"budget of {self.config.train.minutes:g} minutes spent"
        return bool(self.stopped)

    def _save_resume(self) -> None:
        assert self.optimizer is not None
        state = {name: getattr(self, name) for name in ("epoch", "step", "seconds", "best", "best_epoch", "stopped")}
        state |= {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        if self.average is not None:
            state["average"] = self.average.state_dict()
        self.run.save_resume(state)

    def _finish(self) -> None:
        """Scores the test split once, with the best weights, under every protocol."""
        best = self.run.model(self.dataset).to(self.device)
        if self.run.has_report:  # the run was killed between these ranks and the row below
            report = self.run.report()
        else:
            report = evaluate(best, self.dataset, split="test", protocols=PROTOCOLS, device=str(self.device))
            self.run.save_report(report)
        row: dict[str, Any] = {"event": "test", "users": len(report.users), "protocols": report.metrics, "errors": report.errors}
        row["seconds"] = round(report.seconds, 2)
        if best.retrieves:
            row |= routing(best, self.dataset, split="test").summary()
        self._emit(row)
        reason = self.stopped or "all epochs done"
        self._emit({"event": "end", "reason": reason, "best_epoch": self.best_epoch, "seconds": round(self.seconds, 2)})
        self.run.forget_resume()

    def _emit(self, event: dict[str, Any]) -> None:
        self.run.append(event)
        self.on_event(event)


# --- the surroundings ------------------------------------------------------------------------------------------------


def _optimizer(model: torch.nn.Module, train: TrainConfig) -> torch.optim.Optimizer:
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[train.optimizer]
    return kind(model.parameters(), lr=train.learning_rate, weight_decay=train.weight_decay)


def _average(model: torch.nn.Module, train: TrainConfig) -> AveragedModel | None:
    return AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(train.average)) if train.average else None


def _seed(seed: int, epoch: int) -> None:
    mixed = int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])
    random.seed(mixed)
    torch.manual_seed(mixed)


def _precision(device: torch.device, precision: str) -> contextlib.AbstractContextManager[Any]:
    if precision == "bfloat16" and device.type == "cuda":
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return contextlib.nullcontext()
