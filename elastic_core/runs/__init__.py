"""A run is a folder (checkpoints/<name>/, of those that came along checkpoints/demo/<name>/): what it was told, what it learned,
what happened, and what its ids mean. What runs measured without their folders is in tables, see elastic_core/results/store.py.

    config.json        the resolved configuration
    model.safetensors  the best weights by validation NDCG@10; empty for training-free models, which are fitted on opening
    metrics.jsonl      one event a line: start, epoch, test, end, reopened; append-only, a torn last line is skipped
    ranks.safetensors  everybody's rank in the test, under every protocol; written once an end (runs/ranks.py)
    data/DataFrame.parquet  (of a run that learned from one) the frame, so that the folder holds all it needs
    items.csv          dense id, raw id, training events (and title and genres where the data's licence allows it)
    epochs/0007.safetensors  (where `train.snapshots` is on) every expert's load and value after epoch 7
    resume.pt          what continuing needs, of the last whole epoch; without it an ended run stays as it is
    whole.safetensors  the best weights of whole epochs, where an epoch that was cut short did better; likewise

Every file is written beside itself and renamed, so a run killed at any moment is the old one or the new one.
"""

import errno
import functools
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from filelock import FileLock, Timeout
from safetensors.torch import save_file

from elastic_core import files, models
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Catalog, Dataset, facts_as_html
from elastic_core.data.repeats import OFTEN, ONLY_UNSEEN, WITH_SEEN
from elastic_core.data.source_catalog import is_available
from elastic_core.data.sources import load
from elastic_core.errors import InputError, unless_memory
from elastic_core.run_config import RunConfig
from elastic_core.runs import items, log, ranks
from elastic_core.runs.checkpoints import CHECKPOINTS
from elastic_core.runs.ranks import Report
from elastic_core.runs.weights import load_model, read_tensors

if TYPE_CHECKING:
    import pandas as pd

    from elastic_core.core.histories import Split
    from elastic_core.recommendations import Histories, Id, ItemRanker, Users
    from elastic_core.runs.embeddings import Kind

CONFIG, WEIGHTS, EVENTS, ITEMS, RESUME = "config.json", "model.safetensors", "metrics.jsonl", items.FILE, "resume.pt"
FRAME = "data/DataFrame.parquet"  # as data/frames.py calls it
WHOLE_EPOCHS, SNAPSHOTS, LOCK = "whole.safetensors", "epochs", ".lock"
DEMO = "demo"  # below checkpoints/: the folders of runs that came along with their weights
MOST_CONFIG, MOST_WEIGHTS = 2**18, 2**30  # bytes that are read at most


class Snapshot(NamedTuple):
    """A memory after an epoch."""

    load: np.ndarray  # int32 [K]: how many validation people retrieve each expert
    values: np.ndarray  # float32 [K, d]


