"""The Train page: what it offers, what it refuses, and that its buttons reach the jobs. Nothing is trained here."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest
from visits import visit

from elastic_core import recipes
from elastic_core.commands import main
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.jobs.job_kinds import Trainings
from elastic_core.jobs.queue import begin_job, end_job
from elastic_core.results import baselines
from elastic_core.results.baselines import BaselineComparison, BaselineRow
from elastic_core.results.systems import run_label
from elastic_core.run_config import DataConfig
from elastic_core.runs import CONFIG, Run, list_runs
from elastic_core.runs.training import train
from elastic_core.services.speed import curves
from elastic_core.services.train import presets, run_table
from pages.components import model_usage, page_context, plot
from pages.train import charts, form

ROOT = Path(__file__).resolve().parents[2]
DONE = "local-done"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("checkpoints")
    config = recipes.toy().override("train.epochs=2", "data.planted.users=100", "model.length=16", "model.width=8")
    train(config, load(config.data), root / DONE)
    return root


@pytest.fixture
def root(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkpoints folder of its own, whose queue starts no process."""
    shutil.copytree(trained, tmp_path / "checkpoints")
    monkeypatch.setattr(page_context, "RUNS", tmp_path / "checkpoints")
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)
    yield tmp_path / "checkpoints"


def page(**query: str) -> AppTest:
    return well(visit("train/page.py", {"train_data": "Planted interests", "train_time": "30 s", **query}, timeout=120))


def well(at: AppTest) -> AppTest:
    assert not at.exception, at.exception[0].value
    return at


def texts(elements: Any) -> str:
    """As people read it: without the backslashes that keep Markdown from reading more into it."""
    return re.sub(r"\\([^\w\s])", r"\1", "\n".join(str(element.value) for element in elements))


def test_it_says_what_it_will_cost_before_anything_starts(root: Path) -> None:
    at = page(train_seed="7")
    assert "from start to tested" in texts(at.info) and "parameters" in texts(at.info)
    assert at.number_input(key="train_seed").value == 7, "the seed is in the link"
    assert Trainings(root).list_jobs() == []
    assert list(at.dataframe[0].value["run"]) == [DONE]
    assert int(at.dataframe[0].value["people"][0]) > 0


def test_so_many_passes_are_said_in_words() -> None:
    said = {0.322: "about a third of one pass", 0.02: "less than a tenth of one pass", 1.0: "1 pass", 1.52: "1.5 passes"}
    assert {count: form.describe_passes(count).removesuffix(" over the data") for count in said} == said


def test_groceries_in_view_open_it_on_data_that_two_minutes_pass_often() -> None:
    groceries, planted, own = (DataConfig(source=source) for source in ("groceries", "planted", "/a/file.csv"))
    assert form._first_choice([groceries, planted]) == 1
    assert form._first_choice([planted, groceries]) == form._first_choice([own, planted]) == 0


def test_it_says_from_which_length_on_elastic_is_faster_and_which_time_reads_so_many(root: Path) -> None:
    assert "faster" not in texts(page().caption), "no rows came along here"
    shutil.copy(ROOT / "checkpoints" / "benchmarks.csv", root)
    crossed = curves.find_crossing(root)
    assert f"up to about {crossed:,.0f} events. Choose **20 min**" in texts(page(train_time="2 min").caption)
    assert "faster" not in texts(page(train_time="2 min", train_model="SASRec").caption)
    assert presets.find_budget("20 min").shape["length"] >= crossed > presets.find_budget("5 min").shape["length"]


def test_a_time_that_is_not_needed_is_the_most_and_not_the_price(root: Path) -> None:
    said = texts(page(**{"train_set_train.epochs": "1", "train_set_train.minutes": "600"}).info)
    assert "**600 min at most; here " in said and "That is 1 pass over the data" in said


def test_what_is_copied_goes_by_the_name_people_read(root: Path) -> None:
    at = page(train_how="Change one thing", train_base=DONE)
    box = at.selectbox(key="train_base")
    assert box.value == DONE and box.options == [run_label(Run(root / DONE))] != [DONE]


