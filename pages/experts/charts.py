"""Figures of the Experts page. Pure: tables to plotly figures. Experts' marks carry their number in `customdata`."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from elastic_core.services.person.inspect import split_year
from elastic_core.text import figure as safe
from pages.kit.plot import STEADY, Palette, frame, whiskers

BAND_WORDS = {
    "top": "top quarter of its people",
    "middle": "middle half",
    "just in": "just in",
    "just out": "just missed",
    "out": "do not use it",
}
PATTERNS = {"just in": "/", "just out": "."}


def histogram(bars: pd.DataFrame, p: Palette, along: str, person: float, name: str) -> go.Figure:
    """Draw how many people have which margin (or score), stacked by band, with the cut-off and one person marked."""
    figure, colours = go.Figure(), (p.load[3], p.load[2], p.load[1], p.cool[1], p.muted)
    for (band, words), colour in zip(BAND_WORDS.items(), colours, strict=True):
        part = bars[bars["band"] == band]
        if len(part):
            figure.add_bar(
                x=(part["low"] + part["high"]) / 2, y=part["people"], width=(part["high"] - part["low"]) * 0.94, name=words,
                marker_color=colour, marker_pattern_shape=PATTERNS.get(band, ""), marker_line_width=0,
                customdata=part[["low", "high"]],
                hovertemplate="%{y} people, %{customdata[0]:.2f} to %{customdata[1]:.2f}<extra>" + words + "</extra>",
            )  # fmt: skip
    note = {"yref": "paper", "showarrow": False, "bgcolor": p.ground}
    if along == "margin":
        figure.add_vline(x=0, line_color=p.text, line_width=2)
        figure.add_annotation(x=0, y=1, text="use it →", xanchor="left", xshift=6, yanchor="top", **note)
    figure.add_vline(x=person, line_color=p.picked, line_dash="dot", line_width=2)
    figure.add_annotation(x=person, y=0.86, text=name, xanchor="right", xshift=-4, font_color=p.picked, **note)
    figure.update_layout(barmode="stack", bargap=0)
    title = "score above or below the limit" if along == "margin" else "score"
    return frame(figure, p, 340, legend=True, xaxis_title=title, xaxis_zeroline=False, yaxis_title="people")


def evidence(table: pd.DataFrame, p: Palette) -> go.Figure:
    """Draw the lift of each genre with its interval, on a scale of ratios; a full mark where the interval leaves 1 out."""
    ordered = table.iloc[::-1]
    figure = go.Figure()
    figure.add_scatter(
        x=ordered["lift"], y=ordered["genre"].map(safe), mode="markers", customdata=ordered[["low", "high", "share", "base"]],
        error_x=whiskers(ordered, "lift", type="data", symmetric=False, color=p.muted, thickness=1.5, width=0),
        marker_size=11, marker_color=p.categories[0], marker_line_width=2, marker_line_color=p.categories[0],
        marker_symbol=np.where((ordered["low"] > 1) | (ordered["high"] < 1), "circle", "circle-open").tolist(),
        hovertemplate="%{y}: × %{x:.2f} (%{customdata[0]:.2f} to %{customdata[1]:.2f})<br>"
        "%{customdata[2]:.1%} here, %{customdata[3]:.1%} to compare<extra></extra>",
    )  # fmt: skip
    figure.add_vline(x=1, line_color=p.text, line_width=1)
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    return frame(
        figure, p, 60 + 24 * max(len(table), 3), xaxis_type="log", xaxis_tickvals=ticks,
        xaxis_ticktext=[f"× {tick:g}" for tick in ticks], yaxis_automargin=True,
    )  # fmt: skip


def agreement(table: pd.DataFrame, p: Palette) -> go.Figure:
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
    return frame(
        figure, p, 360, xaxis_title="alone (only the order counts)", xaxis_zeroline=False,
        yaxis_title="measured: score with it, less without it", yaxis_zeroline=False,
    )  # fmt: skip


def siblings(table: pd.DataFrame, p: Palette, expert: int, band: tuple[float, float], line: str) -> go.Figure:
    """Draw the load of everybody in one row or column, with what luck alone would give each."""
    ramp = p.warm if line == "row" else p.cool
    other = "column" if line == "row" else "row"
    own = table["expert"] == expert
    figure = go.Figure(
        go.Bar(
            x=table[other], y=table["load"], customdata=table[["expert", "cosine", "status"]],
            marker_color=ramp[1], marker_line_color=p.text, marker_line_width=own.map({True: 3, False: 0}),
            hovertemplate="<b>expert %{customdata[0]}</b>: %{y} people, %{customdata[2]}<br>cosine %{customdata[1]:.2f}"
            "<extra></extra>", **STEADY,
        )
    )  # fmt: skip
    figure.add_hrect(y0=band[0], y1=band[1], fillcolor=p.muted, opacity=0.22, line_width=0)
    at = table[own].iloc[0]
    figure.add_annotation(x=at[other], y=at["load"], text=f"<b>{expert}</b>", ay=-20, ax=0, arrowcolor=p.text)
    return frame(
        figure, p, 260, xaxis_title=other, xaxis_dtick=max(1, len(table) // 16), yaxis_title="people", yaxis_rangemode="tozero",
        clickmode="event+select",
    )  # fmt: skip


def effects(table: pd.DataFrame, p: Palette) -> go.Figure:
    """Draw the change of NDCG@10 with its interval for each thing that was done; left of 0 = the list got worse."""
    ordered = table.iloc[::-1]
    figure = go.Figure(
        go.Scatter(
            x=ordered["d_ndcg"], y=ordered["name"], mode="markers", customdata=ordered[["low", "high", "n"]],
            error_x=whiskers(ordered, "d_ndcg", type="data", symmetric=False, color=p.text, thickness=2),
            marker_size=12, marker_color=p.categories[0],
            hovertemplate="%{y}<br>%{x:+.4f} (%{customdata[0]:+.4f} to %{customdata[1]:+.4f}), n = %{customdata[2]}"
            "<extra></extra>",
        )
    )  # fmt: skip
    figure.add_vline(x=0, line_color=p.text, line_width=1)
    return frame(
        figure, p, 210, xaxis_title="← worse · NDCG@10 · better →", xaxis_tickformat="+.3f", xaxis_zeroline=False,
        xaxis_nticks=4, yaxis_automargin=True,
    )  # fmt: skip


def epochs(table: pd.DataFrame, p: Palette, expert: int, band: tuple[float, float]) -> go.Figure:
    """Draw the load after every epoch, with the band of luck alone."""
    figure = go.Figure()
    figure.add_hrect(y0=band[0], y1=band[1], fillcolor=p.muted, opacity=0.22, line_width=0)
    figure.add_scatter(
        x=table["epoch"], y=table["load"], mode="lines+markers", line_color=p.categories[0], line_width=3,
        name=f"expert {expert}",
        hovertemplate="epoch %{x}: %{y} people<extra></extra>",
    )  # fmt: skip
    return frame(figure, p, 300, xaxis_title="epoch", yaxis_title="people (validation)", yaxis_rangemode="tozero")


def spread(table: pd.DataFrame, p: Palette) -> go.Figure:
    """Draw one codebook: a person's share on each word as bars, everybody's as marks."""
    figure = go.Figure()
    figure.add_bar(
        x=table["word"], y=table["person"], name="this history", marker_color=p.picked,
        hovertemplate="word %{x}: %{y:.1%}<extra>this history</extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=table["word"], y=table["everybody"], name="everybody’s events", mode="markers",
        marker_symbol="line-ew", marker_size=14, marker_line_width=2, marker_line_color=p.text,
        hovertemplate="word %{x}: %{y:.1%}<extra>everybody</extra>",
    )  # fmt: skip
    return frame(
        figure, p, 300, legend=True, xaxis_title="word of the codebook", xaxis_showgrid=False, yaxis_title="share of events",
        yaxis_tickformat=".0%", yaxis_rangemode="tozero",
    )  # fmt: skip


def looks(table: pd.DataFrame, even: float, p: Palette) -> go.Figure:
    """Draw the last events, oldest left: above how much of the reading each gets, below what its removal changes."""
    known = bool(table["attention"].notna().any())
    figure = make_subplots(1 + known, 1, shared_xaxes=True, vertical_spacing=0.07)
    above, below = {"row": 1, "col": 1}, {"row": 1 + known, "col": 1}
    table = table.assign(name=[safe(f"{row.position}. {split_year(row.title)[0]}") for row in table.itertuples()])
    if known:
        figure.add_bar(
            x=table["position"], y=table["attention"], name="weight", marker_color=p.muted, customdata=table["name"],
            hovertemplate="%{customdata}<br>%{y:.2%} of the reading<extra></extra>", **above,
        )  # fmt: skip
        if table["usual"].notna().any():
            figure.add_scatter(
                x=table["position"], y=table["usual"], name="others’ mean weight", mode="lines", line_color=p.picked,
                line_width=2, hovertemplate="people of like length: %{y:.2%}<extra></extra>", **above,
            )  # fmt: skip
        figure.add_hline(y=even, line_color=p.text, line_width=1, line_dash="dot", **above)
        figure.update_yaxes(title="weight", tickformat=".1%", rangemode="tozero", **above)
    likelier = table["change"] >= 0
    for name, rows, colour in (
        ("makes it likelier", table[likelier], p.warm[1]), ("makes it less likely", table[~likelier], p.cool[1]),
    ):  # fmt: skip
        figure.add_bar(
            x=rows["position"], y=rows["change"], width=0.85, name=name, marker_color=colour, customdata=rows[["name", "times"]],
            hovertemplate="%{customdata[0]}<br>having it: ×%{customdata[1]:.2f}<extra></extra>", **below,
        )  # fmt: skip
    figure.update_yaxes(title="effect (log-chance)", zerolinecolor=p.muted, **below)
    figure.update_xaxes(showgrid=False)
    figure.update_xaxes(title="event, the latest right", **below)
    figure.update_layout(bargap=0.15, barmode="overlay")
    return frame(figure, p, 420 if known else 280, legend=True)


def intensities(table: pd.DataFrame, p: Palette) -> go.Figure:
    """Draw lines over events, one a kind; dotted where every intensity would be even."""
    figure = go.Figure()
    for i, (mark, rows) in enumerate(table.groupby("mark", sort=False)):
        names = [safe(split_year(title)[0]) for title in rows["title"]]
        colour = p.category(i)
        figure.add_scatter(
            x=rows["event"], y=rows["intensity"], name=safe(str(mark)), mode="lines", line_color=colour, line_width=2,
            customdata=names, hovertemplate="after %{x}. %{customdata}: %{y:.2f}<extra>" + safe(str(mark)) + "</extra>",
        )  # fmt: skip
    figure.add_hline(y=1, line_color=p.text, line_width=1.5, line_dash="dot")
    return frame(
        figure, p, 360, legend=True, xaxis_title="event, the latest right", xaxis_showgrid=False,
        yaxis_title="intensity (1: constant)", yaxis_rangemode="tozero",
    )  # fmt: skip
