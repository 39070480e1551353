"""Figures of the Traffic page. Pure: tables in, plotly figures out. Marks carry the expert's number in `customdata`."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from elastic_core.text import figure as safe
from pages.kit import busy
from pages.kit.plot import Palette

MOST = 16_000  # marks in one chart that answers clicks

LAYOUT = {
    "margin": {"l": 8, "r": 8, "t": 28, "b": 8}, "dragmode": False, "clickmode": "event+select", "hovermode": "closest",
    "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
}  # fmt: skip


def load_bars(
    table: pd.DataFrame, each: tuple[float, float], limits: np.ndarray, even: float, colours: Palette, *,
    ordered: bool, selected: int | None, unit: str, top: float | None = None,
) -> go.Figure:  # fmt: skip
    """Load per expert (Figure 4, left), by number or the hottest first, with the band of random experts behind it."""
    shown = table.sort_values("load", ascending=False, kind="stable").reset_index(drop=True) if ordered else table
    step = -(-len(shown) // 4096)
    shown = shown.assign(x=np.arange(len(shown)) + int(ordered)).iloc[::step]
    figure = go.Figure()
    x = np.arange(1, limits.shape[1] + 1, step) if ordered else np.array([-0.5, len(table) - 0.5])
    low, high = (limits[0, ::step], limits[1, ::step]) if ordered else (np.full(2, each[0]), np.full(2, each[1]))
    band = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "x": x}
    figure.add_scatter(**band, y=high, showlegend=False)
    figure.add_scatter(**band, y=low, fill="tonexty", fillcolor=_faint(colours), name="random experts, 95%")
    for state in ("hot", "usual", "cold"):
        part = shown[shown["state"] == state]
        line = {"width": np.where(part["expert"] == selected, 3, 0), "color": colours.picked}
        figure.add_bar(
            x=part["x"], y=part["load"], name=busy.WORDS[state], marker={"color": busy.colour(state, colours), "line": line},
            width=0.9 * step, customdata=_details(part), hovertemplate=_hover(unit), unselected={"marker": {"opacity": 1}},
        )  # fmt: skip
    dead = shown[shown["state"] == "dead"]
    if len(dead):
        figure.add_scatter(
            x=dead["x"], y=np.zeros(len(dead)), mode="markers", name=busy.WORDS["dead"], customdata=_details(dead),
            marker={"symbol": "x", "size": 7, "color": colours.text}, hovertemplate=_hover(unit),
            unselected={"marker": {"opacity": 1}}, cliponaxis=False,
        )  # fmt: skip
    figure.add_hline(y=even, line={"color": colours.text, "width": 1, "dash": "dot"})
    chosen = shown[shown["expert"] == selected]
    if len(chosen):
        at = chosen.iloc[0]
        figure.add_annotation(x=at["x"], y=at["load"], text=f"<b>{selected}</b>", ay=-22, ax=0, arrowcolor=colours.picked)
    figure.update_layout(LAYOUT, height=330, barmode="overlay", bargap=0, uirevision="load")
    figure.update_xaxes(title="experts, the hottest first" if ordered else "expert", showgrid=False, fixedrange=True)
    figure.update_yaxes(title=unit, rangemode="tozero", fixedrange=True, range=[0, top * 1.08] if top else None)
    return figure


def grid(
    table: pd.DataFrame, sides: pd.DataFrame, line: tuple[float, float], colours: Palette, selected: int | None, unit: str
) -> go.Figure:
    """All experts as squares coloured by load, × where dead; the load of each column above, of each row at the right."""
    side = int(table["row"].max()) + 1
    figure = make_subplots(
        2, 2, shared_xaxes=True, shared_yaxes=True, column_widths=[0.8, 0.2], row_heights=[0.2, 0.8],
        horizontal_spacing=0.015, vertical_spacing=0.015,
    )  # fmt: skip
    stops = [[i / (len(colours.load) - 1), shade] for i, shade in enumerate(colours.load)]
    figure.add_heatmap(
        z=table["load"].to_numpy().reshape(side, side), colorscale=stops, zmin=0, showscale=False, xgap=1, ygap=1,
        hoverinfo="skip", row=2, col=1,
    )  # fmt: skip
    if side * side <= MOST:
        text = np.where(table["state"] == "dead", "×", "")
        figure.add_scatter(
            x=table["column"], y=table["row"], mode="markers+text", text=text, customdata=_details(table), row=2, col=1,
            marker={"symbol": "square", "size": max(220 / side, 4), "color": "rgba(0,0,0,0)"}, textfont={"color": colours.text},
            selected={"marker": {"opacity": 0}}, unselected={"marker": {"opacity": 0}, "textfont": {"color": colours.text}},
            hovertemplate="row %{y}, column %{x}<br>" + _hover(unit),
        )  # fmt: skip
    for half, place in (("column", {"row": 1, "col": 1}), ("row", {"row": 2, "col": 2})):
        part = sides[sides["half"] == half]
        shades = [busy.colour(state, colours) for state in part["state"]]
        axes = (
            {"x": part["key"], "y": part["load"]}
            if half == "column"
            else {"y": part["key"], "x": part["load"], "orientation": "h"}
        )
        text = f"<b>{half} %{{{'x' if half == 'column' else 'y'}}}</b><br>%{{{'y' if half == 'column' else 'x'}:.0f}} {unit}"
        figure.add_bar(
            **axes, marker={"color": shades}, customdata=np.stack([part["dead"], part["state"].map(busy.WORDS)], axis=1),
            hovertemplate=text + "<br>%{customdata[0]} dead experts<br>%{customdata[1]}<extra></extra>",
            selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": 1}}, **place,
        )  # fmt: skip
    band = {"fillcolor": _faint(colours), "line": {"width": 0}, "layer": "below"}
    figure.add_hrect(y0=line[0], y1=line[1], row=1, col=1, **band)
    figure.add_vrect(x0=line[0], x1=line[1], row=2, col=2, **band)
    if selected is not None and selected < side * side:
        y, x = divmod(selected, side)
        ring = {"color": colours.picked, "width": 3}
        figure.add_shape(type="rect", x0=x - 0.5, x1=x + 0.5, y0=y - 0.5, y1=y + 0.5, line=ring, row=2, col=1)
    figure.update_layout(LAYOUT, height=430, margin_t=8, showlegend=False, uirevision="grid", bargap=0.15)
    figure.update_xaxes(showgrid=False, zeroline=False, fixedrange=True, nticks=9)
    figure.update_yaxes(showgrid=False, zeroline=False, fixedrange=True, nticks=9)
    figure.update_xaxes(title="column", range=[-0.5, side - 0.5], row=2, col=1)
    figure.update_yaxes(title="row", range=[side - 0.5, -0.5], row=2, col=1)
    figure.update_xaxes(showticklabels=False, row=2, col=2)
    figure.update_yaxes(showticklabels=False, row=1, col=1)
    return figure


def stripes(shares: pd.DataFrame, chance: float, colours: Palette, selected: int | None) -> go.Figure:
    """Figure 4, right: the share of each batch's traffic that the busiest experts carry, as stripes."""
    figure = go.Figure()
    for i, expert in enumerate(dict.fromkeys(shares["expert"])):
        part = shares[shares["expert"] == expert]
        edge = {"width": 2.5 if expert == selected else 0.5, "color": colours.picked if expert == selected else colours.ground}
        figure.add_bar(
            x=part["batch"], y=part["share"], name=str(expert), customdata=[[int(expert)]] * len(part),
            marker={"color": colours.categories[i % len(colours.categories)], "line": edge},
            hovertemplate=f"<b>expert {expert}</b><br>%{{y:.1%}} of group %{{x}}<extra></extra>",
            selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": 1}},
        )  # fmt: skip
    figure.add_hline(y=chance, line={"color": colours.text, "width": 1.5, "dash": "dash"})
    figure.update_layout(LAYOUT, height=330, barmode="stack", bargap=0.08, uirevision="stripes", legend_traceorder="normal")
    figure.update_xaxes(title="group of people", dtick=1, showgrid=False, fixedrange=True)
    figure.update_yaxes(title="share of the traffic", tickformat=".0%", rangemode="tozero", fixedrange=True)
    return figure


