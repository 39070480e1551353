"""The Memory map page: maps, colours and the numbers for whether to believe it. No UMAP is computed here."""

import gc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from driving import healthy, press, said
from streamlit.testing.v1 import AppTest

from elastic_core.jobs.job_kinds import Maps
from elastic_core.runs import Run
from elastic_core.services.map import compute
from elastic_core.services.map import layouts as projection
from elastic_core.services.map.layouts import SEEDS, Settings, Store
from elastic_core.services.map.trust import Region
from pages.components import page_context, plot
from pages.map import charts, sentences

PAGE = "map/page.py"
Opened = Callable[..., AppTest]


def stored(run: Run, *wanted: Settings) -> Store:
    values = compute.values_of(run)
    rng = np.random.default_rng(0)
    keys = [s.key(seed, kind) for s in wanted for kind in ("umap", "null") for seed in SEEDS]
    layouts = {key: rng.normal(size=(len(values), 2)).astype(np.float32) for key in keys}
    store = Store(np.arange(len(values)), layouts, about={"hash": projection.values_fingerprint(values)})
    projection.write_store(run, store)
    return store


def test_pca_is_there_at_once_with_its_trust_and_its_neighbours(opened: Opened) -> None:
    app = opened(PAGE, run="tiny")
    words = said(app)
    assert "This picture keeps **" in words and "with random vectors, it would keep" in words
    assert "neighbours** on the map" in words
    assert app.selectbox(key="map_colour").value == "name", "what experts are called on every screen"
    trust = next(frame.value for frame in app.dataframe if "trustworthiness" in frame.value)
    assert trust["map"].tolist() == ["PCA", "PCA"]


def test_every_colour_can_be_shown(opened: Opened) -> None:
    app = opened(PAGE, run="tiny")
    for colour in app.selectbox(key="map_colour").options:
        app.session_state["map_colour"] = next(key for key, name in charts.COLOURS.items() if name == colour)
        assert "chance** explains" in said(healthy(app.run()))


def test_umap_comes_from_the_store_and_is_offered_where_it_is_missing(
    opened: Opened, app_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)
    stored(Run(app_runs / "tiny"), Settings(5, 0.5))
    app = opened(PAGE, run="tiny", map_layout="UMAP", map_near="5", map_dist="0.5")
    assert "three random starts agree" in said(app)
    trust = next(frame.value for frame in app.dataframe if "trustworthiness" in frame.value)
    assert trust["map"].tolist() == ["PCA"] * 2 + ["UMAP"] * 4
    app.session_state["map_dist"] = 0.0
    healthy(app.run())
    assert "has not been computed for this run yet" in said(app) and "three random starts agree" not in said(app)
    press(app, "Compute it")
    (asked,) = Maps(app_runs).list_jobs()
    assert asked.state == "queued" and asked.request.settings == Settings(5, 0.0)
    assert "You see PCA until the map is ready" in said(app)
    press(app, "Cancel")
    assert Maps(app_runs).list_jobs() == [] and "has not been computed for this run yet" in said(app)


def test_a_run_without_a_memory_is_one_sentence(opened: Opened) -> None:
    app = opened(PAGE, run="tiny-peer")
    assert "it reads a history without a memory" in said(app) and not app.get("plotly_chart")


def test_the_figure_holds_every_expert_once_with_its_number() -> None:
    from elastic_core.services.map.picture import Map, colour_labels, map_marks

    numbers = np.arange(256)
    table = pd.DataFrame({"expert": numbers, "row": numbers // 16, "column": numbers % 16, "load": numbers})
    drawn = Map("PCA", numbers, np.random.default_rng(0).normal(size=(256, 2)), numbers == 9)
    for colour in ("load", "row"):
        chart = charts.draw_map(
            map_marks(drawn, table, colour_labels(table, colour), {3: 1, 200: 2}),
            drawn.placed,
            colour,
            plot.LIGHT,
            selected=9,
        )
        figure = go.Figure(chart)
        found = [int(row[0]) for trace in figure.data for row in trace.customdata]
        assert sorted(found) == numbers.tolist(), "no copies"
        assert sorted(text for trace in figure.data for text in trace.text if text) == ["<b>1</b>", "<b>2</b>"]


def test_people_looked_at_before_leave_no_page_behind(opened: Opened) -> None:
    """Streamlit keeps the callback of every chart a visit has seen, and a page's own function holds all the page computed."""
    app = opened(PAGE, run="tiny")
    held = []
    for user in (2, 3, 4):
        healthy(app.number_input(key="user").set_value(user).run())
        gc.unfreeze()
        gc.collect()
        gc.unfreeze()  # what the app sets aside is not among the objects
        held.append(sum(type(thing) is page_context.Context for thing in gc.get_objects()))
    assert held[2] <= held[1], held


def test_the_verdict_on_regions_is_of_the_numbers_as_shown() -> None:
    shown = [(True, 0.0932, 0.05, 0.0928), (True, 0.094, 0.05, 0.0928), (False, 0.104, 0.02, 0.096), (True, 0.04, 0.05, 0.09)]
    said = [sentences.describe_regions(text, Region(alike, low, high, 5))[0] for text, alike, low, high in shown]
    words = [sentence.split("**")[1] for sentence in said]
    assert words == ["no more often than chance", "more often than chance", "no more often than chance", "less often than chance"]


@pytest.mark.parametrize(("trust", "amount"), [(0.9, "much more"), (0.6, "a little more"), (0.51, "no more")])
def test_the_picture_says_first_what_it_keeps_and_what_chance_keeps(trust: float, amount: str) -> None:
    rows = [("PCA", "experts", 0.14, trust, 15), ("PCA", "random vectors", 0.13, 0.5, 15)]
    panel = pd.DataFrame(rows, columns=["map", "of", "overlap", "trust", "neighbours"])
    said, _ = sentences.describe_trust(panel, "PCA", None)
    assert said.startswith("This picture keeps **14%** of an expert’s 15 nearest neighbours;")
    assert "with random vectors, it would keep 13%." in said
    assert said.endswith(f"**That is {amount} than chance.**")
