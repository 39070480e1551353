"""Figures of the Speed page. Pure: tables in, plotly figures out. A system has the same colour, symbol and dash everywhere."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from elastic_core.services.speed.curves import Fit, rounded
from elastic_core.text import figure as safe
from pages.kit.plot import Palette, whiskers

SYSTEMS = ("elastic", "sasrec-fused", "sasrec-eager", "elastic-two-way")  # the others follow in the order of the table
KEPT = {"elastic-event": "star", "elastic-stream": "triangle-up", "elastic-refresh": "triangle-down"}  # mark of a kept state
DASHES = {
    "elastic-stream": "dot", "elastic-refresh": "dashdot", "elastic": "dash", "sasrec-fused": "dash", "sasrec-eager": "dash",
}  # fmt: skip
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x", "star", "cross", "hexagon")
NAMES = {
    "elastic-event": "ELASTIC, kept state, refresh included",
    "sasrec-fused-stream": "SASRec, kept keys and values",
    "elastic-stream": "ELASTIC, one step alone",
    "elastic-refresh": "ELASTIC, one refresh alone",
    "elastic": "ELASTIC, reading again",
    "sasrec-fused": "SASRec, reading again",
    "sasrec-eager": "SASRec storing N × N, reading again",
}
LAYOUT = {
    "margin": {"l": 8, "r": 8, "t": 30, "b": 8}, "dragmode": False, "hovermode": "closest",
    "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},  # below, it lies on the axis title of a narrow screen
    "xaxis": {"fixedrange": True}, "yaxis": {"fixedrange": True},
}  # fmt: skip


def curves(
    table: pd.DataFrame, fits: dict[str, Fit], colours: Palette, column: str, title: str, crossings: Sequence[float] = ()
) -> go.Figure:
    """Time or memory per history against N, both logarithmic; quartiles as a line, fits dotted over their range."""
    figure, unnamed = go.Figure(), True
    for system in _ordered(table["system"]):
        rows = table[table["system"] == system].sort_values("length")
        tone, symbol = style(system, table["system"], colours)
        spread = None
        if column == "ms" and "low" in rows:
            spread = whiskers(rows, "ms", width=3, thickness=1)
        figure.add_scatter(
            x=rows["length"], y=rows[column], mode="markers+lines", name=safe(rows["label"].iloc[0]), error_y=spread,
            line_color=tone, line_width=1.5, marker_color=tone, marker_size=8, marker_symbol=symbol,
            hovertemplate=f"<b>%{{fullData.name}}</b><br>N = %{{x:,}}<br>%{{y:.3g}} {title.split(',')[0]}<extra></extra>",
        )  # fmt: skip
        if system in fits:
            found = fits[system]
            x = np.geomspace(found.start, found.end, 8)
            figure.add_scatter(
                x=x, y=[found.at(n) for n in x], mode="lines", hoverinfo="skip", showlegend=unnamed, name="fitted line",
                line_color=tone, line_width=5, line_dash="dot", opacity=0.35,
            )  # fmt: skip
            unnamed = False
    for length in crossings:
        figure.add_vline(x=length, line_color=colours.text, line_width=1, line_dash="dash")
        figure.add_annotation(
            x=np.log10(length), y=1, yref="paper", yanchor="top", xanchor="left", showarrow=False,
            text=f"ELASTIC = SASRec<br>N ≈ {rounded(length):,.0f}",
            font_size=11, font_color=colours.muted, align="left", xshift=4,
        )  # fmt: skip
    return _logs(figure, sorted(set(table["length"])), title)


def events(table: pd.DataFrame, colours: Palette) -> go.Figure:
    """Milliseconds until the state is there after one new event, against the length of the history so far."""
    figure = go.Figure()
    for system in [name for name in NAMES if name in set(table["system"])]:
        rows = table[table["system"] == system].sort_values("length")
        kept = system in KEPT
        tone, symbol = style(system.removesuffix("-stream"), table["system"], colours)
        if kept:
            tone, symbol = colours.text, KEPT[system]
        figure.add_scatter(
            x=rows["length"], y=rows["ms"], mode="markers+lines", name=NAMES[system],
            line_color=tone, line_width=2, line_dash=DASHES.get(system, "solid"),
            marker_color=tone, marker_size=10 if kept else 8, marker_symbol=symbol,
            error_y=whiskers(rows, "ms", width=3, thickness=1),
            hovertemplate="<b>%{fullData.name}</b><br>N = %{x:,}<br>%{y:.3g} ms per person<extra></extra>",
        )  # fmt: skip
    return _logs(figure, sorted(set(table["length"])), "ms per person and new event")


def style(system: str, present: Sequence[str] | pd.Series, colours: Palette) -> tuple[str, str]:
    """Colour and symbol of a system."""
    others = [name for name in _ordered(present) if name not in SYSTEMS]
    place = SYSTEMS.index(system) if system in SYSTEMS else len(SYSTEMS) + others.index(system)
    colour = (0, 4, 1, 5, 2, 3, 6, 7)[place % 8]
    return colours.category(colour), SYMBOLS[place % len(SYMBOLS)]


def _ordered(present: Sequence[str] | pd.Series) -> list[str]:
    there = list(dict.fromkeys(present))
    return [name for name in SYSTEMS if name in there] + sorted(set(there) - set(SYSTEMS))


def _logs(figure: go.Figure, lengths: Sequence[int], title: str) -> go.Figure:
    figure.update_layout(LAYOUT, height=430)
    ticks = [n for n in lengths if n & (n - 1) == 0] or list(lengths)
    ticks = ticks[:: -(-len(ticks) // 5)]
    return figure.update_layout(
        xaxis_type="log", xaxis_title="history length N", xaxis_tickvals=ticks, xaxis_ticktext=[f"{n:,}" for n in ticks],
        xaxis_tickangle=0, yaxis_type="log", yaxis_title=title, yaxis_exponentformat="SI", yaxis_dtick=1,
    )  # fmt: skip
