"""The way from a chosen expert on a chart to that expert's own page."""

import streamlit as st
from streamlit.errors import StreamlitAPIException

from pages.frame import shell
from pages.kit import view

PAGE = "experts/page.py"


def clicked(key: str) -> None:
    """The callback of a chart whose marks carry the expert's number first in `customdata`."""
    if mark := view.clicked(key):
        shell.look_at(int(mark[0]))


def card(text: str) -> None:
    """A line about the chosen expert and the link to its page, where there is one."""
    with view.row(border=True):
        st.markdown(text, width="stretch")
        try:
            st.page_link(PAGE, label="Open this expert", icon=":material/hub:", width="content")
        except StreamlitAPIException:  # the page is not in the menu
            st.caption("Its own page is not part of this app.")
