"""A class in the app: bets of two visitors counted together, the answer when the teacher shows it, and what a link gives away."""

import re
from collections.abc import Callable

import pytest
from driving import healthy, html, press, said
from streamlit.testing.v1 import AppTest

from elastic_core.services.tour import classes
from pages.frame import present
from pages.tour import worksheet
from pages.tour.steps import STEPS

Open = Callable[..., AppTest]


def test_the_answer_comes_when_the_teacher_shows_it(opened: Open) -> None:
    key = classes.new_key()
    code = classes.code(key)
    teacher = opened(run="tiny", user="3", tour="1", teach=key)
    pupil = opened(run="tiny", user="3", tour="1", **{"class": code.lower()})
    pupil = healthy(pupil.radio(key="tour_bet_1").set_value(STEPS[0].options[1]).run())
    assert f"1 bet in class {code}" in said(pupil) and "when your teacher shows it" in said(pupil)
    assert not [block for block in [*pupil.success, *pupil.info] if block.value.startswith(("Right.", "Not here"))]
    assert not [button for button in pupil.button if button.key == "class_release"]
    healthy(teacher.run())
    assert f"{STEPS[0].options[1]} **1**" in said(teacher)
    healthy(teacher.button(key="class_release").click().run())
    assert [block for block in teacher.info if block.value.startswith("It is")]
    healthy(pupil.run())
    assert [block for block in [*pupil.success, *pupil.info] if block.value.startswith(("Right.", "Not here"))]
    press(press(teacher, "Skip the bet"), "Next stop")
    healthy(pupil.run())
    assert "Tour, 2 of" in said(press(pupil, "Your teacher is at stop 2"))


def test_no_link_gives_the_key_away(opened: Open) -> None:
    key = classes.new_key()
    app = opened("experts/page.py", run="tiny", teach=key, present="true")
    links = [block.value for block in app.code if block.value.startswith("http") or "?" in block.value]
    assert links and not any(key in link or "present" in link for link in links)
    assert any(f"class={classes.code(key)}" in link for link in links)


@pytest.mark.parametrize("asked", ["ABC", "ABCDEO", "<b>&12", "A" * 500])
def test_a_code_that_is_none_is_said_and_nothing_else_changes(opened: Open, asked: str) -> None:
    app = opened(run="tiny", tour="1", **{"class": asked})
    assert "is no code of a class" in said(app) and "bets in class" not in said(app) and "bet in class" not in said(app)


def test_starting_over_forgets_the_visit(opened: Open) -> None:
    app = opened(run="tiny", user="3", tour="4", expert="5")
    press(app, "Start over")
    assert "Tour, " not in said(app) and app.session_state["user"] != 3 and app.session_state["expert"] is None


def test_starting_over_keeps_what_a_link_holds(opened: Open) -> None:
    app = press(opened(run="tiny", user="3", tour="4", lock="expert"), "Start over")
    assert app.number_input(key="expert").disabled and app.query_params["lock"] == "expert"


def test_the_worksheet_holds_every_stop_and_is_text() -> None:
    page = worksheet.html()
    assert page.count("<section>") == len(STEPS) and "**" not in page
    for step in STEPS:
        assert all(f"</span>{worksheet._plain(option)}" in page for option in step.options)
    ours = {"html", "meta", "title", "style", "h1", "h2", "p", "b", "section", "span", "div"}
    assert set(re.findall(r"</?([a-z0-9]+)", page)) <= ours


def test_presenter_mode_is_switched_on_by_the_address_and_off_by_its_switch(opened: Open) -> None:
    app = opened("traffic/page.py", run="tiny", present="true")
    assert present.LARGER in html(app) and app.query_params["present"] == "true"
    healthy(app.toggle(key="present_switch").set_value(False).run())
    assert present.LARGER not in html(app) and "present" not in app.query_params
