"""A sketch is what plotly would have made: of the same calls, and as far as plotly knows every word, on every screen."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from pages.kit.plot import LIGHT, frame
from pages.kit.sketch import Sketch

TABLE = pd.DataFrame({"x": [1, 2, 3], "y": [0.5, float("nan"), 2.0], "name": ["a", "b", "c"]})


def one(figure: Any) -> Any:
    figure.add_scatter(
        x=TABLE["x"],
        y=TABLE["y"],
        text=None,
        customdata=TABLE[["x", "name"]],
        marker={"color": TABLE["x"], "size": 4, "line": None},
    )
    figure.add_scattergl(x=np.arange(3), y=[1, 2, 3], hovertemplate="%{x}")
    figure.add_annotation(x=1, y=2, text="here", showarrow=False)
    figure.update_layout({"margin": {"l": 1, "r": 2}}, height=200)
    figure.update_layout(margin={"l": 5}, legend={"orientation": "h"})
    figure.update_xaxes({"range": [0, 3], "type": "linear"}, title={"text": "x"})
    figure.update_yaxes(range=[0, 1])
    figure.update_yaxes(autorange="reversed")
    return frame(figure, LIGHT, 300, legend=True)


def ends(figure: Any) -> Any:
    figure.add_vline(x=1, line={"width": 2})
    figure.add_hline(y=0.5, line={"dash": "dot"})
    figure.add_hline(y=0.7, line_dash="dot", line={"width": 3})
    figure.update_xaxes(title_text="x", title_standoff=4)
    figure.add_scatter(x=[1, 2], y=[3, 4], unselected_marker_opacity=1, marker_line_color="red", marker_size=[1, 2])
    figure.add_vrect(x0=0, x1=1, fillcolor="red", opacity=0.1, layer="below")
    figure.add_hrect(y0=0, y1=1, fillcolor="red", line={"width": 0})
    return figure.add_bar(x=[1, 2], y=[3, 4], orientation="h", marker={"color": ["red", "blue"]})


def several(figure: Any) -> Any:
    figure.add_heatmap(z=np.arange(6.0).reshape(2, 3), x=np.arange(3), text=[["a", "b", "c"]] * 2, row=1, col=1)
    figure.add_bar(x=[1, 2], y=["p", "q"], row=1, col=2)
    figure.add_scatter(x=TABLE["x"], y=TABLE["y"], row=2, col=1)
    figure.update_xaxes({"tickvals": np.arange(2)}, row=1, col=2)
    figure.update_xaxes(zeroline=False, row=2)
    figure.update_yaxes(showgrid=False, col=1)
    figure.update_yaxes(range=[0, 2])
    figure.update_annotations(font={"size": 12})
    return figure.update_layout(shapes=[{"type": "line", "x0": 0, "x1": 1, "y0": 0, "y1": 1}])


GRID: dict[str, Any] = {
    "shared_yaxes": True,
    "horizontal_spacing": 0.04,
    "subplot_titles": ("a", "b", "c", "d"),
    "column_widths": [0.6, 0.4],
}


@pytest.mark.parametrize(
    ("draw", "given"), [(one, {}), (ends, {}), (several, GRID), (several, {"shared_xaxes": True, "row_heights": [0.3, 0.7]})]
)
def test_a_sketch_is_what_plotly_makes_of_the_same_calls(draw: Callable[[Any], Any], given: dict[str, Any]) -> None:
    sizes = (2, 2) if given else (1, 1)
    sketch, figure = draw(Sketch(*sizes, **given)), draw(make_subplots(*sizes, **given) if given else go.Figure())
    assert same(sketch.checked()) == same(figure)
    again = draw(Sketch(*sizes, **given))  # the plots' places are kept: nothing of the first sketch may be left in them
    assert same(again.checked()) == same(figure)


def same(figure: go.Figure) -> Any:
    plain = json.loads(figure.to_json())
    for shape in plain["layout"].get("shapes", []):
        shape.pop("name", None)
    return {"data": plain["data"], "layout": {name: value for name, value in plain["layout"].items() if name != "template"}}


def test_a_word_that_plotly_does_not_know_is_found() -> None:
    with pytest.raises(ValueError, match="colour"):
        Sketch().add_bar(x=[1], y=[2], marker={"colour": "red"}).checked()
