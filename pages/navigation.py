"""The frame of the app and its pages: Streamlit runs this file on every rerun. The paths of pages start here."""

import streamlit as st

from pages.frame import dress, present, sidebar, worlds
from pages.kit import plot, view
from pages.tour import panel

st.set_page_config(
    page_title="ELASTIC",
    page_icon=plot.favicon(),
    layout="wide",
    initial_sidebar_state="collapsed" if present.on() else "auto",
    menu_items={"About": "ELASTIC: a recommender that reads a long history through a few experts."},
)
page = st.navigation(  # without sections: with them Streamlit nests what a screen reader cannot take for a list
    [
        st.Page("start/page.py", title="Start", icon=":material/play_arrow:", default=True),
        st.Page("keys/page.py", title="Product keys", icon=":material/grid_on:", url_path="product-keys"),
        st.Page("journey/page.py", title="Journey", icon=":material/route:", url_path="journey"),
        st.Page("experts/page.py", title="Experts", icon=":material/hub:", url_path="experts"),
        st.Page("traffic/page.py", title="Traffic", icon=":material/bar_chart:", url_path="traffic"),
        st.Page("map/page.py", title="Memory map", icon=":material/scatter_plot:", url_path="memory-map"),
        st.Page("train/page.py", title="Train", icon=":material/model_training:", url_path="train"),
        st.Page("data/page.py", title="Data", icon=":material/database:", url_path="data"),
        st.Page("evidence/page.py", title="Evidence", icon=":material/fact_check:", url_path="evidence"),
        st.Page("speed/page.py", title="Speed", icon=":material/speed:", url_path="speed"),
        st.Page("method/page.py", title="Method", icon=":material/menu_book:", url_path="method"),
    ],
    expanded=True,  # else many screens hide behind a button
)
present.enlarge()
dress.dress()
sidebar.sidebar()
view.begin()
panel.arrive()
panel.panel()
if page.url_path in worlds.SHOWN:
    worlds.switch(sidebar.runs())
page.run()
sidebar.close()
