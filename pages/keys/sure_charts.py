"""The figure of *How sure?* on the page on product keys: what learns. Pure: no streamlit, no state."""

import pandas as pd

from pages.kit.plot import Palette, frame
from pages.kit.sketch import Sketch


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
