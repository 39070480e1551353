"""The runs in checkpoints/, as somebody gets them who clones the project: whole, and scoring what their tables say."""

import dataclasses
import re
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shipped import CHECKPOINTS, FOLDERS, shipped_run

from elastic_core.data import Dataset, load
from elastic_core.data.source_catalog import at_hand
from elastic_core.errors import InputError
from elastic_core.results import store
from elastic_core.results.reproduce import planned_runs, run_status
from elastic_core.runs import CONFIG, EVENTS, ITEMS, WEIGHTS, Run, list_runs, ranks
from elastic_core.runs.ranks import evaluate

ROOT = CHECKPOINTS.parent
STORED = list(store.stored_runs(CHECKPOINTS).values())
DEMO = [Run(file.parent) for file in sorted(FOLDERS.glob(f"*/{CONFIG}"))]
SAMPLE = 20
MOST_BYTES = 50 * 10**6


@cache
def data_of(name: str) -> Dataset:
    return load(shipped_run(name).config.data)


@pytest.mark.parametrize("run", STORED, ids=lambda run: run.name)
def test_its_ranks_give_the_numbers_of_its_row(run: store.StoredRun) -> None:
    stored, test = run.report(), run.last_event("test")
    assert (stored.data_hash, len(stored.users)) == (run.data_hash, test["users"])
    for protocol, metrics in test["protocols"].items():  # another release of NumPy adds up in another order
        for metric, value in metrics.items():
            assert stored.metrics[protocol][metric] == pytest.approx(value, rel=1e-12)
        assert stored.errors[protocol]["NDCG@10"] == pytest.approx(test["errors"][protocol]["NDCG@10"], rel=1e-12)


@pytest.mark.parametrize("run", STORED, ids=lambda run: run.name)
def test_it_is_a_planned_run_and_its_epochs_are_those_of_its_training(run: store.StoredRun) -> None:
    row = next(row for row in planned_runs() if row.name == run.name)
    assert run_status(row, run) == "finished" and run.path.parent.name == row.data
    end, epochs = run.last_event("end"), run.events("epoch")
    assert [epoch["epoch"] for epoch in epochs] == list(range(1, int(run.row["epochs"]) + 1))
    if epochs:
        best = max(epochs, key=lambda epoch: epoch["valid"]["NDCG@10"])
        assert best["epoch"] == end["best_epoch"] and best["valid"]["NDCG@10"] == run.row["best_validation"]


@pytest.mark.parametrize("run", DEMO, ids=lambda run: run.name)
def test_a_folder_says_what_the_tables_say(run: Run) -> None:
    stored = store.stored_runs(CHECKPOINTS)[run.name]
    assert run.finished and run.has_weights and run.config == stored.config
    assert run.last_event("start") == stored.last_event("start") and run.last_event("end") == stored.last_event("end")
    assert [epoch["loss"] for epoch in run.events("epoch")] == [epoch["loss"] for epoch in stored.events("epoch")]
    folder, table = run.report(), stored.report()
    assert folder.ranks.keys() == table.ranks.keys() and run.n_items() == stored.n_items()
    for protocol, expected in folder.ranks.items():
        assert np.array_equal(expected.above, table.ranks[protocol].above)
        assert np.array_equal(expected.tied, table.ranks[protocol].tied)


@pytest.mark.parametrize("run", DEMO, ids=lambda run: run.name)
def test_scoring_a_sample_again_gives_the_same_ranks(run: Run) -> None:
    if not at_hand(run.config.data.source):
        pytest.skip(f"{run.config.data.source} is not on this machine")
    dataset = data_of(next(other.name for other in DEMO if other.config.data == run.config.data))
    stored = run.report()
    assert stored.data_hash == dataset.hash
    if dataset.titles_may_be_shared:  # else the run's own list of items says other names than the screens
        assert np.array_equal(run.catalog().titles, dataset.catalog.titles)
    sample = np.sort(np.random.default_rng(0).choice(len(stored.users), SAMPLE, replace=False))
    again = evaluate(run.model(dataset), dataset, users=sample)
    for protocol, kept in stored.ranks.items():
        found = again.ranks[protocol]
        moved = np.abs(found.above - kept.above[sample]) + np.abs(found.tied - kept.tied[sample])
        # Another machine rounds differently: two items with nearly one score may change places for one or two people.
        assert (moved > 0).sum() <= 2 and moved.max() <= 2, protocol


def test_a_floor_is_opened_with_the_data_it_was_tested_on_and_no_other() -> None:
    run = shipped_run("planted-cooccurrence")
    with pytest.raises(InputError, match="fitted to its data"):
        run.model()  # it would score zeros
    data = data_of(run.name)
    histories = dataclasses.replace(data.histories, items=data.histories.items[::-1].copy())
    with pytest.raises(InputError, match=data.hash):
        run.model(dataclasses.replace(data, histories=histories))


def test_pandas_reads_the_tables_as_they_stand() -> None:
    runs, epochs = pd.read_csv(CHECKPOINTS / store.RUNS), pd.read_csv(CHECKPOINTS / store.EPOCHS)
    assert len(runs) == len(STORED) > 200 and set(epochs["run"]) <= set(runs["name"])
    of_films = runs[runs["data"] == "ml-100k"]
    table = pd.read_parquet(CHECKPOINTS / store.RANKS / "ml-100k")
    assert set(table["run"]) == set(of_films["name"])
    hits = table[table["protocol"] == "full"].groupby("run", observed=True)["above"].agg(lambda above: (above < 10).mean())
    assert np.abs(hits.reindex(of_films["name"]).to_numpy() - of_films["full HR@10"].to_numpy()).max() < 0.005  # but for ties


def test_a_run_whose_weights_did_not_come_along_says_how_to_make_it_again() -> None:
    run = shipped_run("ml-100k-fpmc-seed1")
    assert not run.has_weights and run.has_report
    with pytest.raises(InputError, match="did not come along; elastic reproduce --only ml-100k-fpmc-seed1"):
        run.model()


def test_nothing_of_it_is_left_out_of_the_repository_and_no_file_without_its_run() -> None:
    """A file that git ignores is on the machine of whoever trained, and on no other."""
    assert {path.relative_to(CHECKPOINTS) for path in (CHECKPOINTS / store.RANKS).rglob("*.parquet")} == {
        run.path.relative_to(CHECKPOINTS) for run in STORED
    }
    assert {run.name for run in DEMO} <= {run.name for run in list_runs(CHECKPOINTS)}
    files = [CHECKPOINTS / store.RUNS, CHECKPOINTS / store.EPOCHS, *(run.path for run in STORED)]
    files += [run.path / name for run in DEMO for name in (CONFIG, EVENTS, WEIGHTS, ITEMS, ranks.FILE)]
    assert all(file.is_file() for file in files)
    if (ROOT / ".git").exists():
        ignored = subprocess.run(["git", "check-ignore", *map(str, files)], cwd=ROOT, capture_output=True, text=True)
        assert ignored.stdout == ""


def test_what_the_repository_holds_fits_on_a_small_machine() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True).stdout.split("\0")
    assert sum((ROOT / name).stat().st_size for name in listed if name and Path(ROOT / name).is_file()) <= MOST_BYTES


def test_the_example_beside_them_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = (CHECKPOINTS / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(ROOT)
    exec(example, {})
    assert len(re.findall(r"^ml-100k-", capsys.readouterr().out, re.MULTILINE)) == 10
    assert set(re.findall(r"`(\w+\.csv|\w+\.md)`", text)) <= {path.name for path in CHECKPOINTS.iterdir()}
