"""The answer of a study as one page of HTML (page.html) that needs no network: plotly's script is inside."""

from pathlib import Path
from typing import Any

import jinja2
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from elastic_core.text import escape_plotly

TEMPLATE = Path(__file__).with_name("page.html")


def render_page(answer: dict[str, Any]) -> str:
    """HTML, UTF-8. Whatever comes from the data is text and does nothing."""
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(TEMPLATE.read_text("utf-8"))
    library = f"<script>{get_plotlyjs()}</script>"
    return template.render(library=library, draw=draw_html, **{key: answer[key] for key in ("title", "headline", "sections")})


def draw_html(part: dict[str, Any]) -> str:
    return str(draw_chart(part).to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False}))


def draw_chart(part: dict[str, Any]) -> go.Figure:
    """Lines over what is asked, or points by a logarithm of time; with 95% intervals."""
    figure, as_points = go.Figure(), part["kind"] == "points"
    for one in part["points"] if as_points else part["series"]:
        x, y, low, high = ([one[key]] if as_points else one.get(key, part["x"]) for key in ("x", "y", "low", "high"))
        above, below = [b - a for a, b in zip(y, high, strict=True)], [a - b for a, b in zip(y, low, strict=True)]
        figure.add_scatter(
            x=x, y=y, name=escape_plotly(one["name"]), mode="markers" if as_points else "lines+markers",
            error_y={"array": above, "arrayminus": below, "width": 3, "thickness": 1},
        )  # fmt: skip
    return figure.update_layout(
        template="plotly_white", height=380, margin={"t": 20, "b": 50}, showlegend=True, yaxis_rangemode="tozero",
        xaxis={"title": escape_plotly(part["x_title"]), "type": "log" if as_points else "category"},
        yaxis_title=escape_plotly(part["y_title"]),
    )  # fmt: skip
