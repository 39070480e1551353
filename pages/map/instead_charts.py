"""The map of items or codewords. Pure: tables to plotly figures."""

from collections.abc import Collection

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from elastic_core.services.map.items import NONE, OTHERS
from elastic_core.text import figure as safe
from pages.kit.plot import Palette, frame

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "pentagon")


def laid(table: pd.DataFrame, history: Collection[int], following: int | None, p: Palette) -> go.Figure:
    """One mark a vector; rings on the items of a history, a star on what came next."""
    figure = go.Figure()
    kinds = sorted(set(table["kind"]) - {NONE, OTHERS})
    for i, kind in enumerate([*kinds, *(name for name in (OTHERS, NONE) if (table["kind"] == name).any())]):
        rows = table[table["kind"] == kind]
        plain = kind in (OTHERS, NONE)
        marker = {"color": p.muted if plain else p.categories[i % len(p.categories)], "size": 5, "opacity": 0.75}
        figure.add_trace(
            go.Scattergl(
                x=rows["x"], y=rows["y"], mode="markers", name=safe(kind), text=rows["title"].map(safe),
                marker={**marker, "symbol": "circle-open" if plain else SYMBOLS[i % len(SYMBOLS)]},
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
    axis = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "fixedrange": True}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis, scaleanchor="x", scaleratio=1)
    return frame(figure, p, 560, legend=True)
