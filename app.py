"""The app: `streamlit run app.py`. What is on screen begins in pages/navigation.py."""

import streamlit as st
from starlette.middleware import Middleware

from pages.frame import back, failure, guard, moved, wake

app = st.App(
    "pages/navigation.py",
    lifespan=wake.up,
    routes=moved.ROUTES,
    on_script_error=failure.say,
    middleware=[Middleware(guard.Guard), Middleware(back.Back)],
)