def test_a_link_to_a_large_model_is_priced_and_not_built(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elastic_core.training_time.Optimization", None)
    at = page(**{"train_model": "ELASTIC", "train_set_model.n_subkeys": "1000", "train_set_model.width": "128"})
    assert "128,8" in texts(at.info) and "too large to be timed beside the pages" in texts(at.info)
    assert not at.button(key="train_start").disabled


def test_the_start_button_queues_what_is_on_the_page(root: Path) -> None:
    at = page(train_seed="7", train_model="SASRec")
    well(at.text_input(key="train_name").set_value("mine").run())
    well(at.button(key="train_start").click().run())
    (job,) = Trainings(root).list_jobs()
    assert (job.run.name, job.config.model.name, job.config.train.seed) == ("local-mine", "sasrec", 7)
    assert job.config.train.minutes == 0.5
    assert "local-mine" in texts(at.markdown)
    well(at.button(key="train_start").click().run())
    assert "already" in texts(at.error), "a name that is taken is one sentence"
    well(at.button(key=f"train_out_{job.id}").click().run())
    assert Trainings(root).list_jobs() == []


def test_settings_that_cannot_work_are_one_sentence_and_cannot_be_started(root: Path) -> None:
    at = page(train_model="ELASTIC")
    well(at.number_input(key="train_set_model.k").set_value(1000).run())
    assert texts(at.error) == r"This cannot be trained: model.k must lie in 1 … n\_subkeys² = 64, not 1000."
    assert at.button(key="train_start").disabled


def test_every_setting_is_in_the_link_until_another_preset_brings_its_own(root: Path) -> None:
    at = page(**{"train_model": "ELASTIC", "train_set_model.k": "3", "train_set_model.gate": "none"})
    assert "Changed: model.k: " in texts(at.caption) and "→ 3" in texts(at.caption) and "→ none" in texts(at.caption)
    well(at.selectbox(key="train_model").set_value("SASRec").run())
    assert "Changed" not in texts(at.caption)
    at = page(**{"train_how": "Change one thing", "train_field": "sub-keys (√K)", "train_set_to": "16"})
    assert r"Changed: model.n\_subkeys: 8 → 16" in texts(at.caption)


def test_another_objective_brings_the_boxes_of_its_own_settings(root: Path) -> None:
    at = page(train_model="ELASTIC")
    assert at.number_input(key="train_set_objective.span").value == 16
    well(at.selectbox(key="train_set_objective.name").set_value("last").run())
    assert "train_set_objective.span" not in {box.key for box in at.number_input}
    well(at.number_input(key="train_set_objective.prefixes_per_user").set_value(7).run())
    assert "absent → 7" in texts(at.caption)
    well(at.button(key="train_start").click().run())
    (job,) = Trainings(root).list_jobs()
    asked = job.config.to_dict()["objective"]
    assert (asked["name"], asked["prefixes_per_user"]) == ("last", 7)
    at = page(**{"train_set_objective.name": "last", "train_set_objective.prefixes_per_user": "5"})
    assert "absent → 5" in texts(at.caption), "both are in the link"


def test_change_one_thing(root: Path) -> None:
    at = page()
    well(at.segmented_control(key="train_how").set_value("Change one thing").run())
    well(at.selectbox(key="train_field").set_value("model.n_subkeys").run())
    well(at.number_input(key="train_set_to").set_value(16).run())
    assert r"Changed: model.n\_subkeys: 8 → 16" in texts(at.caption)
    well(at.button(key="train_start").click().run())
    before = json.loads((root / DONE / CONFIG).read_text())
    before["model"]["n_subkeys"] = 16
    assert Trainings(root).list_jobs()[0].config.to_dict() == before


def test_an_interrupted_training_can_be_continued_or_discarded(root: Path) -> None:
    at = page()
    well(at.button(key="train_start").click().run())
    (job,) = Trainings(root).list_jobs()
    assert begin_job(job.path.parent, job.id)
    well(at.run())
    assert "was interrupted" in texts(at.warning)
    well(at.button(key=f"train_resume_{job.id}").click().run())
    assert Trainings(root).get_job(job.id).state == "queued"
    assert begin_job(job.path.parent, job.id)
    well(at.run())
    well(at.button(key=f"train_discard_{job.id}").click().run())
    assert Trainings(root).list_jobs() == []


def test_a_failed_training_shows_its_reason(root: Path) -> None:
    at = page()
    well(at.button(key="train_start").click().run())
    (job,) = Trainings(root).list_jobs()
    assert begin_job(job.path.parent, job.id)
    end_job(job.path.parent, job.id, "failed", "the disk is full")
    well(at.run())
    assert "the disk is full" in texts(at.error)


def test_what_came_of_a_training_stays_until_it_is_put_away(root: Path) -> None:
    at = page(user="5")
    well(at.button(key="train_start").click().run())
    (job,) = Trainings(root).list_jobs()
    shutil.copytree(root / DONE, job.run.path)
    assert begin_job(job.path.parent, job.id)
    end_job(job.path.parent, job.id, "finished", "all epochs done")
    well(at.run())
    assert f"Trained and tested: {job.run.name}" in texts(at.subheader) and "has not been tested" in texts(at.caption)
    well(at.button(key=f"train_judge_{job.id}").click().run())
    assert Trainings(root).get_job(job.id).state == "queued", "what is left of it is done in the background"
    assert begin_job(job.path.parent, job.id)
    end_job(job.path.parent, job.id, "finished", "all epochs done")
    row = BaselineRow("Co-<b>occurrence", 0.2, 0.1, 0.3, -0.05, -0.08, -0.02)
    baselines.write_comparison(job.run, BaselineComparison(100, 0.01, (row, BaselineRow("Vast", fault="too many items"))))
    well(at.run())
    assert r"Worse than Co\-\<b\>occurrence" in " ".join(each.value for each in at.markdown)
    assert "all 2 epochs" in texts(at.markdown)
    said = texts(at.caption)
    assert "0.2000 (0.1000 to 0.3000)" in said and "too many items" in said and "A random order: 0.0100" in said
    place = f"checkpoints/{job.run.name}"
    assert f"elastic serve {place}" in texts(at.code) and f"open_run({place!r})" in texts(at.code)
    assert "Open this run" in [b.label for b in at.button], "the person on the left is of other data"
    well(at.button(key=f"train_again_{job.id}").click().run())
    assert [j.config.train.seed for j in Trainings(root).list_jobs()] == [0, 1]
    well(at.button(key=f"train_away_{job.id}").click().run())
    assert "Trained and tested" not in texts(at.subheader) and job.run.finished


def test_a_model_is_used_by_lines_that_run_as_they_stand(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = texts(page(run=DONE, user="5").code)
    assert f"train --config checkpoints/{DONE}/config.json" in shown and "--help" not in shown
    monkeypatch.chdir(root.parent)
    run = Run(root / DONE)
    data = load(run.config.data)
    for known in ((), (data, 4)):
        lines = model_usage.python_example(run, *known)
        assert lines in shown or not known
        exec(lines, {})
        assert str(data.histories.user_ids[4]) in capsys.readouterr().out or not known
    for command in model_usage.shell_commands(run).values():
        assert command in shown
    assert (
        main(model_usage.shell_commands(run)["Everybody’s next items, as a table:"].split()[1:]) == 0
        and Path("top.csv").is_file()
    )


def test_a_run_of_ones_own_is_deleted_and_who_looked_at_it_looks_at_another(root: Path) -> None:
    shutil.copytree(root / DONE, root / "local-other")
    at = page(run="local-other", train_pick="local-other")
    assert at.session_state[page_context.CONTEXT].run.name == "local-other"
    well(at.selectbox(key="train_pick").select("local-other").run())
    with Run(root / "local-other").lock():
        well(at.button(key="train_gone").click().run())
        assert "another process is training into" in texts(at.error) and (root / "local-other").is_dir()
    well(at.button(key="train_gone").click().run())
    assert "local-other is deleted" in texts(at.success) and not (root / "local-other").exists()
    assert at.session_state[page_context.CONTEXT].run.name == DONE
    well(at.button(key="train_start").click().run())  # a training that waits
    (job,) = Trainings(root).list_jobs()
    with pytest.raises(InputError, match="only runs that were trained here"):
        Trainings(root).delete_run("../" + DONE)
    shutil.copytree(root / DONE, job.run.path)
    with pytest.raises(InputError, match="is not over"):
        Trainings(root).delete_run(job.run.name)


def test_the_first_run_can_be_trained_where_there_is_none(root: Path) -> None:
    shutil.rmtree(root / DONE)
    at = page()
    assert "There is no run yet" in texts(at.info)
    well(at.button(key="train_start").click().run())
    assert [job.run.name for job in Trainings(root).list_jobs()] == ["local-elastic-planted"]


def test_curves_are_one_line_a_run_with_a_sentence_for_each(trained: Path) -> None:
    runs = list_runs(trained)
    frame = run_table.training_curves(runs)
    figures = charts.draw_curves(frame, plot.LIGHT)
    assert list(figures) == ["loss", "NDCG@10", "used"]
    assert [len(f.data) for f in figures.values()] == [1, 1, 2]
    assert all(isinstance(f, go.Figure) for f in figures.values())
    assert DONE in charts.describe_curve("loss", frame)
    assert list(charts.draw_curves(frame.assign(used=float("nan")), plot.LIGHT)) == ["loss", "NDCG@10"]
