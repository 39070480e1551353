"""The page on product keys through Streamlit's own test driver: its steps, a bet, a live proof, votes, and honest fall-backs."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st
from driving import charts as charts_on
from driving import healthy, press, said
from streamlit.testing.v1 import AppTest

from elastic_core import recipes
from elastic_core.data import load
from elastic_core.services.keys import checks, search, votes
from elastic_core.services.person.inspect import Words
from elastic_core.training.loop import train
from pages.keys import charts, check_charts, steps
from pages.kit import plot


@pytest.fixture
def page(opened: Callable[..., AppTest]) -> Callable[..., AppTest]:
    return lambda **address: opened("keys/page.py", **{"run": "tiny", "user": "5", **address})


Page = Callable[..., AppTest]


@pytest.fixture(scope="module")
def voting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny run in which every event votes."""
    small = ("users=80", "items=60", "interests=4", "mean_length=25")
    config = recipes.toy("elastic-slots").override("train.epochs=1", *(f"data.planted.{words}" for words in small))
    folder = tmp_path_factory.mktemp("voting") / "tiny-votes"
    train(config, load(config.data), folder)
    return folder


@pytest.fixture
def voters(page: Page, app_runs: Path, voting: Path) -> Page:
    """The page on that run."""
    shutil.copytree(voting, app_runs / voting.name)
    return lambda **address: page(**{"run": voting.name, **address})


@pytest.mark.parametrize("query", ["This person", "Random", "Two sliders"])
@pytest.mark.parametrize("step", steps.STEPS)
def test_every_step_has_a_link(page: Page, step: str, query: str) -> None:
    app = page(keys_step=step, keys_query=query)
    assert f"**{steps.STEPS.index(step) + 1}. {step}" in said(app)
    assert ("Seed" in [box.label for box in app.number_input]) == (query == "Random")


def test_next_and_back_walk_the_steps(page: Page) -> None:
    app = page()
    for step in steps.STEPS[1:]:
        app = press(app, "Next")
        assert app.session_state[steps.STEP] == step and charts_on(app)
    assert press(app, "Back").session_state[steps.STEP] == steps.STEPS[-2]


def test_the_counter_follows_the_step(page: Page) -> None:
    start, done = ({m.label: m.value for m in page(keys_step=step).metric} for step in ("Split", "Weigh"))
    assert start["Multiplications so far"] == "0" and done["Multiplications so far"] == "256"
    assert start["Comparing every key"] == "2,048" and start["Fewer by"] == "8 ×"


def test_the_counter_sums_what_the_staircase_keeps(page: Page) -> None:
    for step, sums in (("Keep", 0), ("Pair", 8)):
        app = page(keys_step=step)
        assert {metric.label: metric.value for metric in app.metric}["Sums so far"] == str(sums)
    assert "Only 8 squares remain" in said(app) and "16 pairs" in said(app)
    assert "Square (2, 3) has 5 squares above and to the left that are at least as good" in said(app)


def test_two_sliders_are_the_query_and_live_in_the_address(page: Page) -> None:
    app = page(keys_query="Two sliders", keys_q1="-0.5", keys_part="Exactness")
    assert app.slider(key="keys_q1").value == -0.5 and "Your query (-0.50, -0.30) is one query of 2 numbers" in said(app)
    assert "Brute force agrees: **1,001 of 1,001**" in app.success[0].value
    assert "Keep the best 3 of each half.** The rest" in said(page(keys_query="Two sliders", keys_step="Keep"))  # prunes
    assert "Your query (-0.50, +0.80)" in said(healthy(app.slider(key="keys_q2").set_value(0.8).run()))


def test_the_winner_is_shown_only_after_a_bet(page: Page) -> None:
    app = page(keys_step="Win")
    rule = "First place is always where the best row crosses the best column"
    assert rule not in said(app)
    reveal = next(button for button in app.button if button.label == "Reveal")
    assert reveal.disabled
    box = next(box for box in app.selectbox if box.label == "Your square")
    app = healthy(box.select_index(0).run())
    assert rule not in said(app)
    app = press(app, "Reveal")
    assert rule in said(app)
    app = press(press(app, "Next"), "Back")
    assert rule in said(app)
    box = next(box for box in app.selectbox if box.label == "Your square")
    assert rule not in said(healthy(box.set_value(None).run()))


def test_brute_force_is_run_again_on_request(page: Page) -> None:
    app = page(keys_part="Exactness")
    assert "Brute force agrees: **1,001 of 1,001**" in app.success[0].value
    assert "K = " in said(app) or "no such K" in said(app)  # from where on halves win, measured here
    app = press(app, "Run 1,000 more")
    assert "Brute force agrees: **2,001 of 2,001**" in app.success[0].value
    app.session_state["user"] = 6
    assert "1,001 of 1,001" in healthy(app.run()).success[0].value


def test_the_gate_decides_what_learns(page: Page) -> None:
    app = page(keys_part="Gate")
    assert app.table[0].value["learns"].eq("✓ yes").all()
    assert "ten without the gate** (every weight 1):" in said(app)
    app = healthy(next(toggle for toggle in app.toggle if toggle.label == "Gate").set_value(False).run())
    learns = app.table[0].value.set_index("group")["learns"]
    assert learns[learns.eq("✗ never")].index.tolist() == ["sub-keys", "query network"]


@pytest.mark.parametrize("query", ["This person", "Random"])
def test_equation_7_as_printed(page: Page, query: str) -> None:
    app = page(keys_part="Equation 7", keys_query=query)
    assert "survive the misprint" in said(app)
    healthy(next(toggle for toggle in app.toggle if toggle.label == "Eq. 7 as printed").set_value(False).run())


