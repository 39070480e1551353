"""The frame of the app and its pages: Streamlit runs this file on every rerun. The paths of pages start here."""

import streamlit as st

from pages.ui import charts, frame, tour, view

st.set_page_config(
    page_title="ELASTIC",
    page_icon=charts.favicon(),
    layout="wide",
    menu_items={"About": "ELASTIC: a recommender that compresses a history through interest experts."},
)
page = st.navigation(
    {
        "Learn": [
            st.Page("learn/start.py", title="Start", icon=":material/play_arrow:", default=True),
            st.Page("learn/product_keys.py", title="Product keys", icon=":material/grid_on:", url_path="product-keys"),
        ],
        "Explore": [
            st.Page("explore/journey.py", title="Journey", icon=":material/route:", url_path="journey"),
            st.Page("explore/experts.py", title="Experts", icon=":material/hub:", url_path="experts"),
            st.Page("explore/traffic.py", title="Traffic", icon=":material/bar_chart:", url_path="traffic"),
            st.Page("explore/memory_map.py", title="Memory map", icon=":material/scatter_plot:", url_path="memory-map"),
        ],
        "Build": [
            st.Page("build/train.py", title="Train", icon=":material/model_training:", url_path="train"),
            st.Page("build/data.py", title="Data", icon=":material/database:", url_path="data"),
        ],
        "Judge": [
            st.Page("judge/speed.py", title="Speed", icon=":material/speed:", url_path="speed"),
            st.Page("judge/compare.py", title="Compare", icon=":material/balance:", url_path="compare"),
        ],
        "Reference": [
            st.Page("reference/method.py", title="Method", icon=":material/menu_book:", url_path="method"),
        ],
    }
)
frame.sidebar()
view.begin()
tour.arrive()
tour.panel()
page.run()
frame.close()
