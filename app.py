"""The app: `streamlit run app.py`. What is on screen begins in pages/navigation.py."""

from collections.abc import Callable
from typing import Any

import streamlit as st
from starlette.middleware import Middleware

from pages.layout import browser_history, server


def load_screens() -> list[Callable[[Any], None]]:
    """First what navigation.py imports, in its order: two threads that enter a package by two doors may each find half of it.
    Returned are the screens that ask everybody, or every run."""
    from pages.layout import styles, screens, sidebar, world_switch  # noqa: F401, I001
    from pages.components import user_cards, plot, presenter_mode, page_elements  # noqa: F401
    from pages.tour import classroom, panel  # noqa: F401

    from pages.evidence import cached as evidence
    from pages.experts import cached as experts
    from pages.traffic import cached as traffic

    return [experts.warm_cache, traffic.warm_cache, evidence.warm_cache]


app = st.App(
    "pages/navigation.py",
    lifespan=server.make_lifespan(load_screens),
    routes=server.ROUTES,
    on_script_error=server.explain_failure,
    middleware=[Middleware(server.Guard), Middleware(browser_history.MergeEntries)],
)
