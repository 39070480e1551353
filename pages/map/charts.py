"""The map of the experts. Pure: arrays in, a plotly figure out. Every expert is one mark, with its number in `customdata`."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from elastic_core.services.map.items import NONE
from elastic_core.services.map.picture import COLOURS, NO_GENRE, NO_INTEREST, OTHERS, Map, commonest
from elastic_core.text import figure as safe
from pages.kit.plot import Palette, frame, scale
from pages.kit.sketch import Sketch

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")
VECTOR = 2_000  # marks up to which the figure is drawn as vectors, without WebGL
LEGEND = 9


def memory(
    drawn: Map, table: pd.DataFrame, labels: np.ndarray, colour: str, colours: Palette, *,
    retrieved: Mapping[int, int], selected: int | None, chosen: Collection[int], tool: str, span: float | None = None,
) -> Sketch:  # fmt: skip
    """`labels [n]` as from `projection_map.labels`; `retrieved`: expert → rank for this person; the rest is greyed if some are
    `chosen`."""
    figure, groups = Sketch(), _groups(labels, colour, colours)
    add = figure.add_scatter if len(labels) <= VECTOR else figure.add_scattergl
    marks = _marks(drawn, table, labels, colours, retrieved, selected)
    for name, rows, marker in groups:
        add(**_trace(name, marker, colours, chosen, {what: each[rows] for what, each in marks.items()}))
    at = np.flatnonzero(drawn.experts == selected)
    if len(at):
        x, y = drawn.xy[at[0]].tolist()
        label = {"bgcolor": colours.ground, "bordercolor": colours.picked, "arrowcolor": colours.picked, "ax": 52, "ay": -26}
        figure.add_annotation(x=x, y=y, text=f"<b>expert {selected}</b>", font_color=colours.text, **label)
    shown = 1 < len(groups) <= LEGEND + 1
    figure.update_layout(
        height=520, margin_l=4, margin_r=4, margin_t=28 if shown else 8, margin_b=4, dragmode=tool if tool != "click" else False,
        clickmode="event+select", hovermode="closest", uirevision="map", showlegend=shown,
        legend_orientation="h", legend_y=1.0, legend_yanchor="bottom", legend_x=0, legend_itemsizing="constant",
        newselection_line_color=colours.picked,
    )  # fmt: skip
    axis = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": ""}
    reach = {"range": [-span, span]} if span else {}
    figure.update_xaxes(**axis, **reach)
    figure.update_yaxes(**axis, **reach, scaleanchor="x", scaleratio=1)
    return figure


def plain(xy: np.ndarray, colours: Palette) -> go.Figure:
    """The same kind of map of random vectors, without anything to click."""
    figure = go.Figure(
        go.Scatter(x=xy[:, 0], y=xy[:, 1], mode="markers", marker_color=colours.muted, marker_size=6, hoverinfo="skip")
    )
    figure.update_layout(height=300, margin_l=4, margin_r=4, margin_t=8, margin_b=4, dragmode=False, showlegend=False)
    axis = {"showgrid": False, "zeroline": False, "showticklabels": False, "fixedrange": True}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis, scaleanchor="x", scaleratio=1)
    return figure


def _groups(labels: np.ndarray, colour: str, colours: Palette) -> list[tuple[str, np.ndarray, dict[str, object]]]:
    """One trace a label, or one for numbers: name, rows, marker."""
    if labels.dtype.kind not in "OUS":
        bar = {"title": {"text": "people" if colour == "load" else "epoch"}, "thickness": 10, "len": 0.6}
        most = max(float(labels.max(initial=0)), 1)
        marker = {"color": labels, "colorscale": scale(colours.load), "cmin": 0, "cmax": most, "colorbar": bar}
        return [(COLOURS.get(colour, colour), np.arange(len(labels)), marker)]
    lines = colour in ("row", "column")
    names = sorted(set(labels.tolist()), key=lambda name: int(name.split()[-1])) if lines else commonest(labels)
    groups: list[tuple[str, np.ndarray, dict[str, object]]] = []
    for i, name in enumerate(names):
        symbol = SYMBOLS[(i if not lines else i // 8) % len(SYMBOLS)]
        groups.append((name, np.flatnonzero(labels == name), {"color": colours.categories[i % 7], "symbol": symbol}))
        if lines:
            groups[-1][2]["color"] = colours.categories[i % 8]
    rest = ~np.isin(labels, [*names, NO_GENRE, NO_INTEREST])
    groups.append((OTHERS, np.flatnonzero(rest), {"color": colours.text, "symbol": "hexagon-open"}))
    for name in (NO_GENRE, NO_INTEREST):
        groups.append((name, np.flatnonzero(labels == name), {"color": colours.muted, "symbol": "circle-open"}))
    return [group for group in groups if len(group[1])]


def _marks(
    drawn: Map, table: pd.DataFrame, labels: np.ndarray, colours: Palette, retrieved: Mapping[int, int], selected: int | None
) -> dict[str, np.ndarray]:
    """What every mark looks like and says, a row an expert."""
    ranks = np.array([retrieved.get(expert, 0) for expert in drawn.experts.tolist()])
    focus, used = drawn.experts == selected, ranks > 0
    said = np.array([f"used by this person, place {rank}" if rank else "not used by this person" for rank in ranks], dtype=object)
    said[drawn.placed] += "; placed beside its nearest"
    called = np.array([safe(label) if isinstance(label, str) else label for label in labels], dtype=object)
    numbers = (table[name].to_numpy()[drawn.experts] for name in ("row", "column", "load"))
    return {
        "xy": drawn.xy, "experts": drawn.experts, "details": np.stack([drawn.experts, *numbers, called, said], axis=1),
        "text": np.array([f"<b>{rank}</b>" if rank else "" for rank in ranks]),
        "size": np.where(used | focus, 17, 10 if len(labels) <= VECTOR else 6),
        "ring": np.where(focus, 4, np.where(used, 2.5, np.where(drawn.placed, 1.5, 0.6))),
        "edge": np.where(focus, colours.picked, np.where(used, colours.text, colours.line)),
    }  # fmt: skip


def _trace(
    name: str, marker: dict[str, object], colours: Palette, chosen: Collection[int], marks: dict[str, np.ndarray]
) -> dict[str, Any]:
    """The marks of one label; of them the `chosen` stand out, if some are."""
    inside = np.flatnonzero(np.isin(marks["experts"], list(chosen))) if chosen else None
    return {
        "x": marks["xy"][:, 0], "y": marks["xy"][:, 1], "customdata": marks["details"], "name": safe(name),
        "mode": "markers+text", "text": marks["text"].tolist(), "textposition": "top center",
        "textfont": {"color": colours.text, "size": 13},
        "marker": {**marker, "size": marks["size"], "line": {"width": marks["ring"], "color": marks["edge"]}},
        "cliponaxis": False, "selectedpoints": inside, "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 0.15 if chosen else 1}, "textfont": {"color": colours.text}},
        "hovertemplate": "<b>expert %{customdata[0]}</b><br>row %{customdata[1]}, column %{customdata[2]}<br>"
        "%{customdata[3]} people<br>%{customdata[4]}<br>%{customdata[5]}<extra></extra>",
    }  # fmt: skip


KINDS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "pentagon")


def laid(table: pd.DataFrame, history: Collection[int], following: int | None, p: Palette) -> go.Figure:
    """One mark a vector; rings on the items of a history, a star on what came next."""
    figure = go.Figure()
    kinds = sorted(set(table["kind"]) - {NONE, OTHERS})
    for i, kind in enumerate([*kinds, *(name for name in (OTHERS, NONE) if (table["kind"] == name).any())]):
        rows = table[table["kind"] == kind]
        plain = kind in (OTHERS, NONE)
        marker = {"color": p.muted if plain else p.category(i), "size": 5, "opacity": 0.75}
        figure.add_trace(
            go.Scattergl(
                x=rows["x"], y=rows["y"], mode="markers", name=safe(kind), text=rows["title"].map(safe),
                marker={**marker, "symbol": "circle-open" if plain else KINDS[i % len(KINDS)]},
                hovertemplate="%{text}<br>" + safe(kind) + "<extra></extra>",
            )
        )  # fmt: skip
    met = table[np.isin(table["item"], list(history))]
    for rows, name, marker in (
        (met, "in the history", {"symbol": "circle-open", "size": 12, "color": p.text, "line": {"width": 2}}),
        (table[table["item"] == following], "came next", {"symbol": "star", "size": 16, "color": p.gold}),
    ):
        if len(rows):
            figure.add_scatter(
                x=rows["x"], y=rows["y"], mode="markers", name=name, text=rows["title"].map(safe), marker=marker,
                hovertemplate="%{text}<br>" + name + "<extra></extra>",
            )  # fmt: skip
    axis = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": ""}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis, scaleanchor="x", scaleratio=1)
    return frame(figure, p, 560, legend=True)
