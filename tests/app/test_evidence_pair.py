"""Two runs: what it claims, for whom, and what it does where there is nobody to compare with."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from driving import healthy, press, said
from streamlit.testing.v1 import AppTest

from elastic_core.comparisons import compare_runs
from elastic_core.data import load
from elastic_core.evaluation.compare import compare
from elastic_core.evaluation.verdict import ONE_RUN, p_text
from elastic_core.runs import Run
from elastic_core.runs.ranks import evaluate
from elastic_core.services.evidence import standings
from elastic_core.text import minus
from pages.evidence import charts
from pages.kit import forest, plot

PAGE, TWO = "evidence/page.py", "Two runs"
Opened = Callable[..., AppTest]


def test_it_says_what_the_command_says(opened: Opened, app_runs: Path) -> None:
    app = opened(PAGE, ev_depth=TWO, run="tiny")
    runs = [Run(app_runs / name) for name in ("tiny", "tiny-peer")]
    data = load(runs[0].config.data)
    found = compare(*(evaluate(run.model(data), data) for run in runs), "full", "NDCG@10")
    values = [metric.value for metric in app.metric]
    assert values[:3] == [f"{found.mean_a:.4f}", f"{found.mean_b:.4f}", minus(f"{found.difference:+.4f}")]
    assert values[3] == p_text(found.p) and app.metric[2].delta == minus(f"95% {found.low:+.4f} to {found.high:+.4f}")
    assert [metric.label for metric in app.metric] == ["ELASTIC", "SASRec", "Difference", "Chance of so much by luck"]
    assert "Means of 1 and 1 trainings, ranked against all items that are new" in said(app)
    assert "groups of the same people" in said(app) and "trained once" in said(app)
    assert ONE_RUN in said(app).replace("\\", "") and "is better than" not in said(app), "each was trained once"


def test_all_seeds_of_a_system_are_compared_together(opened: Opened, app_runs: Path) -> None:
    for name in ("tiny", "tiny-peer"):
        run = Run(Path(shutil.copytree(app_runs / name, app_runs / f"{name}-seed1")))
        plain = run.config.override("train.seed=1").to_dict()
        (run.path / "config.json").write_text(json.dumps(plain))
    app = opened(PAGE, ev_depth=TWO, run="tiny", cmp_with="tiny-peer")
    found = compare_runs(*([Run(app_runs / name), Run(app_runs / f"{name}-seed1")] for name in ("tiny", "tiny-peer")))
    assert found.seeds_counted and app.metric[2].delta == minus(f"95% {found.low:+.4f} to {found.high:+.4f}")
    assert ONE_RUN not in said(app).replace("\\", "") and any(
        "compare tiny,tiny-seed1 tiny-peer,tiny-peer-seed1" in code.value for code in app.code
    )


def test_every_part_works_and_comes_from_the_address(opened: Opened) -> None:
    asked = {"cmp_metric": "HR@5", "cmp_protocol": "pop100", "cmp_part": "Trade-offs", "cmp_x": "parameters"}
    app = opened(PAGE, ev_depth=TWO, run="tiny", **asked)
    assert app.selectbox(key="cmp_metric").value == "HR@5" and "against 100 items drawn by popularity" in said(app)
    assert app.selectbox(key="cmp_x").value == "parameters"
    for part in ("The lists", "Other protocols"):
        app.session_state["cmp_part"] = part
        healthy(app.run())
    assert app.session_state["view_tables"]["cmp_across"]["protocol"].tolist() == ["full", "full-seen", "pop100", "uniform100"]


def test_a_loser_or_winner_can_be_chosen(opened: Opened) -> None:
    app = opened(PAGE, ev_depth=TWO, run="tiny", user="1", cmp_part="Wins and losses")
    chosen = app.selectbox(key="cmp_person")
    app = press(app, "Choose this person")
    assert app.number_input(key="user").value == chosen.value + 1


def test_the_reason_is_shown_with_both_runs(opened: Opened) -> None:
    app = opened(PAGE, ev_depth=TWO, run="tiny", cmp_part="Wins and losses")
    healthy(app.button(key="cmp_why").click().run())
    assert app.title[0].value.startswith("What if this history were different")
    assert app.selectbox(key="vs").value == "tiny-peer"


def test_the_sidebars_second_run_goes_first_and_unknown_ones_are_said(opened: Opened, app_runs: Path) -> None:
    shutil.copytree(app_runs / "tiny", app_runs / "twin")
    app = opened(PAGE, ev_depth=TWO, run="tiny", vs="twin")
    assert "no difference can be claimed" in said(app) and app.metric[2].value == "+0.0000"
    app = opened(PAGE, ev_depth=TWO, run="tiny", cmp_with="gone")
    assert "“gone” is not offered here" in app.toast[0].value
    shutil.rmtree(app_runs / "twin")
    shutil.rmtree(app_runs / "tiny-peer")
    app = opened(PAGE, ev_depth=TWO, run="tiny")
    assert "no second tested model" in said(app) and app.code, "its link and its command stand below, as everywhere"
    app = healthy(app.button(key="cmp_results").click().run())
    assert app.segmented_control(key="ev_depth").value == "Systems"


def test_figures_hold_everybody_and_mark_what_is_clear() -> None:
    rows = [
        ("x", "a", 10, 0.1, 0.0, 0.1, 0.05, 0.2, "A"),
        ("x", "b", 20, 0.0, 0.1, -0.1, -0.3, 0.1, ""),
        ("y", "c", 5, 0.1, 0.0, 0.1, 0.05, 0.2, ""),  # trained once, or not after the adjustment
    ]
    table = pd.DataFrame(rows, columns=["family", "group", "n", "A", "B", "difference", "low", "high", "who"])
    sides = ("<b>Ours</b>", "SASRec")
    figure = forest.forest(table, plot.LIGHT, "NDCG@10", sides, family="family")
    marks = figure.data[-1]
    assert list(marks.marker.color) == [plot.LIGHT.cool[1], plot.LIGHT.ground, plot.LIGHT.ground]
    assert list(np.diff(marks.y)) == [-1, -2.4] and "<b>y</b>" in figure.layout.yaxis.ticktext
    people = pd.DataFrame({"user": [4, 7], "title": ["T", "U"], "place_a": [1.0, 30.0], "place_b": [5.0, 2.0]})
    assert standings.shown_places(people, "a", "b")["person"].tolist() == [5, 8], (
        "in files people are counted from 1, as on screen"
    )
    places = charts.places(people, plot.DARK, 7, sides).checked()
    assert [point[0] for point in places.data[1].customdata] == [4, 7]
    ring, label = places.data[2], places.layout.annotations[-1]
    assert (ring.x, ring.y) == ((2.0,), (30.0,)) and label.text == "person 8"
    assert (10**label.x, 10**label.y) == pytest.approx((2, 30)) and label.ax > 0, "at the left edge the label stands to the right"
    alike = forest.forest(table.assign(n=10), plot.LIGHT, "NDCG@10", sides)
    assert "n = 10" in alike.layout.xaxis.title.text and not any("n =" in note.text for note in alike.layout.annotations)
