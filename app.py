"""The frame of the app: `streamlit run app.py`."""

import streamlit as st

from pages.ui import charts, frame, view

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
        ],
        "Build": [st.Page("pages/build/train.py", title="Train", icon=":material/model_training:", url_path="train")],
        "Judge": [
            st.Page("pages/judge/compare.py", title="Compare", icon=":material/balance:", url_path="compare"),
        ],
    }
)
frame.sidebar()
view.begin()
page.run()
frame.close()
