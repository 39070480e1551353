"""The frame of the app: `streamlit run app.py`."""

import streamlit as st

from pages.ui import charts, shell

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
        "Build": [st.Page("pages/build/train.py", title="Train", icon=":material/model_training:", url_path="train")],
    }
)
shell.sidebar()
page.run()
