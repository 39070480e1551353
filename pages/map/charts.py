"""The map of the experts. Pure: arrays in, a plotly figure out. Every expert is one mark, with its number in `customdata`."""

import numpy as np
import pandas as pd

from elastic_core.services.map.picture import COLOURS, NO_INTEREST, NO_NAME, OTHERS, most_common
from elastic_core.text import escape_plotly as safe
from pages.components.plot import Chart, Palette, colour_scale

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")
DETAILS = ["expert", "row", "column", "load", "label", "said"]  # what a mark carries
BARE = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": ""}  # an axis of which nothing is seen
SAME_SCALE = {"scaleanchor": "x", "scaleratio": 1}
VECTOR = 2_000  # marks up to which the figure is drawn as vectors, without WebGL
LEGEND = 9


def draw_map(
    table: pd.DataFrame, placed: np.ndarray, colour: str, colours: Palette, *,
    selected: int | None,
) -> Chart:  # fmt: skip
    """The marks of a map (`picture.marks`), of which some were `placed` beside their nearest."""
    data, groups = [], _group_marks(table["colour"].to_numpy(), colour, colours)
    marks = _add_marks(table, placed, selected, colours)
    for name, rows, marker in groups:
        part = marks[rows]
        data.append({
            "type": "scatter" if len(marks) <= VECTOR else "scattergl", "x": part["x"].to_numpy(), "y": part["y"].to_numpy(),
            "customdata": part[DETAILS].to_numpy(), "name": safe(name), "mode": "markers+text", "text": part["text"].tolist(),
            "textposition": "top center", "textfont": {"color": colours.text, "size": 13}, "cliponaxis": False,
            "marker": {
                **marker, "size": part["size"].to_numpy(),
                "line": {"width": part["ring"].to_numpy(), "color": part["edge"].tolist()},
            },
            "unselected": {"marker": {"opacity": 1}, "textfont": {"color": colours.text}},
            "hovertemplate": "<b>expert %{customdata[0]}</b><br>row %{customdata[1]}, column %{customdata[2]}<br>"
            "%{customdata[3]} people<br>%{customdata[4]}<br>%{customdata[5]}<extra></extra>",
        })  # fmt: skip
    label = {"bgcolor": colours.ground, "bordercolor": colours.picked, "arrowcolor": colours.picked, "ax": 52, "ay": -26}
    notes = [
        {"x": mark.x, "y": mark.y, "text": f"<b>expert {selected}</b>", "font": {"color": colours.text}, **label}
        for mark in marks[marks["expert"] == selected].itertuples()
    ]
    has_legend = 1 < len(groups) <= LEGEND + 1
    layout = {
        "height": 380, "margin": {"l": 4, "r": 4, "t": 28 if has_legend else 8, "b": 4}, "dragmode": False, "annotations": notes,
        "clickmode": "event+select", "hovermode": "closest", "uirevision": "map", "showlegend": has_legend,
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "itemsizing": "constant"},
        "xaxis": BARE, "yaxis": BARE | SAME_SCALE,
    }  # fmt: skip
    return {"data": data, "layout": layout}


def draw_null_map(xy: np.ndarray, colours: Palette) -> Chart:
    """The same kind of map of random vectors, without anything to click."""
    x, y = xy.T
    marks = {"type": "scatter", "x": x, "y": y, "mode": "markers", "marker": {"color": colours.muted, "size": 6}}
    layout = {
        "height": 300, "margin": {"l": 4, "r": 4, "t": 8, "b": 4}, "dragmode": False, "showlegend": False,
        "xaxis": BARE | {"fixedrange": True}, "yaxis": BARE | SAME_SCALE | {"fixedrange": True},
    }  # fmt: skip
    return {"data": [marks | {"hoverinfo": "skip"}], "layout": layout}


def _group_marks(labels: np.ndarray, colour: str, colours: Palette) -> list[tuple[str, np.ndarray, dict[str, object]]]:
    """One trace a label, or one for numbers: name, bool [n], marker."""
    if labels.dtype.kind not in "OUS":
        bar = {"title": {"text": "people" if colour == "load" else "epoch"}, "thickness": 10, "len": 0.6}
        most = max(float(labels.max(initial=0)), 1)
        marker = {"color": labels, "colorscale": colour_scale(colours.load), "cmin": 0, "cmax": most, "colorbar": bar}
        return [(COLOURS[colour], np.ones(len(labels), dtype=bool), marker)]
    if colour in ("row", "column"):
        names, hues, shapes = sorted(set(labels.tolist()), key=lambda name: int(name.split()[-1])), 8, 8
    else:
        names, hues, shapes = most_common(labels), 7, 1
    looks = [
        (name, labels == name, {"color": colours.categories[i % hues], "symbol": SYMBOLS[i // shapes % len(SYMBOLS)]})
        for i, name in enumerate(names)
    ]
    rest = ~np.isin(labels, [*names, NO_NAME, NO_INTEREST])
    looks.append((OTHERS, rest, {"color": colours.text, "symbol": "hexagon-open"}))
    looks += [(name, labels == name, {"color": colours.muted, "symbol": "circle-open"}) for name in (NO_NAME, NO_INTEREST)]
    return [look for look in looks if look[1].any()]


def _add_marks(table: pd.DataFrame, placed: np.ndarray, selected: int | None, colours: Palette) -> pd.DataFrame:
    """Add what every mark looks like and says."""
    ranks, focus = table["retrieved"], table["expert"] == selected
    used, rank = ranks > 0, ranks.astype(str)
    hover_text = np.where(used, "used by this person, place " + rank, "not used by this person")
    return table.assign(
        said=hover_text + np.where(placed, "; placed beside its nearest", ""),
        label=[safe(label) if isinstance(label, str) else label for label in table["colour"]],
        text=np.where(used, "<b>" + rank + "</b>", ""),
        size=np.where(used | focus, 17, 10 if len(table) <= VECTOR else 6),
        ring=np.select([focus, used, placed], [4, 2.5, 1.5], 0.6),
        edge=np.select([focus, used], [colours.picked, colours.text], colours.line),
    )
