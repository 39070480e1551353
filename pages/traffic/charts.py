"""Figures of the Traffic page. Pure: tables in, plotly figures out. Marks carry the expert's number in `customdata`."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pages.components.glossary import EXPERT_LOAD
from pages.components.plot import LAYOUT, STEADY, Palette, colour_scale

MOST = 16_000  # marks in one chart that answers clicks

CLICKED = LAYOUT | {"clickmode": "event+select"}


def draw_load_bars(
    table: pd.DataFrame, each: tuple[float, float], limits: np.ndarray, equal_load: float, colours: Palette, *,
    ordered: bool, selected: int | None, unit: str, top: float | None = None, own: tuple[str, tuple[int, ...]] = ("", ()),
) -> go.Figure:  # fmt: skip
    """Load per expert (Figure 4, left), by number or the hottest first, with the band of random experts behind it. `own`: whose
    experts are marked, and which."""
    bars = table.sort_values("load", ascending=False, kind="stable") if ordered else table
    step = -(-len(bars) // 4096)
    bars = bars.assign(x=np.arange(len(bars)) + int(ordered)).iloc[::step]
    figure = go.Figure()
    if ordered:
        _add_null_band(figure, bars["x"], *limits[:, ::step], "random experts, 95%", colours)
    else:
        _add_null_band(figure, [-0.5, len(table) - 0.5], *np.repeat([each], 2, axis=0).T, "random experts, 95%", colours)
    marks = {"hovertemplate": _hover_text(unit), "unselected_marker_opacity": 1}
    for state in ("hot", "usual", "cold"):
        part = bars[bars["state"] == state]
        is_chosen = part["expert"] == selected  # wider, so that its outline leaves its colour in sight
        figure.add_bar(
            x=part["x"], y=part["load"], name=EXPERT_LOAD[state], marker_color=_load_colour(state, colours),
            width=np.where(is_chosen, max(0.9 * step, len(table) / 80), 0.9 * step), marker_line_color=colours.text,
            marker_line_width=np.where(is_chosen, 1.5, 0),
            customdata=_hover_data(part), **marks,
        )  # fmt: skip
    dead = bars[bars["state"] == "dead"]
    if len(dead):
        figure.add_scatter(
            x=dead["x"], y=dead["load"], mode="markers", name=EXPERT_LOAD["dead"], customdata=_hover_data(dead), cliponaxis=False,
            marker_symbol="x", marker_size=7, marker_color=colours.text, **marks,
        )  # fmt: skip
    owner, own_experts = own
    marked = bars[bars["expert"].isin(own_experts)]
    if len(marked):
        figure.add_scatter(
            x=marked["x"], y=marked["load"], mode="markers", name=owner, customdata=_hover_data(marked), cliponaxis=False,
            marker_symbol="diamond", marker_size=9, marker_color=colours.ground, marker_line_color=colours.text,
            marker_line_width=1.5, **marks,
        )  # fmt: skip
    figure.add_hline(y=equal_load, line_color=colours.text, line_width=1, line_dash="dot")
    for at in bars[bars["expert"] == selected].itertuples():
        figure.add_annotation(x=at.x, y=at.load, text=f"<b>{selected}</b>", ay=-22, ax=0, arrowcolor=colours.text)
    return figure.update_layout(
        CLICKED, height=330, barmode="overlay", bargap=0, uirevision="load",
        xaxis_title="experts, the hottest first" if ordered else "expert", xaxis_showgrid=False, yaxis_title=unit,
        yaxis_rangemode="tozero", yaxis_range=[0, top * 1.08] if top else None,
    )  # fmt: skip


def draw_load_grid(
    table: pd.DataFrame, sides: pd.DataFrame, line: tuple[float, float], colours: Palette, selected: int | None, unit: str
) -> go.Figure:
    """All experts as squares coloured by load, × where dead; the load of each column above, of each row at the right."""
    side = int(table["row"].max()) + 1
    figure = make_subplots(
        2, 2, shared_xaxes=True, shared_yaxes=True, column_widths=[0.8, 0.2], row_heights=[0.2, 0.8],
        horizontal_spacing=0.015, vertical_spacing=0.015,
    )  # fmt: skip
    figure.add_heatmap(
        z=table["load"].to_numpy().reshape(side, side),
        colorscale=colour_scale(colours.load),
        zmin=0,
        showscale=False,
        xgap=1,
        ygap=1,
        hoverinfo="skip",
        row=2,
        col=1,
    )
    if side * side <= MOST:
        text = np.where(table["state"] == "dead", "×", "")
        figure.add_scatter(
            x=table["column"], y=table["row"], mode="markers+text", text=text, customdata=_hover_data(table), row=2, col=1,
            marker_symbol="square", marker_size=max(220 / side, 4), marker_color="rgba(0,0,0,0)", textfont_color=colours.text,
            selected_marker_opacity=0, unselected_marker_opacity=0, unselected_textfont_color=colours.text,
            hovertemplate="row %{y}, column %{x}<br>" + _hover_text(unit),
        )  # fmt: skip
    for half, key, load, place in (("column", "x", "y", {"row": 1, "col": 1}), ("row", "y", "x", {"row": 2, "col": 2})):
        part = sides[sides["half"] == half]
        states = part["state"]
        figure.add_bar(
            **{key: part["key"], load: part["load"]}, orientation="v" if half == "column" else "h",
            marker_color=[_load_colour(state, colours) for state in states],
            customdata=np.stack([part["dead"], states.map(EXPERT_LOAD)], axis=1),
            hovertemplate=f"<b>{half} %{{{key}}}</b><br>%{{{load}:.0f}} {unit}<br>%{{customdata[0]}} dead experts<br>"
            "%{customdata[1]}<extra></extra>",
            **STEADY, **place,
        )  # fmt: skip
    band = {"fillcolor": f"{colours.muted}40", "line": {"width": 0}, "layer": "below"}
    figure.add_hrect(*line, row=1, col=1, **band)
    figure.add_vrect(*line, row=2, col=2, **band)
    if selected is not None and selected < side * side:
        y, x = divmod(selected, side)
        box = {"x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5}
        figure.add_shape(box, type="rect", line_color=colours.picked, line_width=3, row=2, col=1)
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(showgrid=False, zeroline=False, fixedrange=True, nticks=9)
    return figure.update_layout(
        CLICKED, height=430, margin_t=8, showlegend=False, uirevision="grid", bargap=0.15,
        xaxis3_title="column", xaxis3_range=[-0.5, side - 0.5], yaxis3_title="row", yaxis3_range=[side - 0.5, -0.5],
        xaxis4_showticklabels=False, yaxis_showticklabels=False,
    )  # fmt: skip


def draw_traffic_share(shares: pd.DataFrame, chance: float, colours: Palette, selected: int | None) -> go.Figure:
    """Figure 4, right: the share of each batch's traffic that the busiest experts carry, as stripes."""
    figure = go.Figure()
    for i, (expert, part) in enumerate(shares.groupby("expert", sort=False)):
        edge = {"width": 2.5, "color": colours.picked} if expert == selected else {"width": 0.5, "color": colours.ground}
        figure.add_bar(
            x=part["batch"], y=part["share"], name=str(expert), customdata=part[["expert"]],
            marker_color=colours.category_colour(i), marker_line=edge,
            hovertemplate=f"<b>expert {expert}</b><br>%{{y:.1%}} of group %{{x}}<extra></extra>",
            **STEADY,
        )  # fmt: skip
    figure.add_hline(y=chance, line_color=colours.text, line_width=1.5, line_dash="dash")
    return figure.update_layout(
        CLICKED, height=330, barmode="stack", bargap=0.08, uirevision="stripes", legend_traceorder="normal",
        xaxis_title="group of people", xaxis_dtick=1, xaxis_showgrid=False, yaxis_title="share of the traffic",
        yaxis_tickformat=".0%", yaxis_rangemode="tozero",
    )  # fmt: skip


