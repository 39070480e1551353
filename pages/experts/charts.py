"""Figures of the Experts page. Pure: tables to plotly figures. Experts' marks carry their number in `customdata`."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from elastic_core.text import escape_plotly as safe
from pages.components.plot import STEADY, Palette, error_bars, style_figure


def draw_lifts(table: pd.DataFrame, p: Palette) -> go.Figure:
    """Draw the lift of each genre with its interval, on a scale of ratios; a full mark where the interval leaves 1 out."""
    ordered = table.iloc[::-1]
    figure = go.Figure()
    figure.add_scatter(
        x=ordered["lift"], y=ordered["genre"].map(safe), mode="markers", customdata=ordered[["low", "high", "share", "base"]],
        error_x=error_bars(ordered, "lift", type="data", symmetric=False, color=p.muted, thickness=1.5, width=0),
        marker_size=11, marker_color=p.categories[0], marker_line_width=2, marker_line_color=p.categories[0],
        marker_symbol=np.where((ordered["low"] > 1) | (ordered["high"] < 1), "circle", "circle-open").tolist(),
        hovertemplate="%{y}: × %{x:.2f} (%{customdata[0]:.2f} to %{customdata[1]:.2f})<br>"
        "%{customdata[2]:.1%} here, %{customdata[3]:.1%} to compare<extra></extra>",
    )  # fmt: skip
    figure.add_vline(x=1, line_color=p.text, line_width=1)
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    return style_figure(
        figure, p, 60 + 24 * max(len(table), 3), xaxis_type="log", xaxis_tickvals=ticks,
        xaxis_ticktext=[f"× {tick:g}" for tick in ticks], yaxis_automargin=True,
    )  # fmt: skip


def draw_agreement(table: pd.DataFrame, p: Palette) -> go.Figure:
    """Draw every item: what the vector says against what was measured."""
    figure = go.Figure(
        go.Scattergl(
            x=table["direct"], y=table["measured"], mode="markers", text=table["title"].map(safe),
            marker_size=5, marker_color=p.categories[0], marker_opacity=0.5,
            hovertemplate="%{text}<br>alone %{x:.3f}, measured %{y:.3f}<extra></extra>",
        )
    )  # fmt: skip
    figure.add_hline(y=0, line_color=p.line)
    figure.add_vline(x=0, line_color=p.line)
    return style_figure(
        figure, p, 360, xaxis_title="alone (only the order counts)", xaxis_zeroline=False,
        yaxis_title="measured: score with it minus score without it", yaxis_zeroline=False,
    )  # fmt: skip


def draw_siblings(table: pd.DataFrame, p: Palette, expert: int, band: tuple[float, float], line: str) -> go.Figure:
    """Draw the load of everybody in one row or column, with what luck alone would give each."""
    ramp = p.warm if line == "row" else p.cool
    other_line = "column" if line == "row" else "row"
    is_expert = table["expert"] == expert
    figure = go.Figure(
        go.Bar(
            x=table[other_line], y=table["load"], customdata=table[["expert", "cosine", "status"]],
            marker_color=ramp[1], marker_line_color=p.text, marker_line_width=is_expert.map({True: 3, False: 0}),
            hovertemplate="<b>expert %{customdata[0]}</b>: %{y} people, %{customdata[2]}<br>cosine %{customdata[1]:.2f}"
            "<extra></extra>", **STEADY,
        )
    )  # fmt: skip
    figure.add_hrect(y0=band[0], y1=band[1], fillcolor=p.muted, opacity=0.22, line_width=0)
    expert_row = table[is_expert].iloc[0]
    figure.add_annotation(
        x=expert_row[other_line], y=expert_row["load"], text=f"<b>{expert}</b>", ay=-20, ax=0, arrowcolor=p.text
    )
    return style_figure(
        figure, p, 260, xaxis_title=other_line, xaxis_dtick=max(1, len(table) // 16), yaxis_title="people",
        yaxis_rangemode="tozero", clickmode="event+select",
    )  # fmt: skip


def draw_effects(table: pd.DataFrame, p: Palette) -> go.Figure:
    """Draw the change of NDCG@10 with its interval for each thing that was done; left of 0 = the list got worse."""
    ordered = table.iloc[::-1]
    figure = go.Figure(
        go.Scatter(
            x=ordered["d_ndcg"], y=ordered["name"], mode="markers", customdata=ordered[["low", "high", "n"]],
            error_x=error_bars(ordered, "d_ndcg", type="data", symmetric=False, color=p.text, thickness=2),
            marker_size=12, marker_color=p.categories[0],
            hovertemplate="%{y}<br>%{x:+.4f} (%{customdata[0]:+.4f} to %{customdata[1]:+.4f}), n = %{customdata[2]}"
            "<extra></extra>",
        )
    )  # fmt: skip
    figure.add_vline(x=0, line_color=p.text, line_width=1)
    return style_figure(
        figure, p, 230, xaxis_title="← worse · better →<br>NDCG@10", xaxis_tickformat="+.3f", xaxis_zeroline=False,
        xaxis_nticks=3, xaxis_tickangle=0, yaxis_automargin=True,
    )  # fmt: skip
