"""What a training writes down, in an order that survives a kill between any two lines.

resume.pt after every epoch · model.safetensors when validation improves · ranks.safetensors once, when the test is scored ·
then the row `test`, which only repeats what those ranks say · then `end`. A run with ranks is never scored again.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from elastic_core.config import RunConfig
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.evaluation.candidates import PROTOCOLS
from elastic_core.evaluation.evaluate import drawn_people, evaluate
from elastic_core.layers.row_bank import learned_numbers
from elastic_core.machine import commit, device_name
from elastic_core.memory.routing import routing
from elastic_core.models import Recommender, can_retrieve
from elastic_core.runs import Run

OnEvent = Callable[[dict[str, Any]], None]


class Recorder:
    """The run folder of one training. Every row of metrics.jsonl also goes to `on_event`."""

    def __init__(self, run: Run, config: RunConfig, dataset: Dataset, on_event: OnEvent) -> None:
        self.run, self.config, self.dataset, self.on_event = run, config, dataset, on_event

    @property
    def finished(self) -> bool:
        return self.run.finished and self.run.config.to_dict() == self.config.to_dict()

    def resume(self) -> dict[str, Any] | None:
        """What an interrupted training of these settings left, or None. Raises InputError if the folder holds another's."""
        if not (self.run.path / "config.json").exists():
            return None
        if self.run.config.to_dict() != self.config.to_dict():
            raise InputError(f"{self.run.path} already holds a run with other settings; choose another folder")
        if (self.run.last("start") or {}).get("data_hash", self.dataset.hash) != self.dataset.hash:
            raise InputError(f"{self.dataset.label} has changed since {self.run.name} began; choose another folder")
        return self.run.load_resume()

    def start(self, model: Recommender, device: torch.device, processes: int = 1) -> None:
        """A fresh attempt: what an earlier one left half-done does not count."""
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
        )

    def epoch(self, row: dict[str, Any], judged: Recommender) -> None:
        if can_retrieve(judged):
            traffic = routing(judged, self.dataset, users=drawn_people(self.dataset, self.config.train.judged_people))
            row = row | traffic.summary()
            if self.config.train.snapshots:
                self.run.save_snapshot(row["epoch"], traffic.load, judged.expert_values())
        self.emit({"event": "epoch"} | row)

    def test(self, device: torch.device) -> None:
        """Scores the test split with the kept weights under every protocol, unless that was done already, and says so."""
        if self.run.last("test") is not None:
            return
        best = self.run.model(self.dataset).to(device)
        if not self.run.has_report:
            self.run.save_report(evaluate(best, self.dataset, split="test", protocols=PROTOCOLS, device=str(device)))
        report = self.run.report()
        row = {"event": "test", "users": len(report.users), "protocols": report.metrics, "errors": report.errors}
        self.emit(row | (routing(best, self.dataset, split="test").summary() if can_retrieve(best) else {}))

    def end(self, reason: str, best_epoch: int, seconds: float) -> None:
        self.emit({"event": "end", "reason": reason, "best_epoch": best_epoch, "seconds": round(seconds, 2)})
        self.run.forget_resume()

    def emit(self, event: dict[str, Any]) -> None:
        self.run.append(event)
        self.on_event(event)
