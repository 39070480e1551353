"""The named runs: complete, resumable at any deadline with the same numbers, and never mixed up with other settings."""

import dataclasses
import shutil
import time
from pathlib import Path

import pytest

from elastic_core.commands import main
from elastic_core.core.config import TrainConfig
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.objective import WindowConfig
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.results import reproduce as reproduce_module
from elastic_core.results.markdown import run_tables
from elastic_core.results.reproduce import (
    PlannedRun,
    System,
    has_weights,
    planned_runs,
    planned_status,
    run_of,
    select_runs,
    train_planned,
)
from elastic_core.results.store import StoredRun
from elastic_core.results.store import load as load_runs
from elastic_core.run_config import DataConfig, PlantedConfig, RunConfig
from elastic_core.runs import Run

PLANTED = PlantedConfig(users=40, items=50, interests=4, mean_length=14, max_length=24)
TOY = RunConfig(
    data=DataConfig(source="planted", planted=PLANTED),
    model=ElasticConfig(length=8, width=8, layers=1, n_subkeys=4, k=2),
    objective=WindowConfig(span=4),
    train=TrainConfig(batch=32, epochs=4, patience=99),
)
ROW = PlannedRun("toy", "planted", System("elastic"), TOY)


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load(TOY.data)


def test_names_are_unique_and_the_shipped_runs_are_among_them() -> None:
    names = [row.name for row in planned_runs()]
    assert len(set(names)) == len(names)
    assert {f"{data}-{model}" for data in ("ml-100k", "planted", "ml-1m") for model in ("elastic", "sasrec")} <= set(names)
    assert {row.name for row in select_runs("ml-100k-elastic-seed*")} == {"ml-100k-elastic-seed1", "ml-100k-elastic-seed2"}
    with pytest.raises(InputError, match="no-such-run"):
        select_runs("no-such-run")


def test_variants_differ_from_the_base_in_what_their_name_says() -> None:
    base = next(row for row in planned_runs() if row.name == "ml-1m-elastic").config.to_dict()
    for row in planned_runs():
        if row.name.startswith("ml-1m-elastic-") and "seed" not in row.name:
            model = row.config.to_dict()["model"]
            changed = {key for key in model if model[key] != base["model"].get(key)} - {"balance_weight"}
            assert {"name", "query"} <= changed if row.name.endswith("votes") else len(changed) == 1, row.name


def test_a_budget_of_time_is_part_of_a_row_that_has_one(world: Dataset, tmp_path: Path) -> None:
    timed = dataclasses.replace(ROW, config=ROW.config.override("train.minutes=5"))
    assert train_planned(timed, world, tmp_path, "cuda"), "it stays on the device of its budget"
    assert planned_status(timed, tmp_path) == planned_status(ROW, tmp_path) == "finished"
    assert planned_status(dataclasses.replace(ROW, config=ROW.config.override("train.minutes=6")), tmp_path) == "other settings"


def test_a_deadline_interrupts_and_the_next_call_ends_with_the_same_numbers(world: Dataset, tmp_path: Path) -> None:
    assert planned_status(ROW, tmp_path) == "missing"
    assert train_planned(ROW, world, tmp_path / "whole", "cpu")
    calls = 0
    while not train_planned(ROW, world, tmp_path / "pieces", "cpu", at=time.monotonic() + (0.0 if calls == 0 else 1e9)):
        calls += 1
        assert planned_status(ROW, tmp_path / "pieces") == "interrupted"
        assert not Run(tmp_path / "pieces/toy").finished
        begun = Run(tmp_path / "pieces/toy")
        begun.save_config(begun.config.override("train.device=cuda"))  # as if another machine had begun it, with a GPU
    assert calls == 1 and planned_status(ROW, tmp_path / "pieces") == "finished"
    whole, pieces = (Run(tmp_path / where / "toy").last_event("test") for where in ("whole", "pieces"))
    assert whole is not None and pieces is not None and whole["protocols"] == pieces["protocols"]


