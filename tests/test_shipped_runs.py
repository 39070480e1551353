"""The runs in checkpoints/, as somebody gets them who clones the project: whole, and scoring what their logs say."""

import dataclasses
import subprocess
from functools import cache
from pathlib import Path

import pytest

from elastic_core.data import Dataset, load
from elastic_core.data.sources import at_hand
from elastic_core.errors import InputError
from elastic_core.evaluation.evaluate import evaluate
from elastic_core.runs import CONFIG, EVENTS, ITEMS, WEIGHTS, Run

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = sorted(file.parent for file in (ROOT / "checkpoints").glob(f"*/{CONFIG}"))
RUNS = [Run(folder) for folder in FOLDERS if not folder.name.startswith("local-")]
each = pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)


@cache
def data_of(name: str) -> Dataset:
    return load(next(run for run in RUNS if run.name == name).config.data)


@each
def test_it_scores_what_its_log_says(run: Run) -> None:
    if not at_hand(run.config.data.source):
        pytest.skip(f"{run.config.data.source} is not on this machine")
    dataset = data_of(next(other.name for other in RUNS if other.config.data == run.config.data))
    start, test = run.last("start"), run.last("test")
    assert start and test and run.finished
    assert start["data_hash"] == dataset.hash
    report = evaluate(run.model(dataset), dataset, protocols=("full",))
    for metric in ("NDCG@10", "HR@10"):  # weights saved on another machine round differently: a tie may fall the other way
        assert report.metrics["full"][metric] == pytest.approx(test["protocols"]["full"][metric], abs=5e-4)


def test_a_floor_is_opened_with_the_data_it_was_tested_on_and_no_other() -> None:
    run = Run(ROOT / "checkpoints" / "planted-cooccurrence")
    with pytest.raises(InputError, match="fitted to its data"):
        run.model()  # it would score zeros
    data = data_of(run.name)
    histories = dataclasses.replace(data.histories, items=data.histories.items[::-1].copy())
    with pytest.raises(InputError, match=data.hash):
        run.model(dataclasses.replace(data, histories=histories))


def test_nothing_of_it_is_left_out_of_the_repository() -> None:
    """A file that git ignores is on the machine of whoever trained, and on no other."""
    files = [str(run.path / name) for run in RUNS for name in (CONFIG, WEIGHTS, EVENTS, ITEMS)]
    assert RUNS and all(Path(file).is_file() for file in files)
    if (ROOT / ".git").exists():
        ignored = subprocess.run(["git", "check-ignore", *files], cwd=ROOT, capture_output=True, text=True)
        assert ignored.stdout == ""