@dataclass(frozen=True)
class Run:
    """An existing run folder. Nothing is read until asked for."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def place(self) -> str:
        """Its folder as seen from the project's: `checkpoints/demo/planted-elastic`."""
        parts = self.path.parts
        return "/".join(parts[-3:] if parts[-2:-1] == (DEMO,) else parts[-2:])

    @cached_property
    def config(self) -> RunConfig:
        plain = files.read_object(self.path / CONFIG, MOST_CONFIG, self.path)
        try:
            config = RunConfig.from_dict(plain)
        except InputError as error:
            raise InputError(f"{self._file_name(CONFIG)}: {error}") from None
        frame = self.path / FRAME
        if config.data.source == FRAME and frame.is_file():  # of a DataFrame, which the folder keeps
            config = replace(config, data=replace(config.data, source=str(frame.resolve())))
        return config

    @cached_property
    def setup(self) -> str:
        """The settings as text, without the seed and what changes nothing in what is trained: one text for one system."""
        plain = self.config.to_dict()
        train = {name: value for name, value in plain["train"].items() if name not in ("seed", "snapshots", "device")}
        return json.dumps({**plain, "train": train}, sort_keys=True)

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl from the last `start` on: an attempt that died does not count. A repeated epoch (after an
        interruption) counts once, the last time."""
        rows = log.read_log(self.path / EVENTS, self.path)
        return [row for row in rows if kind is None or row["event"] == kind]

    def last_event(self, kind: str) -> dict[str, Any]:
        """The last event of this kind; an empty one where there was none."""
        return (self.events(kind) or [{}])[-1]

    @property
    def finished(self) -> bool:
        return bool(self.last_event("end") and self.last_event("test"))

    def model(self, dataset: Dataset | None = None) -> Recommender:
        """The best weights, in eval mode on the CPU, checked to belong to the dataset if that is given.

        A training-free model has no weights: it is fitted to the dataset it was tested on, which it therefore needs.
        Raises InputError if the file is missing, cut short or does not fit, if a weight is no number, or if it was learned
        with other items.
        """
        if dataset is not None:
            self.check_data(dataset)
        if not models.model_class(self.config.model.name).objective:
            return self._fit_model(dataset)
        path = files.check_regular_file(self.path / WEIGHTS, MOST_WEIGHTS, self.path)
        catalog = self.catalog() if dataset is None else dataset.catalog
        return load_model(path, self.config.model, catalog, name=self._file_name(WEIGHTS)).eval()

    @cached_property
    def dataset(self) -> Dataset:
        """The data it learned from, read when they are first needed. Raises InputError where they cannot be had."""
        return load(self.config.data)

    def _fit_model(self, dataset: Dataset | None) -> Recommender:
        if dataset is None:
            raise InputError(f"{self.name} holds no weights: {self.config.model.name} is fitted to its data on opening")
        learned = (self.last_event("start") or {}).get("data_hash", dataset.hash)
        if learned != dataset.hash:
            raise InputError(f"the run {self.name} was fitted to data {learned}, but {dataset.label} is now {dataset.hash}")
        model = models.build(self.config.model, dataset.catalog)
        model.fit(dataset)
        return model.eval()

    @property
    def has_weights(self) -> bool:
        return os.path.lexists(self.path / WEIGHTS)

    @property
    def has_report(self) -> bool:
        """Whether the ranks of its test are there; nothing is read."""
        return (self.path / ranks.FILE).exists()

    def report(self) -> Report:
        """Everybody's ranks in the run's test, as they were stored then.

        Raises InputError if none are stored (it says how), the file is damaged, or it is of other data than the run's.
        """
        if not self.has_report:
            raise InputError(f"the run {self.name} keeps no ranks of its test; elastic evaluate {self.path} --store keeps them")
        return _read_report(self, files.file_stamp(self.path / ranks.FILE), files.file_stamp(self.path / EVENTS))

    def snapshot_files(self) -> list[tuple[int, Path]]:
        """The epochs whose memory was kept, in order: number and file, which `read_snapshot` reads."""
        entries = files.list_entries(self.path / SNAPSHOTS, "*.safetensors")
        return sorted({int(file.stem): file for file in entries if re.fullmatch(r"[0-9]{1,6}", file.stem)}.items())

    def read_snapshot(self, path: Path) -> Snapshot:
        """What one of the files in `snapshot_files` holds. Raises InputError if it is damaged."""
        name = self._file_name(str(path.relative_to(self.path)))
        memory = read_tensors(path, name)
        if not {"load", "values"} <= set(memory):
            raise InputError(f"{name} is no snapshot: it must hold the load and the values of experts")
        return Snapshot(memory["load"].numpy(), memory["values"].float().numpy())

    def n_items(self) -> int:
        return len(self.raw_ids()) - 1

    def catalog(self) -> Catalog:
        """What the run's ids mean, with titles and genres where they came along (runs/items.py)."""
        return items.read_items(self.path / ITEMS, self.path)

    def raw_ids(self) -> list[str]:
        """Raw id of each dense id; `[0]` is padding."""
        return [str(raw) for raw in self.catalog().ids]

    @cached_property
    def ranker(self) -> "ItemRanker":
        """Makes lists of the next items; the weights are read once."""
        from elastic_core.recommendations import ItemRanker

        if not models.model_class(self.config.model.name).objective:  # a model that counts is fitted to its data
            return ItemRanker(self.model(self.dataset), self.dataset.catalog, lambda: self.dataset, keep_seen=self.keeps_seen)
        counts = items.read_counts(self.path / ITEMS, self.path)
        return ItemRanker(self.model(), self.catalog(), lambda: self.dataset, counts, self.keeps_seen)

    @property
    def protocol(self) -> str:
        """The protocol that fits its data: all items where validation's targets were often seen ones, or baskets are held out;
        else all unseen items. Runs of old did not count repeats."""
        repeats = self.last_event("start").get("repeats", 0.0)
        return WITH_SEEN if repeats >= OFTEN or self.last_event("test").get("basket") else ONLY_UNSEEN

    @property
    def keeps_seen(self) -> bool:
        """Whether its lists hold items of the history, too, unless somebody says otherwise."""
        return self.protocol == WITH_SEEN

    # --- what a notebook asks -------------------------------------------------------------------------------------------

    def recommend(
        self,
        users: "Users" = None,
        k: int = 10,
        *,
        histories: "Histories | None" = None,
        exclude: "Iterable[Id]" = (),
        only: "Iterable[Id] | None" = None,
        seen: bool | None = None,
        before_test: bool = False,
    ) -> "pd.DataFrame":
        """The `k` best next items, one row a suggestion: user, rank, item, title, score, and basis (`history`, or `popularity`
        where nothing is known of a user).

        users: an id or ids in the data (default: everybody). histories: in their place lists of item ids, oldest first, or a
        mapping from names to such lists; they need nothing but the run's folder, and ids that the run does not know are left out,
        with a warning. exclude, only: ids of items. seen: whether lists may hold items of the history; by default where people
        often choose such. before_test: users before their test event.
        Raises InputError for a user who is not in the data, and where no item is left.

        >>> run.recommend(users=["1", "2"], k=2)["rank"].tolist()
        [1, 2, 1, 2]
        >>> run.recommend(histories={"anna": ["7", "9"]}, k=1)["user"].tolist()
        ['anna']
        """
        options = {"histories": histories, "exclude": exclude, "only": only, "seen": seen, "before_test": before_test}
        lists = self.ranker.recommend(users, k, **options)
        if histories is not None and (n_unknown := int(lists.unknown.sum())):
            text = f"{n_unknown:,} {'item' if n_unknown == 1 else 'items'} of these histories {'is' if n_unknown == 1 else 'are'}"
            warnings.warn(f"{text} not in the run's catalogue and left out: histories hold ids, not titles", stacklevel=2)
        return lists.table

    def evaluate(
        self,
        split: "Split" = "test",
        protocols: Sequence[str] = PROTOCOLS,
        metrics: Sequence[str] = ("NDCG@10", "HR@10", "MRR@10"),
    ) -> "pd.DataFrame":
        """Everybody's held-out item ranked: protocol, metric, value, low, high (95% over people), people. The protocol that fits
        the data comes first; then, where the run's data are on this machine, coverage of the catalogue and popularity of what is
        recommended (runs/evaluation.py).

        The ranks of a test are those that the run keeps. Raises InputError for unknown protocols, and for another split where the
        data cannot be had.

        >>> run.evaluate(metrics=["HR@10"])[["protocol", "metric"]].iloc[0].tolist()
        ['full-seen', 'HR@10']
        """
        from elastic_core.runs.evaluation import evaluation_table, list_rows

        ordered, of_lists = sorted(protocols, key=lambda protocol: protocol != self.protocol), []
        if split == "test" and self.has_report:
            report = self.report()
        else:
            report = ranks.evaluate(self.ranker.model, self._tested_data(), split, ordered)
        if is_available(self.config.data) and self.ranker.dataset.hash == report.data_hash:
            of_lists = list_rows(self.ranker.model, self._tested_data(), split, self.protocol)
        return evaluation_table(report, ordered, metrics, of_lists)

    def experts(self, user: "Id") -> "pd.DataFrame":
        """The experts that a user's history before the test retrieves, best first (memory/user_experts.py); `load` says how many
        users retrieve each. Raises InputError for a user who is not in the data, and for a model without experts.

        >>> run.experts(user="3")["rank"].tolist()
        [1, 2, 3, 4]
        """
        from elastic_core.memory.user_experts import user_experts
        from elastic_core.recommendations import id_text

        dataset = self._tested_data()
        return user_experts(self.ranker.model, dataset, dataset.user_number(id_text(user)))

    def embeddings(self, kind: "Kind" = "items") -> "pd.DataFrame":
        """The vectors of `items`, `experts` or `users`, one a row, by id or number (runs/embeddings.py).

        Raises InputError for a model without such vectors.

        >>> run.embeddings("experts").shape
        (64, 32)
        """
        from elastic_core.runs.embeddings import embedding_table

        return embedding_table(self.ranker.model, kind, self.ranker.catalog, self._tested_data)

    def _tested_data(self) -> Dataset:
        """Its data, as far as the items are those that it learned. Raises InputError for others."""
        self.check_data(self.ranker.dataset)
        return self.ranker.dataset

    def facts(self) -> list[tuple[str, str]]:
        """What there is to know of it, a name and a text each."""
        start, test, end = (self.last_event(kind) for kind in ("start", "test", "end"))
        scores = test.get("protocols", {}).get(self.protocol, {})
        errors = test.get("errors", {}).get(self.protocol, {})
        score_texts = [
            f"{name} {scores[name]:.4f} ± {1.96 * errors[name]:.4f}" for name in ("NDCG@10", "HR@10") if name in scores
        ]
        model = self.config.model
        return [
            ("model", f"{model.label or model.name}, {start.get('parameters', 0):,} parameters, reads {model.length} events"),
            ("data", f"{start.get('data', self.config.data.source)} (hash {start.get('data_hash', 'unknown')})"),
            ("training", f"{len(self.events('epoch'))} epochs, {end.get('seconds', 0):.0f} s; {end.get('reason', 'not ended')}"),
            (
                "test",
                f"{', '.join(score_texts)} (protocol {self.protocol}, {test['users']:,} people)" if score_texts else "none yet",
            ),
            ("folder", str(self.path)),
        ]

    def _repr_html_(self) -> str:
        return facts_as_html(f"The run {self.name}", self.facts())

    def check_data(self, dataset: Dataset) -> None:
        """Raises InputError if the weights were learned with other items than the dataset's."""
        if self.raw_ids() != [str(raw) for raw in dataset.catalog.ids]:
            raise InputError(f"the run {self.name} was trained on other items than {dataset.label} holds")

    def _file_name(self, name: str) -> str:
        return files.file_name(self.path / name, self.path)

    # writing, used by the trainer only

    def write_start(self, config: RunConfig, dataset: Dataset) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        for snapshot in self.path.glob(f"{SNAPSHOTS}/*.safetensors"):
            snapshot.unlink(missing_ok=True)  # of an attempt that died
        for name, content in dataset.files.items():
            (self.path / name).parent.mkdir(exist_ok=True)
            files.write_whole(self.path / name, partial(_write_bytes, content))
        self.save_config(config)
        items.write_items(dataset.catalog, self.path / ITEMS, dataset.titles_may_be_shared, dataset.item_counts())

    def save_config(self, config: RunConfig) -> None:
        files.write_text(self.path / CONFIG, json.dumps(config.to_dict(), indent=1) + "\n")
        self.__dict__.pop("config", None)  # what was read of the file before

    def append_event(self, event: dict[str, Any]) -> None:
        """Adds a row as a whole, or, where the disk does not take it, none of it."""
        path = self.path / EVENTS
        size = path.stat().st_size if path.exists() else 0
        torn = size > 0 and not path.read_bytes().endswith(b"\n")
        with files.explain_write_errors(path), path.open("ab", buffering=0) as file:
            line = ("\n" if torn else "") + json.dumps(event) + "\n"
            try:
                if file.write(line.encode()) != len(line.encode()):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except OSError:
                file.truncate(size)
                raise

    def save_report(self, report: Report) -> None:
        """Keeps a test's ranks. Raises InputError if there are some already: the test split is scored once."""
        if self.has_report:
            raise InputError(f"the run {self.name} was tested already: its ranks are in {ranks.FILE}, and a test is scored once")
        files.write_whole(self.path / ranks.FILE, lambda beside: ranks.write_ranks(report, beside))

    def forget_report(self) -> None:
        (self.path / ranks.FILE).unlink(missing_ok=True)

    def keep_whole_weights(self) -> None:
        """Keeps the weights there are beside those that take their place."""
        if self.has_weights:
            path = files.check_regular_file(self.path / WEIGHTS, MOST_WEIGHTS, self.path)
            files.write_whole(self.path / WHOLE_EPOCHS, lambda beside: shutil.copyfile(path, beside))

    def restore_whole_weights(self) -> None:
        """The weights that were set aside are the run's again."""
        with suppress(FileNotFoundError), files.explain_write_errors(self.path):
            os.replace(self.path / WHOLE_EPOCHS, self.path / WEIGHTS)

    def save_weights(self, model: torch.nn.Module) -> None:
        weights = {key: values.detach().cpu().contiguous() for key, values in model.state_dict().items()}
        self.save_tensors(WEIGHTS, weights)

    def save_tensors(self, file: str, tensors: dict[str, torch.Tensor]) -> None:
        """Writes a file of the folder, `model.safetensors` or the weights set aside, as a whole."""
        files.write_whole(self.path / file, lambda beside: save_file(tensors, beside))

    def save_resume(self, state: dict[str, Any]) -> None:
        files.write_whole(self.path / RESUME, lambda beside: torch.save(state, beside))

    def load_resume(self) -> dict[str, Any] | None:
        """What continuing needs, or None. Raises InputError if the file is damaged."""
        path = self.path / RESUME
        if not path.exists():
            return None
        try:
            state = torch.load(path, weights_only=True, map_location="cpu")
        except Exception as error:  # a file that was cut short fails in many ways
            unless_memory(error)
            state = None
        if not isinstance(state, dict):
            raise InputError(f"{self._file_name(RESUME)} is damaged; delete it to start this run again")
        return state

    def save_snapshot(self, epoch: int, load: np.ndarray, values: torch.Tensor) -> None:
        """The memory after an epoch: how many validation people retrieve each expert, and the experts (half precision)."""
        with files.explain_write_errors(self.path):
            (self.path / SNAPSHOTS).mkdir(exist_ok=True)
        memory = {"load": torch.from_numpy(load).int(), "values": values.detach().cpu().half().contiguous()}
        files.write_whole(self.path / SNAPSHOTS / f"{epoch:04d}.safetensors", lambda beside: save_file(memory, beside))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """For the process that writes the folder. Raises InputError if another one has it."""
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise InputError(f"{self.path} is a file, and a run needs a folder; choose another")
        lock = FileLock(self.path / LOCK, timeout=files.LOCK_SECONDS)
        with files.explain_write_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except Timeout:
                raise InputError(f"another process is training into {self.path}; wait for it, or choose another folder") from None
        try:
            with files.explain_write_errors(self.path):
                for unfinished in self.path.rglob(".*.[0-9]*"):
                    unfinished.unlink(missing_ok=True)  # what a killed process was writing; nobody else writes here now
            yield
        finally:
            lock.release()


