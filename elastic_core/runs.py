"""A run is a folder (checkpoints/<name>/): what it was told, what it learned, what happened, and what its ids mean.

    config.json        the resolved configuration
    model.safetensors  the best weights by validation NDCG@10; empty for training-free models, which are fitted on opening
    metrics.jsonl      one event a line: start, epoch, test, end; append-only, a torn last line is skipped
    ranks.safetensors  everybody's rank in the test, under every protocol; written once (evaluation/ranks.py)
    items.csv          dense id, raw id (and the title where the data's licence allows it)
    epochs/0007.safetensors  (where `train.snapshots` is on) every expert's load and value after epoch 7
    resume.pt          what continuing needs; not part of a finished run

Every file is written beside itself and renamed, so a run killed at any moment is the old one or the new one.
"""

import csv
import io
import json
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from safetensors.torch import save_file

from elastic_core import models, objectives  # noqa: F401  (a configuration names both)
from elastic_core.config import RunConfig
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.evaluation import ranks
from elastic_core.evaluation.evaluate import Report
from elastic_core.weights import model_from

CONFIG, WEIGHTS, EVENTS, ITEMS, RESUME = "config.json", "model.safetensors", "metrics.jsonl", "items.csv", "resume.pt"
SNAPSHOTS, LOCK = "epochs", ".lock"


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Lets `write` fill a file beside `path`, then puts it in place in one step."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8"))