def test_a_run_with_other_settings_is_never_overwritten(world: Dataset, tmp_path: Path) -> None:
    assert train_planned(ROW, world, tmp_path, "cpu")
    other = PlannedRun("toy", "planted", System("elastic"), TOY.override("model.k=3"))
    assert planned_status(other, tmp_path) == "other settings"
    with pytest.raises(InputError, match="other settings"):
        train_planned(other, world, tmp_path, "cpu")
    assert (
        planned_status(PlannedRun("toy", "planted", System("elastic"), TOY.override("train.device=cuda")), tmp_path) == "finished"
    )


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> PlannedRun:
    """The only planned run; the command trains it in a moment."""
    row = dataclasses.replace(ROW, config=ROW.config.override("train.epochs=1"))
    monkeypatch.setattr(reproduce_module, "planned_runs", lambda: (row,))
    return row


def command(root: Path, *words: str) -> int:
    return main(["reproduce", "--root", str(root), "--device", "cpu", *words])


def test_a_finished_run_is_added_to_the_tables_and_counts_without_its_folder(planned: PlannedRun, tmp_path: Path) -> None:
    assert command(tmp_path) == 0
    trained = Run(planned.run_folder(tmp_path)).report()
    shutil.rmtree(planned.run_folder(tmp_path))
    assert planned_status(planned, tmp_path) == "finished" and not has_weights(planned, tmp_path)
    stored = run_of(planned, tmp_path)
    assert isinstance(stored, StoredRun) and stored.report().metrics == trained.metrics
    assert (stored.system, stored.recipe) == ("elastic", "") and stored.path.parent.name == planned.data


def test_only_its_whole_name_makes_a_finished_run_again(
    planned: PlannedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path) == 0
    shutil.rmtree(planned.run_folder(tmp_path))
    before = (tmp_path / "runs.csv").read_bytes()
    assert command(tmp_path, "--only", "to*") == 0 and "toy: finished, left alone" in capsys.readouterr().err
    assert not has_weights(planned, tmp_path)
    assert command(tmp_path, "--only", "toy") == 0 and has_weights(planned, tmp_path)
    assert (tmp_path / "runs.csv").read_bytes() == before, "what was measured stays"
    again, stored = Run(planned.run_folder(tmp_path)), run_of(planned, tmp_path)
    assert stored is not None and again.report().metrics == stored.report().metrics
    assert [run.name for run in load_runs(tmp_path)] == ["toy"]


def test_runs_that_were_trained_elsewhere_are_added(
    planned: PlannedRun, world: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train_planned(planned, world, tmp_path / "elsewhere", "cpu")
    folder = planned.run_folder(tmp_path / "elsewhere")
    assert command(tmp_path, "--add", str(folder)) == 0 and capsys.readouterr().out == "added: toy\n"
    assert [run.name for run in load_runs(tmp_path)] == ["toy"]
    other = shutil.copytree(folder, tmp_path / "elsewhere" / "another")
    assert command(tmp_path, "--add", str(other)) == 2 and "no planned run is called another" in capsys.readouterr().err
    Run(folder).save_config(planned.config.override("model.k=3"))
    assert command(tmp_path, "--add", str(folder)) == 2 and "other settings" in capsys.readouterr().err


def test_the_table_says_what_its_numbers_rest_on(world: Dataset, tmp_path: Path) -> None:
    assert run_tables([ROW], tmp_path) == "nothing is finished yet"
    seeds = [
        PlannedRun(f"toy-{seed}", "planted", ROW.system, TOY.override(f"train.seed={seed}", "train.epochs=1")) for seed in (0, 1)
    ]
    for row in seeds:
        assert train_planned(row, world, tmp_path, "cpu")
    printed = run_tables(seeds, tmp_path, "pop100")
    assert world.hash in printed and "pop100" in printed and f"{world.histories.n_users} people" in printed
    line = printed.splitlines()[-1]
    assert line.startswith("| elastic | 2 |") and line.count("±") == 2
