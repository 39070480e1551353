"""The Method page keeps its word: what it names exists, what it quotes is the table, what it measures comes from runs."""

import ast
import json
import math
import shutil
from pathlib import Path

import pytest

from elastic_core.reproduce import VARIANTS
from elastic_core.runs import EVENTS, Run
from elastic_core.services import method_effects, method_notes
from elastic_core.services.method_effects import measured, table_3

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "checkpoints"


def defined(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("row", method_notes.EQUATIONS, ids=lambda row: row.equation)
def test_every_module_and_every_test_that_is_named_exists(row: method_notes.Equation) -> None:
    assert row.name in defined(ROOT / row.module)
    file, _, name = row.test.partition("::")
    assert name in defined(ROOT / file)


def test_the_nine_questions_and_the_variants_are_complete() -> None:
    assert [question.key for question in method_notes.OPEN] == list("abcdefghi")
    assert set(method_notes.VARIANTS) == {"elastic", *VARIANTS}
    assert set(method_notes.PAPER) <= set(method_notes.VARIANTS)
    assert all(len(values) == len(method_notes.PAPER_METRICS) for values in method_notes.PAPER.values())
    assert len(method_notes.equations()) == len(method_notes.EQUATIONS) and not method_notes.terms().empty


def test_numbers_are_those_of_the_runs() -> None:
    found = measured(RUNS, "ml-100k", "elastic")
    assert found is not None
    tests = [Run(RUNS / name).last("test") for name in found.runs]
    values = [test["protocols"]["full"]["NDCG@10"] for test in tests if test]
    assert found.mean == pytest.approx(sum(values) / len(values)) and found.people == tests[0]["users"]  # type: ignore[index]
    assert found.half == pytest.approx(1.96 * sum(t["errors"]["full"]["NDCG@10"] for t in tests if t) / len(tests))


def test_changing_a_run_changes_the_page_and_taking_it_away_says_not_measured(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "ml-100k-sasrec", tmp_path / "ml-100k-sasrec", ignore=shutil.ignore_patterns("*.safetensors"))
    before = method_effects.of_protocols(tmp_path, "ml-100k")
    file = tmp_path / "ml-100k-sasrec" / EVENTS
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        if line["event"] == "test":
            line["protocols"]["full"]["NDCG@10"] = 0.4321
    file.write_text("\n".join(map(json.dumps, lines)))
    assert "0.4321" in method_effects.of_protocols(tmp_path, "ml-100k").text != before.text
    file.write_text(file.read_text().replace('"NDCG@10"', '"other"'))
    assert measured(tmp_path, "ml-100k", "sasrec") is None, "a run without the metric is no measurement"
    shutil.rmtree(tmp_path / "ml-100k-sasrec")
    gone = method_effects.of_protocols(tmp_path, "ml-100k")
    assert "Not measured" in gone.text and "ml-100k-sasrec" in gone.command


def test_the_ablation_table_keeps_ours_and_the_papers_apart(tmp_path: Path) -> None:
    table = table_3(tmp_path, "ml-1m", "full")
    assert table["NDCG@10 here"].isna().all() and table["paper, ML-1M, its protocol"].notna().sum() == 5
    assert table["run, or what would measure it"].str.startswith("python -m elastic_core reproduce --only ml-1m-elastic").all()
    table = table_3(RUNS, "ml-100k", "full").set_index("variant")
    assert table.loc["ELASTIC", "seeds"] >= 1 and not math.isnan(table.loc["ELASTIC", "± 95%"])


def test_the_average_drop_follows_from_the_table() -> None:
    text = method_effects.of_averages().text
    by_hand = [0.4132 / 0.4256, 0.6515 / 0.6619, 0.3387 / 0.3517, 0.4433 / 0.4546, 0.7699 / 0.7767, 0.3470 / 0.3597]
    assert f"{1 - sum(by_hand) / 6:.2%}" in text and "3.36%" in text and "2.51%" in text


def test_live_checks() -> None:
    assert "unlearns" in method_effects.of_loss().text
    assert method_effects._moved("two-way") > 1e-2 and method_effects._moved("causal") < 1e-5
    assert method_effects.of_peeking() == method_effects.of_peeking()
    for missing in (method_effects.of_printed(None), method_effects.of_balance(None)):
        assert "Choose a run" in missing.text
    speed = method_effects.of_speed(RUNS / "benchmarks" / "latency.csv")
    assert "times faster" in speed.text and not speed.command
    assert method_effects.of_speed(RUNS / "benchmarks" / "nothing.csv").command.startswith("python -m elastic_core bench")
