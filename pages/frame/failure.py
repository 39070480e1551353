"""What a visitor reads when a page fails in a way that nobody foresaw: one sentence and a way on. The log has the rest."""

import streamlit as st

PLACE = "failure"


def say(error: Exception) -> bool:
    """Called by Streamlit, inside the script, with what the script did not catch; True: its own box is not shown."""
    kind = type(error).__name__
    with st.container(key=PLACE):
        st.error(f"This page met something that it was not made for ({kind}). Nothing is lost: trained runs and files are kept.")
        st.link_button("Open the page without its settings", st.context.url or "/", icon=":material/restart_alt:")
    return True
