"""Tables and arrays to plotly figures. Pure: no streamlit, no state."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from PIL import Image

CONFIG = {"displaylogo": False, "modeBarButtons": [["toImage"]], "scrollZoom": False}


@dataclass(frozen=True)
class Palette:
    """Colours that mean the same on every page; see .streamlit/config.toml for the themes' own."""

    text: str
    muted: str
    line: str
    warm: tuple[str, str]  # row sub-keys: low to high score
    cool: tuple[str, str]  # column sub-keys
    load: tuple[str, ...]  # neutral to hot
    ground: str
    lit: str  # an expert that was summoned
    picked: str  # an expert that is looked at
    gold: str  # what really came next
    categories: tuple[str, ...]


LIGHT = Palette(
    text="#1c1b19",
    muted="#6b6760",
    line="#d8d5cd",
    warm=("#fbf1ea", "#d55e00"),
    cool=("#eaf2f9", "#0072b2"),
    load=("#f6f3ec", "#f7cf98", "#ee9b4a", "#b5451d"),
    ground="#ffffff",
    lit="#1c1b19",
    picked="#0072b2",
    gold="#b98900",
    categories=("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c7a00", "#666666"),
)
DARK = Palette(
    text="#eceae4",
    muted="#a5a29a",
    line="#3a3f48",
    warm=("#2b211b", "#f07f3c"),
    cool=("#1b242d", "#56b4e9"),
    load=("#23262c", "#54351f", "#ad5c21", "#f6a65f"),
    ground="#14161a",
    lit="#ffffff",
    picked="#56b4e9",
    gold="#f2c230",
    categories=("#56b4e9", "#e69f00", "#2fbf94", "#e08cbd", "#f07f3c", "#8fd0f5", "#d8c934", "#a8a8a8"),
)


def palette(dark: bool) -> Palette:
    return DARK if dark else LIGHT


def frame(figure: go.Figure, p: Palette, height: int, legend: bool = False) -> go.Figure:
    """The same margins, letters and legend for every figure."""
    top = 46 if legend else 30
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": top, "b": 8},
        showlegend=legend,
        font={"color": p.text},
        uirevision="keep",
        dragmode=False,
    )
    if legend:
        figure.update_layout(
            legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "itemclick": False, "itemdoubleclick": False}
        )
    return figure


def favicon() -> Image.Image:
    """A small grid with lit squares; drawn here because icons by name are fetched from elsewhere."""
    image = np.full((32, 32, 3), 255, dtype=np.uint8)
    for i in range(4):
        for j in range(4):
            colour = (213, 94, 0) if (i, j) in ((0, 2), (1, 0), (3, 2)) else (205, 214, 222)
            image[1 + 8 * i : 7 + 8 * i, 1 + 8 * j : 7 + 8 * j] = colour
    return Image.fromarray(image)


