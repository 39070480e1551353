"""The journey page: edits and what they answer, moments, typed histories, a second run, both kinds of model."""

import re
from collections.abc import Callable

import pytest
from driving import healthy, html, press, said
from streamlit.testing.v1 import AppTest

from pages.journey import controls

PAGE = "journey/page.py"
Opened = Callable[..., AppTest]


def address(app: AppTest) -> str:
    return "".join(app.query_params.get("edits", ""))


def test_there_is_a_real_answer_before_any_click(opened: Opened) -> None:
    app = opened(PAGE, user="3")
    assert app.title[0].value.startswith("What if this history were different")
    assert "of the weight" in html(app) and "★ chose next" in html(app)
    assert [one.proto.component_name for one in app.get("bidi_component")].count("elastic_dispatcher") == 1
    assert "**Aggregate**" in said(app) and "all items are compared with it" in said(app)
    assert not app.warning and address(app) == ""


def test_edits_are_answered_beside_their_null_and_undone(opened: Opened) -> None:
    app = opened(PAGE, user="3")
    assert re.search(r"slot: [\d.]+% .+ \(this person’s other slots: [\d.]+% on average\)", html(app))
    app = press(app, "Remove the last item")
    assert "Against the original:" in app.info[0].value and "line-through" in html(app)
    null = r"This edit \({} .*\) moved .* by \d+ places?\. The same edit to \d+ other {}, one at a time: (\d|nothing moved)"
    assert re.search(null.format("without", "items"), said(app))
    shared, first = html(app), address(app)
    again = opened(PAGE, user="3", edits=first)  # a fresh server's visitor
    assert html(again) == shared and said(again) == said(app)
    healthy(app.text_input(key="jrn_add").set_value("a").run())
    app = press(app, "Add it")
    assert "+ " in html(app) and re.search(null.format("with", "items"), said(app))
    app = press(press(app, "Remove it"), "Remove the stretch")
    assert len(address(app).split(",")) == 4 and ".." in address(app)
    app = press(press(press(app, "Undo"), "Undo"), "Undo")
    assert address(app) == first and html(app) == shared
    assert not press(app, "Reset").info


def test_a_typed_list_takes_the_place_of_the_history_and_names_what_it_does_not_understand(opened: Opened) -> None:
    app = opened(PAGE, user="3")
    app.text_area(key="jrn_list").set_value("1\n2\nno such thing\n3\n4\n5\n6")
    press(app, "Read this list")
    assert any("Line 3, “no such thing”" in warning.value for warning in app.warning)
    app = press(app, "Read the 6 understood items")
    assert "Your own list" in app.info[0].value
    assert not [slider for slider in app.slider if slider.key == controls.MOMENT], "it has no moments of the person's"
    assert "from" not in html(app).split('aria-label="Suggestions')[-1], "compared with nobody"
    assert re.fullmatch(r"\+[\d.]+,-1\.\.\d+", address(app)) and "★" not in html(app).split('aria-label="Suggestions')[-1]
    assert "line-through" not in html(app).split("Left the ten")[0] and "This edit, " not in said(app)
    app.session_state["jrn_part"] = "What matters?"
    assert "the top suggestion" in app.segmented_control(key="jrn_for").options if app.run() else False
    for _ in range(5):
        press(app, "Remove the last item")
    assert "at least two are needed" in said(app) and app.button(key="jrn_last").disabled


def test_a_moment_before_all_that_is_left_is_said(opened: Opened) -> None:
    app = opened(PAGE, user="3", edits="-1..4", jrn_t="3")
    assert "leave nothing to read" in said(app) and app.button(key="jrn_last").disabled
    app = press(app, "Undo")
    assert "leave nothing to read" not in said(app) and "saw this answer in training" in said(app)


def test_a_new_person_starts_at_their_last_moment(opened: Opened) -> None:
    app = press(opened(PAGE, user="3"), "Remove the last item")
    healthy(app.slider(key=controls.MOMENT).set_value(5).run())
    assert "saw this answer in training" in said(app) and address(app)
    healthy(app.number_input(key="user").set_value(9).run())
    assert address(app) == "" and not app.warning
    assert app.slider(key=controls.MOMENT).value == app.slider(key=controls.MOMENT).max


@pytest.mark.parametrize("moment", ["0", "abc"])
def test_a_bad_moment_in_the_address_is_said(opened: Opened, moment: str) -> None:
    app = opened(PAGE, user="3", jrn_t=moment)
    assert "has no moment" in app.warning[0].value
    assert app.slider(key=controls.MOMENT).value == app.slider(key=controls.MOMENT).max


def test_a_second_run_stands_beside(opened: Opened) -> None:
    app = opened(PAGE, user="3", vs="tiny-peer", jrn_part="What matters?")
    healthy(app.selectbox(key="jrn_with").set_value("the second run").run())
    assert "share" in app.info[0].value and html(app).count("Suggestions, best first") == 2
    assert "Attention alone does not explain" in said(app) and re.search(r"n = \d+ independent events", said(app))
    healthy(app.segmented_control(key="jrn_for").set_value("the top suggestion").run())
    healthy(app.segmented_control(key="jrn_show").set_value("all, latest first").run())


def test_a_model_without_memory_still_answers(opened: Opened) -> None:
    app = opened(PAGE, user="3", run="tiny-peer")
    assert "no interest memory" in said(app) and "correlation" in said(app)
    assert app.title[0].value.startswith("What does this run make")
    app = press(app, "Remove the last item")
    assert "Against the original" in " ".join(info.value for info in app.info)
