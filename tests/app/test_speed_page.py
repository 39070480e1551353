"""The Speed page: sources stay apart, losses are said, the button starts one process, and the calculator answers."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch
from driving import healthy, press, said
from streamlit.testing.v1 import AppTest

from elastic_core.bench.latency import Setting, measure_latency
from elastic_core.bench.rows import write_rows
from elastic_core.jobs.job_kinds import Measurements
from elastic_core.jobs.queue import begin_job, end_job
from elastic_core.services.speed import costs, curves
from elastic_core.services.speed.plan import Plan
from pages.components import plot
from pages.speed import charts

PAGE = "speed/page.py"
Opened = Callable[..., AppTest]


@pytest.fixture
def rows(app_runs: Path) -> pd.DataFrame:
    """A few real rows as the shipped measurement."""
    systems, file = ("elastic", "sasrec-fused", "sasrec-eager"), app_runs / "benchmarks.csv"
    for n in (8, 16, 32):
        setting = Setting(length=n, batch=2, width=8, k=2, n_subkeys=4)
        write_rows(file, measure_latency(setting, torch.device("cpu"), systems, rounds=3, warmup=1))
    return curves.read_passes(file)


def test_the_shipped_rows_are_said_in_words_and_the_paper_stands_apart(opened: Opened, rows: pd.DataFrame) -> None:
    app = opened(PAGE, spd_time_by="clock", spd_at="16")
    few = said(app)
    told = curves.history_sentence(rows, 16)
    assert f"**{told}**" in few and told.startswith("On a processor, ELASTIC reads 16 events in ")
    healthy(app.select_slider(key="spd_at").set_value(32).run())
    assert curves.history_sentence(rows, 32) in said(app) and told not in said(app)
    assert curves.speed_sentence(rows, "elastic", "sasrec-fused")[:20] in few and "storing N × N" not in few
    app.toggle(key="spd_all").set_value(True)
    words = said(healthy(app.run()))
    assert "2.68 times as fast" in words and "never draw these numbers into the charts" in words
    for peer in ("sasrec-fused", "sasrec-eager"):
        assert curves.speed_sentence(rows, "elastic", peer)[:20] in words
    assert "Shipped measurement" in words and "torch" in words
    app.session_state["spd_source"] = curves.MEASURED
    assert "Nothing has been measured on this machine yet" in said(healthy(app.run()))


def test_the_button_starts_one_measurement_and_cancel_reaches_it(
    opened: Opened, app_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda root, job_id, threads: started.append(job_id))
    app = opened(PAGE, spd_k="4", spd_repeats="5")
    app = press(app, "Start measuring")
    (found,) = Measurements(app_runs).list_jobs()
    assert len(started) == 1 and found.request.k == 4 and found.request.repeats == 5 and found.state == "queued"
    assert app.button(key="spd_start").disabled and app.segmented_control(key="spd_source").value == curves.MEASURED
    press(app, "Cancel")
    assert Measurements(app_runs).list_jobs() == [] and not app.button(key="spd_start").disabled
    press(app, "Start measuring")
    assert len(Measurements(app_runs).list_jobs()) == 1 and app.button(key="spd_start").disabled
    assert Measurements(app_runs / "other").latest_job() is None


def test_a_measurement_that_failed_hides_no_answer_and_one_that_was_cut_says_so(
    opened: Opened, app_runs: Path, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)
    all_of_them, words = Measurements(app_runs), ""
    for state in ("stopped", "finished", "failed"):
        job = all_of_them.submit(Plan(lengths=(8, 16, 32, 64)))
        assert begin_job(job.path.parent, job.id)
        end_job(job.path.parent, job.id, state, "it broke")
        if state != "failed":
            job.path.mkdir()
            shutil.copy(app_runs / "benchmarks.csv", job.path / "rows.csv")
        found = all_of_them.last_with_rows()
        assert found is not None and found.state == ("stopped" if state == "stopped" else "finished")
        words = said(opened(PAGE, spd_source=curves.MEASURED))
        assert ("cancelled: 3 of 4 lengths" in words) == (state == "stopped")
    assert "it broke" in words and "shows the one before it, which finished" in words and "is faster at N" in words


def test_impossible_settings_are_one_sentence(opened: Opened) -> None:
    app = opened(PAGE, spd_k="32", spd_side="8")
    app.multiselect(key="spd_systems").set_value([])
    assert "Choose systems among" in said(healthy(app.run())) and app.button(key="spd_start").disabled


def test_every_view_works_and_old_addresses_open_the_page(opened: Opened) -> None:
    app = opened(PAGE, spd_part="Calculator", spd_n="4096")
    table = app.dataframe[0].value
    assert "At N = 4,096 ELASTIC" in said(app) and table["system"].tolist() == list(costs.LABELS.values())
    for part in ("One new event", "Reading a history", "Stages", "LISA’s claims"):
        app = opened(PAGE, spd_part=part)
    assert "No measurement of this" in said(app)


def test_one_length_is_told_by_time_and_memory_and_who_is_faster() -> None:
    short_rows = [("elastic", 64, 2.0, 0.5), ("sasrec-fused", 64, 1.0, 0.25)]
    rows = [*short_rows, ("elastic", 96, 1234.5, 8.0), ("sasrec-fused", 96, 2469.0, 7.0)]
    table = pd.DataFrame(rows, columns=["system", "length", "ms", "memory"])
    short, long = (curves.history_sentence(table, length) for length in (64, 96))
    costs = "ELASTIC reads 64 events in 2 ms with 0.5 MB, SASRec in 1 ms with 0.25 MB"
    assert short == f"On a processor, {costs}: SASRec is 2.0 times as fast."
    assert "events in 1,234 ms" in long and long.endswith("ELASTIC is 2.0 times as fast.")
    assert curves.history_sentence(table[:1], 64) == "" == curves.history_sentence(table, 128)


def test_curves_keep_colours_and_draw_fits_over_their_range_only(rows: pd.DataFrame) -> None:
    fits = {system: found for system in ("elastic",) if (found := curves.fit_line(rows, system, start=16)) is not None}
    figure = charts.draw_curves(rows, fits, plot.LIGHT, "ms", "milliseconds per history", [20.0])
    drawn = [trace for trace in figure.data if trace.line.dash == "dot"]
    assert len(drawn) == 1 and min(drawn[0].x) == pytest.approx(16) and max(drawn[0].x) == pytest.approx(32)
    assert len(figure.data) == 4, "one trace a system and one fit; nothing of another source"
    alone = charts.draw_curves(rows[rows["system"] == "sasrec-eager"], {}, plot.LIGHT, "memory", "megabytes")
    eager = next(trace for trace in figure.data if trace.name == "SASRec, storing N × N")
    assert alone.data[0].line.color == eager.line.color