@dataclass(frozen=True)
class Run:
    """An existing run folder. Nothing is read until asked for."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def config(self) -> RunConfig:
        text = self._read(CONFIG)
        try:
            plain = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"{self.name}/{CONFIG} is not valid JSON (line {error.lineno}): {error.msg}") from None
        if not isinstance(plain, dict):
            raise InputError(f"{self.name}/{CONFIG} must hold an object")
        try:
            return RunConfig.from_dict(plain)
        except InputError as error:
            raise InputError(f"{self.name}/{CONFIG}: {error}") from None

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl from the last `start` on: an attempt that died does not count. A repeated epoch (after an
        interruption) counts once, the last time."""
        path = self.path / EVENTS
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
        rows = [row for row in map(_event, lines) if row is not None]
        rows = rows[max((i for i, row in enumerate(rows) if row["event"] == "start"), default=0) :]
        latest = {row["epoch"]: i for i, row in enumerate(rows) if row.get("event") == "epoch"}
        rows = [row for i, row in enumerate(rows) if row.get("event") != "epoch" or latest[row["epoch"]] == i]
        return [row for row in rows if kind is None or row.get("event") == kind]

    def last(self, kind: str) -> dict[str, Any] | None:
        rows = self.events(kind)
        return rows[-1] if rows else None

    @property
    def finished(self) -> bool:
        return self.last("end") is not None and self.last("test") is not None

    def model(self, dataset: Dataset | None = None) -> models.Recommender:
        """The best weights, in eval mode on the CPU, checked to belong to the dataset if that is given.

        A training-free model has no weights: it is fitted to the dataset it was tested on, which it therefore needs.
        Raises InputError if the file is missing, cut short or does not fit, or if it was learned with other items.
        """
        if dataset is not None:
            self.check_data(dataset)
        if not models.model_class(self.config.model.name).objective:
            return self._fitted(dataset)
        if not (self.path / WEIGHTS).is_file():
            raise InputError(f"the run {self.name} has no {WEIGHTS}")
        catalog = self.catalog() if dataset is None else dataset.catalog
        return model_from(self.path / WEIGHTS, self.config.model, catalog, name=f"{self.name}/{WEIGHTS}").eval()

    def _fitted(self, dataset: Dataset | None) -> models.Recommender:
        if dataset is None:
            raise InputError(f"{self.name} holds no weights: {self.config.model.name} is fitted to its data on opening")
        learned = (self.last("start") or {}).get("data_hash", dataset.hash)
        if learned != dataset.hash:
            raise InputError(f"the run {self.name} was fitted to data {learned}, but {dataset.label} is now {dataset.hash}")
        model = models.build(self.config.model, dataset.catalog)
        model.fit(dataset)
        return model.eval()

    @property
    def has_report(self) -> bool:
        """Whether the ranks of its test are there; nothing is read."""
        return (self.path / ranks.FILE).exists()

    def report(self) -> Report:
        """Everybody's ranks in the run's test, as they were stored then.

        Raises InputError if none are stored (it says how), the file is damaged, or it is of other data than the run's.
        """
        if not self.has_report:
            raise InputError(
                f"the run {self.name} keeps no ranks of its test; python -m elastic_core evaluate {self.path} --store keeps them"
            )
        found = ranks.read(self.path / ranks.FILE, f"{self.name}/{ranks.FILE}")
        if found.data_hash != (self.last("start") or {}).get("data_hash", found.data_hash):
            raise InputError(f"{self.name}/{ranks.FILE} is of other data ({found.data_hash}) than the run")
        return found

    def snapshots(self) -> list[tuple[int, Path]]:
        """The epochs whose memory was kept, in order: number and file with `load` [K] and `values` [K, d]."""
        files = sorted((self.path / SNAPSHOTS).glob("*.safetensors"))
        return [(int(file.stem), file) for file in files if file.stem.isdecimal()]

    def n_items(self) -> int:
        return len(self.raw_ids()) - 1

    def catalog(self) -> Catalog:
        """What the run's ids mean, without titles and genres: those come with the data."""
        return Catalog(np.array(self.raw_ids(), dtype=object))

    def raw_ids(self) -> list[str]:
        """Raw id of each dense id; `[0]` is padding."""
        rows = list(csv.reader(io.StringIO(self._read(ITEMS))))
        if len(rows) < 2 or rows[0][:2] != ["id", "raw"]:
            raise InputError(f"{self.name}/{ITEMS} must start with the header id,raw and list the items")
        torn = next((i for i, row in enumerate(rows) if i and (len(row) != len(rows[0]) or row[0] != str(i))), None)
        if torn is not None:
            raise InputError(
                f"{self.name}/{ITEMS}, line {torn + 1}: not item {torn} with {len(rows[0])} fields; it may be cut short"
            )
        return [""] + [row[1] for row in rows[1:]]

    def check_data(self, dataset: Dataset) -> None:
        """Raises InputError if the weights were learned with other items than the dataset's."""
        if self.raw_ids() != [str(raw) for raw in dataset.catalog.ids]:
            raise InputError(f"the run {self.name} was trained on other items than {dataset.label} holds")

    def _read(self, name: str) -> str:
        path = self.path / name
        if not path.is_file():
            raise InputError(f"the run {self.name} has no {name}")
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{self.name}/{name} is not a UTF-8 text file") from None

    # writing, used by the trainer only

    def start(self, config: RunConfig, dataset: Dataset) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        for left in self.path.glob(f"{SNAPSHOTS}/*.safetensors"):
            left.unlink(missing_ok=True)  # of an attempt that died
        write_text(self.path / CONFIG, json.dumps(config.to_dict(), indent=1) + "\n")
        titled = dataset.titles_may_be_shared and dataset.catalog.titles is not None
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["id", "raw", "title"] if titled else ["id", "raw"])
        for i in range(1, dataset.catalog.n_items + 1):
            row = [i, dataset.catalog.ids[i]]
            writer.writerow([*row, dataset.catalog.title(i)] if titled else row)
        write_text(self.path / ITEMS, out.getvalue())

    def append(self, event: dict[str, Any]) -> None:
        path = self.path / EVENTS
        torn = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
        with path.open("a", encoding="utf-8") as file:
            file.write(("\n" if torn else "") + json.dumps(event) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def save_report(self, report: Report) -> None:
        """Keeps a test's ranks. Raises InputError if there are some already: the test split is scored once."""
        if self.has_report:
            raise InputError(f"the run {self.name} was tested already: its ranks are in {ranks.FILE}, and a test is scored once")
        write_whole(self.path / ranks.FILE, lambda beside: ranks.write(report, beside))

    def save_weights(self, model: torch.nn.Module) -> None:
        weights = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}
        write_whole(self.path / WEIGHTS, lambda beside: save_file(weights, beside))

    def save_resume(self, state: dict[str, Any]) -> None:
        write_whole(self.path / RESUME, lambda beside: torch.save(state, beside))

    def load_resume(self) -> dict[str, Any] | None:
        """What continuing needs, or None. Raises InputError if the file is damaged."""
        path = self.path / RESUME
        if not path.exists():
            return None
        try:
            return dict(torch.load(path, weights_only=True, map_location="cpu"))
        except (RuntimeError, EOFError, OSError, ValueError, TypeError, pickle.UnpicklingError):
            raise InputError(f"{self.name}/{RESUME} is damaged; delete it to start this run again") from None

    def save_snapshot(self, epoch: int, load: np.ndarray, values: torch.Tensor) -> None:
        """The memory after an epoch: how many validation people summon each expert, and the experts (half precision)."""
        (self.path / SNAPSHOTS).mkdir(exist_ok=True)
        kept = {"load": torch.from_numpy(load).int(), "values": values.detach().cpu().half().contiguous()}
        write_whole(self.path / SNAPSHOTS / f"{epoch:04d}.safetensors", lambda beside: save_file(kept, beside))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """For the process that writes the folder. Raises InputError if another one has it."""
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.path / LOCK, timeout=0):
                for left in self.path.rglob(".*.[0-9]*"):
                    left.unlink(missing_ok=True)  # what a killed process was writing; nobody else writes here now
                yield
        except Timeout:
            raise InputError(f"another process is training into {self.path}; wait for it, or choose another folder") from None

    def forget_resume(self) -> None:
        (self.path / RESUME).unlink(missing_ok=True)


# What an event must hold to count: readers rely on it, and a file may have been edited.
PARTS: dict[str, dict[str, Any]] = {
    "epoch": {"epoch": int, "loss": (int, float), "seconds": (int, float), "valid": dict},
    "test": {"protocols": dict},
    "end": {"reason": str, "seconds": (int, float)},
}


def _event(line: str) -> dict[str, Any] | None:
    """One line of metrics.jsonl, or None if it is torn or no event."""
    try:
        row = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        return None
    if not isinstance(row, dict) or not isinstance(row.get("event"), str):
        return None
    return row if all(isinstance(row.get(key), kind) for key, kind in PARTS.get(row["event"], {}).items()) else None


def open_run(path: Path | str) -> Run:
    """The run in a folder. Raises InputError if there is none."""
    run = Run(Path(path))
    if not (run.path / CONFIG).is_file():
        raise InputError(f"there is no run in {run.path} (it has no {CONFIG})")
    return run


def list_runs(root: Path | str = "checkpoints") -> list[Run]:
    """All runs below `root` that have weights, by name."""
    return [Run(p.parent) for p in sorted(Path(root).glob(f"*/{CONFIG}")) if (p.parent / WEIGHTS).is_file()]
