"""The figure of the step *Vote* of the page on product keys: tables to a plotly figure. Pure: no streamlit, no state."""

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from elastic_core.services.person.inspect import ItemWords
from elastic_core.text import escape_plotly as safe
from pages.components.plot import STEADY, Chart, Palette, panel_layout, style_figure

STROKE, SQUARE = 24, 14  # pixels of the weightiest vote of one event, and of those of all earlier ones


def draw_votes(marks: pd.DataFrame, sums: pd.DataFrame, event: int, item_words: ItemWords, p: Palette) -> Chart:
    """Who voted for whom: events along x (`marks` with their `title`), a row an elected expert and one for all others, and
    beside each row the sum of its votes and, in brackets, how many are usual. The event that is looked at has a line, too."""
    k = len(sums) - 1
    elected_sums, colours = sums[:k], [p.load[-1]] * k + [p.muted]
    names = [*(f"{row.place}. expert {row.expert}" for row in elected_sums.itertuples()), "all others"]
    single = marks["event"] > 0
    drawn_text = f"votes of {'all' if single.all() else 'the last'} {item_words.plural}"
    first, last = int(marks.loc[single, "event"].min()), int(marks["event"].max())
    data: list[dict[str, Any]] = []
    stroke = {"symbol": "line-ns-open", "line": {"width": 3}}
    for selection, marker, power in ((single, stroke, 1), (~single, {"symbol": "square"}, 0.5)):  # by height, and by area
        part = marks[selection]
        size = (part["votes"] / part["votes"].max()) ** power * (STROKE if power == 1 else SQUARE)
        numbered = [f"{n}. {title}" if n else "" for n, title in zip(part["event"], part["title"], strict=True)]
        texts = [
            f"{safe(name)}<br>expert {row.experts}: {row.share:.0%} of its vote, {row.votes:.1%} of all votes" if name
            else f"all {item_words.plural} before: {row.votes:.1%} of all votes"
            for name, row in zip(numbered, part.itertuples(), strict=True)
        ]  # fmt: skip
        data.append({
            "type": "scatter", "x": part["event"].where(part["event"] > 0, first - 2).tolist(), "y": part["row"].tolist(),
            "xaxis": "x", "yaxis": "y", "mode": "markers", "name": "votes", "customdata": [[name] for name in numbered],
            "marker": {"color": [colours[row] for row in part["row"]], "size": size.clip(lower=3).tolist(), **marker},
            "hovertext": texts, "hovertemplate": "%{hovertext}<extra></extra>", **STEADY,
        })  # fmt: skip
    data.append({  # of all others only the number: its bar would make those of the elected short
        "type": "bar", "x": [*elected_sums["votes"], 0], "y": list(range(k + 1)), "xaxis": "x2", "yaxis": "y2",
        "orientation": "h", "marker": {"color": colours}, "customdata": sums[["votes", "events"]].to_numpy(),
        "textposition": "outside",
        "text": [*(f"{row.votes:.0%} ({row.usual:.1%})" for row in elected_sums.itertuples()), f"{sums['votes'].iloc[k]:.0%}"],
        "cliponaxis": False,
        "hovertemplate": "%{customdata[0]:.1%} of all votes, from %{customdata[1]} " + item_words.plural + "<extra></extra>",
    })  # fmt: skip
    layout = panel_layout([0.78, 0.22], (drawn_text, "share of votes (average)"), p, gap=0.02) | {
        "height": 90 + 30 * (k + 1), "margin": {"l": 8, "r": 8, "t": 30, "b": 8}, "showlegend": False, "dragmode": False,
        "font": {"color": p.text}, "uirevision": "keep",
    }  # fmt: skip
    earlier_tick = {} if single.all() else {first - 2: "before"}
    ticks = earlier_tick | {first: "" if earlier_tick else str(first)} | {last: str(last)}
    plain = {"showgrid": False, "zeroline": False, "fixedrange": True}
    layout["xaxis"] |= plain | {
        "tickvals": list(ticks), "ticktext": list(ticks.values()), "range": [min(ticks) - 1, last + 1],
        "title": {"text": f"{item_words.plural}, old to new", "standoff": 0},
    }  # fmt: skip
    layout["xaxis2"] |= plain | {"showticklabels": False, "range": [0, 2 * max(float(elected_sums["votes"].max()), 1e-6)]}
    rows = {"range": [k + 0.5, -0.5], "tickvals": list(range(k + 1)), "ticktext": names}
    layout["yaxis"] |= plain | rows | {"showgrid": True, "gridcolor": p.line}
    layout["yaxis2"] |= plain | rows
    if event >= first:  # the event that is looked at
        line = {"color": p.gold, "width": 6}
        layout["shapes"] = [
            {"type": "line", "x0": event, "x1": event, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain", "line": line,
             "layer": "below", "opacity": 0.35}
        ]  # fmt: skip
    return {"data": data, "layout": layout}


def draw_toy_loss(curve: pd.DataFrame, p: Palette) -> go.Figure:
    """The toy's loss with a gate and without."""
    figure = go.Figure()
    styles = {"softmax": ("with the gate", p.categories[2], "solid"), "none": ("without", p.categories[4], "dash")}
    for gate, part in curve.groupby("gate", sort=False):
        name, colour, dash = styles[str(gate)]
        hover = "step %{x}: loss %{y:.2f}<extra>" + name + "</extra>"
        line = {"color": colour, "dash": dash, "width": 3}
        figure.add_scatter(x=part["step"], y=part["loss"], mode="lines", name=name, line=line, hovertemplate=hover)
    figure.update_xaxes(title_text="training step")
    figure.update_yaxes(title_text="loss (mean squared error)", rangemode="tozero")
    return style_figure(figure, p, 320, legend=True)
