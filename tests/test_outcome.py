"""What came of a training: the numbers beside it are those of a whole evaluation, and the advice follows from them."""

import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from shipped import shipped_run

from elastic_core import models
from elastic_core.core.config import ModelConfig
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.results import baselines
from elastic_core.results.baselines import BaselineComparison, BaselineRow
from elastic_core.runs import EVENTS, Run
from elastic_core.runs.ranks import evaluate
from elastic_core.services.person.inspect import ItemWords
from elastic_core.services.train import outcome, run_table


@pytest.fixture
def run(tiny_runs: Path, tmp_path: Path) -> Run:
    """A copy of `tiny` that may be written to."""
    from shutil import copytree

    return Run(copytree(tiny_runs / "tiny", tmp_path / "tiny"))


def ended(run: Run, reason: str, best: int, epochs: int, **test: float) -> Run:
    """The run as if it had gone like this: the loss falls for ever, the validation is best in one epoch."""
    rows = [json.loads(line) for line in (run.path / EVENTS).read_text().splitlines()]
    start, tested = (next(row for row in rows if row["event"] == name) for name in ("start", "test"))
    each = [
        {"event": "epoch", "epoch": i, "loss": 9.0 / i, "seconds": float(i), "valid": {"NDCG@10": float(i == best)}}
        for i in range(1, epochs + 1)
    ]
    end = {"event": "end", "reason": reason, "best_epoch": best, "seconds": 9.0}
    (run.path / EVENTS).write_text("".join(json.dumps(row) + "\n" for row in [start, *each, {**tested, **test}, end]))
    return run


def test_what_only_counts_is_judged_as_everything_else_is(run: Run, tiny: tuple[Recommender, Dataset, Run]) -> None:
    data = tiny[1]
    found = baselines.compare_with_baselines(run, data, baselines.WITH_SEEN)
    baselines.write_comparison(run, found)
    assert baselines.read_comparison(run) == found and found.people == data.histories.n_users
    mine = run.report().user_values(found.protocol, "NDCG@10")
    for row, name in zip(found.rows, ("cooccurrence", "due-again", "frequency", "popularity"), strict=True):
        model = models.build(ModelConfig.known[name](), data.catalog)
        model.fit(data)
        theirs = evaluate(model, data, protocols=(found.protocol,)).user_values(found.protocol, "NDCG@10")
        assert (row.mean, row.difference) == (pytest.approx(theirs.mean()), pytest.approx(mine.mean() - theirs.mean()))
        assert row.low < row.mean < row.high and row.d_low < row.difference < row.d_high
    told = outcome.describe_outcome(run)
    assert told.score is not None and told.score.mean == pytest.approx(mine.mean())
    table = told.table("mine")
    assert set(table["system"]) == {"mine", "Co-occurrence", "Due again", "Own frequency", "Popularity", "a random order"}


@pytest.mark.parametrize(
    ("reason", "best", "epochs", "why", "advice", "longer"),
    [
        ("budget of 0.5 minutes spent", 7, 7, "its time was up", "train longer", True),
        ("budget of 0.5 minutes spent", 2, 7, "its time was up", "since epoch 2 of 7", False),
        ("budget of 0.5 minutes spent", 1, 1, "its time was up", "hardly one epoch", True),
        ("all epochs done", 5, 5, "all 5 epochs were done", "train longer", True),
        ("no better validation NDCG@10 in 3 epochs", 2, 5, "by itself", "learns its data by heart", False),
        ("asked to stop", 4, 4, "by hand in epoch 4", "train longer", True),
    ],
)
def test_the_advice_follows_from_how_it_ended(
    run: Run, reason: str, best: int, epochs: int, why: str, advice: str, longer: bool
) -> None:
    found = outcome.describe_outcome(ended(run, reason, best, epochs, used=1.0))
    assert why in found.why and advice in " ".join(found.advice) and (found.longer is not None) is longer
    if found.longer is not None:
        assert found.longer.train.epochs == 2 * run.config.train.epochs


def test_a_memory_that_few_use_is_said_beside_its_null(run: Run) -> None:
    said = " ".join(outcome.describe_outcome(ended(run, "all epochs done", 2, 2, used=0.25)).advice)
    assert "Only 25% of the" in said and "by pure chance it would be 99%" in said


def test_the_verdict_is_the_interval(run: Run) -> None:
    row = BaselineRow("Co-occurrence", 0.2, 0.1, 0.3, -0.05, -0.08, -0.02)
    weak = BaselineRow("Popularity", 0.1, 0.05, 0.15, 0.05, 0.02, 0.08)
    for d_low, d_high, said in (
        (-0.08, -0.02, "Worse than Co"),
        (-0.08, 0.02, "No clear difference from Co"),
        (0.01, 0.02, "Better than Co"),
    ):
        baselines.write_comparison(
            run,
            BaselineComparison(
                80, 0.01, (weak, replace(row, d_low=d_low, d_high=d_high), BaselineRow("Vast", fault="too many items"))
            ),
        )
        assert said in outcome.describe_outcome(run).verdict
    for odd in ("{", "[]", '{"people": 1, "chance": 0.1, "rows": [{"system": 3}]}', '{"people": "x", "rows": []}'):
        (run.path / baselines.FILE).write_text(odd)
        assert outcome.describe_outcome(run).beside is None


def test_seeds_are_counted_and_the_next_is_new(run: Run, tmp_path: Path) -> None:
    alone = outcome.describe_outcome(run, [run])
    assert "One training is not a result" in alone.seeds and alone.again is not None and alone.again.train.seed == 1
    from shutil import copytree

    twin = Run(copytree(run.path, tmp_path / "twin"))
    plain = json.loads((twin.path / "config.json").read_text())
    plain["train"]["seed"] = 1
    (twin.path / "config.json").write_text(json.dumps(plain))
    both = outcome.describe_outcome(Run(run.path), [run, twin])
    assert both.seeds.startswith("2 seeds of it are here") and both.again is not None and both.again.train.seed == 2


def test_the_gap_between_seeds_is_that_of_the_shipped_runs() -> None:
    runs = [shipped_run(f"ml-100k-elastic{seed}") for seed in ("", "-seed1", "-seed2")]
    values = [run.report().mean_interval("full", "NDCG@10").mean for run in runs]
    assert abs(outcome.SEED_GAP - 2**0.5 * statistics.stdev(values)) < 5e-5


@pytest.mark.parametrize(
    ("hit", "said"),
    [
        (58, "For 97% of 60 people, the true next item is among the ten (95% interval 89% to 99%)."),
        (60, "94% to 100%)"),
        (0, "0% to 6%)"),
    ],
)
def test_the_interval_of_those_who_are_hit_stays_between_none_and_all(hit: int, said: str) -> None:
    words = ItemWords("item", "items", "chose", "chosen", "an item")
    line = run_table.hit_line({"users": 60, "protocols": {"full": {"HR@10": hit / 60}}}, words)
    assert line is not None and said in line, "by hand, Wilson (1927)"
    assert run_table.hit_line({"protocols": {"full": {"HR@10": 0.5}}}, words) is not None, "a log that counted nobody"
