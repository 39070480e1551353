"""What a training writes down, in an order that survives a kill between any two lines.

resume.pt after every epoch · model.safetensors when validation improves · ranks.safetensors once, when the test is scored ·
then the row `test`, which only repeats what those ranks say · then `end`. A run with ranks is never scored again, unless a larger
budget goes on with it: then the row `reopened` tells that its test was scored before, and resume.pt stays for the next time.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from elastic_core.core.config import TrainConfig
from elastic_core.core.contract import Recommender, can_retrieve
from elastic_core.core.evaluate import PROTOCOLS, drawn_people, evaluate
from elastic_core.core.histories import Dataset
from elastic_core.core.train import ALL_DONE, ASKED, SELECTION, Keeper, out_of_minutes, out_of_patience
from elastic_core.errors import InputError, value_text
from elastic_core.machine import commit, device_name
from elastic_core.memory.routing import routing
from elastic_core.models import learned_numbers
from elastic_core.run_config import RunConfig
from elastic_core.runs import CONFIG, RESUME, Run

OnEvent = Callable[[dict[str, Any]], None]
NO_TRAINING = "needs no training"
# what may be other when a run goes on: how far it goes, where it runs, and what is kept beside it
FREE = ("train.epochs", "train.minutes", "train.patience", "train.device", "train.snapshots")


class Recorder(Keeper):
    """The run folder of one training. Every row of metrics.jsonl also goes to `on_event`."""

    def __init__(self, run: Run, config: RunConfig, dataset: Dataset, on_event: OnEvent, begin: Run | None = None) -> None:
        self.run, self.config, self.dataset, self.on_event, self.first = run, config, dataset, on_event, begin

    def left(self, device: torch.device) -> tuple[str, dict[str, Any] | None]:
        """Why there is nothing left to do, "" if there is; and what going on needs, None for a beginning.

        Raises InputError if the folder holds another run, or an ended one that keeps nothing to go on from."""
        run = self.run
        if not (run.path / CONFIG).exists():
            return "", None
        self._check_same()
        if run.has_report and not run.finished:  # killed between the test's ranks and the last row: what was judged stays
            self.test(device)
            rows = run.events("epoch")
            self.end(self._over(run.config.train) or ASKED, _best(rows), rows[-1]["seconds"] if rows else 0.0)
        if run.finished and (over := self._over(self.config.train)):
            return over, None
        resume, whole = run.load_resume(), self._whole_epochs()
        if run.finished and whole and resume is None:
            if run.config.to_dict() == self.config.to_dict():
                return str((run.last("end") or {})["reason"]), None
            raise InputError(
                f"{run.name} keeps no {RESUME} to go on from; train --from {run.path} begins a new run with its weights"
            )
        done = resume.get("epoch") if resume else 0
        if isinstance(done, int) and self.config.train.epochs < done <= len(whole):
            raise InputError(f"{run.name} has {done} epochs already, more than the {self.config.train.epochs} asked for")
        return "", resume

    def _check_same(self) -> None:
        """Raises InputError if the run in the folder is not the one that is asked for, whatever its budget."""
        start = self.run.last("start") or {}
        others = self.run.config.differences(self.config)
        same_data = start.get("data_hash") == self.dataset.hash
        others = [other for other in others if other[0] not in FREE and not (other[0] == "data.source" and same_data)]
        if self.first is not None and start.get("from", self.first.name) != self.first.name:
            others.append(("the run it began with", start["from"], self.first.name))
        if others:
            said = "; ".join(f"{path} is {value_text(old)} there, {value_text(new)} here" for path, old, new in others[:3])
            raise InputError(f"{self.run.path} already holds a run with other settings ({said}); choose another folder")
        if start.get("data_hash", self.dataset.hash) != self.dataset.hash:
            raise InputError(f"{self.dataset.label} has changed since {self.run.name} began; choose another folder")

    def _whole_epochs(self) -> list[dict[str, Any]]:
        """The log's epochs that were not cut short."""
        return [row for row in self.run.events("epoch") if "cut" not in row]

    def _over(self, train: TrainConfig) -> str:
        """Why a training with this budget would be over by now, as the log tells."""
        rows, whole = self.run.events("epoch"), self._whole_epochs()
        if not rows:
            return NO_TRAINING
        if train.minutes and rows[-1]["seconds"] >= train.minutes * 60:
            return out_of_minutes(train.minutes)
        return out_of_patience(train, len(whole), _best(whole)) or ALL_DONE * (len(whole) >= train.epochs)

    def go_on(self, epochs: int) -> None:
        """Before the first new step: an ended run is opened again, and the budget that holds from now on is written down."""
        self._reopen(epochs)
        self.run.put_back()
        if self.run.config.to_dict() != self.config.to_dict():
            self.run.save_config(self.config)

    def _reopen(self, epochs: int) -> None:
        if self.run.finished:
            reason = self.run.last("end")["reason"]
            self.run.forget_report()
            self.emit({"event": "reopened", "time": round(time.time(), 1), "epoch": epochs, "reason": reason})

    def begin(self, model: Recommender, device: torch.device, processes: int = 1) -> None:
        """A fresh attempt: what an earlier one left half-done does not count."""
        self._reopen(0)
        self.run.start(self.config, self.dataset)
        self.run.save_bank(model)
        self.emit(
            {
                "event": "start",
                "time": round(time.time(), 1),
                "commit": commit(),
                "torch": torch.__version__,
                "device": device_name(device),
                "threads": torch.get_num_threads(),
                "seed": self.config.train.seed,
                "data": self.dataset.label,
                "data_hash": self.dataset.hash,
                "parameters": learned_numbers(model),
            }
            | ({"processes": processes} if processes > 1 else {})
            | ({"tied": round(self.dataset.ties.test, 4)} if self.dataset.ties else {})
            | ({"from": self.first.name} if self.first else {})
        )

    def epoch(self, row: dict[str, Any], judged: Recommender) -> None:
        if can_retrieve(judged):
            traffic = routing(judged, self.dataset, users=drawn_people(self.dataset, self.config.train.judged_people))
            row = row | traffic.summary()
            if self.config.train.snapshots:
                self.run.save_snapshot(row["epoch"], traffic.load, judged.expert_values())
        self.emit({"event": "epoch"} | row)

    def best(self, judged: Recommender, rows: dict[str, torch.Tensor], cut: bool) -> None:
        if cut:
            self.run.set_aside()
        self.run.save_weights(judged, rows)

    def whole(self, state: dict[str, Any]) -> None:
        self.run.save_resume(state)

    def tell(self, event: dict[str, Any]) -> None:
        self.on_event(event)

    def test(self, device: torch.device) -> None:
        """Scores the test split with the kept weights under every protocol, unless that was done already, and says so."""
        if self.run.last("test"):
            return
        best = self.run.model(self.dataset).to(device)
        if not self.run.has_report:
            self.run.save_report(evaluate(best, self.dataset, split="test", protocols=PROTOCOLS, device=str(device)))
        report = self.run.report()
        opened = len(self.run.events("reopened"))
        row = {"event": "test", "users": len(report.users), "protocols": report.metrics, "errors": report.errors}
        row |= {"scored": opened + 1} if opened else {}
        self.emit(row | (routing(best, self.dataset, split="test").summary() if can_retrieve(best) else {}))

    def end(self, reason: str, best_epoch: int, seconds: float) -> None:
        self.emit({"event": "end", "reason": reason, "best_epoch": best_epoch, "seconds": round(seconds, 2)})

    def emit(self, event: dict[str, Any]) -> None:
        self.run.append(event)
        self.on_event(event)


def _best(rows: list[dict[str, Any]]) -> int:
    """The epoch of the best validation, 0 for none."""
    return int(max(rows, key=lambda row: float(row["valid"][SELECTION]))["epoch"]) if rows else 0
