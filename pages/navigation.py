"""The layout of the app and its pages, listed in layout/screens.py: Streamlit runs this file on every rerun. Paths start here."""

import streamlit as st

from pages.components import page_elements, plot, presenter_mode
from pages.layout import screens, sidebar, styles, world_switch
from pages.tour import classroom, panel

st.set_page_config(
    page_title="ELASTIC",
    page_icon=plot.draw_favicon(),
    layout="wide",
    initial_sidebar_state="collapsed" if presenter_mode.is_presenting() else "auto",
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
presenter_mode.enlarge_type()
styles.apply_styles()
sidebar.show_sidebar(classroom.read_class, panel.show_begin_button)
page_elements.forget_tables()
panel.open_stop_page()
panel.show_panel()
if any(screen.worlds for screen in screens.SCREENS if screen.address == page.url_path):
    world_switch.show_world_switch(sidebar.runs_by_name())
page.run()
sidebar.show_sidebar_end(classroom.show_class_panel)
