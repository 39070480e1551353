"""Figures of the Traffic page for runs without experts. Pure: tables to plotly figures."""

import pandas as pd
import plotly.graph_objects as go

from pages.kit.plot import Palette, frame


def reach(table: pd.DataFrame, p: Palette) -> go.Figure:
    """Shares by how many events ago, the latest right."""
    rows = table.iloc[::-1]
    figure = go.Figure()
    columns = [("weight", "weight", p.muted), ("effect", "effect of removal", p.warm[1])]
    for name, called, colour in columns:
        if rows[name].notna().all():
            figure.add_bar(
                x=rows["ago"], y=rows[name], name=called, marker={"color": colour},
                hovertemplate="%{x} events ago: %{y:.1%}<extra>" + called + "</extra>",
            )  # fmt: skip
    figure.add_scatter(
        x=rows["ago"], y=rows["even"], name="if all were the same", mode="lines+markers",
        line={"color": p.text, "dash": "dot", "width": 1.5},
        hovertemplate="%{x} events ago: %{y:.1%}<extra>if all were the same</extra>",
    )  # fmt: skip
    figure.update_xaxes(title="events ago, the latest right", type="category", showgrid=False, fixedrange=True)
    figure.update_yaxes(title="share", tickformat=".0%", rangemode="tozero", fixedrange=True)
    return frame(figure, p, 340, legend=True)


def use(table: pd.DataFrame, p: Palette) -> go.Figure:
    """Share of events on the words of a codebook, the busiest first, mean over codebooks, with the random assignment's band."""
    rows = table.groupby("rank", as_index=False)[["share", "low", "high"]].mean()
    figure = go.Figure()
    band = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "x": rows["rank"]}
    red, green, blue = (int(p.muted[i : i + 2], 16) for i in (1, 3, 5))
    figure.add_scatter(**band, y=rows["high"], showlegend=False)
    figure.add_scatter(
        **band, y=rows["low"], fill="tonexty", fillcolor=f"rgba({red},{green},{blue},0.25)", name="random words, 95%"
    )
    figure.add_bar(
        x=rows["rank"], y=rows["share"], name="this run", marker={"color": p.picked},
        hovertemplate="number %{x}: %{y:.1%}<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(title="words of a codebook, the most used first", showgrid=False, fixedrange=True)
    figure.update_yaxes(title="share of events", tickformat=".0%", rangemode="tozero", fixedrange=True)
    return frame(figure, p, 320, legend=True)
