"""Presenter mode, `present=true` in the address: larger type where there is room, the sidebar folded away. For a projector."""

import streamlit as st

from pages.components.controls import place_button

KEY, ON, SWITCH = "present", "present_on", "present_switch"
LARGER = """<style>@media (min-width: 1200px) { :root { font-size: 112.5% } }
@media (min-width: 1600px) { :root { font-size: 125% } }
.stMain [data-testid="stMainBlockContainer"] { padding-top: 3.75rem }
.st-key-present_leave { position: fixed; top: .6rem; right: 3.5rem; width: auto; z-index: 1000000 }</style>"""
# Every size of Streamlit's is a multiple of the root's. The way out stands at the upper right, whatever is scrolled.
FIGURES = 17  # pixels of a figure's letters; 12 otherwise


def is_presenting() -> bool:
    """Is it on? What the address says; stays for the visit and in the address."""
    parameter = st.query_params.get(KEY)
    if parameter is not None:
        st.session_state[ON] = parameter == "true"
    return bool(st.session_state.get(ON))


def enlarge_type() -> None:
    """Called by navigation.py before anything is drawn."""
    if is_presenting():
        st.query_params[KEY] = "true"
        st.html(LARGER)
        place_button("Leave presenter mode", "present_leave", _leave_presenter_mode, icon="close_fullscreen")


def show_presenter_switch() -> None:
    """In the sidebar."""
    st.session_state[SWITCH] = is_presenting()
    st.toggle(
        "Presenter mode", key=SWITCH, on_change=_turn_presenter_mode,
        help="Larger type and no sidebar. » at the upper left brings the sidebar back.",
    )  # fmt: skip


def _leave_presenter_mode() -> None:
    st.session_state[ON] = False
    st.query_params.pop(KEY, None)


def _turn_presenter_mode() -> None:
    st.session_state[ON] = st.session_state[SWITCH]
    st.query_params.pop(KEY, None)
