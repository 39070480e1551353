"""Dark letters on what the dark theme fills with light blue: Streamlit writes them in white, hardly to be read (2.2 : 1)."""

import streamlit as st

from pages.frame import shell

DARK = '<style>[data-testid^="stBaseButton-primary"]:enabled, [data-baseweb="tag"] * { color: #14161a }</style>'


def mend() -> None:
    """Called by navigation.py before anything is drawn."""
    if shell.is_dark():
        st.html(DARK)
