"""Finished runs as tables, in checkpoints/:

    runs.csv                     one row a run: what it was, how its training went and what its test measured
    epochs.csv                   one row an epoch of these runs
    ranks/<data>/<name>.parquet  everybody's rank in the run's test: run, protocol, user, above, tied (runs/ranks.py says what
                                 the last two count); `pd.read_parquet("checkpoints/ranks/ml-100k")` reads all of a data set
    demo/<name>/                 the folders of those runs whose weights came along, see elastic_core/runs

`load()` gives all runs of these tables and the visitor's own run folders; both answer what tables and comparisons ask.
"""

import functools
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from filelock import FileLock

from elastic_core import files
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.core.contract import Recommender
from elastic_core.core.evaluate import Ranks
from elastic_core.core.histories import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.run_config import RunConfig
from elastic_core.runs import CONFIG, Run, list_runs, run_folder
from elastic_core.runs.basket_scores import BASKET_METRICS
from elastic_core.runs.ranks import LARGEST, Report

RUNS, EPOCHS, RANKS, LOCK = "runs.csv", "epochs.csv", "ranks", ".runs.lock"
MOST_BYTES = 2**28  # of a table that is read

# The columns of runs.csv. `system` is a model, behind a stroke what of it is changed, and `recipe` what any model can be
# (reproduce.py); `data` names the folder of its ranks; `commit` trained and `ranking_commit` scored the test;
# `tied_times` is the share of targets that have the time of the event before them, `repeats` of validation targets seen before.
TEXTS = (
    "name", "system", "recipe", "data", "data_name", "data_hash", "commit", "ranking_commit", "torch", "device", "stop_reason",
    "settings",
)  # fmt: skip
COUNTS = ("users", "items", "seed", "candidate_seed", "parameters", "threads", "epochs", "best_epoch")
MEASURED = ("NDCG@10", "NDCG@10 error", "HR@10")
COLUMNS = (
    *("name", "system", "recipe", "data", "data_name", "data_hash", "users", "items", "tied_times"),
    *("repeats", "seed", "candidate_seed"),
    *("commit", "ranking_commit", "torch", "device", "threads", "started", "parameters"),
    *("epochs", "best_epoch", "stop_reason", "seconds", "best_validation", "experts_used", "entropy", "gini"),
    *(f"{protocol} {measured}" for protocol in PROTOCOLS for measured in MEASURED),
    *BASKET_METRICS,  # where the last basket is held out
    "settings",
)
EPOCH_COUNTS = ("epoch", "step", "targets", "events")
EPOCH_COLUMNS = (
    *("run", "epoch", "step", "loss", "targets", "events", "seconds", "valid.NDCG@10", "valid.HR@10"),
    *("auxiliary.balance", "auxiliary.interest", "auxiliary.ctreg", "experts_used", "entropy", "gini", "stop_reason"),
)
LOGGED = {"experts_used": "used", "stop_reason": "cut"}  # columns of epochs.csv that the log calls otherwise
RANK_COLUMNS = ("run", "protocol", "user", "above", "tied")


@dataclass(frozen=True, eq=False)
class StoredRun(Run):
    """A finished run as the tables keep it, without weights: it answers what tables and comparisons ask of a run folder.

    `path`: the file of its ranks, which no other run has."""

    row: Mapping[str, Any]  # of runs.csv
    epochs: pd.DataFrame  # its rows of epochs.csv, in order

    @property
    def name(self) -> str:
        return str(self.row["name"])

    @property
    def system(self) -> str:
        """A model, and behind a stroke what of it is changed: `elastic/memory-none`."""
        return str(self.row["system"])

    @property
    def recipe(self) -> str:
        return str(self.row["recipe"])

    @property
    def data_hash(self) -> str:
        return str(self.row["data_hash"])

    @cached_property
    def config(self) -> RunConfig:
        try:
            return RunConfig.from_dict(files.parse_json(str(self.row["settings"])))
        except ValueError as error:
            raise InputError(f"{RUNS}, run {self.name}: its settings cannot be read ({error})") from None

    @property
    def finished(self) -> bool:
        return True

    @property
    def has_report(self) -> bool:
        return self.path.exists()

    @property
    def has_weights(self) -> bool:
        return False

    def n_items(self) -> int:
        return int(self.row["items"])

    def model(self, dataset: Dataset | None = None) -> Recommender:
        raise self._no_folder()

    def catalog(self) -> Catalog:
        raise self._no_folder()

    def _no_folder(self) -> InputError:
        command_text = f"elastic reproduce --only {self.name} makes them again"
        return InputError(f"the weights and items of {self.name} did not come along; {command_text}")

    def report(self) -> Report:
        """Everybody's ranks in the run's test. Shared: never change it. Raises InputError if they cannot be read."""
        return read_report(self, files.file_stamp(self.path))

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """What the log of the run's folder said, as far as the tables keep it: start, epoch, test and end."""
        return [event for event in self._events if kind is None or event["event"] == kind]

    @cached_property
    def _events(self) -> tuple[dict[str, Any], ...]:
        return (_start_event(self.row), *_epoch_events(self.epochs), _test_event(self.row), _end_event(self.row))


