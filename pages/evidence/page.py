"""Evidence: is it true? Three depths of the same measurements: claims, the table of systems, any two runs."""

import streamlit as st

from pages.evidence import claims, pair, systems
from pages.kit.control import one_of

DEPTHS = {"Claims": claims.show, "Systems": systems.show, "Two runs": pair.show}

st.title("Is it true, and how sure is that?", anchor=False)
DEPTHS[one_of("How deep", list(DEPTHS), key="ev_depth", label_visibility="collapsed")]()
