"""The claims, as a page: with nothing, with planted runs, and with a measurement made on it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import healthy, said
from streamlit.testing.v1 import AppTest
from test_evidence import row

from elastic_core.runs import Run
from elastic_core.services.background.process import Hand
from elastic_core.services.evidence import meaning
from elastic_core.services.evidence.jobs import Questions

PAGE = "evidence/page.py"
Opened = Callable[..., AppTest]


def test_nothing_is_known_where_no_run_answers(opened: Opened, app_runs: Path) -> None:
    app = opened(PAGE, run="tiny")
    words = said(app)
    assert "Of 11 claims: 11 not known." in words and words.count("What would change our mind:") == 11
    assert "items new to the person" in words, "the way of ranking is said"
    assert "No benchmark rows came along" in words
    for name in ("tiny", "tiny-peer"):
        shutil.rmtree(app_runs / name)
    assert "Of 11 claims: 11 not known." in said(opened(PAGE))


def test_a_verdict_leads_to_what_it_stands_on(opened: Opened) -> None:
    app = healthy(opened(PAGE, run="tiny").button(key="lrn_go_speed").click().run())
    assert app.title[0].value.startswith("When is ELASTIC faster")


def test_the_memory_is_measured_on_demand_and_never_in_public(
    opened: Opened, app_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = row(Run(app_runs / "tiny"), quarter=0.5)
    monkeypatch.setattr(meaning, "measure_meaning", lambda run, model, dataset, tell: made)
    monkeypatch.setattr(Questions, "_spawn", lambda self, job: None)
    asked = Questions(app_runs)
    app = healthy(opened(PAGE, run="tiny").button(key="lrn_measure").click().run())
    (job,) = asked.all()
    other = opened(PAGE, run="tiny")  # another visitor sees the same job
    for each in (app, other):
        assert not [button for button in each.button if button.key == "lrn_measure"]
        assert [button.label for button in each.button if button.key == f"lrn_measure_watch_stop_{job.id}"] == ["Cancel"]
    assert asked.work(job, Hand(job.path)) == ""
    (job.path / "end.json").write_text('{"state": "finished"}')
    app = healthy(other.run())
    assert "finds 50% of the person’s experts again" in said(app) and "beyond the stranger; trained once" in said(app).replace(
        "\\", ""
    )
    assert not [button for button in app.button if button.key == "lrn_measure"]
    meaning.files(app_runs)[1].unlink()
    monkeypatch.setenv("ELASTIC_PUBLIC", "1")
    app = opened(PAGE, run="tiny")
    assert "Measuring on this machine is off here" in said(app) and not [b for b in app.button if b.key == "lrn_measure"]