def load(root: Path | str = "checkpoints") -> list[Run]:
    """All runs by name: the folders there are, those of `demo/` and the visitor's own, and of all others what the tables keep."""
    folders = list_runs(root)
    names = {run.name for run in folders}
    stored = [run for run in stored_runs(root).values() if run.name not in names]
    return sorted([*folders, *stored], key=lambda run: run.name)


def find_run(root: Path, name: str) -> Run | None:
    """The run of this name: its folder if it is here, else what the tables keep."""
    folder = run_folder(root, name)
    return Run(folder) if (folder / CONFIG).is_file() else stored_runs(root).get(name)


def stored_runs(root: Path | str = "checkpoints") -> Mapping[str, StoredRun]:
    """The runs of the tables by name; none where there are no tables. While the files stay the same, so do the runs.

    Raises InputError for tables that cannot be read."""
    root = Path(root)
    return _stored_runs(root, files.file_stamp(root / RUNS), files.file_stamp(root / EPOCHS))


@functools.lru_cache(maxsize=8)
def _stored_runs(root: Path, runs_stamp: tuple[int, ...], epochs_stamp: tuple[int, ...]) -> Mapping[str, StoredRun]:
    if not runs_stamp:
        return {}
    epochs = dict(iter(read_epochs(root).groupby("run", sort=False)))
    empty_table = pd.DataFrame(columns=list(EPOCH_COLUMNS))
    stored = {}
    for row in read_runs(root).to_dict("records"):
        name = row["name"]
        stored[name] = StoredRun(ranks_path(root, row["data"], name), row, epochs.get(name, empty_table))
    return stored


# --- what the folder's log would say ----------------------------------------------------------------------------------


def _start_event(row: Mapping[str, Any]) -> dict[str, Any]:
    event = {"event": "start", "time": row["started"], "data": row["data_name"]}
    event |= {name: row[name] for name in ("commit", "torch", "device", "threads", "seed", "data_hash", "parameters")}
    known = _known_values(row, "tied_times", "repeats")
    return event | {"tied" if name == "tied_times" else name: value for name, value in known.items()}


