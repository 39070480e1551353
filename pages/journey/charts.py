"""Figures of the Journey page: tables to plotly, as plain dictionaries (pages/components/plot.py: `Chart`)."""

from typing import Any

import numpy as np
import pandas as pd

from elastic_core.text import escape_plotly as safe
from pages.components.plot import Chart, Palette, colour_scale, panel_layout

SYMBOLS = {"training": "circle", "validation": "diamond", "test": "star"}
SIZES = {"training": 8, "validation": 10, "test": 13}
PLAIN: dict[str, Any] = {"showgrid": False, "zeroline": False, "fixedrange": True}


def draw_influence(table: pd.DataFrame, labels: list[str], colours: Palette) -> Chart:
    """What each removal costs, and beside it how much attention the event got; `labels` name the rows, first on top."""
    known, labels = bool(table["attention"].notna().any()), list(map(safe, labels))
    titles = ("with it, the chance is", "attention")[: 1 + known]
    layout = _panel_layout(
        panel_layout([0.62, 0.38][: 1 + known], titles, colours, gap=0.04), colours, 50 + 24 * len(table), r=16
    )
    change = table["change"].to_numpy()
    bars = _draw_bars(change, "%{customdata[0]}<br>change of log-chance %{x:+.3f}, %{customdata[1]} places") | {
        "marker": {"color": np.where(change >= 0, colours.warm[1], colours.cool[1]).tolist()},
        "text": [f"×{times:.2f}" if times < 10 else f"×{times:.0f}" for times in table["times"]],
        "constraintext": "none",
        "textangle": 0,
        "customdata": np.stack([labels, table["places"]], axis=1),
    }
    # Room for the texts at the ends of the bars.
    largest = max(float(np.abs(change).max()), 0.05)
    low, high = min(float(change.min()), -0.2 * largest), max(float(change.max()), 0.2 * largest)
    room = {"range": [1.1 * low - 0.6 * largest, 1.1 * high + 0.6 * largest], "showticklabels": False}
    layout["xaxis"] |= PLAIN | room | {"zeroline": True, "zerolinecolor": colours.muted}
    layout["yaxis"] |= _row_names(labels)
    if not known:
        return {"data": [bars], "layout": layout}
    weights = table["attention"].fillna(0).to_numpy()
    attention = _draw_bars(weights, "%{x:.2%} of the attention", "2") | {
        "marker": {"color": colours.muted},
        "text": [f"{weight:.1%}" for weight in weights],
    }
    layout["xaxis2"] |= PLAIN | {"range": [0, 1.45 * max(float(weights.max()), 1e-6)], "showticklabels": False}
    layout["yaxis2"] |= PLAIN
    return {"data": [bars, attention], "layout": layout}


def draw_aggregation(cells: pd.DataFrame, slots: pd.DataFrame, titles: list[str], colours: Palette) -> Chart:
    """Experts × events: how each expert spreads its reading (left), how the last event reads the experts (right).

    `titles`: one per span of events, for the hover text. A cell is coloured by weight against an even reading.
    """
    grid = cells.pivot(index="place", columns="first", values="weight").to_numpy()
    spans, reads = cells.drop_duplicates("first"), slots["reads"].to_numpy()
    width = (spans["last"] - spans["first"] + 1).to_numpy()
    ratio = np.sqrt(grid / (width / width.sum()))  # the square root keeps one very hot cell from hiding the others
    heat = {
        "type": "heatmap", "z": ratio, "x": np.arange(len(spans)), "y": np.arange(len(slots)), "xaxis": "x", "yaxis": "y",
        "colorscale": colour_scale(colours.load), "zmin": 0, "zmax": max(2.0, float(ratio.max())), "showscale": False,
        "xgap": 1, "ygap": 2, "hovertemplate": "%{text}<extra></extra>",
        "text": [
            [f"{safe(title)}<br>{weight:.1%} of this expert’s reading" for title, weight in zip(titles, row, strict=True)]
            for row in grid
        ],
    }  # fmt: skip
    bars = _draw_bars(reads, "%{x:.1%}", "2") | {"marker": {"color": colours.muted}, "text": [f"{part:.0%}" for part in reads]}
    layout = panel_layout([0.76, 0.24], ("where each expert looks", "last event"), colours, gap=0.03)
    layout = _panel_layout(layout, colours, 70 + 30 * len(slots), b=24, r=16)
    ends = [0, len(spans) - 1] if len(spans) > 1 else [0]
    marks = [f"event {spans['first'].iloc[0]}", f"event {spans['last'].iloc[-1]}"][: len(ends)]
    layout["xaxis"] |= PLAIN | {"tickvals": ends, "ticktext": marks, "ticks": ""}
    layout["xaxis2"] |= PLAIN | {"showticklabels": False, "range": [0, 1.5 * float(reads.max())]}
    layout["yaxis"] |= _row_names([f"expert {expert}" for expert in slots["expert"]])
    layout["yaxis2"] |= PLAIN
    return {"data": [heat, bars], "layout": layout}


