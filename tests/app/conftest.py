"""The app through Streamlit's own test driver, on two tiny runs of a small planted world. See driving.py."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import healthy
from streamlit.testing.v1 import AppTest
from visits import visit

from elastic_core.services.background.process import Hand
from elastic_core.services.evidence.jobs import Questions
from pages.frame import shell


@pytest.fixture
def app_runs(tiny_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The app sees only copies of the runs `tiny` (ELASTIC) and `tiny-peer` (SASRec); a test may add to them."""
    folder = shutil.copytree(tiny_runs, tmp_path / "runs")
    monkeypatch.setattr(shell, "RUNS", folder)
    return folder


@pytest.fixture
def work_done(app_runs: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Does what was asked of a memory, in this process; none of its own is started."""
    monkeypatch.setattr(Questions, "_spawn", lambda self, job: None)

    def work() -> None:
        queue = Questions(app_runs)
        (job,) = queue.all()
        queue.work(job, Hand(job.path))
        assert queue.get(job.id).share == 1.0, "the bar came to its end"
        (job.path / "end.json").write_text('{"state": "finished"}')

    return work


@pytest.fixture
def opened(app_runs: Path) -> Callable[..., AppTest]:
    """`opened("experts/page.py", run="tiny", expert="3")`: a page by deep link; no page is the start page."""

    return lambda page="", **address: healthy(visit(page, address))
