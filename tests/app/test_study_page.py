"""A study from the Data page: the button, the job with its forecast, the answer on the screen and as a page to take away."""

from collections.abc import Callable
from pathlib import Path

import pytest
from driving import charts, press, said
from streamlit.testing.v1 import AppTest

from elastic_core.jobs.job_kinds import Studies
from elastic_core.jobs.queue import JobContext, begin_job
from elastic_core.run_config import PlantedConfig
from elastic_core.services.data.upload_store import UploadStore
from elastic_core.study import train
from elastic_core.study.plan import Probe

PAGE = "data/page.py"


def test_a_study_goes_from_the_button_to_its_answer(
    opened: Callable[..., AppTest], app_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = PlantedConfig(users=70, items=40, interests=4, mean_length=20, max_length=40)
    kept = UploadStore(app_runs / "uploads").plant(world, label="a world to study")
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)
    address = {"dat_part": "Which model for these data?"}
    app = opened(PAGE, **address)
    app.selectbox(key="dat_study").set_value(kept.label).run()
    app.number_input(key="dat_minutes").set_value(1).run()
    press(app, "Study these data")
    queue = Studies(app_runs)
    (job,) = queue.list_jobs()
    assert job.state == "queued" and job.request.data == kept.config and job.request.minutes == 1.0
    assert queue.submit(kept.config, 1.0).id == job.id, "who asks for the same waits for it"

    class Short(train.Study):
        def __post_init__(self) -> None:
            self.probe = lambda config, data: Probe(0.1, 0.05, 0.1)

    monkeypatch.setattr("elastic_core.jobs.job_kinds.Study", Short)
    monkeypatch.setattr(train.plan, "CHOICES", ((2, ("last",)),))
    monkeypatch.setattr(train.plan, "PLANNED", 0.1)
    monkeypatch.setattr(train.plan, "FLOOR", 0.1)
    assert begin_job(job.path.parent, job.id)
    queue.do_work(job, JobContext(job))
    progress = queue.get_job(job.id).progress
    assert 0 < progress["done"] <= progress["of"] and progress["text"].endswith(" left")
    assert queue.get_job(job.id).state == "finished", "its answer is there, whatever its last word"

    app = opened(PAGE, **address)
    app.selectbox(key="dat_study").set_value(kept.label).run()
    text = said(app)
    for question in ("How far back does history help?", "Do personal experts pay?", "What to try next?"):
        assert question in text
    assert len(charts(app)) >= 2 and all(chart.data for chart in charts(app))
    answer = queue.read_answer(job.request)
    assert answer is not None and len(answer["sections"]) == 9
    (queue.study_folder(job.request) / train.ANSWER).write_text('{"sections": [{"key": "<b>"}], "minutes": 1, "seconds": 2}')
    assert queue.read_answer(job.request) is None, "a file that no study writes is no answer"
    app.run()
    assert not app.exception and "What to try next?" not in said(app)