def _hover_data(part: pd.DataFrame) -> np.ndarray:
    return np.stack([part["expert"], part["load"].round(1), part["times"].round(2), part["state"].map(EXPERT_LOAD)], axis=1)


def _hover_text(unit: str) -> str:
    lines = ("<b>expert %{customdata[0]}</b>", f"%{{customdata[1]}} {unit}", "%{customdata[2]} × equal use", "%{customdata[3]}")
    return "<br>".join(lines) + "<extra></extra>"


def _add_null_band(figure: go.Figure, x: Any, low: Any, high: Any, name: str, colours: Palette) -> None:
    """Shade where 95% lie by chance, behind what is drawn next."""
    edge = {"x": x, "mode": "lines", "line_width": 0, "hoverinfo": "skip"}
    figure.add_scatter(**edge, y=high, showlegend=False)
    figure.add_scatter(**edge, y=low, fill="tonexty", fillcolor=f"{colours.muted}40", name=name)


def draw_routing_metrics(table: pd.DataFrame, colours: Palette) -> go.Figure:
    """Each gauge as a dot, and beside it a cross where it would stand without what is claimed."""
    figure = go.Figure()
    for row in table.to_dict("records"):
        figure.add_scatter(
            x=[row["null"], row["value"]], y=[row["gauge"]] * 2, mode="lines", line_color=colours.line, line_width=3,
            hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    for column, name, symbol, colour in (
        ("value", "this run", "circle", colours.picked), ("null", "to compare with", "x-thin", colours.text),
    ):  # fmt: skip
        figure.add_scatter(
            x=table[column], y=table["gauge"], mode="markers", name=name, marker_symbol=symbol, marker_size=12,
            marker_color=colour, marker_line_width=2, marker_line_color=colour, customdata=table["without"],
            hovertemplate="%{x:.2f}" + ("<br>%{customdata}" if column == "null" else "") + "<extra></extra>",
        )  # fmt: skip
    return figure.update_layout(LAYOUT, height=260, xaxis_range=[-0.05, 1.05], xaxis_zeroline=True, yaxis_autorange="reversed")


def _load_colour(state: str, colours: Palette) -> str:
    return {"hot": colours.load[-1], "usual": colours.muted, "cold": colours.cool[1], "dead": colours.text}[state]