def _write_bytes(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def open_run(path: Path | str) -> Run:
    """The run in a folder, or of this name in checkpoints/. Raises InputError if there is none."""
    run = Run(Path(path))
    if not (run.path / CONFIG).is_file() and len(run.path.parts) == 1:
        run = Run(run_folder(CHECKPOINTS, run.name))
    if not (run.path / CONFIG).is_file():
        raise InputError(f"there is no run in {run.path} (it has no {CONFIG})")
    return run


@functools.lru_cache(maxsize=256)
def _read_report(run: Run, stamp: tuple[int, ...], of_log: tuple[int, ...]) -> Report:
    """A page asks for the same ranks dozens of times. Shared: never change it."""
    file_name = run._file_name(ranks.FILE)
    report = ranks.read_ranks(files.check_regular_file(run.path / ranks.FILE, ranks.LARGEST, run.path), file_name)
    if report.data_hash != (run.last_event("start") or {}).get("data_hash", report.data_hash):
        raise InputError(f"{file_name} is of other data ({report.data_hash}) than the run")
    return report


def run_folder(root: Path, name: str) -> Path:
    """Where a run of this name lies: among those that came along, if it did, else directly below `root`."""
    shipped = root / DEMO / name
    return shipped if os.path.lexists(shipped / CONFIG) else root / name


def list_runs(root: Path | str = "checkpoints") -> list[Run]:
    """All runs below `root` and its `demo/` that have weights and can be read, by name. Nobody else is handed out: see
    `unreadable_runs`.

    While a folder stays as it is, everybody gets the same run, whose configuration is read once."""
    return [run for run, fault in _runs_and_faults(Path(root)) if not fault]


def unreadable_runs(root: Path | str = "checkpoints") -> list[files.UnreadableFolder]:
    """The folders below `root` that have a run's files and cannot be one, by name, and why."""
    return [files.UnreadableFolder(run.path, fault) for run, fault in _runs_and_faults(Path(root)) if fault]


def _runs_and_faults(root: Path) -> Iterator[tuple[Run, str]]:
    shipped = {path.name: path for path in _run_folders(root / DEMO)}
    for path in sorted([*shipped.values(), *_run_folders(root)], key=lambda path: path.name):
        run, fault = _open_folder(path, tuple(files.file_stamp(path / name) for name in ("", CONFIG, WEIGHTS, EVENTS, ITEMS)))
        if shipped.get(path.name, path) != path:
            fault = fault or "a run that came along has the same name"
        yield run, fault


def _run_folders(root: Path) -> Iterator[Path]:
    for path in files.list_entries(root):
        if os.path.lexists(path / CONFIG) and os.path.lexists(path / WEIGHTS):
            yield path


@functools.lru_cache(maxsize=4096)
def _open_folder(path: Path, stamps: tuple[tuple[int, ...], ...]) -> tuple[Run, str]:
    """The run in a folder, the same one while its files are the same, and why it is none, or nothing."""
    run = Run(path)
    return run, _fault_of(run)


def _fault_of(run: Run) -> str:
    """What takes longer to tell (do the weights fit?) is told when it is opened."""
    try:
        run.events()
        return "" if run.config else "it has no configuration"
    except InputError as error:
        return str(error)