def expert_grid(table: pd.DataFrame, colours: Palette, selected: int | None = None, silenced: Collection[int] = ()) -> go.Figure:
    """All experts as squares: background by load, summoned ones filled with their rank, sub-key scores along the edges.

    `table` as from `inspect.experts_table`. Squares are heatmap cells, because those grow with the figure; heatmaps do
    not report clicks, so an unseen marker on each square does, with the expert's number in `customdata`.
    """
    side = int(table["row"].max()) + 1
    numbers, edge = np.arange(side), -1 - side / 20  # the strips lie this far outside the grid
    low = edge - 0.6 - side / 15
    rows = table.drop_duplicates("row").sort_values("row")["row_score"].to_numpy()
    columns = table.drop_duplicates("column").sort_values("column")["column_score"].to_numpy()
    strip = np.array([edge])
    traces = [
        _cells(table["load"].to_numpy().reshape(side, side), numbers, numbers, colours.load),
        _cells(rows[:, None], strip, numbers, colours.warm, "row"),
        _cells(columns[None, :], numbers, strip, colours.cool, "column"),
        _targets(table),
    ]
    squares, notes = _summoned(table[table["rank"] > 0], edge, colours, silenced)
    if selected is not None:
        at = table.iloc[selected]
        squares.append(_square(at["column"], at["row"], colours.picked, width=3, grow=0.16))
    note = {"showarrow": False, "font": {"color": colours.muted, "size": 12}, "xanchor": "left", "yanchor": "top"}
    notes += [note | {"x": -0.5, "y": low, "text": "column sub-keys →"}]
    notes += [note | {"x": low, "y": -0.5, "text": "← row sub-keys", "textangle": -90}]
    axis = {"showgrid": False, "zeroline": False, "showticklabels": False, "fixedrange": True, "ticks": "", "constrain": "domain"}
    layout = {
        "height": 410, "margin": {"l": 2, "r": 2, "t": 2, "b": 2}, "showlegend": False, "dragmode": False,
        "plot_bgcolor": "rgba(0,0,0,0)", "uirevision": "grid", "clickmode": "event+select", "hovermode": "closest",
        "shapes": squares, "annotations": notes, "xaxis": axis | {"range": [low, side - 0.4]},
        "yaxis": axis | {"range": [side - 0.4, low], "scaleanchor": "x"},
    }  # fmt: skip
    return go.Figure(traces, layout)  # of plain dictionaries: objects would be checked twice


Parts = list[dict[str, Any]]


def _summoned(summoned: pd.DataFrame, edge: float, colours: Palette, silenced: Collection[int]) -> tuple[Parts, Parts]:
    """Squares and ranks of the summoned experts, and frames around the sub-keys that won. One list: adding singly is slow."""
    squares, notes = [], []
    for number, row, column, rank in summoned[["expert", "row", "column", "rank"]].itertuples(index=False):
        quiet = number in silenced
        squares.append(_square(column, row, colours.lit, None if quiet else colours.lit))
        squares += [_square(edge, row, colours.lit), _square(column, edge, colours.lit)]
        font = {"color": colours.lit if quiet else colours.ground, "size": 11}
        notes.append({"x": column, "y": row, "text": f"<b>{'×' if quiet else rank}</b>", "showarrow": False, "font": font})
    return squares, notes


def _cells(values: np.ndarray, x: np.ndarray, y: np.ndarray, ramp: tuple[str, ...], name: str = "load") -> dict[str, Any]:
    stops = [[i / (len(ramp) - 1), colour] for i, colour in enumerate(ramp)]
    low = 0 if name == "load" else float(values.min())
    return {
        "type": "heatmap", "z": values, "x": x, "y": y, "colorscale": stops, "zmin": low,
        "zmax": max(float(values.max()), low + 1e-9), "showscale": False, "xgap": 1, "ygap": 1, "hoverinfo": "skip", "name": name,
    }  # fmt: skip


def _targets(table: pd.DataFrame) -> dict[str, Any]:
    place = np.where(table["rank"] > 0, "summoned, rank " + table["rank"].astype(str), "not summoned")
    details = np.stack([table["expert"], table["load"], place], axis=1)
    return {
        "type": "scatter", "x": table["column"].to_numpy(), "y": table["row"].to_numpy(), "mode": "markers", "name": "experts",
        "marker": {"symbol": "square", "size": 13, "color": "rgba(0,0,0,0)"}, "customdata": details,
        "unselected": {"marker": {"opacity": 0}}, "selected": {"marker": {"opacity": 0}},
        "hovertemplate": "<b>expert %{customdata[0]}</b><br>row %{y}, column %{x}<br>%{customdata[2]}<br>%{customdata[1]} people"
        "<extra></extra>",
    }  # fmt: skip


def _square(x: float, y: float, colour: str, fill: str | None = None, width: float = 2, grow: float = 0.0) -> dict[str, Any]:
    half = 0.44 + grow
    return {
        "type": "rect", "x0": x - half, "x1": x + half, "y0": y - half, "y1": y + half,
        "line": {"color": colour, "width": width}, "fillcolor": fill or "rgba(0,0,0,0)",
    }  # fmt: skip
