"""Figures of a study's answer. Pure: its parts in, tables and plotly figures out."""

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from elastic_core.text import figure as safe
from pages.data.charts import LAYOUT
from pages.kit.plot import SYMBOLS, Palette

HEIGHT = 340


def table(part: dict[str, Any]) -> pd.DataFrame:
    """A table, or the numbers of a picture: one row a point."""
    if part["kind"] == "table":
        return pd.DataFrame(part["rows"], columns=part["columns"])
    if part["kind"] == "points":
        return pd.DataFrame(part["points"], columns=["name", "x", "y", "low", "high"])
    rows = [
        (one["name"], x, one["y"][i], one["low"][i], one["high"][i]) for one in part["series"] for i, x in enumerate(part["x"])
    ]
    return pd.DataFrame(rows, columns=["name", "x", "y", "low", "high"])


def drawn(part: dict[str, Any], colours: Palette) -> go.Figure:
    """Lines over what is asked, or points by time; with 95% intervals."""
    figure, shown, spots = go.Figure(), table(part), part["kind"] == "points"
    for i, (name, rows) in enumerate(shown.groupby("name", sort=False)):
        figure.add_scatter(
            x=rows["x"], y=rows["y"], name=safe(str(name)), mode="markers" if spots else "lines+markers",
            line={"color": colours.categories[i % len(colours.categories)], "width": 2},
            marker={"size": 9, "symbol": SYMBOLS[i % len(SYMBOLS)]},
            error_y={"array": rows["high"] - rows["y"], "arrayminus": rows["y"] - rows["low"], "width": 3, "thickness": 1},
            hovertemplate="%{x}: %{y:.4f}<extra>" + safe(str(name)) + "</extra>",
        )  # fmt: skip
    figure.update_layout(LAYOUT, height=HEIGHT + 18 * len(shown["name"].unique()), uirevision=part["x_title"])
    figure.update_xaxes(title=safe(part["x_title"]), type="log" if spots else "category", fixedrange=True)
    figure.update_yaxes(title=safe(part["y_title"]), rangemode="tozero", fixedrange=True)
    return figure
