"""The figures of *How sure?* on the page on product keys: learning, traffic. Pure: no streamlit, no state."""

import math

import pandas as pd

from pages.kit.plot import Palette, frame
from pages.kit.sketch import Sketch

GRID_PIXELS = 268  # side of a square grid: with margins it fits a phone


def learning(curve: pd.DataFrame, p: Palette) -> Sketch:
    """The toy's loss with a gate and without."""
    figure = Sketch()
    styles = {"softmax": ("with the gate", p.categories[2], "solid"), "none": ("without", p.categories[4], "dash")}
    for gate, part in curve.groupby("gate", sort=False):
        name, colour, dash = styles[str(gate)]
        hover = "step %{x}: loss %{y:.2f}<extra>" + name + "</extra>"
        figure.add_scatter(
            x=part["step"],
            y=part["loss"],
            mode="lines",
            name=name,
            line={"color": colour, "dash": dash, "width": 3},
            hovertemplate=hover,
        )
    figure.update_xaxes(title={"text": "training step"})
    figure.update_yaxes(title={"text": "loss (mean squared error)"}, rangemode="tozero")
    return frame(figure, p, 320, legend=True)


def traffic(table: pd.DataFrame, p: Palette, column: str, most: int) -> Sketch:
    """How many queries have each expert as their best; `most` is the shared end of the colour scale."""
    side = int(table["row"].max()) + 1
    scale = [[i / (len(p.load) - 1), colour] for i, colour in enumerate(p.load)]
    figure = Sketch().add_scatter(
        x=table["column"], y=table["row"], mode="markers", customdata=table[["expert", column]],
        marker={"symbol": "square", "size": square_size(side), "color": table[column], "colorscale": scale, "cmin": 0,
                "cmax": most, "line": {"color": p.line, "width": 0.5}},
        hovertemplate="expert %{customdata[0]}: best for %{customdata[1]}<extra></extra>",
    )  # fmt: skip
    square_axes(figure, "column", "row", -0.7, side - 0.3)
    return frame(figure, p, GRID_PIXELS + 70)


def square_size(n: int) -> float:
    return max(3.0, GRID_PIXELS / (n + 1) * 0.86)


def square_axes(figure: Sketch, x: str, y: str, low: float, high: float) -> None:
    first, last = max(0, math.ceil(low)), math.floor(high)
    ticks = list(range(first, last + 1, 1 + (last - first) // 10))
    plain = {"showgrid": False, "zeroline": False, "tickvals": ticks, "constrain": "domain", "fixedrange": True}
    figure.update_xaxes(title={"text": x}, range=[low, high], tickangle=0, **plain)
    figure.update_yaxes(title={"text": y}, range=[high, low], scaleanchor="x", **plain)
