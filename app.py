"""The frame of the app: `streamlit run app.py`."""

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
            st.Page("pages/learn/start.py", title="Start", icon=":material/play_arrow:", default=True),
            st.Page("pages/learn/product_keys.py", title="Product keys", icon=":material/grid_on:", url_path="product-keys"),
        ],
        "Explore": [
            st.Page("pages/explore/journey.py", title="Journey", icon=":material/route:", url_path="journey"),
            st.Page("pages/explore/experts.py", title="Experts", icon=":material/hub:", url_path="experts"),
            st.Page("pages/explore/traffic.py", title="Traffic", icon=":material/bar_chart:", url_path="traffic"),
            st.Page("pages/explore/memory_map.py", title="Memory map", icon=":material/scatter_plot:", url_path="memory-map"),
        ],
        "Build": [
            st.Page("pages/build/train.py", title="Train", icon=":material/model_training:", url_path="train"),
            st.Page("pages/build/data.py", title="Data", icon=":material/database:", url_path="data"),
        ],
        "Judge": [
            st.Page("pages/judge/speed.py", title="Speed", icon=":material/speed:", url_path="speed"),
            st.Page("pages/judge/compare.py", title="Compare", icon=":material/balance:", url_path="compare"),
        ],
        "Reference": [
            st.Page("pages/reference/method.py", title="Method", icon=":material/menu_book:", url_path="method"),
        ],
    }
)
frame.sidebar()
view.begin()
tour.arrive()
tour.panel()
page.run()
frame.close()
