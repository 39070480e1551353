"""The Traffic page: what it says, what it compares, and what it refuses."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from driving import healthy, press, said
from streamlit.testing.v1 import AppTest

from elastic_core.memory import routing_metrics
from elastic_core.runs import Run
from elastic_core.services.evidence import meaning
from elastic_core.services.traffic import load
from pages.components import plot
from pages.components.glossary import EXPERT_LOAD
from pages.traffic import charts

PAGE = "traffic/page.py"
Opened = Callable[..., AppTest]


def test_it_says_how_healthy_the_memory_is_beside_chance(opened: Opened) -> None:
    words = said(opened(PAGE, run="tiny"))
    assert "of 64 experts are in use" in words and "if people used random experts" in words
    assert "The Gini coefficient is" in words and "With random experts it would be" in words


def test_every_control_and_part_works_and_comes_from_the_address(opened: Opened) -> None:
    app = opened(PAGE, run="tiny", trf_measure="Strength of use", trf_order="Hottest first", trf_group=load.LONG, expert="3")
    assert app.session_state["trf_measure"] == "gate" and app.session_state["trf_order"] == "load"
    assert app.selectbox(key="trf_group").value == load.LONG
    assert "by 20 people" in said(app) and "Expert 3" in said(app)
    app.session_state["trf_part"] = "Traffic share"
    assert len(healthy(app.run()).get("plotly_chart")) == 2
    app.session_state["trf_part"] = "While it learned"
    assert "Press **Play**" in said(healthy(app.run())) and len(app.session_state["view_tables"]["trf_loads"]) == 2
    healthy(opened(PAGE, run="tiny", trf_part="Groups of people"))


def test_the_page_stands_while_its_memory_is_asked_and_what_it_answers_stays(
    opened: Opened, app_runs: Path, work_done: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as nobody:
        nobody.setattr(routing_metrics, "measure_routing", lambda *given, **more: pytest.fail("asked while somebody waits"))
        app = opened(PAGE, run="tiny", trf_part="Interest or activity?")
        assert "of 64 experts are in use" in said(app) and "Not measured for this run: do its experts" in said(app)
        press(app, "Measure it now")
        assert "of 64 experts are in use" in said(app)
        assert "Measure it now" not in [button.label for button in app.button]
    work_done()
    found = meaning.of_runs(app_runs, [Run(app_runs / "tiny")])["tiny"]
    later = opened(PAGE, run="tiny", trf_part="Interest or activity?", trf_split="All but the last two")
    for seen in (app.run(), later):  # who asked, and who comes later
        assert f"quarter of a history, **{found.quarter:.0%}**" in said(healthy(seen))
        assert f"{found.users:,} people with 8" in said(seen)
        assert "Measure it now" not in [button.label for button in seen.button]


def test_two_runs_stand_side_by_side_only_where_both_have_a_memory(opened: Opened, app_runs: Path) -> None:
    app = opened(PAGE, run="tiny", vs="tiny-peer")
    assert "tiny\\-peer, has no memory" in said(app)
    (app_runs / "tiny").rename(app_runs / "other")
    import shutil

    shutil.copytree(app_runs / "other", app_runs / "tiny")
    app = opened(PAGE, run="tiny", vs="other", trf_part="Traffic share")
    first, second = (f"ELASTIC · Made-up world (4 interests, 60 items) · seed 0 · {name}" for name in ("tiny", "other"))
    headings = said(app)
    assert all(f"**{name}**" in headings.replace("\\", "") for name in (first, second))


def test_a_run_without_a_memory_is_one_sentence_and_a_button(opened: Opened) -> None:
    app = opened(PAGE, run="tiny-peer")
    assert "it reads a history without a memory" in said(app) and not app.get("plotly_chart")
    assert app.session_state["run"] == "tiny-peer" if "run" in app.session_state else True
    press(app, next(button.label for button in app.button if button.label.startswith("Open ELASTIC")))
    assert "of 64 experts are in use" in said(app)


@pytest.mark.parametrize("size", [64, 65_536])
def test_figures_carry_the_expert_and_stay_small(size: int) -> None:
    rng = np.random.default_rng(0)
    experts = rng.integers(size // 2, size=(500, 8))
    now = load.Traffic(experts, np.ones_like(experts, dtype=float), np.ones_like(experts, dtype=float), size)
    band = load.compare_with_random_router(now, draws=5)
    table, sides = band.experts, band.sides
    for ordered in (False, True):
        figure = charts.draw_load_bars(
            table, band.each, band.ordered, now.equal_load, plot.DARK, ordered=ordered, selected=3, unit="people"
        )
        marks = [trace for trace in figure.data if trace.customdata is not None]
        assert 0 < sum(len(trace.x) for trace in marks) <= charts.MOST
        assert all(0 <= int(float(row[0])) < size for trace in marks for row in trace.customdata[:5])
        if size == 64:
            assert sorted(int(float(row[0])) for trace in marks for row in trace.customdata) == list(range(64))
    clickable = [
        trace for trace in charts.draw_load_grid(table, sides, band.line, plot.LIGHT, 3, "people").data if trace.type == "scatter"
    ]
    assert bool(clickable) == (size <= charts.MOST)


def test_a_chosen_bar_keeps_the_colour_of_its_load() -> None:
    """Blue would call a hot one cold."""
    table = pd.DataFrame({
        "expert": [0, 1], "load": [9, 1], "times": [1.8, 0.2], "state": ["hot", "cold"], "row": [0, 0], "column": [0, 1],
    })  # fmt: skip
    limits = np.array([[2.0, 2.0], [7.0, 7.0]])
    figure = charts.draw_load_bars(table, (2.0, 7.0), limits, 5.0, plot.LIGHT, ordered=False, selected=0, unit="people")
    (hot,) = (trace for trace in figure.data if trace.name == EXPERT_LOAD["hot"])
    assert (
        hot.marker.color == plot.LIGHT.load[-1]
        and hot.marker.line.color == plot.LIGHT.text
        and list(hot.marker.line.width) == [1.5]
    )