def test_a_run_without_a_memory_says_so_and_goes_on_with_a_random_query(page: Page) -> None:
    app = page(run="tiny-peer", keys_part="Gate")
    assert "no interest memory" in said(app) and "A random query" in said(app)


def test_nonsense_in_the_address_is_ignored(page: Page) -> None:
    app = page(keys_step="Lose", keys_own_k="9999", keys_part="<script>")
    assert "**1. Split.**" in said(app)


# --- votes -----------------------------------------------------------------------------------------------------------


def test_next_walks_the_steps_of_votes_which_elect_the_experts_of_start(voters: Page, opened: Page) -> None:
    app, walked = voters(), []
    for number, step in enumerate(steps.VOTING, start=1):
        assert f"**{number}. {step}" in said(app) and charts_on(app)
        walked.append(charts_on(app)[0])
        app = press(app, "Next") if step != "Gather" else app
    start = opened("", run="tiny-votes", user="5").selectbox(key="grid_expert").options[:4]
    tally, gathered = walked[steps.VOTING.index("Vote")], walked[-1]
    names = [f"{place}. #{label.split()[1]}" for place, label in enumerate(start, start=1)]
    assert list(tally.layout.yaxis.ticktext) == [*names, "others"] and list(gathered.data[0].y) == names


def test_the_event_that_asks_can_be_chosen_and_is_followed(voters: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    app = voters(keys_step="Weigh")
    newest, earlier = (app.selectbox(key=steps.EVENT).options[ago] for ago in (0, 3))
    before = charts_on(app)[0].data[0].x
    app = healthy(app.selectbox(key=steps.EVENT).set_value(earlier).run())
    assert charts_on(app)[0].data[0].x != before
    found = [name.split("#")[1] for name in charts_on(app)[0].data[0].x]
    app = press(app, "Next")
    assert f"“{earlier.split('. ')[1]}” gave" in said(app).replace("\\", "")
    assert all(f"to expert **{number}**" in said(app) for number in found), "what it finds is what it votes for"
    app = healthy(app.number_input(key="user").set_value(6).run())
    assert app.selectbox(key=steps.EVENT).value == app.selectbox(key=steps.EVENT).options[0]
    clicked = {steps.TALLY: {"selection": {"points": [{"customdata": [newest]}]}}, "lock_held": ()}
    monkeypatch.setattr(st, "session_state", clicked)
    steps._asked()
    assert clicked[steps.EVENT] == newest


def test_what_lies_before_the_last_events_is_drawn_apart() -> None:
    cast = pd.DataFrame({"event": [*range(1, 13)] * 2, "expert": [7] * 12 + [9] * 12, "row": [0] * 12 + [1] * 12})
    cast = cast.assign(share=[0.75] * 12 + [0.25] * 12, votes=[0.75 / 12] * 12 + [0.25 / 12] * 12)
    sums = pd.DataFrame({"place": [1, None], "expert": [7, None], "events": [12, 12], "votes": [0.75, 0.25], "usual": [0.1, 0.9]})
    for last, earlier in ((5, 2), (12, 0)):
        drawn = votes.marks(cast, last).assign(title="Up <b>")
        figure = charts.tally(drawn, sums, 12, Words("film", "films", "watched", "seen", "a film"), plot.LIGHT).checked()
        strokes, squares, bars, usual = figure.data
        assert list(usual.x) == [0.1]
        assert (len(strokes.x), len(squares.x)) == (2 * last, earlier) and list(bars.text) == ["75%", "25%"]
        assert "<b>" not in "".join(strokes.hovertext) and strokes.customdata[-1][0] == "12. Up <b>"
    assert all(size == size and size >= 3 for size in strokes.marker.size)


@pytest.mark.parametrize("left", [{"keys_query": "Random"}, {"run": "tiny"}])
def test_a_step_that_is_not_offered_is_the_first_and_said(voters: Page, left: dict[str, str]) -> None:
    app = voters(**left, keys_step="Vote")
    assert "**1. Split.**" in said(app) and any("is not offered here" in toast.value for toast in app.toast)
    app = voters(keys_step="Vote")
    if "run" in left:
        app.session_state["run"] = "tiny"
    else:
        app.session_state["keys_query"] = "Random"
    assert "**1. Split.**" in said(healthy(app.run()))


@pytest.mark.parametrize("palette", [plot.LIGHT, plot.DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("side", "k"), [(4, 1), (8, 4), (32, 16)])
def test_figures_of_every_size_in_both_themes(side: int, k: int, palette: plot.Palette) -> None:
    lesson = search.of_chance(side, 16, k, seed=0)
    halves, grid = search.half_scores(lesson), search.grid(lesson)
    figures = [
        charts.query(search.split(lesson), palette),
        charts.strips(halves, palette, keep=True),
        charts.candidates(search.candidates(lesson), palette, staircase=True),
        charts.grid(grid, palette, reveal=True, picked=3),
        charts.vectors(search.expert_values(lesson, lesson.winners.indices), palette),
        charts.weights(search.gathered(lesson), palette),
        check_charts.cost(checks.operations_by_side(16, k), palette, side),
    ]
    checked = [figure.checked() for figure in figures]
    clickable = [trace for trace in checked[3].data if trace.customdata is not None and trace.name != "your pick"]
    assert sorted(number for trace in clickable for number in trace.customdata) == list(range(side**2))
