"""The page on product keys through Streamlit's own test driver: its steps, what its picture is given, votes, and fall-backs."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest
import streamlit as st
from driving import charts as charts_on
from driving import healthy, press, said
from streamlit.testing.v1 import AppTest

from elastic_core import recipes
from elastic_core.data import load
from elastic_core.runs.training import train
from elastic_core.services.keys import search, votes
from elastic_core.services.keys.frames import search_frames
from elastic_core.services.person.inspect import ItemWords
from pages.components import plot
from pages.keys import charts, search_picture, sentences, steps
from pages.keys.sentences import MILLION, OWN, TOY


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


def drawn(app: AppTest) -> dict[str, Any]:
    """What the picture is given."""
    (found,) = (each.proto for each in app.get("bidi_component") if each.proto.component_name == "elastic_search")
    given = json.loads(found.json or found.mixed.json)
    return given if isinstance(given, dict) else {}


@pytest.mark.parametrize("query", [TOY, OWN, MILLION])
@pytest.mark.parametrize("step", steps.STEPS)
def test_every_step_has_a_link(page: Page, step: str, query: str) -> None:
    app = page(keys_step=step, keys_query=query)
    given = drawn(app)
    there = step in given["steps"]
    assert given["step"] == (step if there else "Split") and given["says"][step]
    assert there or (query == MILLION and step in ("Gather", "Weigh"))
    assert app.query_params.get("keys_step", "Split") == given["step"]


def test_the_page_opens_with_the_4_by_4_and_few_words(page: Page) -> None:
    app = page()
    given = drawn(app)
    assert given["found"]["side"] == 4 and given["toy"]["angles"] == [250, 120] and not charts_on(app)
    shown = " ".join(
        [app.title[0].value, sentences.TEXT(TOY), given["says"]["Split"], sentences.CONFIDENCE, *map(str, given["steps"])]
    )
    assert len(re.findall(r"[A-Za-z]{2,}", shown)) <= 75


def test_the_picture_is_given_the_search_of_the_run(page: Page) -> None:
    app = page(keys_query=OWN, keys_own_k="5")
    given = drawn(app)
    assert given["found"]["k"] == 5 and given["found"]["counts"]["multiplications"] == 256 and given["toy"] is None
    assert given["found"]["counts"]["long_multiplications"] == 2048 and given["name"].startswith("tiny/")
    assert "8 short" not in given["says"]["Score"], "numbers are filled in by the picture"


def test_sliders_live_in_the_address_and_what_the_browser_says_is_checked(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page(keys_q1="35", keys_q2="80", keys_toy_k="2", keys_step="Win")
    given = drawn(app)
    expected = json.loads(json.dumps(search_frames(search.lesson_of_angles(35, 80, 2))))
    assert given["found"] == expected and given["toy"]["k"] == 2
    state: dict[str, Any] = {"keys_q1": 35, "keys_q2": 80, "keys_toy_k": 2, "keys_step": "Win", "lock_held": ()}
    monkeypatch.setattr(st, "session_state", state)
    for said_, step, angles in (
        ({"step": "Pair", "angles": [40, 85], "k": 3}, "Pair", (40, 85)),
        ({"step": "<b>", "angles": ["x"], "k": 99}, "Pair", (40, 85)),
        ("nonsense", "Pair", (40, 85)),
    ):
        state[search_picture.KEY] = {search_picture.MOVED: said_}
        steps.follow_browser(steps.STEPS)
        assert (state["keys_step"], (state["keys_q1"], state["keys_q2"]), state["keys_toy_k"]) == (step, angles, 3)
    state |= {
        "lock_held": ("keys_step", "keys_q1"),
        search_picture.KEY: {search_picture.MOVED: {"step": "Win", "angles": [0, 0], "k": 1}},
    }
    steps.follow_browser(steps.STEPS)
    assert (state["keys_step"], state["keys_q1"], state["keys_toy_k"]) == ("Pair", 40, 3)


def test_a_million_is_searched_both_ways_here_and_now(page: Page) -> None:
    app = page(keys_query=MILLION, keys_part="Exactness", keys_step="Win")
    given = drawn(app)
    assert given["found"]["counts"]["long"] == 1024**2
    assert re.search(r"[\d.]+ ms with split keys, [\d,]+ ms one by one", given["note"])
    assert "Brute force finds the same experts for **1 of 1** quer" in app.success[0].value
    winners = given["found"]["winners"]
    app = press(app, "Draw another")
    assert drawn(app)["found"]["winners"] != winners and app.number_input(key="keys_seed").value == 1


def test_brute_force_is_run_again_on_request(page: Page) -> None:
    app = page(keys_part="Exactness")
    assert "Brute force finds the same experts for **1,001 of 1,001** quer" in app.success[0].value
    assert "experts on (" in said(app) or "at none of these sizes" in said(app)  # from where on halves win, measured here
    app = press(app, "Run 1,000 more")
    assert "Brute force finds the same experts for **2,001 of 2,001** quer" in app.success[0].value
    app.session_state["keys_q1"] = 40
    assert "1,001 of 1,001" in healthy(app.run()).success[0].value


def test_the_gate_decides_what_learns(page: Page) -> None:
    app = page(keys_part="Gate")
    assert app.table[0].value["learns"].eq("✓ yes").all()
    assert "list without the gate.** If every expert has the weight 1," in said(app)
    app = healthy(next(toggle for toggle in app.toggle if toggle.label == "Gate").set_value(False).run())
    learns = app.table[0].value.set_index("group")["learns"]
    assert learns[learns.eq("✗ never")].index.tolist() == ["row and column keys", "query network"]


@pytest.mark.parametrize("query", [OWN, TOY])
def test_equation_7_as_printed(page: Page, query: str) -> None:
    app = page(keys_part="Equation 7", keys_query=query)
    assert "With q₁ twice," in said(app) and "With q₁ twice, all do" in said(app)


def test_a_person_s_search_begins_at_its_first_step(page: Page) -> None:
    app = page(keys_step="Weigh")
    app = healthy(app.segmented_control(key="keys_query").set_value(OWN).run())
    assert drawn(app)["step"] == "Split" and "keys_step" not in app.query_params


def test_two_visitors_look_at_two_people(page: Page) -> None:
    one, other = page(user="7", keys_query=OWN), page(user="9", keys_query=OWN)
    healthy(other.number_input(key="user").set_value(10).run())
    healthy(one.segmented_control(key="keys_part").set_value("Gate").run())
    healthy(other.run())
    seen = [(app.number_input(key="user").value, app.segmented_control(key="keys_part").value) for app in (one, other)]
    assert seen[0] == (7, "Gate") and seen[1][0] == 10 and seen[1][1] != "Gate"
    assert drawn(one)["found"]["winners"] != drawn(other)["found"]["winners"]


def test_a_run_without_a_memory_says_so_and_shows_the_4_by_4(page: Page) -> None:
    app = page(run="tiny-peer", keys_part="Gate", keys_query=OWN)
    assert "no memory of experts" in said(app) and drawn(app)["found"]["side"] == 4


# --- votes -----------------------------------------------------------------------------------------------------------


def test_the_votes_of_all_events_elect_the_experts_of_the_person(voters: Page) -> None:
    app = voters(keys_query=OWN, keys_step="Vote")
    (tally,) = charts_on(app)
    context = app.session_state["shell_context"]
    experts = votes.retrieve_by_vote(context.model, context.dataset, 4).experts[0].tolist()
    named = [f"{place}. expert {expert}" for place, expert in enumerate(experts, start=1)]
    assert list(tally.layout.yaxis.ticktext) == [*named, "all others"]
    given = drawn(app)
    assert given["steps"] == list(steps.VOTING)
    assert f"The **{len(experts)} experts** with the most votes left" in given["says"]["Vote"]


def test_the_event_that_asks_can_be_chosen_and_is_followed(voters: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    app = voters(keys_query=OWN, keys_step="Weigh")
    newest, earlier = (app.selectbox(key=steps.EVENT).options[ago] for ago in (0, 3))
    before = drawn(app)["found"]["winners"]
    app = healthy(app.selectbox(key=steps.EVENT).set_value(earlier).run())
    given = drawn(app)
    assert given["found"]["winners"] != before and f"“{earlier.split('. ')[1]}” gave" in given["says"]["Vote"].replace("\\", "")
    assert all(f"to expert **{each['expert']}**" in given["says"]["Vote"] for each in given["found"]["winners"])
    app = healthy(app.number_input(key="user").set_value(6).run())
    assert app.selectbox(key=steps.EVENT).value == app.selectbox(key=steps.EVENT).options[0]
    clicked = {steps.TALLY: {"selection": {"points": [{"customdata": [newest]}]}}, "lock_held": ()}
    monkeypatch.setattr(st, "session_state", clicked)
    steps._select_clicked_event()
    assert clicked[steps.EVENT] == newest


def test_what_lies_before_the_last_events_is_drawn_apart() -> None:
    cast = pd.DataFrame({"event": [*range(1, 13)] * 2, "expert": [7] * 12 + [9] * 12, "row": [0] * 12 + [1] * 12})
    cast = cast.assign(share=[0.75] * 12 + [0.25] * 12, votes=[0.75 / 12] * 12 + [0.25 / 12] * 12)
    sums = pd.DataFrame({"place": [1, None], "expert": [7, None], "events": [12, 12], "votes": [0.75, 0.25], "usual": [0.1, 0.9]})
    for last, earlier in ((5, 2), (12, 0)):
        drawn = votes.vote_marks(cast, last).assign(title="Up <b>")
        chart = charts.draw_votes(drawn, sums, 12, ItemWords("film", "films", "watched", "seen", "a film"), plot.LIGHT)
        figure = go.Figure(chart)
        strokes, squares, bars = figure.data
        assert (len(strokes.x), len(squares.x)) == (2 * last, earlier) and list(bars.text) == ["75% (10.0%)", "25%"]
        assert "<b>" not in "".join(strokes.hovertext) and strokes.customdata[-1][0] == "12. Up <b>"
    assert all(size == size and size >= 3 for size in strokes.marker.size)


def test_a_step_that_is_not_offered_any_more_is_the_first(voters: Page) -> None:
    assert drawn(voters(keys_step="Vote"))["step"] == "Split"  # of the 4 × 4
    app = voters(keys_query=OWN, keys_step="Vote")
    app.session_state["run"] = "tiny"
    assert drawn(healthy(app.run()))["step"] == "Split"
