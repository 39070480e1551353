"""The map of the experts. Pure: arrays in, a plotly figure out. Every expert is one mark, with its number in `customdata`."""

from typing import Any

import numpy as np
import pandas as pd

from elastic_core.services.map.picture import COLOURS, NO_GENRE, NO_INTEREST, OTHERS, commonest
from elastic_core.text import figure as safe
from pages.kit.plot import Palette, scale
from pages.kit.sketch import Sketch

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")
DETAILS = ["expert", "row", "column", "load", "label", "said"]  # what a mark carries
VECTOR = 2_000  # marks up to which the figure is drawn as vectors, without WebGL
LEGEND = 9


def memory(
    table: pd.DataFrame, placed: np.ndarray, colour: str, colours: Palette, *,
    selected: int | None,
) -> Sketch:  # fmt: skip
    """The marks of a map (`picture.marks`), of which some were `placed` beside their nearest."""
    figure, groups = Sketch(), _groups(table["colour"].to_numpy(), colour, colours)
    marks = _marks(table, placed, selected, colours)
    add = figure.add_scatter if len(marks) <= VECTOR else figure.add_scattergl
    for name, rows, marker in groups:
        part = marks[rows]
        add(
            x=part["x"], y=part["y"], customdata=part[DETAILS], name=safe(name), mode="markers+text", text=part["text"].tolist(),
            textposition="top center", textfont={"color": colours.text, "size": 13}, cliponaxis=False,
            marker={**marker, "size": part["size"], "line": {"width": part["ring"], "color": part["edge"]}},
            unselected={"marker": {"opacity": 1}, "textfont": {"color": colours.text}},
            hovertemplate="<b>expert %{customdata[0]}</b><br>row %{customdata[1]}, column %{customdata[2]}<br>"
            "%{customdata[3]} people<br>%{customdata[4]}<br>%{customdata[5]}<extra></extra>",
        )  # fmt: skip
    for at in marks[marks["expert"] == selected].itertuples():
        label = {"bgcolor": colours.ground, "bordercolor": colours.picked, "arrowcolor": colours.picked, "ax": 52, "ay": -26}
        figure.add_annotation(x=at.x, y=at.y, text=f"<b>expert {selected}</b>", font_color=colours.text, **label)
    shown = 1 < len(groups) <= LEGEND + 1
    figure.update_layout(
        height=520, margin_l=4, margin_r=4, margin_t=28 if shown else 8, margin_b=4, dragmode=False,
        clickmode="event+select", hovermode="closest", uirevision="map", showlegend=shown,
        legend_orientation="h", legend_y=1.0, legend_yanchor="bottom", legend_x=0, legend_itemsizing="constant",
    )  # fmt: skip
    return _flat(figure)


def plain(xy: np.ndarray, colours: Palette) -> Sketch:
    """The same kind of map of random vectors, without anything to click."""
    figure, (x, y) = Sketch(), xy.T
    figure.add_scatter(x=x, y=y, mode="markers", marker_color=colours.muted, marker_size=6, hoverinfo="skip")
    figure.update_layout(height=300, margin_l=4, margin_r=4, margin_t=8, margin_b=4, dragmode=False, showlegend=False)
    return _flat(figure, fixedrange=True)


def _flat(figure: Sketch, **axes: Any) -> Sketch:
    """Show both axes at one scale and without numbers."""
    figure.update_xaxes(showgrid=False, zeroline=False, showticklabels=False, ticks="", **axes)
    figure.update_yaxes(showgrid=False, zeroline=False, showticklabels=False, ticks="", scaleanchor="x", scaleratio=1, **axes)
    return figure


def _groups(labels: np.ndarray, colour: str, colours: Palette) -> list[tuple[str, np.ndarray, dict[str, object]]]:
    """One trace a label, or one for numbers: name, bool [n], marker."""
    if labels.dtype.kind not in "OUS":
        bar = {"title": {"text": "people" if colour == "load" else "epoch"}, "thickness": 10, "len": 0.6}
        most = max(float(labels.max(initial=0)), 1)
        marker = {"color": labels, "colorscale": scale(colours.load), "cmin": 0, "cmax": most, "colorbar": bar}
        return [(COLOURS[colour], np.ones(len(labels), dtype=bool), marker)]
    if colour in ("row", "column"):
        names, hues, shapes = sorted(set(labels.tolist()), key=lambda name: int(name.split()[-1])), 8, 8
    else:
        names, hues, shapes = commonest(labels), 7, 1
    looks = [
        (name, labels == name, {"color": colours.categories[i % hues], "symbol": SYMBOLS[i // shapes % len(SYMBOLS)]})
        for i, name in enumerate(names)
    ]
    rest = ~np.isin(labels, [*names, NO_GENRE, NO_INTEREST])
    looks.append((OTHERS, rest, {"color": colours.text, "symbol": "hexagon-open"}))
    looks += [(name, labels == name, {"color": colours.muted, "symbol": "circle-open"}) for name in (NO_GENRE, NO_INTEREST)]
    return [look for look in looks if look[1].any()]


def _marks(table: pd.DataFrame, placed: np.ndarray, selected: int | None, colours: Palette) -> pd.DataFrame:
    """Add what every mark looks like and says."""
    ranks, focus = table["retrieved"], table["expert"] == selected
    used, rank = ranks > 0, ranks.astype(str)
    said = np.where(used, "used by this person, place " + rank, "not used by this person")
    return table.assign(
        said=said + np.where(placed, "; placed beside its nearest", ""),
        label=[safe(label) if isinstance(label, str) else label for label in table["colour"]],
        text=np.where(used, "<b>" + rank + "</b>", ""),
        size=np.where(used | focus, 17, 10 if len(table) <= VECTOR else 6),
        ring=np.select([focus, used, placed], [4, 2.5, 1.5], 0.6),
        edge=np.select([focus, used], [colours.picked, colours.text], colours.line),
    )