def lorenz(curves: dict[str, pd.DataFrame], chance: np.ndarray, colours: Palette) -> go.Figure:
    """Lorenz curves of one or two runs, of random experts, and the diagonal of perfect evenness."""
    size = len(chance)
    figure = go.Figure()
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", name="perfectly even", line={"color": colours.line, "width": 1.5})
    at = np.unique(np.linspace(0, size, 257).round().astype(int))
    below = 1 - np.concatenate([[0.0], chance])[at]
    random = {"color": colours.muted, "width": 2, "dash": "dash"}
    figure.add_scatter(x=1 - at / size, y=below, mode="lines", name="random experts", line=random)
    for i, (name, curve) in enumerate(curves.items()):
        line = {"color": colours.categories[(0, 4)[i]], "width": 3, "dash": ("solid", "dot")[i]}
        figure.add_scatter(
            x=curve["experts"], y=curve["traffic"], mode="lines", name=safe(name), line=line,
            hovertemplate="the least used %{x:.0%} of experts<br>carry %{y:.1%} of the traffic<extra></extra>",
        )  # fmt: skip
    figure.update_layout(LAYOUT, height=360, uirevision="lorenz")
    figure.update_xaxes(
        title="part of the experts, the least used first", tickformat=".0%", range=[0, 1], dtick=0.25, fixedrange=True
    )
    figure.update_yaxes(title="share of the traffic", tickformat=".0%", range=[0, 1], dtick=0.25, fixedrange=True)
    return figure


def _details(part: pd.DataFrame) -> np.ndarray:
    return np.stack([part["expert"], part["load"].round(1), part["times"].round(2), part["state"].map(busy.WORDS)], axis=1)


def _hover(unit: str) -> str:
    lines = ("<b>expert %{customdata[0]}</b>", f"%{{customdata[1]}} {unit}", "%{customdata[2]} × equal use", "%{customdata[3]}")
    return "<br>".join(lines) + "<extra></extra>"


def _faint(colours: Palette) -> str:
    red, green, blue = (int(colours.muted[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.25)"
