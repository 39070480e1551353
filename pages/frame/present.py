"""Presenter mode, `present=true` in the address: larger type and figures, the sidebar folded away. For a projector."""

import streamlit as st

KEY = "present"
LARGER = "<style>:root{font-size:125%}</style>"  # every size of Streamlit's is a multiple of the root's
FIGURES = 17  # pixels of a figure's letters; 12 otherwise


def on() -> bool:
    """Is it on? Known before the switch is drawn."""
    return bool(st.session_state.get(KEY, st.query_params.get(KEY) == "true"))


def switch() -> None:
    """In the sidebar."""
    st.toggle(
        "Presenter mode", key=KEY, bind="query-params",
        help="Larger type and figures, and the sidebar folded away; » at the upper left brings it back.",
    )  # fmt: skip


def enlarge() -> None:
    """Called by navigation.py before anything is drawn."""
    if on():
        st.html(LARGER)
