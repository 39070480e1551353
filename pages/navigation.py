"""The layout of the app and its pages, listed in layout/screens.py: Streamlit runs this file on every rerun. Paths start here."""

import streamlit as st

from pages.components import plot, present, view
from pages.layout import dress, screens, sidebar, worlds
from pages.tour import classroom, panel

st.set_page_config(
    page_title="ELASTIC",
    page_icon=plot.favicon(),
    layout="wide",
    initial_sidebar_state="collapsed" if present.on() else "auto",
    menu_items={"About": "ELASTIC: a recommender that reads a long history through a few experts."},
)
page = st.navigation(  # without sections: with them Streamlit nests what a screen reader cannot take for a list
    [
        st.Page(
            f"{screen.folder}/page.py",
            title=screen.title,
            icon=f":material/{screen.icon}:",
            url_path=screen.address,
            default=not screen.address,
        )
        for screen in screens.SCREENS
    ],
    expanded=True,  # else many screens hide behind a button
)
present.enlarge()
dress.dress()
sidebar.sidebar(classroom.read, panel.begin)
view.begin()
panel.arrive()
panel.panel()
if any(screen.worlds for screen in screens.SCREENS if screen.address == page.url_path):
    worlds.switch(sidebar.runs())
page.run()
sidebar.close(classroom.panel)
