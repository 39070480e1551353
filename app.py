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
        "Learn": [st.Page("pages/learn/start.py", title="Start", icon=":material/play_arrow:", default=True)],
    }
)
shell.sidebar()
page.run()
