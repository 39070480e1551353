"""The figures below the steps of the page on product keys: cost, learning, traffic. Pure: no streamlit, no state."""

import math

import pandas as pd

from pages.keys.charts import GRID_PIXELS, square_axes, square_size
from pages.kit.plot import Palette, frame
from pages.kit.sketch import Sketch


def cost(table: pd.DataFrame, p: Palette, side: int) -> Sketch:
    """Multiplications of one search against √K, both scales by powers."""
    figure = Sketch()
    for (name, part), colour, dash in zip(
        table.groupby("search", sort=False), (p.muted, p.categories[0]), ("dash", "solid"), strict=True
    ):
        line = {"color": colour, "dash": dash, "width": 3}
        hover = "√K = %{x}: %{y:,.0f} multiplications<extra>" + str(name) + "</extra>"
        figure.add_scatter(
            x=part["side"], y=part["multiplications"], mode="lines+markers", name=name, line=line, hovertemplate=hover
        )
    figure.add_vline(side, line={"color": p.text, "dash": "dot", "width": 1})
    figure.add_annotation(x=math.log10(side), xref="x", y=1, yref="paper", text="here", showarrow=False, xanchor="left", xshift=4)
    ticks = sorted(table["side"].unique())
    figure.update_xaxes(type="log", tickvals=ticks, ticktext=[str(tick) for tick in ticks], title={"text": "√K"})
    figure.update_yaxes(type="log", title={"text": "multiplications"}, exponentformat="power", dtick=2)
    return frame(figure, p, 340, legend=True)


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
