"""Tables and arrays to plotly figures. Pure: no streamlit, no state.

A figure of a page is a pure function in its charts.py, of tables and a `Palette`, that ends in `return
style_figure(figure, palette, height)`; what comes from data (titles, genres) goes through `elastic_core.text.figure` first,
because plotly reads HTML. The page shows it by
`page_elements.show_chart(key, cache.cached_figure(function, *values), table, about, alt)`. A heatmap is
`figure.add_heatmap(z=rows.tolist(), colorscale=colour_scale(palette.load), zmin=0, xgap=1, ygap=1)`, a first line has
`palette.category_colour(0)`; lists can be read back by a test, numpy cannot. Say *more* and *less* of its colours, which
differ by theme."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from PIL import Image

Chart = dict[str, Any]  # `data` and `layout`, as plotly draws them
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star", "cross", "hexagon", "x")  # told apart without colour
LAYOUT: dict[str, Any] = {
    "margin": {"l": 8, "r": 8, "t": 28, "b": 8}, "dragmode": False, "hovermode": "closest",
    "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    "xaxis": {"fixedrange": True}, "yaxis": {"fixedrange": True},
}  # fmt: skip
STEADY = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}  # a click leaves a mark as it is
CONFIG = {"displaylogo": False, "modeBarButtons": [["toImage"]], "scrollZoom": False}


class Palette(NamedTuple):
    """Colours that mean the same on every page; see .streamlit/config.toml for the themes' own."""

    text: str
    muted: str
    line: str
    warm: tuple[str, str]  # row sub-keys: low to high score
    cool: tuple[str, str]  # column sub-keys
    load: tuple[str, ...]  # neutral to hot
    ground: str
    lit: str  # an expert that was retrieved
    picked: str  # an expert that is looked at
    gold: str  # what really came next
    categories: tuple[str, ...]

    def category_colour(self, i: int) -> str:
        """One of them for the i-th of any number."""
        return self.categories[i % len(self.categories)]


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


def choose_palette(dark: bool) -> Palette:
    return DARK if dark else LIGHT


def style_figure(figure: go.Figure, p: Palette, height: int, legend: bool = False, **layout: Any) -> go.Figure:
    """The same margins, letters, axes and legend for every figure."""
    margin = {"l": 8, "r": 8, "t": 46 if legend else 30, "b": 8}
    figure.update_layout(
        height=height, margin=margin, showlegend=legend, font={"color": p.text}, uirevision="keep", dragmode=False, **layout
    )
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)
    if legend:
        figure.update_layout(
            legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "itemclick": False, "itemdoubleclick": False}
        )
    return figure


def panel_layout(
    shares: Sequence[float], titles: Sequence[str], colours: Palette, *, gap: float, stacked: bool = False
) -> dict[str, Any]:
    """The layout of plots side by side, or `stacked`, the first on top: axes that are shared across, and a title above each."""
    layout: dict[str, Any] = {"annotations": []}
    end = 1.0 if stacked else 0.0
    for at, (share, title) in enumerate(zip(shares, titles, strict=True), start=1):
        length = share / sum(shares) * (1 - gap * (len(shares) - 1))
        domain = [max(end - length, 0.0), end] if stacked else [end, min(end + length, 1.0)]
        end = domain[0] - gap if stacked else domain[1] + gap
        number = "" if at == 1 else str(at)
        layout[f"xaxis{number}"] = {"anchor": f"y{number}", "domain": [0.0, 1.0] if stacked else domain}
        layout[f"yaxis{number}"] = {"anchor": f"x{number}", "domain": domain if stacked else [0.0, 1.0]}
        if stacked and at < len(shares):
            layout[f"xaxis{number}"] |= {"matches": f"x{len(shares)}", "showticklabels": False}
        if not stacked and at > 1:
            layout[f"yaxis{number}"] |= {"matches": "y", "showticklabels": False}
        layout["annotations"].append({
            "text": title, "x": 0.5 if stacked else sum(domain) / 2, "y": domain[1] if stacked else 1.0, "xref": "paper",
            "yref": "paper", "xanchor": "center", "yanchor": "bottom", "showarrow": False,
            "font": {"size": 12, "color": colours.muted},
        })  # fmt: skip
    return layout


def colour_scale(ramp: Sequence[str]) -> list[list[Any]]:
    """A ramp as plotly's scale of colours."""
    return [[i / (len(ramp) - 1), colour] for i, colour in enumerate(ramp)]


def error_bars(rows: pd.DataFrame, column: str, **look: Any) -> dict[str, Any]:
    """From `low` to `high` around a column."""
    return {"array": rows["high"] - rows[column], "arrayminus": rows[column] - rows["low"], **look}


def shade_values(values: np.ndarray, ramp: tuple[str, ...], low: float | None = None, at: np.ndarray | None = None) -> list[str]:
    """A colour of the ramp, `#rrggbb`, for each value from `low` (or the least) to the largest; only for those `at` places."""
    low = float(values.min()) if low is None else low
    shaded = values if at is None else values[at]
    where = (shaded - low) / max(float(values.max()) - low, 1e-9) * (len(ramp) - 1)
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in ramp])
    mixed = np.stack([np.interp(where, np.arange(len(ramp)), channel) for channel in stops.T], axis=1).round().astype(int)
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in mixed.tolist()]


def draw_favicon() -> Image.Image:
    """A small grid with lit squares; drawn here because icons by name are fetched from elsewhere."""
    image = np.full((32, 32, 3), 255, dtype=np.uint8)
    for i in range(4):
        for j in range(4):
            colour = (213, 94, 0) if (i, j) in ((0, 2), (1, 0), (3, 2)) else (205, 214, 222)
            image[1 + 8 * i : 7 + 8 * i, 1 + 8 * j : 7 + 8 * j] = colour
    return Image.fromarray(image)
