"""Figures of the Experts page for runs without experts. Pure: tables to plotly figures."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from elastic_core.services.person.inspect import split_year
from elastic_core.text import figure as safe
from pages.kit.plot import Palette, frame


def spread(table: pd.DataFrame, p: Palette) -> go.Figure:
    """One codebook: a person's share on each word as bars, everybody's as marks."""
    figure = go.Figure()
    figure.add_bar(
        x=table["word"], y=table["person"], name="this history", marker={"color": p.picked},
        hovertemplate="word %{x}: %{y:.1%}<extra>this history</extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=table["word"], y=table["everybody"], name="everybody’s events", mode="markers",
        marker={"symbol": "line-ew", "size": 14, "line": {"width": 2, "color": p.text}},
        hovertemplate="word %{x}: %{y:.1%}<extra>everybody</extra>",
    )  # fmt: skip
    figure.update_xaxes(title="word of the codebook", showgrid=False, fixedrange=True)
    figure.update_yaxes(title="share of events", tickformat=".0%", rangemode="tozero", fixedrange=True)
    return frame(figure, p, 300, legend=True)


def looks(table: pd.DataFrame, even: float, usual: np.ndarray, p: Palette) -> go.Figure:
    """The last events, oldest left: above how much of the reading each gets, below what its removal changes."""
    known = bool(table["attention"].notna().any())
    figure = make_subplots(1 + known, 1, shared_xaxes=True, vertical_spacing=0.07)
    names = [safe(f"{row.position}. {split_year(row.title)[0]}") for row in table.itertuples()]
    x = table["position"]
    if known:
        figure.add_bar(
            x=x, y=table["attention"], name="weight", marker={"color": p.muted}, customdata=names, row=1, col=1,
            hovertemplate="%{customdata}<br>%{y:.2%} of the reading<extra></extra>",
        )  # fmt: skip
        if np.isfinite(usual).any():
            figure.add_scatter(
                x=x, y=usual, name="others’ mean weight", mode="lines", line={"color": p.picked, "width": 2}, row=1, col=1,
                hovertemplate="people of like length: %{y:.2%}<extra></extra>",
            )  # fmt: skip
        figure.add_hline(y=even, line={"color": p.text, "width": 1, "dash": "dot"}, row=1, col=1)
        figure.update_yaxes(title="weight", tickformat=".1%", rangemode="tozero", fixedrange=True, row=1, col=1)
    for name, part, colour in (
        ("makes it likelier", table["change"] >= 0, p.warm[1]),
        ("makes it less likely", table["change"] < 0, p.cool[1]),
    ):
        rows = table[part]
        figure.add_bar(
            x=rows["position"], y=rows["change"], width=0.85, name=name, marker={"color": colour}, row=1 + known, col=1,
            customdata=[[n, t] for n, t in zip(np.array(names, dtype=object)[part.to_numpy()], rows["times"], strict=True)],
            hovertemplate="%{customdata[0]}<br>having it: ×%{customdata[1]:.2f}<extra></extra>",
        )  # fmt: skip
    figure.update_yaxes(title="effect (log-chance)", zerolinecolor=p.muted, fixedrange=True, row=1 + known, col=1)
    figure.update_xaxes(showgrid=False, fixedrange=True)
    figure.update_xaxes(title="event, the latest right", row=1 + known, col=1)
    figure.update_layout(bargap=0.15, barmode="overlay")
    return frame(figure, p, 420 if known else 280, legend=True)


def intensities(table: pd.DataFrame, p: Palette) -> go.Figure:
    """Lines over events, one a kind; dotted where every intensity would be even."""
    figure = go.Figure()
    for i, (mark, rows) in enumerate(table.groupby("mark", sort=False)):
        names = [safe(split_year(title)[0]) for title in rows["title"]]
        colour = p.categories[i % len(p.categories)]
        figure.add_scatter(
            x=rows["event"], y=rows["intensity"], name=safe(str(mark)), mode="lines", line={"color": colour, "width": 2},
            customdata=names, hovertemplate="after %{x}. %{customdata}: %{y:.2f}<extra>" + safe(str(mark)) + "</extra>",
        )  # fmt: skip
    figure.add_hline(y=1, line={"color": p.text, "width": 1.5, "dash": "dot"})
    figure.update_xaxes(title="event, the latest right", showgrid=False, fixedrange=True)
    figure.update_yaxes(title="intensity (1: constant)", rangemode="tozero", fixedrange=True)
    return frame(figure, p, 360, legend=True)
