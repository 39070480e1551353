"""Figures of the Data page. Pure: tables in, plotly figures out."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from elastic_core.memory.gaps import ALL
from elastic_core.results.systems import model_label
from elastic_core.text import escape_plotly as safe
from pages.components.plot import LAYOUT, SYMBOLS, Palette, colour_scale, error_bars

ACROSS = 30  # events in one row of the split picture


def draw_split(table: pd.DataFrame, colours: Palette) -> go.Figure:
    """One person's events row by row, oldest first: squares to learn from, a diamond to validate, a star to test."""
    place = np.arange(len(table))
    looks = (
        ("train", "learned from", "square", 8, colours.muted),
        ("validation", "chooses the best epoch", "diamond", 13, colours.picked),
        ("test", "judges, once", "star", 16, colours.gold),
    )
    figure = go.Figure()
    for part, does, symbol, size, colour in looks:
        at = (table["split"] == part).to_numpy()
        day = table["day"] if "day" in table else table["split"]
        figure.add_scatter(
            x=place[at] % ACROSS, y=place[at] // ACROSS, mode="markers", name=f"{part}: {does}",
            marker_symbol=symbol, marker_size=size, marker_color=colour,
            customdata=np.stack([table["event"][at], table["title"][at].map(safe), day[at]], axis=1),
            hovertemplate="<b>%{customdata[1]}</b><br>event %{customdata[0]} · %{customdata[2]}<extra>" + part + "</extra>",
        )  # fmt: skip
    rows = int(place[-1] // ACROSS) + 1
    axis = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": ""}
    figure.update_layout(
        LAYOUT, height=max(150, 110 + 18 * rows), uirevision="split", legend={**LAYOUT["legend"], "font": {"size": 12}}
    )
    figure.update_xaxes(axis, range=[-1, ACROSS])
    figure.update_yaxes(axis, range=[rows - 0.4, -0.8])
    return figure


def draw_histogram(table: pd.DataFrame, counted: str, unit: str, colours: Palette, many: str = "") -> go.Figure:
    """Bars over bins that grow like powers. `table`: from, to, and how many; `many`: what people call those."""
    labels = [format_range(a, b) for a, b in zip(table["from"], table["to"], strict=True)]
    figure = go.Figure(
        go.Bar(
            x=table["from"].astype(str), y=table[counted], marker_color=colours.categories[0], customdata=labels,
            hovertemplate="%{customdata} " + unit + "<br><b>%{y:,} " + counted + "</b><extra></extra>",
        )
    )  # fmt: skip
    return figure.update_layout(
        LAYOUT, height=270, bargap=0.08, showlegend=False, uirevision=counted, xaxis_title=f"{unit}, from",
        xaxis_type="category", xaxis_nticks=8, xaxis_tickangle=0, yaxis_title=many or counted, yaxis_rangemode="tozero",
    )  # fmt: skip


def format_range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def draw_interest_blocks(table: pd.DataFrame, colours: Palette) -> go.Figure:
    """Interest by item: how often each interest moved somebody to each item (or group of items)."""
    names = list(dict.fromkeys(table["interest"]))
    counts = table["events"].to_numpy().reshape(len(names), -1)
    homes = np.tile(table["home"].to_numpy()[: counts.shape[1]], (len(names), 1))
    figure = go.Figure(
        go.Heatmap(
            z=np.log1p(counts), y=names, customdata=np.stack([counts, homes], axis=2), colorscale=colour_scale(colours.load),
            showscale=False,
            hovertemplate="moved by <b>%{y}</b><br>to items of %{customdata[1]}<br>%{customdata[0]:,} events<extra></extra>",
        )
    )  # fmt: skip
    return figure.update_layout(
        LAYOUT, height=120 + 16 * len(names), uirevision="blocks", xaxis_title="items, sorted by their interest →",
        xaxis_showticklabels=False, xaxis_showgrid=False, yaxis_autorange="reversed", yaxis_showgrid=False,
        yaxis_tickmode="linear",
    )  # fmt: skip


def draw_interest_path(table: pd.DataFrame, colours: Palette) -> go.Figure:
    """One person's events in time, one line an interest; crosses are noise."""
    names = [name for name in dict.fromkeys(table["interest"]) if name != "noise"]
    figure = go.Figure()
    for i, name in enumerate([*names, "noise"]):
        rows = table[table["interest"] == name]
        if len(rows):
            quiet = name == "noise"
            figure.add_scatter(
                x=rows["event"], y=rows["interest"], mode="markers", name=name, customdata=rows["title"].map(safe),
                marker_symbol="x-thin" if quiet else "square", marker_size=9,
                marker_color=colours.muted if quiet else colours.category_colour(i), marker_line_width=2 if quiet else 0,
                marker_line_color=colours.muted,
                hovertemplate="<b>%{customdata}</b><br>event %{x}<extra>" + name + "</extra>",
            )  # fmt: skip
    return figure.update_layout(
        LAYOUT, height=110 + 26 * (len(names) + 1), showlegend=False, uirevision="path", xaxis_title="event, in time",
        xaxis_showgrid=False, yaxis_autorange="reversed",
    )  # fmt: skip


def draw_gaps(table: pd.DataFrame, system: str, colours: Palette) -> go.Figure:
    """Share of the oracle by gap, one line a system; that of the chosen one is thick, that of popularity, the null, dotted."""
    figure = go.Figure()
    for i, (name, rows) in enumerate(table[table["gap"] != ALL].groupby("system", sort=False)):
        chosen, null = name == system, name == model_label("popularity")
        colour = colours.picked if chosen else colours.muted if null else colours.category_colour(i)
        figure.add_scatter(
            x=rows["gap"], y=rows["share"], mode="lines+markers", name=safe(str(name)), customdata=rows["people"],
            line_width=4 if chosen else 1.5, line_color=colour, line_dash="dot" if null else "solid",
            marker_size=11 if chosen else 8, marker_symbol=SYMBOLS[i % len(SYMBOLS)],
            hovertemplate="%{y:.0%} of the oracle · %{customdata} people<extra>" + safe(str(name)) + "</extra>",
        )  # fmt: skip
    return figure.update_layout(
        LAYOUT, height=460, uirevision="gaps", xaxis_title="events since the interest last showed", xaxis_type="category",
        xaxis_showgrid=False, yaxis_title="share of the oracle", yaxis_tickformat=".0%", yaxis_rangemode="tozero",
    )  # fmt: skip


def study_table(part: dict[str, Any]) -> pd.DataFrame:
    """A table, or the numbers of a picture: one row a point."""
    if part["kind"] == "table":
        return pd.DataFrame(part["rows"], columns=part["columns"])
    if part["kind"] == "points":
        return pd.DataFrame(part["points"], columns=["name", "x", "y", "low", "high"])
    rows = [
        (one["name"], x, one["y"][i], one["low"][i], one["high"][i]) for one in part["series"] for i, x in enumerate(part["x"])
    ]
    return pd.DataFrame(rows, columns=["name", "x", "y", "low", "high"])


def draw_study(part: dict[str, Any], colours: Palette) -> go.Figure:
    """Lines over what is asked, or points by time; with 95% intervals."""
    figure, table, spots = go.Figure(), study_table(part), part["kind"] == "points"
    for i, (name, rows) in enumerate(table.groupby("name", sort=False)):
        figure.add_scatter(
            x=rows["x"], y=rows["y"], name=safe(str(name)), mode="markers" if spots else "lines+markers",
            line_color=colours.category_colour(i), line_width=2,
            marker_size=9, marker_symbol=SYMBOLS[i % len(SYMBOLS)],
            error_y=error_bars(rows, "y", width=3, thickness=1),
            hovertemplate="%{x}: %{y:.4f}<extra>" + safe(str(name)) + "</extra>",
        )  # fmt: skip
    return figure.update_layout(
        LAYOUT, height=340 + 18 * len(table["name"].unique()), uirevision=part["x_title"], xaxis_title=safe(part["x_title"]),
        xaxis_type="log" if spots else "category", yaxis_title=safe(part["y_title"]), yaxis_rangemode="tozero",
    )  # fmt: skip
