"""Learning curves. Pure: tables in, plotly figures out."""

import pandas as pd
import plotly.graph_objects as go

from elastic_core.text import escape_plotly as safe
from pages.components.plot import Palette

TITLES = {"loss": "Loss in training", "NDCG@10": "Validation NDCG@10", "used": "Use of the memory"}
COLUMNS = {"loss": ("loss",), "NDCG@10": ("NDCG@10",), "used": ("used", "entropy")}
HEIGHT = 290


def list_curves(frame: pd.DataFrame) -> list[str]:
    """Which curves there are: without any memory, none of its use."""
    return [name for name in COLUMNS if name != "used" or frame["used"].notna().any()]


def draw_curves(frame: pd.DataFrame, colours: Palette, x: str = "epoch") -> dict[str, go.Figure]:
    """All of them."""
    return {name: draw_curve(name, frame, colours, x) for name in list_curves(frame)}


def draw_curve(name: str, frame: pd.DataFrame, colours: Palette, x: str = "epoch") -> go.Figure:
    """Loss, NDCG@10 or use of the memory by epoch or seconds, one line a run."""
    figure, columns = go.Figure(), COLUMNS[name]
    runs = frame["run"].unique().tolist()
    for i, run in enumerate(runs):
        rows = frame[frame["run"] == run]
        for column, dash in zip(columns, ("solid", "dot"), strict=False):
            if rows[column].notna().any():
                figure.add_trace(_draw_line(rows, run, column, dash, x, colours.category_colour(i), len(runs)))
    figure.update_layout(
        title_text=TITLES[name],
        title_font_size=15,
        height=HEIGHT,
        margin_l=8,
        margin_r=8,
        margin_t=40,
        margin_b=8,
        showlegend=len(figure.data) > 1,
        legend_orientation="h",
        legend_y=-0.34,
        legend_x=0,
        hovermode="x unified",
        uirevision="keep",
    )
    if name != "loss":
        figure.update_yaxes(rangemode="tozero")
    if x == "epoch" and frame[x].max() <= 8:
        figure.update_xaxes(dtick=1)  # there is no half epoch
    figure.update_xaxes(title_text={"epoch": "epoch", "seconds": "seconds of training"}[x], rangemode="tozero")
    return figure.update_yaxes(range=[0, 1.05], tickformat=".0%") if name == "used" else figure


def describe_curve(column: str, frame: pd.DataFrame) -> str:
    """What the figure says, in one sentence: where every run stands."""
    last = frame.groupby("run", sort=False)[column].last().dropna()
    return f"{TITLES[column]} by epoch. Last values: " + "; ".join(f"{run} {value:.3f}" for run, value in last.items()) + "."


def _draw_line(rows: pd.DataFrame, run: str, column: str, dash: str, x: str, colour: str, runs: int) -> go.Scatter:
    what = {"used": "experts used", "entropy": "evenness (entropy)"}.get(column, "")
    name = run if not what else what if runs == 1 else f"{run}: {what}"
    return go.Scatter(
        x=rows[x],
        y=rows[column],
        mode="lines+markers",
        name=safe(name),
        line_color=colour,
        line_dash=dash,
        line_width=2,
        marker_size=5,
        hovertemplate="%{y:.3f}",
    )
