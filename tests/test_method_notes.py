"""The Method page keeps its word: what it names exists, what it quotes is the table, what it measures comes from runs."""

import ast
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from shipped import shipped_run

from elastic_core.core.evaluate import PROTOCOLS, Ranks
from elastic_core.evaluation.verdict import ONE_RUN
from elastic_core.reproduce import REPEATS, VARIANTS, rows
from elastic_core.results.store import stored_runs
from elastic_core.runs import CONFIG, Run
from elastic_core.runs.ranks import FILE, Report
from elastic_core.services.method import effects, notes
from elastic_core.services.method.effects import measured_variant, table_3
from elastic_core.services.speed import curves

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "checkpoints"


def defined(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("row", notes.EQUATIONS, ids=lambda row: row[0])
def test_every_module_and_every_test_that_is_named_exists(row: tuple[str, ...]) -> None:
    for file, name in (row[2].split(": "), row[3].split("::")):
        assert name in defined(ROOT / file)


def test_the_nine_questions_and_the_variants_are_complete() -> None:
    assert [question.key for question in notes.OPEN] == list("abcdefghi")
    assert set(notes.VARIANTS) == {"elastic", REPEATS, *VARIANTS}
    assert set(notes.PAPER) <= set(notes.VARIANTS)
    assert all(len(values) == len(notes.PAPER_METRICS) for values in notes.PAPER.values())
    assert len(notes.equations()) == len(notes.EQUATIONS) and not notes.terms().empty


def test_numbers_are_those_of_the_runs() -> None:
    found = measured_variant(RUNS, "ml-100k", "memory-none")
    assert found is not None and found.runs == ("ml-100k-elastic-memory-none",)
    test = shipped_run(found.runs[0]).last("test")
    assert test is not None and found.people == test["users"]
    assert found.mean == pytest.approx(test["protocols"]["full"]["NDCG@10"])
    assert found.half == pytest.approx(1.96 * test["errors"]["full"]["NDCG@10"])


def made_up(root: Path, name: str, place: int) -> Run:
    """A finished run of the named row whose people all find their target at a place (from 0)."""
    row, people = next(row for row in rows() if row.name == name), 50
    (root / name).mkdir()
    run = Run(root / name)
    (run.path / CONFIG).write_text(json.dumps(row.config.to_dict()))
    ranks = {protocol: Ranks(np.full(people, place, np.int32), np.zeros(people, np.int32)) for protocol in PROTOCOLS}
    run.save_report(Report(ranks, np.arange(people), "test", "abc", 0, 1.0, "c0ffee"))
    for event in ({"event": "test", "protocols": {}}, {"event": "end", "reason": "made up", "seconds": 1.0}):
        run.append(event)
    return run


def test_changing_a_run_changes_the_page_and_taking_it_away_says_not_measured(tmp_path: Path) -> None:
    run = made_up(tmp_path, "ml-100k-sasrec", 0)
    assert "full 1.0000" in effects.of_protocols(tmp_path, "ml-100k").text
    (run.path / FILE).unlink()
    assert measured_variant(tmp_path, "ml-100k", "sasrec") is None, "a run without ranks is no measurement"
    (run.path / FILE).write_bytes(b"damaged")
    assert measured_variant(tmp_path, "ml-100k", "sasrec") is None
    shutil.rmtree(run.path)
    made_up(tmp_path, "ml-100k-sasrec", 2)
    assert "full 0.5000" in effects.of_protocols(tmp_path, "ml-100k").text
    shutil.rmtree(run.path)
    gone = effects.of_protocols(tmp_path, "ml-100k")
    assert "Not measured" in gone.text and "ml-100k-sasrec" in gone.command


def test_a_variant_is_compared_with_all_seeds_and_one_run_claims_nothing(tmp_path: Path) -> None:
    for name, place in (("ml-100k-elastic", 0), ("ml-100k-elastic-seed1", 1), ("ml-100k-elastic-gate-none", 2)):
        made_up(tmp_path, name, place)
    text = table_3(tmp_path, "ml-100k", "full").set_index("variant")["ELASTIC − variant"]
    (one,) = [cell for cell in text if cell]
    assert one.startswith(f"{(1 + 1 / math.log2(3)) / 2 - 0.5:+.4f} (95% ") and ONE_RUN in one
    assert ONE_RUN in effects.of_gate(tmp_path, "ml-100k", None).text


def test_the_ablation_table_keeps_ours_and_the_papers_apart(tmp_path: Path) -> None:
    table = table_3(tmp_path, "ml-1m", "full")
    assert table["NDCG@10 here"].isna().all() and table["paper, ML-1M, its protocol"].notna().sum() == 5
    assert table["run, or what would measure it"].str.startswith("python -m elastic_core reproduce --only ml-1m-elastic").all()
    table = table_3(RUNS, "ml-100k", "full")
    names = [run.partition("-seed")[0] for run in stored_runs(RUNS)]
    here = {name: names.count(f"ml-100k-elastic-{name}") for name in (*VARIANTS, REPEATS) if f"ml-100k-elastic-{name}" in names}
    assert here and table["seeds"].sum() == 3 + sum(here.values())  # beside three seeds of ELASTIC itself
    assert table["± 95%"].notna().sum() == 1 + len(here)


def test_the_average_drop_follows_from_the_table() -> None:
    text = effects.of_averages().text
    by_hand = [0.4132 / 0.4256, 0.6515 / 0.6619, 0.3387 / 0.3517, 0.4433 / 0.4546, 0.7699 / 0.7767, 0.3470 / 0.3597]
    assert f"{1 - sum(by_hand) / 6:.2%}" in text and "3.36%" in text and "2.51%" in text


def test_live_checks() -> None:
    assert "forgets the answer" in effects.of_loss().text
    assert effects._moved(True) > 1e-2 and effects._moved(False) < 1e-5
    assert effects.of_peeking() == effects.of_peeking()
    for missing in (effects.of_printed(None), effects.of_balance(None)):
        assert "Choose a run" in missing.text


def test_speeds_are_those_that_the_speed_screen_opens_with(tmp_path: Path) -> None:
    """One thread and the same shortcut for both sides; it says so."""
    speed = effects.of_speed(RUNS)
    table, column = curves.usual(curves.shipped(RUNS))
    assert set(table["threads"]) == {1} and "1 thread," in speed.text and not speed.command
    assert f"1/{curves.versus(table, 'elastic', 'sasrec-fused', column)[1024]:.1f} of fused" in speed.text
    eager = curves.versus(table, "elastic-two-way", "sasrec-eager", column)[1024]
    assert f"1/{eager:.1f} of the time of eager SASRec" in speed.text
    assert effects.of_speed(tmp_path).command.startswith("python -m elastic_core bench")
