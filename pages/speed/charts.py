"""Figures of the Speed page. Pure: tables in, plotly figures out. A system has the same colour, symbol and dash everywhere."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from elastic_core.services.speed.curves import Fit, round_length
from elastic_core.text import escape_plotly as safe
from pages.components.plot import Palette, error_bars

SYSTEMS = ("elastic", "sasrec-fused", "sasrec-eager", "elastic-two-way")  # the others follow in the order of the table
COLOURS = (0, 4, 1, 5, 2, 3, 6, 7)  # of the palette's categories, in the order of systems
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x", "star", "cross", "hexagon")
# What is drawn of one new event: name, dash, and the symbol of what keeps ELASTIC's state (drawn in the colour of text).
EVENT_LINES = {
    "elastic-event": ("ELASTIC, kept state, refresh included", "solid", "star"),
    "sasrec-fused-stream": ("SASRec, kept keys and values", "solid", ""),
    "elastic-stream": ("ELASTIC, one step alone", "dot", "triangle-up"),
    "elastic-refresh": ("ELASTIC, one refresh alone", "dashdot", "triangle-down"),
    "elastic": ("ELASTIC, reading again", "dash", ""),
    "sasrec-fused": ("SASRec, reading again", "dash", ""),
    "sasrec-eager": ("SASRec storing N × N, reading again", "dash", ""),
}
LAYOUT = {
    "margin": {"l": 8, "r": 8, "t": 30, "b": 8}, "dragmode": False, "hovermode": "closest", "height": 330,
    "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},  # below, it lies on the axis title of a narrow screen
    "xaxis": {"fixedrange": True}, "yaxis": {"fixedrange": True},
}  # fmt: skip


def draw_curves(
    table: pd.DataFrame,
    fits: Mapping[str, Fit],
    colours: Palette,
    column: str,
    title: str,
    crossings: Sequence[float] = (),
    at: int | None = None,
) -> go.Figure:
    """Time or memory per history against N, both logarithmic; quartiles as a line, fits dotted over their range, and a wide line
    where N is `at`."""
    figure = go.Figure()
    for system in _in_order(table["system"]):
        rows = table[table["system"] == system].sort_values("length")
        colour, symbol = style_of_system(system, table["system"], colours)
        figure.add_scatter(
            x=rows["length"], y=rows[column], mode="markers+lines", name=safe(rows["label"].iloc[0]),
            error_y=error_bars(rows, "ms", width=3, thickness=1) if column == "ms" and "low" in rows else None,
            line_color=colour, line_width=1.5, marker_color=colour, marker_size=8, marker_symbol=symbol,
            hovertemplate=f"<b>%{{fullData.name}}</b><br>N = %{{x:,}}<br>%{{y:.3g}} {title.split(',')[0]}<extra></extra>",
        )  # fmt: skip
        if system in fits:
            first = not any(trace.name == "fitted line" for trace in figure.data)  # one entry in the legend for all
            _add_fit(figure, fits[system], colour, first)
    if at is not None:
        figure.add_vline(x=at, line_color=colours.picked, line_width=3, opacity=0.35)
    for length in crossings:
        figure.add_vline(x=length, line_color=colours.text, line_width=1, line_dash="dash")
        side, shift = ("right", -4) if at is not None and at >= length else ("left", 4)  # away from the line at N
        figure.add_annotation(
            x=np.log10(length), y=1, yref="paper", yanchor="top", xanchor=side, showarrow=False,
            text=f"ELASTIC = SASRec<br>N ≈ {round_length(length):,.0f}",
            font_size=11, font_color=colours.muted, align=side, xshift=shift,
        )  # fmt: skip
    return _with_logarithmic_axes(figure, sorted(set(table["length"])), title)


def _add_fit(figure: go.Figure, fit: Fit, colour: str, first: bool) -> None:
    x = np.geomspace(fit.start, fit.end, 8)
    figure.add_scatter(
        x=x, y=[fit.predict(n) for n in x], mode="lines", hoverinfo="skip", showlegend=first, name="fitted line",
        line_color=colour, line_width=5, line_dash="dot", opacity=0.35,
    )  # fmt: skip


def draw_new_events(table: pd.DataFrame, colours: Palette) -> go.Figure:
    """Milliseconds until the state is there after one new event, against the length of the history so far."""
    figure = go.Figure()
    for system, (name, dash, state_symbol) in EVENT_LINES.items():
        rows = table[table["system"] == system].sort_values("length")
        if rows.empty:
            continue
        colour, symbol = style_of_system(system.removesuffix("-stream"), table["system"], colours)
        if state_symbol:
            colour, symbol = colours.text, state_symbol
        figure.add_scatter(
            x=rows["length"], y=rows["ms"], mode="markers+lines", name=name, line_color=colour, line_width=2, line_dash=dash,
            marker_color=colour, marker_size=10 if state_symbol else 8, marker_symbol=symbol,
            error_y=error_bars(rows, "ms", width=3, thickness=1),
            hovertemplate="<b>%{fullData.name}</b><br>N = %{x:,}<br>%{y:.3g} ms per person<extra></extra>",
        )  # fmt: skip
    return _with_logarithmic_axes(figure, sorted(set(table["length"])), "ms per person and new event")


def style_of_system(system: str, present: Sequence[str] | pd.Series, colours: Palette) -> tuple[str, str]:
    """Colour and symbol of a system."""
    others = [name for name in _in_order(present) if name not in SYSTEMS]
    place = SYSTEMS.index(system) if system in SYSTEMS else len(SYSTEMS) + others.index(system)
    return colours.category_colour(COLOURS[place % len(COLOURS)]), SYMBOLS[place % len(SYMBOLS)]


def _in_order(present: Sequence[str] | pd.Series) -> list[str]:
    return [name for name in SYSTEMS if name in set(present)] + sorted(set(present) - set(SYSTEMS))


def _with_logarithmic_axes(figure: go.Figure, lengths: Sequence[int], title: str) -> go.Figure:
    powers = [n for n in lengths if n & (n - 1) == 0] or list(lengths)
    ticks = powers[:: -(-len(powers) // 5)]  # five at most
    return figure.update_layout(LAYOUT).update_layout(
        xaxis_type="log", xaxis_title="history length N", xaxis_tickvals=ticks, xaxis_ticktext=[f"{n:,}" for n in ticks],
        xaxis_tickangle=0, yaxis_type="log", yaxis_title=title, yaxis_exponentformat="SI", yaxis_dtick=1,
    )  # fmt: skip
