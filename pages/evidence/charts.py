"""Figures of two runs. Pure: tables in, plotly figures out. Marks of people carry their number in `customdata`."""

import textwrap

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from elastic_core.text import figure as safe
from pages.kit.forest import LAYOUT
from pages.kit.plot import Palette
from pages.kit.sketch import Sketch

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "x")


def duel(counts: dict[str, int], colours: Palette, sides: tuple[str, str]) -> go.Figure:
    """One bar: whose list has the true next item higher. `sides`: what A and B are called."""
    figure, total = go.Figure(), max(sum(counts.values()), 1)
    parts = (("a", sides[0], colours.cool[1]), ("same", "same", colours.line), ("b", sides[1], colours.warm[1]))
    for key, called, tone in parts:
        name = safe(called) if key == "same" else f"{safe(called)} higher"
        ink = colours.text if key == "same" else colours.ground
        figure.add_bar(
            x=[counts[key]], y=[""], orientation="h", name=name, marker_color=tone,
            text=f"<b>{'<br>'.join(textwrap.wrap(name, 28))}</b><br>{counts[key]:,}" if counts[key] > 0.1 * total else "",
            textposition="inside", insidetextanchor="middle", textangle=0,
            textfont_color=ink, textfont_size=13, constraintext="none", hovertemplate=f"{name}: %{{x:,}} people<extra></extra>",
        )  # fmt: skip
    return figure.update_layout(
        LAYOUT, barmode="stack", height=100, bargap=0, xaxis_visible=False, xaxis_range=[0, total], yaxis_visible=False
    )


def places(table: pd.DataFrame, colours: Palette, chosen: int | None, sides: tuple[str, str]) -> Sketch:
    """Everybody's place of the true next item with A and with B, both axes logarithmic; below the diagonal A is better."""
    figure, (a, b) = Sketch(), map(safe, sides)
    last = float(max(table["place_a"].max(), table["place_b"].max(), 10))
    figure.add_scatter(
        x=[1, last], y=[1, last], mode="lines", hoverinfo="skip", line_color=colours.muted, line_width=1, line_dash="dot"
    )
    figure.add_vrect(x0=0.8, x1=10.5, fillcolor=colours.warm[1], opacity=0.07, line_width=0, layer="below")
    figure.add_hrect(y0=0.8, y1=10.5, fillcolor=colours.cool[1], opacity=0.07, line_width=0, layer="below")
    better = table["place_a"] < table["place_b"]
    tone = np.where(better, colours.cool[1], np.where(table["place_a"] > table["place_b"], colours.warm[1], colours.muted))
    figure.add_scatter(
        x=table["place_b"], y=table["place_a"], mode="markers",
        customdata=np.column_stack([table["user"], table["title"].map(safe), table["user"] + 1]),
        marker_size=7, marker_color=tone, marker_opacity=0.65, marker_symbol=np.where(better, "circle", "diamond"),
        unselected_marker_opacity=0.65,
        hovertemplate="<b>Person %{customdata[2]}</b><br>%{customdata[1]}<br>place %{y:,.0f} with " + a + "<br>"
        "place %{x:,.0f} with " + b + "<extra></extra>",
    )  # fmt: skip
    mine = table[table["user"] == chosen]
    if len(mine):
        x, y = float(mine["place_b"].iloc[0]), float(mine["place_a"].iloc[0])
        figure.add_scatter(
            x=[x], y=[y], mode="markers", hoverinfo="skip",
            marker_size=14, marker_color="rgba(0,0,0,0)", marker_line_color=colours.text, marker_line_width=2,
        )  # fmt: skip
        figure.add_annotation(  # towards the middle, where there is room for it
            x=np.log10(x), y=np.log10(y), text=f"person {chosen + 1}", font_color=colours.text, bgcolor=colours.ground,
            bordercolor=colours.text, arrowcolor=colours.text, ax=58 if x * x < last else -58, ay=-28 if y * y < last else 28,
        )  # fmt: skip
    figure.update_layout(LAYOUT, height=430, clickmode="event+select", uirevision="places")
    axis = {
        "type": "log",
        "range": [np.log10(0.8), np.log10(last * 1.25)],
        "tickvals": [1, 3, 10, 30, 100, 300, 1000, 3000],
    }
    figure.update_xaxes(axis, title_text=f"place with {b}")
    figure.update_yaxes(axis, title_text=f"place with {a}")
    return figure


def tradeoff(table: pd.DataFrame, colours: Palette, x: str, y: str, names: dict[str, str], marked: dict[str, str]) -> go.Figure:
    """Any two quantities of the runs; the bubble's area is the number of parameters, the symbol the system."""
    shown = table[table[x].notna() & table[y].notna()]
    most = max(float(shown["parameters"].max()) if len(shown) else 1.0, 1.0)
    systems = list(dict.fromkeys(table["system"]))
    figure = go.Figure()
    for i, system in enumerate(systems):
        rows = shown[shown["system"] == system]
        if rows.empty:
            continue
        size = 10 + 34 * np.sqrt(rows["parameters"].fillna(0) / most)
        errors = {"array": rows[f"{y} ±"], "thickness": 1, "width": 3} if f"{y} ±" in rows else None
        figure.add_scatter(
            x=rows[x], y=rows[y], mode="markers+text", name=safe(system), error_y=errors,
            text=["<br>".join(textwrap.wrap(safe(marked.get(run, "")), 24)) for run in rows["run"]],
            textposition="top center", textfont_color=colours.text, cliponaxis=False,
            marker_size=size, marker_color=colours.category(i), marker_opacity=0.8,
            marker_symbol=SYMBOLS[(i + i // len(colours.categories)) % len(SYMBOLS)],
            marker_line_color=colours.text, marker_line_width=1,
            customdata=rows[["run", "parameters", "device"]].assign(run=rows["run"].map(safe), device=rows["device"].map(safe)),
            hovertemplate="<b>%{customdata[0]}</b><br>%{y:.4g} against %{x:.4g}<br>%{customdata[1]:,} parameters<br>"
            "%{customdata[2]}<extra></extra>",
        )  # fmt: skip
    wide = {q for q in (x, y) if len(shown) and shown[q].min() > 0 and shown[q].max() / shown[q].min() > 50}
    legend = {"orientation": "h", "y": -0.2, "x": 0, "itemsizing": "constant"}
    return figure.update_layout(
        LAYOUT, margin_t=44, height=600, showlegend=True, legend=legend, xaxis_title=names[x],
        xaxis_type="log" if x in wide else "linear", yaxis_title=names[y], yaxis_type="log" if y in wide else "linear",
    )  # fmt: skip
