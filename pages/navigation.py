"""The frame of the app and its pages: Streamlit runs this file on every rerun. The paths of pages start here."""

import streamlit as st

from pages.frame import dress, present, sidebar, worlds
from pages.kit import plot, view
from pages.tour import panel

SCREENS = (
    ("start", "Start", "play_arrow", ""), ("keys", "Product keys", "grid_on", "product-keys"),
    ("journey", "Journey", "route", "journey"), ("experts", "Experts", "hub", "experts"),
    ("traffic", "Traffic", "bar_chart", "traffic"), ("map", "Memory map", "scatter_plot", "memory-map"),
    ("train", "Train", "model_training", "train"), ("data", "Data", "database", "data"),
    ("evidence", "Evidence", "fact_check", "evidence"), ("speed", "Speed", "speed", "speed"),
    ("method", "Method", "menu_book", "method"),
)  # fmt: skip
st.set_page_config(
    page_title="ELASTIC",
    page_icon=plot.favicon(),
    layout="wide",
    initial_sidebar_state="collapsed" if present.on() else "auto",
    menu_items={"About": "ELASTIC: a recommender that reads a long history through a few experts."},
)
page = st.navigation(  # without sections: with them Streamlit nests what a screen reader cannot take for a list
    [
        st.Page(f"{room}/page.py", title=title, icon=f":material/{icon}:", url_path=address, default=not address)
        for room, title, icon, address in SCREENS
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
