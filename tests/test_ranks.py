"""A run's ranks: stored once, read back as they were, and refused in one sentence where somebody tampered with the file."""

import os
import pickle
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from elastic_core.core.candidates import PROTOCOLS
from elastic_core.core.evaluate import NAMES, Ranks
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.runs import Run
from elastic_core.runs.ranks import FILE, Report, evaluate, read_ranks, write_ranks


def test_a_training_keeps_the_ranks_of_its_test_and_every_number_follows_from_them(tiny_runs: Path) -> None:
    run = Run(tiny_runs / "tiny")
    stored, test = run.report(), run.last_event("test")
    assert test is not None and stored.metrics == test["protocols"] and stored.errors == test["errors"]
    dataset = load(run.config.data)
    again = evaluate(run.model(dataset), dataset)
    assert (stored.data_hash, stored.split, stored.seed, stored.commit != "") == (dataset.hash, "test", 0, True)
    for protocol, ranks in again.ranks.items():
        assert np.array_equal(stored.ranks[protocol].above, ranks.above)
        assert np.array_equal(stored.ranks[protocol].tied, ranks.tied)
    with pytest.raises(InputError, match="scored once"):
        run.save_report(again)
    with safe_open(run.path / FILE, "numpy") as file:
        assert set(file.metadata()) == {"split", "data_hash", "seed", "commit"}
        assert {file.get_slice(key).get_dtype() for key in file.keys()} == {"U8"}  # noqa: SIM118


@pytest.mark.parametrize("highest", [0, 255, 256, 65_535, 65_536, 2**30 - 1])
def test_ranks_are_kept_as_narrow_as_they_are_and_read_as_they_were(tmp_path: Path, highest: int) -> None:
    above, people = np.array([0, 1, highest, highest // 2]), np.arange(4)
    write_ranks(Report({"full": Ranks(above, people)}, people, "test", "abc", 0, 1.0, "c0ffee"), tmp_path / FILE)
    with safe_open(tmp_path / FILE, "numpy") as file:
        kinds = {key: file.get_slice(key).get_dtype() for key in file.keys()}  # noqa: SIM118
    wide = "U8" if highest < 256 else "U16" if highest < 65_536 else "I32"
    assert kinds == {"full.above": wide, "full.tied": "U8"}
    found = read_ranks(tmp_path / FILE, "run").ranks["full"]
    assert found.above.tolist() == above.tolist() and found.tied.tolist() == people.tolist()
    assert found.above.dtype == found.tied.dtype == np.int32


def test_where_nobody_ties_nothing_is_kept_of_it_and_files_of_old_are_read(tmp_path: Path) -> None:
    above, nobody, people = np.array([4, 0, 2]), np.zeros(3, int), np.arange(3)
    write_ranks(Report({"full": Ranks(above, nobody)}, people, "test", "abc", 0, 1.0, "c0ffee"), tmp_path / FILE)
    assert set(load_file(tmp_path / FILE)) == {"full.above"}
    new = read_ranks(tmp_path / FILE, "run")
    tensors = {"full.above": above, "full.tied": nobody, "users": people}
    old_file = {name: values.astype(np.uint8) for name, values in tensors.items()}
    save_file(old_file, tmp_path / FILE, {"split": "test", "data_hash": "abc", "seed": "0", "commit": ""})
    old = read_ranks(tmp_path / FILE, "run")
    for found in (new, old):
        assert found.users.tolist() == [0, 1, 2] and found.users.dtype == np.int64
        assert found.ranks["full"].above.tolist() == [4, 0, 2] and found.ranks["full"].tied.tolist() == [0, 0, 0]


def test_only_a_whole_test_is_kept(tiny_runs: Path, tmp_path: Path) -> None:
    run = Run(shutil.copytree(tiny_runs / "tiny", tmp_path / "run"))
    dataset = load(run.config.data)
    model = run.model(dataset)
    (run.path / FILE).unlink()
    with pytest.raises(InputError, match=r"evaluate .*run --store"):
        run.report()
    for other in (evaluate(model, dataset, "valid"), evaluate(model, dataset, users=np.arange(5)[::-1])):
        with pytest.raises(InputError, match="whole test"):
            run.save_report(other)
    assert not run.has_report and not list(run.path.glob(".ranks*")), "nothing half-written stays"


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: os.truncate(path, path.stat().st_size - 3),
    "a pickle": lambda path: path.write_bytes(pickle.dumps([1])),
    "of no protocol": lambda path: save_file({"other": np.zeros(4)}, path, {"split": "test", "data_hash": "abc", "seed": "0"}),
    "of no data": lambda path: save_file({"full.above": np.zeros(4, np.int32)}, path, {"split": "test", "seed": "0"}),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, kind: str) -> None:
    ranks = Ranks(np.array([0, 3, 1, 9], np.int32), np.array([0, 0, 2, 0], np.int32))
    path = tmp_path / FILE
    write_ranks(Report({"full": ranks}, np.arange(4), "test", "abc", 7, 1.0, "c0ffee"), path)
    found = read_ranks(path, "run/ranks")
    assert (found.seed, found.commit) == (7, "c0ffee") and found.user_values("full", "HR@5").tolist() == [1, 1, 1, 0]
    DAMAGE[kind](path)
    with pytest.raises(InputError, match=r"^run/ranks ") as error:
        read_ranks(path, "run/ranks")
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


def test_what_is_asked_of_a_report_does_not_stay_in_memory() -> None:
    """The app's server holds the reports of hundreds of runs."""
    users = np.arange(50_000)
    ranks = Ranks((users % 700).astype(np.int32), (users % 3).astype(np.int32))
    report = Report(dict.fromkeys(PROTOCOLS, ranks), users, "test", "abc", 0, 0.0)
    tracemalloc.start()
    try:
        means = {(protocol, name): report.user_values(protocol, name).mean() for protocol in PROTOCOLS for name in NAMES}
        assert means == {(row["protocol"], row["metric"]): row["mean"] for row in report.metric_rows()}
        stayed, largest = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert stayed < users.nbytes < largest, "less than one number a person"


def test_ranks_of_other_data_are_not_the_runs(tiny_runs: Path, tmp_path: Path) -> None:
    run = Run(shutil.copytree(tiny_runs / "tiny", tmp_path / "run"))
    save_file(load_file(run.path / FILE), run.path / FILE, {"split": "test", "data_hash": "0123", "seed": "0"})
    with pytest.raises(InputError, match="other data"):
        run.report()
