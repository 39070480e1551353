"""What was broken on the start page travels in the address, and nothing else does."""

from collections.abc import Callable

import pytest
from driving import press, said
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from elastic_core.services.person.recommend import experts_silenced, places_left
from pages.start import edits

Open = Callable[..., AppTest]
done = st.lists(st.none() | st.integers(-400, 63), max_size=edits.MOST)


@given(done, st.integers(0, 10**6))
def test_an_address_gives_the_same_edits_back(made: edits.Edits, user: int) -> None:
    text = edits.text("a-run", user, made)
    assert (edits.parse(text, "a-run", user, 64) if text else []) == made
    if text:
        assert edits.parse(text, "a-run", user + 1, 64) == [] and edits.parse(text, "b", user, 64) == []


def test_a_link_breaks_the_same_things(opened: Open) -> None:
    app = opened(run="tiny", user="3", edits="tiny~3~r.r")
    assert "Without the last 2 items:" in app.info[0].value
    assert not press(app, "Reset").info
    assert not opened(run="tiny", user="4", edits="tiny~3~r.r").info  # somebody else's


def test_what_went_with_another_run_is_gone_on_journey_too(opened: Open) -> None:
    app = opened(run="tiny", user="3", edits="tiny~3~r.7")
    assert app.session_state["handed_edits"].silenced == (7,)
    app.session_state["start_edits"] = ""  # as after a look at another run
    app.query_params.pop("edits")
    app = app.run()
    left = app.session_state["handed_edits"]
    assert not app.info and left.silenced == () and left.removed == ()


@pytest.mark.parametrize("text", ["tiny~3~", "tiny~3~64", "tiny~3~" + ".".join("r" * 99), "<b>"])
def test_edits_that_cannot_be_read_are_said(opened: Open, text: str) -> None:
    app = opened(run="tiny", user="3", edits=text)
    assert "cannot be read" in said(app) and not app.info


@given(done, st.integers(-30, 63))
def test_a_second_click_takes_the_first_one_back(made: edits.Edits, edit: int) -> None:
    """Whatever was done before, in whatever words: an event or expert that is away comes back, and nothing else changes."""
    events = 30
    if edit < 0 and len(places_left(events, made)) == 1:
        return  # the last one stays
    once = edits.toggled(made, edit, events)
    twice = edits.toggled(once, edit, events)
    assert (edit in experts_silenced(once)) != (edit in experts_silenced(made)) or edit < 0
    if edit < 0:
        assert (-edit - 1 in places_left(events, once)) != (-edit - 1 in places_left(events, made))
    assert experts_silenced(twice) == experts_silenced(made) or set(experts_silenced(twice)) == set(experts_silenced(made))
    assert places_left(events, twice) == places_left(events, made)
