"""The app through Streamlit's own test driver, on two tiny runs of a small planted world.

A test of a page takes `opened` and reads what is there with `said(app)`, `charts(app)` and `press(app, label)` of driving.py:
`app = opened("traffic/page.py", run="tiny", user="5", trf_order="Hottest first")`. A switch of the sidebar or of the page is
`healthy(app.number_input(key="user").set_value(6).run())`. Data without genres or times: `changed_data`. A screen to begin from,
with its tests: test_new_screen.py."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from driving import healthy
from streamlit.testing.v1 import AppTest
from visits import visit

from elastic_core.data import Dataset
from elastic_core.jobs.job_kinds import Meanings
from elastic_core.jobs.queue import JobContext, begin_job, end_job
from pages.components import page_context


@pytest.fixture
def app_runs(tiny_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The app sees only copies of the runs `tiny` (ELASTIC) and `tiny-peer` (SASRec); a test may add to them."""
    folder = shutil.copytree(tiny_runs, tmp_path / "runs")
    monkeypatch.setattr(page_context, "RUNS", folder)
    return folder


@pytest.fixture
def work_done(app_runs: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Does what was asked of a memory, in this process; none of its own is started."""
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)

    def work() -> None:
        queue = Meanings(app_runs)
        (job,) = queue.list_jobs()
        assert begin_job(job.path.parent, job.id)
        queue.do_work(job, JobContext(job))
        assert queue.get_job(job.id).share == 1.0, "the bar came to its end"
        end_job(job.path.parent, job.id, "finished", "")

    return work


@pytest.fixture(scope="session")
def untouched() -> list[Path]:
    """The copy of the runs that nobody has added to, if there is one."""
    return []


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.fixture
def opened(
    request: pytest.FixtureRequest, untouched: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., AppTest]]:
    """`opened("experts/page.py", run="tiny", expert="3")`: a page by deep link; no page is the start page.

    Tests that ask for no `app_runs` of their own look at one copy, of which the app keeps what it has read; who leaves something
    there has looked at it last."""
    if "app_runs" in request.fixturenames:
        request.getfixturevalue("app_runs")
        yield lambda page="", **address: healthy(visit(page, address))
        return
    if not untouched:
        untouched.append(shutil.copytree(request.getfixturevalue("tiny_runs"), tmp_path_factory.mktemp("app") / "runs"))
    before = files(untouched[0])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(page_context, "RUNS", untouched[0])
        yield lambda page="", **address: healthy(visit(page, address))
    if files(untouched[0]) != before:
        untouched.clear()


@pytest.fixture
def changed_data(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Dataset], Dataset]], None]:
    """`changed_data(lambda data: replace(data, has_times=False))`: from then on pages are shown other data."""
    usual = page_context.require_context

    def change(made: Callable[[Dataset], Dataset]) -> None:
        def now() -> page_context.Context:
            found = usual()
            return replace(found, open_run=replace(found.open_run, dataset=made(found.dataset)))

        monkeypatch.setattr(page_context, "require_context", now)

    return change
