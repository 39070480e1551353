"""What the Method page keeps between reruns."""

import streamlit as st

from elastic_core.services.method import effects
from elastic_core.services.method.effects import Effect


@st.cache_data(show_spinner=False)
def peeking() -> Effect:
    """Does a later event move an earlier state? The same for everybody."""
    return effects.of_peeking()