def _epoch_events(epochs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for row in epochs.drop(columns="run").to_dict("records"):
        event: dict[str, Any] = {"event": "epoch", "auxiliary": {}, "valid": {}}
        for column in _known_values(row, *row):
            group, _, name = str(column).partition(".")
            if name:
                event[group][name] = row[column]
            else:
                event[LOGGED.get(group, group)] = row[column]
        yield event


def _test_event(row: Mapping[str, Any]) -> dict[str, Any]:
    metrics = {p: {name: row[f"{p} {name}"] for name in ("NDCG@10", "HR@10")} for p in PROTOCOLS}
    errors = {p: {"NDCG@10": row[f"{p} NDCG@10 error"]} for p in PROTOCOLS}
    event = {"event": "test", "users": row["users"], "protocols": metrics, "errors": errors}
    if "experts_used" in _known_values(row, "experts_used"):
        event |= {"used": row["experts_used"], "entropy": row["entropy"], "gini": row["gini"]}
    if basket := _known_values(row, *BASKET_METRICS):
        event["basket"] = basket
    return event


def _end_event(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"event": "end", "reason": row["stop_reason"], "best_epoch": row["best_epoch"], "seconds": row["seconds"]}


def _known_values(row: Mapping[Any, Any], *names: Any) -> dict[str, Any]:
    """What of these is not left empty in a row."""
    return {name: row[name] for name in names if not pd.isna(row[name]) and row[name] != ""}


# --- tables -----------------------------------------------------------------------------------------------------------


def read_runs(root: Path | str = "checkpoints") -> pd.DataFrame:
    """runs.csv, with the bits of every number. Raises InputError for what is no such table."""
    types = dict.fromkeys(TEXTS, "str") | dict.fromkeys(COUNTS, "int64")
    table = _read_table(Path(root), RUNS, types, COLUMNS)
    if table["name"].duplicated().any():
        raise InputError(f"{RUNS} names the run {table['name'][table['name'].duplicated()].iloc[0]} twice")
    return table


def read_epochs(root: Path | str = "checkpoints") -> pd.DataFrame:
    """epochs.csv, likewise; columns of a group have a dot in their name (`valid.NDCG@10`)."""
    types = dict.fromkeys(("run", "stop_reason"), "str") | dict.fromkeys(EPOCH_COUNTS, "int64")
    return _read_table(Path(root), EPOCHS, types, EPOCH_COLUMNS)


def _read_table(root: Path, name: str, types: Mapping[str, str], columns: tuple[str, ...]) -> pd.DataFrame:
    text = files.read_text(root / name, MOST_BYTES, root)
    numbers = dict.fromkeys((column for column in columns if column not in types), "float64")
    try:
        table = pd.read_csv(io.StringIO(text), dtype="str", keep_default_na=False)[list(columns)]
        # converted here, not by the parser, whose numbers are off by a last bit in older releases
        return table.replace(dict.fromkeys(numbers, ""), "nan").astype({**types, **numbers})
    except (ValueError, KeyError) as error:
        raise InputError(
            f"{name} cannot be read ({files.error_reason(error)}); git checkout {root / name} brings it back"
        ) from None


def _write_table(root: Path, name: str, table: pd.DataFrame) -> None:
    files.write_text(root / name, table.to_csv(index=False, lineterminator="\n"))


# --- ranks ------------------------------------------------------------------------------------------------------------


def ranks_path(root: Path, data: str, name: str) -> Path:
    return root / RANKS / data / f"{name}.parquet"


@functools.lru_cache(maxsize=512)
def read_report(run: StoredRun, stamp: tuple[int, ...]) -> Report:
    """A run's report from the file of its ranks, read once while the file stays as it is."""
    from pyarrow import ArrowException, parquet  # where ranks are read

    path = files.check_regular_file(run.path, LARGEST, run.path.parent)
    file_name = files.file_name(path, run.path.parent)
    try:
        table = parquet.read_table(path, columns=list(RANK_COLUMNS[1:]))
    except (ArrowException, OSError, ValueError) as error:
        raise InputError(f"{file_name} cannot be read ({files.error_reason(error)})") from None
    protocol = np.asarray(table["protocol"].to_pandas().astype(str))
    user, above, tied = (table[name].to_numpy() for name in RANK_COLUMNS[2:])
    ranks, users = {}, np.arange(int(run.row["users"]))
    for name in dict.fromkeys(protocol):
        is_of_protocol = protocol == name
        if name not in PROTOCOLS or not np.array_equal(user[is_of_protocol], users):
            raise InputError(f"{file_name} must rank all {len(users)} people once, in order, under known protocols")
        ranks[str(name)] = Ranks(above[is_of_protocol], tied[is_of_protocol])
    return Report(ranks, users, "test", run.data_hash, int(run.row["candidate_seed"]), 0.0, str(run.row["ranking_commit"]))


def write_ranks(report: Report, path: Path, name: str) -> None:
    """Writes a test's ranks as the file of a run called `name`."""
    import pyarrow as pa  # where ranks are written
    from pyarrow import parquet

    protocols, n_users = list(report.ranks), len(report.users)
    columns = {
        "run": pa.array([name] * n_users * len(protocols)).dictionary_encode(),
        "protocol": pa.array(np.repeat(protocols, n_users)).dictionary_encode(),
        "user": np.tile(report.users, len(protocols)).astype(np.int32),
        "above": np.concatenate([ranks.above for ranks in report.ranks.values()]).astype(np.int32),
        "tied": np.concatenate([ranks.tied for ranks in report.ranks.values()]).astype(np.int32),
    }
    # Byte by byte, counts of candidates pack into a seventh of their size: the two upper bytes are hardly ever used.
    encodings = {"user": "DELTA_BINARY_PACKED", "above": "BYTE_STREAM_SPLIT", "tied": "BYTE_STREAM_SPLIT"}
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(
        path,
        lambda beside: parquet.write_table(
            pa.table(columns), beside, compression="zstd", compression_level=19,
            use_dictionary=["run", "protocol"], column_encoding=encodings, write_statistics=False,
        ),
    )  # fmt: skip


# --- adding -----------------------------------------------------------------------------------------------------------


def add_run(run: Run, root: Path, system: str, recipe: str, data: str) -> None:
    """Adds a finished run folder to the tables, in place of a run of its name. The row of runs.csv is written last, so an
    addition that breaks off has not happened, and can be made again.

    Raises InputError if the run is not finished or keeps no ranks of its test."""
    if not run.finished or not run.has_report:
        raise InputError(f"the run {run.name} is not finished, or keeps no ranks of its test")
    report = run.report()
    row, epochs = _run_row(run, report, system, recipe, data), _epoch_rows(run)
    with FileLock(root / LOCK):
        write_ranks(report, ranks_path(root, data, run.name), run.name)
        _write_table(root, EPOCHS, _replace_rows(root / EPOCHS, read_epochs, "run", run.name, epochs[list(EPOCH_COLUMNS)]))
        _write_table(root, RUNS, _replace_rows(root / RUNS, read_runs, "name", run.name, pd.DataFrame([row])[list(COLUMNS)]))


def _run_row(run: Run, report: Report, system: str, recipe: str, data: str) -> dict[str, Any]:
    start, test, end, epochs = run.last_event("start"), run.last_event("test"), run.last_event("end"), run.events("epoch")
    row = {
        "name": run.name, "system": system, "recipe": recipe,
        "data": data, "data_name": start["data"], "data_hash": report.data_hash, "tied_times": start.get("tied"),
        "repeats": start.get("repeats"),
        "users": len(report.users), "items": run.n_items(),
        "seed": start["seed"], "candidate_seed": report.seed, "commit": start["commit"], "ranking_commit": report.commit,
        "torch": start["torch"], "device": start["device"], "threads": start["threads"], "started": start["time"],
        "parameters": start["parameters"], "epochs": len(epochs), "best_epoch": end["best_epoch"],
        "stop_reason": end["reason"], "seconds": end["seconds"],
        "best_validation": max((epoch["valid"]["NDCG@10"] for epoch in epochs), default=None),
        "experts_used": test.get("used"), "entropy": test.get("entropy"), "gini": test.get("gini"),
        "settings": json.dumps(run.config.to_dict(), separators=(",", ":")),
    }  # fmt: skip
    for protocol, metrics in test["protocols"].items():
        row |= {f"{protocol} {name}": metrics[name] for name in ("NDCG@10", "HR@10")}
        row[f"{protocol} NDCG@10 error"] = test["errors"][protocol]["NDCG@10"]
    row |= test.get("basket", {})
    return dict.fromkeys(COLUMNS) | row


def _epoch_rows(run: Run) -> pd.DataFrame:
    rows = []
    for event in run.events("epoch"):
        row = {"run": run.name, **event} | {column: event.get(name) for column, name in LOGGED.items()}
        for group in ("valid", "auxiliary"):
            row |= {f"{group}.{name}": value for name, value in event.get(group, {}).items()}
        rows.append(row)
    return pd.DataFrame(rows, columns=list(EPOCH_COLUMNS))


def _replace_rows(path: Path, read: Any, key: str, name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """A table with these rows in place of those of a run, in the order of names."""
    if not path.exists():
        return rows
    table = read(path.parent)
    all_rows = pd.concat([table[table[key] != name], rows], ignore_index=True) if len(rows) else table[table[key] != name]
    return all_rows.sort_values(key, kind="stable", ignore_index=True)
