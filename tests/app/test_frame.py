"""The frame: expert and second run in the address, teacher's links, and what can be taken away from a page."""

import json
from collections.abc import Callable

import pytest
from driving import healthy, said
from streamlit.testing.v1 import AppTest

Open = Callable[..., AppTest]


def test_the_chosen_expert_is_the_same_everywhere_and_a_new_person_clears_it(opened: Open) -> None:
    app = opened(expert="5", run="tiny")
    assert app.number_input(key="expert").value == 5 and app.selectbox(key="grid_expert").value == 5
    healthy(app.selectbox(key="grid_expert").set_value(9).run())
    assert app.number_input(key="expert").value == 9
    healthy(app.number_input(key="user").set_value(7).run())
    assert app.number_input(key="expert").value is None
    strongest = app.selectbox(key="grid_expert").value
    assert f"Expert {strongest}" == app.selectbox(key="grid_expert").options[0] and not app.warning


@pytest.mark.parametrize("expert", ["64", "-1", "x", "1e9", "999999999999", "../5", "NaN"])
def test_an_expert_that_is_not_there_is_said(opened: Open, expert: str) -> None:
    app = opened(expert=expert, run="tiny")
    assert f"There is no expert `{expert}`" in app.warning[0].value
    assert app.number_input(key="expert").value is None


def test_a_second_run_is_one_on_the_same_data(opened: Open) -> None:
    app = opened(vs="tiny-peer", run="tiny")
    assert app.selectbox(key="vs").value == "tiny-peer" and app.selectbox(key="vs").options == ["tiny-peer"]
    healthy(app.selectbox(key="run").set_value("tiny-peer").run())  # a run is not compared with itself
    assert app.selectbox(key="vs").value is None and "no other run" in app.warning[0].value
    for bad in ("tiny", "gone", "../tiny"):
        app = opened(vs=bad, run="tiny")
        assert app.selectbox(key="vs").value is None and "no other run" in app.warning[0].value


def test_a_teachers_link_holds_what_it_names_until_released(opened: Open) -> None:
    app = opened(lock="run,user,grid_nonsense,<b>", run="tiny", user="3")
    held = {box.key: box.disabled for box in [*app.selectbox, *app.number_input]}
    assert held["run"] and held["user"] and not held["expert"]
    assert "Held by this link: Trained run, Person" in said(app)
    healthy(app.multiselect(key="lock_chosen").set_value(["user", "expert"]).run())
    assert "lock=user,expert" in app.code[-1].value and "user=3" in app.code[-1].value
    healthy(app.button(key="lock_release").click().run())
    assert not app.number_input(key="user").disabled and "Held by" not in said(app)


def test_a_view_can_be_taken_away_with_its_settings(opened: Open) -> None:
    from elastic_core.services.exports import to_json

    app = opened(run="tiny", user="3")
    tables = app.session_state["view_tables"]
    taken = json.loads(to_json(tables, {"user": 3}))
    assert taken["settings"] == {"user": 3} and set(taken["tables"]) == set(tables)