def draw_moments(
    ranks: pd.DataFrame, experts: pd.DataFrame, moment: int, colours: Palette, other: pd.DataFrame | None, names: tuple[str, str]
) -> Chart:
    """Rank of what came next at every moment (click one to go there), and the experts retrieved then, as squares."""
    rows = 1 if experts.empty else 2
    titles = ("rank of what came next (1 is best)", "experts retrieved")[:rows]
    layout = panel_layout([0.45, 0.55][:rows], titles, colours, gap=0.1, stacked=True)
    layout = _panel_layout(layout, colours, 260 if rows == 1 else 560, b=36) | {"clickmode": "event+select"}
    data = [] if other is None else [_draw_line(other, colours.categories[1], names[1], dash="dot")]
    data.append(_draw_line(ranks, colours.picked, names[0], dash="solid"))
    worst = float(max(ranks["rank"].max(), 10 if other is None else other["rank"].max()))
    ticks = [tick for tick in (1, 10, 100, 1_000, 10_000) if tick <= worst * 1.4]
    layout["yaxis"] |= PLAIN | {
        "type": "log",
        "range": [np.log10(worst) + 0.15, -0.2],
        "tickvals": ticks,
        "ticktext": [f"{tick:,}" for tick in ticks],
    }
    if rows > 1:
        # A row per expert in the order of first appearance.
        places, order = pd.factorize(experts["expert"])
        data.append(_draw_squares(experts, places, colours))
        layout["yaxis2"] |= _row_names([f"expert {expert}" for expert in order]) | {"tickfont": {"size": 11}}
    for axis in ("xaxis", "xaxis2")[:rows]:
        layout[axis] |= PLAIN | {"range": [0, float(ranks["event"].max()) * 1.02 + 0.5]}
    layout[axis] |= {"title": {"text": "events read", "standoff": 4}}
    line = {"type": "line", "xref": "x", "yref": "paper", "x0": moment, "x1": moment, "y0": 0, "y1": 1}
    layout["shapes"] = [line | {"line": {"color": colours.gold, "width": 2}, "layer": "below"}]
    return {"data": data, "layout": layout}


def _panel_layout(axes: dict[str, Any], colours: Palette, height: int, **margin: int) -> dict[str, Any]:
    """The layout of `panels` with size and letters."""
    return axes | {
        "height": height, "margin": {"l": 2, "r": 8, "t": 28, "b": 4} | margin, "showlegend": False, "dragmode": False,
        "hovermode": "closest", "font": {"color": colours.text}, "uirevision": "journey",
    }  # fmt: skip


def _draw_bars(lengths: np.ndarray, hover: str, panel: str = "") -> dict[str, Any]:
    """A bar for every row, the first on top."""
    return {
        "type": "bar", "x": lengths, "y": np.arange(len(lengths)), "xaxis": f"x{panel}", "yaxis": f"y{panel}",
        "orientation": "h", "textposition": "outside", "cliponaxis": False, "hovertemplate": f"{hover}<extra></extra>",
    }  # fmt: skip


def _row_names(names: list[str]) -> dict[str, Any]:
    return PLAIN | {"autorange": "reversed", "tickvals": np.arange(len(names)), "ticktext": names, "ticks": ""}


def _draw_line(ranks: pd.DataFrame, colour: str, run: str, dash: str) -> dict[str, Any]:
    name = safe(run)
    return {
        "type": "scatter", "x": ranks["event"].to_numpy(), "y": ranks["rank"].to_numpy(), "xaxis": "x", "yaxis": "y",
        "mode": "lines+markers", "name": name, "line": {"color": colour, "width": 1.5, "dash": dash},
        "marker": {"color": colour, "size": ranks["part"].map(SIZES).tolist(), "symbol": ranks["part"].map(SYMBOLS).tolist()},
        "customdata": np.stack([ranks["event"], ranks["title"].map(safe), ranks["part"], ranks["running"]], axis=1),
        "hovertemplate": f"<b>{name}</b><br>after %{{x}} events: %{{customdata[1]}}<br>"
        "rank %{y} of %{customdata[3]} (%{customdata[2]})<extra></extra>",
        "unselected": {"marker": {"opacity": 1}},
    }  # fmt: skip


def _draw_squares(experts: pd.DataFrame, places: np.ndarray, colours: Palette) -> dict[str, Any]:
    """A square where an expert is retrieved; darker = more weight."""
    return {
        "type": "scatter", "x": experts["event"].to_numpy(), "y": places, "xaxis": "x2", "yaxis": "y2", "mode": "markers",
        "name": "experts", "customdata": experts[["event", "expert", "place", "gate"]].to_numpy(),
        "marker": {
            "symbol": "square", "size": 8, "color": experts["gate"].to_numpy(), "colorscale": colour_scale(colours.load[1:]),
            "line": {"width": 0},
        },
        "hovertemplate": "<b>expert %{customdata[1]}</b> after %{x} events<br>"
        "place %{customdata[2]}, weight %{customdata[3]:.2f}<extra></extra>",
        "unselected": {"marker": {"opacity": 1}},
    }  # fmt: skip
