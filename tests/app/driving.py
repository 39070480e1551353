"""What tests of pages do and read: `from driving import healthy, html, press, said`."""

import json

import plotly.graph_objects as go
from streamlit.testing.v1 import AppTest


def healthy(app: AppTest) -> AppTest:
    """No traceback on the page."""
    assert not app.exception, app.exception
    return app


def charts(app: AppTest) -> list[go.Figure]:
    """Every figure on the page, which plotly knows every word of."""
    return [go.Figure(json.loads(chart.proto.spec)) for chart in app.get("plotly_chart")]


def press(app: AppTest, label: str) -> AppTest:
    return healthy(next(button for button in app.button if button.label == label).click().run())


def open_menu(app: AppTest) -> AppTest:
    """Opens the menu at the foot of the page."""
    app.session_state["foot_menu"] = True
    return healthy(app.run())


def said(app: AppTest) -> str:
    """All text a visitor reads, tables and charts apart."""
    blocks = [*app.title, *app.header, *app.subheader, *app.markdown, *app.caption, *app.info, *app.warning, *app.error]
    return " ".join(str(block.value) for block in blocks)


def html(app: AppTest) -> str:
    return " ".join(block.proto.body for block in app.get("html"))
