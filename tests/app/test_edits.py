"""What was broken on the start page travels in the address, and nothing else does."""

from collections.abc import Callable

import pytest
from driving import html, press, said
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.start import edits

Open = Callable[..., AppTest]
done = st.lists(st.none() | st.integers(0, 63), max_size=edits.MOST)


@given(done, st.integers(0, 10**6))
def test_an_address_gives_the_same_edits_back(made: list[int | None], user: int) -> None:
    text = edits.text("a-run", user, made)
    assert (edits.parse(text, "a-run", user, 64) if text else []) == made
    if text:
        assert edits.parse(text, "a-run", user + 1, 64) == [] and edits.parse(text, "b", user, 64) == []


@given(st.text(max_size=60))
def test_any_other_text_is_no_edit(text: str) -> None:
    assert edits.parse(text, "run", 0, 64) in (None, [])


def test_a_link_breaks_the_same_things(opened: Open) -> None:
    app = opened(run="tiny", user="3", edits="tiny~3~r.r")
    assert "Without the last 2 items:" in app.info[0].value and "line-through" in html(app)
    assert not press(app, "Reset").info
    assert not opened(run="tiny", user="4", edits="tiny~3~r.r").info  # somebody else's


@pytest.mark.parametrize("text", ["r", "tiny~3~", "tiny~3~x", "tiny~3~64", "tiny~3~" + ".".join("r" * 99), "~~~", "<b>"])
def test_edits_that_cannot_be_read_are_said(opened: Open, text: str) -> None:
    app = opened(run="tiny", user="3", edits=text)
    assert "cannot be read" in said(app) and not app.info
