"""The runs in checkpoints/, as somebody gets them who clones the project: whole, and scoring what their logs say."""

import dataclasses
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from elastic_core.data import Dataset, load
from elastic_core.data.source_catalog import at_hand
from elastic_core.errors import InputError
from elastic_core.labels import is_variant
from elastic_core.reproduce import rows
from elastic_core.runs import CONFIG, EVENTS, ITEMS, WEIGHTS, Run, ranks
from elastic_core.runs.ranks import evaluate

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = sorted(file.parent for file in (ROOT / "checkpoints").glob(f"*/{CONFIG}"))
RUNS = [Run(folder) for folder in FOLDERS if not folder.name.startswith("local-")]
each = pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
whole = pytest.mark.parametrize("run", [run for run in RUNS if run.has_weights], ids=lambda run: run.name)


@cache
def data_of(name: str) -> Dataset:
    return load(next(run for run in RUNS if run.name == name).config.data)


SAMPLE = 20


@each
def test_its_ranks_give_the_numbers_of_its_log(run: Run) -> None:
    test, start = run.last("test"), run.last("start")
    assert test and start and run.finished
    stored = run.report()
    assert (stored.data_hash, len(stored.users)) == (start["data_hash"], test["users"])
    for found, told in ((stored.metrics, test["protocols"]), (stored.errors, test["errors"])):
        assert found.keys() == told.keys()
        for protocol in told:  # another release of NumPy adds up in another order
            assert found[protocol] == pytest.approx(told[protocol], rel=1e-12)
    if "rescored" in test:
        assert test["commit"] == stored.commit != ""


@whole
def test_scoring_a_sample_again_gives_the_same_ranks(run: Run) -> None:
    if not at_hand(run.config.data.source):
        pytest.skip(f"{run.config.data.source} is not on this machine")
    dataset = data_of(next(other.name for other in RUNS if other.config.data == run.config.data))
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
    run = Run(ROOT / "checkpoints" / "planted-cooccurrence")
    with pytest.raises(InputError, match="fitted to its data"):
        run.model()  # it would score zeros
    data = data_of(run.name)
    histories = dataclasses.replace(data.histories, items=data.histories.items[::-1].copy())
    with pytest.raises(InputError, match=data.hash):
        run.model(dataclasses.replace(data, histories=histories))


def test_nothing_of_it_is_left_out_of_the_repository() -> None:
    """A file that git ignores is on the machine of whoever trained, and on no other. Further seeds, ablations, what has a repeat
    bias or a table of its own to score by, a limit of minutes, what was made for a GPU, LISA's other forms, and runs on Video
    Games (each has a table of 10,672 items) may come without weights, and then without items, for tables need their ranks; that
    of popularity says how many items there are."""
    games = "amazon-video-games"
    changed = {
        row.name
        for row in rows()
        if is_variant(row.system)
        or row.system.mark
        or row.config.train.seed
        or row.config.train.minutes
        or row.config.data.source == games
        or row.name in ("ml-1m-elastic", "ml-1m-sasrec")
        or (row.system.model == "lisa" and row.system.variant)
    }
    files = [str(run.path / name) for run in RUNS for name in (CONFIG, EVENTS, ranks.FILE)]
    whole = [run for run in RUNS if run.name not in changed or run.has_weights]
    files += [str(run.path / name) for run in whole for name in (WEIGHTS, ITEMS)]
    files += [str(run.path / ITEMS) for run in RUNS if run.config.model.name == "popularity"]
    assert RUNS and all(Path(file).is_file() for file in files)
    if (ROOT / ".git").exists():
        ignored = subprocess.run(["git", "check-ignore", *files], cwd=ROOT, capture_output=True, text=True)
        assert ignored.stdout == ""
