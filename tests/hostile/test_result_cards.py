"""What a stranger may have kept with a run as the result of its training: no card says what nobody measured, none breaks."""

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from folders import NO_FILE, NO_OBJECT, SECRET, append, instead, write
from hypothesis import HealthCheck, given, settings
from test_readers_fuzzed import CASES, PICK, altered, dumped, values
from visits import visit

from elastic_core import recipes
from elastic_core.disk import showable
from elastic_core.errors import InputError
from elastic_core.runs import Run
from elastic_core.services.train import beside, outcome
from elastic_core.services.train.jobs import Jobs
from pages.frame import shell

ROOT = Path(__file__).resolve().parents[2]
ROW = {
    "system": "Co-occurrence",
    "mean": 0.2,
    "low": 0.1,
    "high": 0.3,
    "difference": 0.1,
    "d_low": 0.0,
    "d_high": 0.2,
    "fault": "",
}
CARD = {"people": 80, "chance": 0.05, "rows": [ROW, {**ROW, "system": "Popularity"}]}
CARDS: dict[str, dict[str, Any]] = {  # what stands in the card instead
    "no people": {"people": 0}, "people not a number": {"people": math.nan}, "people of text": {"people": "80"},
    "a yes for people": {"people": True}, "endless people": {"people": 10**400}, "half a person": {"people": 0.5},
    "fewer than nobody": {"people": -8}, "chance not a number": {"chance": math.nan},
    "chance infinite": {"chance": math.inf}, "no rows": {"rows": []}, "rows of text": {"rows": "x"},
    "a row of nothing": {"rows": [None]}, "rows in rows": {"rows": [[ROW]]}, "many rows": {"rows": [ROW] * 2_000},
    "one system twice": {"rows": [ROW, ROW]}, "an unknown key": {"evil": 1},
}  # fmt: skip
ROWS: dict[str, dict[str, Any]] = {  # and in its only row
    "a mean that is none": {"mean": math.nan}, "a difference without end": {"d_low": -math.inf},
    "a system of numbers": {"system": 7}, "a system of novels": {"system": "x" * 9_000}, "a fault of lists": {"fault": [1]},
    "upside down": {"low": 9.0, "high": -9.0}, "only faults": {"fault": "too vast"}, "an unknown key in a row": {"evil": 1},
    "a system of marks": {"system": "<img src=http://127.0.0.1:9/r> ![x](http://127.0.0.1:9/m)\u202e\x1b[2J"},
}  # fmt: skip
ODD = {
    **{what: {**CARD, **change} for what, change in CARDS.items()},
    **{what: {**CARD, "rows": [{**ROW, **change}]} for what, change in ROWS.items()},
}
ENDS: tuple[dict[str, Any], ...] = (
    {"event": "end", "reason": "", "seconds": 1.0},
    {"event": "end", "reason": "![x](http://127.0.0.1:9/e)", "seconds": 1.0, "best_epoch": 10**9},
    {"event": "end", "reason": "no better validation", "seconds": 1.0, "best_epoch": 2**52},
    {"event": "test", "protocols": {}, "used": 0.0, "users": 0}, {"event": "test", "protocols": {}, "used": 0.0, "users": 2**52},
    {"event": "epoch", "epoch": 10_000, "loss": 1e14, "seconds": 0.0, "valid": {"NDCG@10": -1e14}},
)  # fmt: skip
CASES_OF: dict[str, Callable[[Path], Any]] = {
    **{f"beside.json: {what}": instead(beside.FILE, make) for what, (make, _) in NO_FILE.items()},
    **{f"beside.json: {what}": instead(beside.FILE, lambda place, data=data: write(place.name, data)(place.parent))
       for what, (data, _) in NO_OBJECT.items()},
    **{f"beside.json: {what}": write(beside.FILE, json.dumps(card)) for what, card in ODD.items()},
    **{f"metrics.jsonl: {json.dumps(row)[:60]}": append(json.dumps(row)) for row in ENDS},
}  # fmt: skip
ON_SCREEN = [f"beside.json: {what}" for what in ("a pipe", "a system of marks")]


def told(run: Run) -> list[str]:
    """All that is said of what came of it."""
    try:
        found = outcome.outcome(run, [run])
    except InputError as error:
        return [str(error)]
    table = found.table(run.name)
    systems = table["system"].tolist()
    numbers = table.drop(columns="system").to_numpy(float)
    assert (abs(numbers[numbers == numbers]) < 1e15).all() and len(systems) < 30
    return [found.why, found.verdict, found.seeds, *found.advice, *systems]


@pytest.fixture
def run(tiny_runs: Path, tmp_path: Path) -> Run:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text(SECRET)
    made = Run(Path(shutil.copytree(tiny_runs, tmp_path / "runs")) / "tiny")
    (made.path / beside.FILE).write_text(json.dumps(CARD))
    return made


def test_a_good_card_is_read(run: Run) -> None:
    kept = beside.kept(run)
    assert kept is not None and kept.people == 80 and len(kept.rows) == 2 and "Popularity" in told(run)


@pytest.mark.parametrize("what", CASES_OF)
def test_a_card_of_a_stranger(run: Run, what: str) -> None:
    CASES_OF[what](run.path)
    for sentence in told(run):
        assert len(sentence) < 900 and SECRET not in sentence and showable(sentence.replace("\u2060", ""))  # a joiner of ours


@pytest.mark.slow
@settings(max_examples=CASES, suppress_health_check=list(HealthCheck), deadline=None, derandomize=True, database=None)
@given(PICK, values, PICK)
def test_any_card(tiny_runs: Path, tmp_path_factory: pytest.TempPathFactory, where: int, value: Any, how: int) -> None:
    root = tmp_path_factory.getbasetemp() / "cards"
    if not root.exists():
        shutil.copytree(tiny_runs / "tiny", root)
    (root / beside.FILE).write_bytes(dumped(altered(CARD, where, value, how)))
    told(Run(root))


@pytest.mark.slow
@pytest.mark.parametrize("what", [*ON_SCREEN, *list(CASES_OF)[1 - len(ENDS) :: 4]])
def test_the_train_screen_shows_the_card_or_says_why_not(run: Run, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    root = run.path.parent
    monkeypatch.setattr(Jobs, "_spawn", lambda self, job: None)
    monkeypatch.setattr(shell, "RUNS", root)
    job = Jobs(root).submit(recipes.toy(), "mine")
    shutil.copytree(run.path, job.run.path, dirs_exist_ok=True)
    CASES_OF[what](job.run.path)
    (job.path / "end.json").write_text(json.dumps({"state": "finished", "reason": "all epochs done"}))
    app = visit("train/page.py", {"run": "tiny"})
    assert not app.exception, app.exception
    shown = " ".join(str(each.value) for each in (*app.subheader, *app.markdown, *app.caption, *app.error))
    assert "mine" in shown and SECRET not in shown and not re.search(r"(?<!\\)(<img|!\[x)", shown)
