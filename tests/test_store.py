"""Finished runs as tables: they say what their folders said, pandas reads them, and half an addition leaves nothing behind."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from elastic_core.errors import InputError
from elastic_core.results import store
from elastic_core.runs import Run

METRICS = ("NDCG@10", "HR@10")


@pytest.fixture
def root(tiny_runs: Path, tmp_path: Path) -> Path:
    """Tables with both tiny runs, whose folders are gone."""
    for name, system in (("tiny", "elastic"), ("tiny-peer", "sasrec")):
        store.add_run(Run(tiny_runs / name), tmp_path, system, "", "toys")
    return tmp_path


@pytest.mark.parametrize("name", ["tiny", "tiny-peer"])
def test_a_stored_run_says_what_its_folder_said(tiny_runs: Path, root: Path, name: str) -> None:
    folder, stored = Run(tiny_runs / name), store.stored_runs(root)[name]
    assert (stored.name, stored.finished, stored.n_items()) == (name, True, folder.n_items())
    assert stored.config == folder.config and stored.setup == folder.setup
    assert stored.last_event("start") == folder.last_event("start") and stored.last_event("end") == folder.last_event("end")
    told, said = stored.last_event("test"), folder.last_event("test")
    for protocol, metrics in said["protocols"].items():
        assert told["protocols"][protocol] == {metric: metrics[metric] for metric in METRICS}
        assert told["errors"][protocol]["NDCG@10"] == said["errors"][protocol]["NDCG@10"]
    assert {key: told.get(key) for key in ("users", "used", "gini")} == {key: said.get(key) for key in ("users", "used", "gini")}
    for mine, row in zip(stored.events("epoch"), folder.events("epoch"), strict=True):
        assert mine == {**row, "valid": {metric: row["valid"][metric] for metric in METRICS}}


@pytest.mark.parametrize("name", ["tiny", "tiny-peer"])
def test_its_ranks_are_those_of_the_folder(tiny_runs: Path, root: Path, name: str) -> None:
    found, ranks = store.stored_runs(root)[name].report(), Run(tiny_runs / name).report()
    assert (found.split, found.data_hash, found.seed, found.commit) == (ranks.split, ranks.data_hash, ranks.seed, ranks.commit)
    assert list(found.ranks) == list(ranks.ranks) and np.array_equal(found.users, ranks.users)
    for protocol, expected in ranks.ranks.items():
        assert np.array_equal(found.ranks[protocol].above, expected.above)
        assert np.array_equal(found.ranks[protocol].tied, expected.tied)
    assert found.metrics == ranks.metrics


def test_pandas_reads_the_ranks_of_a_data_set_in_one_line(root: Path) -> None:
    table = pd.read_parquet(root / "ranks" / "toys")
    assert list(table.columns) == list(store.RANK_COLUMNS)
    hits = table["above"].lt(10).groupby([table["run"], table["protocol"]], observed=True).mean()
    assert hits["tiny", "full"] == pytest.approx(store.stored_runs(root)["tiny"].last_event("test")["protocols"]["full"]["HR@10"])


def test_all_runs_are_those_of_the_tables_and_the_folders_beside_them(tiny_runs: Path, root: Path) -> None:
    shutil.copytree(tiny_runs / "tiny", root / "local-mine")
    shutil.copytree(tiny_runs / "tiny", root / "tiny")  # the same run again, with its weights
    assert [(run.name, type(run)) for run in store.load(root)] == [
        ("local-mine", Run), ("tiny", Run), ("tiny-peer", store.StoredRun),
    ]  # fmt: skip
    assert store.load(root / "nowhere") == []


def test_a_run_that_is_added_again_takes_its_own_place(tiny_runs: Path, root: Path) -> None:
    before = [(root / name).read_bytes() for name in (store.RUNS, store.EPOCHS)]
    store.add_run(Run(tiny_runs / "tiny"), root, "elastic", "", "toys")
    assert [(root / name).read_bytes() for name in (store.RUNS, store.EPOCHS)] == before


def test_an_addition_that_breaks_off_has_not_happened(tiny_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, written = store.files.write_text, list[str]()

    def full(path: Path, text: str) -> None:
        if path.name == store.RUNS:
            raise InputError("the disk is full")
        written.append(path.name)
        write(path, text)

    monkeypatch.setattr(store.files, "write_text", full)
    with pytest.raises(InputError, match="full"):
        store.add_run(Run(tiny_runs / "tiny"), tmp_path, "elastic", "", "toys")
    assert written == [store.EPOCHS] and store.load(tmp_path) == []
    monkeypatch.undo()
    store.add_run(Run(tiny_runs / "tiny"), tmp_path, "elastic", "", "toys")
    (stored,) = store.load(tmp_path)
    assert len(stored.events("epoch")) == 2


def test_an_unfinished_run_is_not_added(tiny_runs: Path, tmp_path: Path) -> None:
    run = Run(Path(shutil.copytree(tiny_runs / "tiny", tmp_path / "half")))
    run.forget_report()
    with pytest.raises(InputError, match="half is not finished"):
        store.add_run(run, tmp_path, "elastic", "", "toys")


@pytest.mark.parametrize(
    ("file", "text"),
    [(store.RUNS, "name,system\na,b\n"), (store.RUNS, "\x00"), (store.EPOCHS, "run,epoch\ntiny,x\n"), (store.EPOCHS, "")],
)
def test_a_damaged_table_is_one_sentence(root: Path, file: str, text: str) -> None:
    (root / file).write_text(text)
    with pytest.raises(InputError, match=f"{file} cannot be read .* git checkout"):
        store.load(root)


def test_damaged_ranks_are_one_sentence(root: Path) -> None:
    run = store.stored_runs(root)["tiny"]
    whole = run.path.read_bytes()
    run.path.write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"tiny\.parquet cannot be read"):
        run.report()
    store.write_ranks(store.stored_runs(root)["tiny-peer"].report(), run.path, "tiny")
    table = pd.read_parquet(run.path)
    table[table["user"] > 0].to_parquet(run.path, index=False)
    with pytest.raises(InputError, match="must rank all"):
        run.report()
