"""Figures of the journey page: tables to plotly. Pure."""

from typing import Any

import numpy as np
import pandas as pd

from elastic_core.text import figure as safe
from pages.kit.plot import Palette, scale
from pages.kit.sketch import Sketch

SYMBOLS = {"training": "circle", "validation": "diamond", "test": "star"}
SIZES = {"training": 8, "validation": 10, "test": 13}
PLAIN: dict[str, Any] = {"showgrid": False, "zeroline": False, "fixedrange": True}


def _dress(figure: Sketch, colours: Palette, height: int, **margin: int) -> Sketch:
    figure.update_layout(
        height=height, margin={"l": 2, "r": 8, "t": 28, "b": 4} | margin, showlegend=False, dragmode=False, hovermode="closest",
        font_color=colours.text, uirevision="journey",
    )  # fmt: skip
    figure.update_annotations(font={"size": 12, "color": colours.muted})
    return figure


def _bars(figure: Sketch, lengths: np.ndarray, colour: object, texts: list[str], hover: str, col: int, **look: Any) -> None:
    """A bar for every row, the first on top."""
    figure.add_bar(
        x=lengths, y=np.arange(len(lengths)), orientation="h", marker_color=colour, text=texts, textposition="outside",
        cliponaxis=False, hovertemplate=f"{hover}<extra></extra>", row=1, col=col, **look,
    )  # fmt: skip


def _name_rows(figure: Sketch, names: list[str], **where: int) -> None:
    figure.update_yaxes(
        PLAIN | {"autorange": "reversed", "tickvals": np.arange(len(names)), "ticktext": names, "ticks": ""}, **where
    )


def influence(table: pd.DataFrame, labels: list[str], colours: Palette) -> Sketch:
    """What each removal costs, and beside it how much attention the event got; `labels` name the rows, first on top."""
    known, labels = bool(table["attention"].notna().any()), list(map(safe, labels))
    figure = Sketch(
        1, 1 + known, shared_yaxes=True, horizontal_spacing=0.04, column_widths=[0.62, 0.38] if known else None,
        subplot_titles=("with it, the chance is", "attention")[: 1 + known],
    )  # fmt: skip
    change = table["change"].to_numpy()
    largest = max(float(np.abs(change).max()), 0.05)
    _bars(
        figure, change, np.where(change >= 0, colours.warm[1], colours.cool[1]).tolist(),
        [f"×{times:.2f}" if times < 10 else f"×{times:.0f}" for times in table["times"]],
        "%{customdata[0]}<br>change of log-chance %{x:+.3f}, %{customdata[1]} places", 1,
        constraintext="none", textangle=0, customdata=np.stack([labels, table["places"]], axis=1),
    )  # fmt: skip
    low, high = min(float(change.min()), -0.2 * largest), max(float(change.max()), 0.2 * largest)
    room = {"range": [1.1 * low - 0.6 * largest, 1.1 * high + 0.6 * largest], "showticklabels": False}
    figure.update_xaxes(PLAIN | room | {"zeroline": True, "zerolinecolor": colours.muted}, row=1, col=1)
    if known:
        weights = table["attention"].fillna(0).to_numpy()
        _bars(figure, weights, colours.muted, [f"{weight:.1%}" for weight in weights], "%{x:.2%} of the attention", 2)
        figure.update_xaxes(PLAIN | {"range": [0, 1.45 * max(float(weights.max()), 1e-6)], "showticklabels": False}, row=1, col=2)
    _name_rows(figure, labels, col=1)
    figure.update_yaxes(PLAIN | {"showticklabels": False}, col=2)
    return _dress(figure, colours, 50 + 24 * len(table), r=16)


def aggregation(cells: pd.DataFrame, slots: pd.DataFrame, titles: list[str], colours: Palette) -> Sketch:
    """Experts × events: how each expert spreads its reading (left), how the last event reads the experts (right).

    `titles`: one per span of events, for the hover text. A cell is coloured by weight against an even reading.
    """
    grid = cells.pivot(index="place", columns="first", values="weight").to_numpy()
    spans, reads = cells.drop_duplicates("first"), slots["reads"].to_numpy()
    width = (spans["last"] - spans["first"] + 1).to_numpy()
    ratio = np.sqrt(grid / (width / width.sum()))  # the square root keeps one very hot cell from hiding the others
    figure = Sketch(
        1, 2, shared_yaxes=True, horizontal_spacing=0.03, column_widths=[0.76, 0.24],
        subplot_titles=("where each expert looks", "last event"),
    )  # fmt: skip
    texts = [
        [f"{safe(title)}<br>{weight:.1%} of this expert’s reading" for title, weight in zip(titles, row, strict=True)]
        for row in grid
    ]
    figure.add_heatmap(
        z=ratio, x=np.arange(len(spans)), y=np.arange(len(slots)), colorscale=scale(colours.load), zmin=0,
        zmax=max(2.0, float(ratio.max())), showscale=False, xgap=1, ygap=2, text=texts, hovertemplate="%{text}<extra></extra>",
        row=1, col=1,
    )  # fmt: skip
    _bars(figure, reads, colours.muted, [f"{part:.0%}" for part in reads], "%{x:.1%}", 2)
    ends = [0, len(spans) - 1] if len(spans) > 1 else [0]
    marks = [f"event {spans['first'].iloc[0]}", f"event {spans['last'].iloc[-1]}"][: len(ends)]
    figure.update_xaxes(PLAIN | {"tickvals": ends, "ticktext": marks, "ticks": ""}, row=1, col=1)
    figure.update_xaxes(PLAIN | {"showticklabels": False, "range": [0, 1.5 * float(reads.max())]}, row=1, col=2)
    _name_rows(figure, [f"expert {expert}" for expert in slots["expert"]], col=1)
    figure.update_yaxes(PLAIN | {"showticklabels": False}, col=2)
    return _dress(figure, colours, 70 + 30 * len(slots), b=24, r=16)


def along(
    ranks: pd.DataFrame, experts: pd.DataFrame, here: int, colours: Palette, other: pd.DataFrame | None, names: tuple[str, str]
) -> Sketch:
    """Rank of what came next at every moment (click one to go there), and the experts retrieved then, as squares."""
    rows = 1 if experts.empty else 2
    figure = Sketch(
        rows, 1, shared_xaxes=True, vertical_spacing=0.1, row_heights=[0.45, 0.55] if rows > 1 else None,
        subplot_titles=("rank of what came next (1 is best)", "experts retrieved")[:rows],
    )  # fmt: skip
    if other is not None:
        _line(figure, other, colours.categories[1], names[1], dash="dot")
    _line(figure, ranks, colours.picked, names[0], dash="solid")
    worst = float(max(ranks["rank"].max(), 10 if other is None else other["rank"].max()))
    ticks = [tick for tick in (1, 10, 100, 1_000, 10_000) if tick <= worst * 1.4]
    look = {"type": "log", "range": [np.log10(worst) + 0.15, -0.2], "tickvals": ticks, "ticktext": [f"{t:,}" for t in ticks]}
    figure.update_yaxes(PLAIN | look, row=1)
    if rows > 1:
        _strip(figure, experts, colours)
    line = {"type": "line", "xref": "x", "yref": "paper", "x0": here, "x1": here, "y0": 0, "y1": 1}
    figure.update_layout(
        shapes=[line | {"line": {"color": colours.gold, "width": 2}, "layer": "below"}], clickmode="event+select"
    )
    figure.update_xaxes(PLAIN | {"range": [0, float(ranks["event"].max()) * 1.02 + 0.5]})
    figure.update_xaxes({"title": {"text": "events read", "standoff": 4}}, row=rows)
    return _dress(figure, colours, 260 if rows == 1 else 560, b=36)


def _line(figure: Sketch, ranks: pd.DataFrame, colour: str, run: str, dash: str) -> None:
    name = safe(run)
    figure.add_scatter(
        x=ranks["event"], y=ranks["rank"], mode="lines+markers", name=name, line_color=colour, line_width=1.5, line_dash=dash,
        marker_color=colour, marker_size=ranks["part"].map(SIZES), marker_symbol=ranks["part"].map(SYMBOLS),
        customdata=np.stack([ranks["event"], ranks["title"].map(safe), ranks["part"], ranks["running"]], axis=1),
        hovertemplate=f"<b>{name}</b><br>after %{{x}} events: %{{customdata[1]}}<br>"
        "rank %{y} of %{customdata[3]} (%{customdata[2]})<extra></extra>",
        unselected_marker_opacity=1, row=1, col=1,
    )  # fmt: skip


def _strip(figure: Sketch, experts: pd.DataFrame, colours: Palette) -> None:
    """A row per expert in the order of first appearance, a square where it is retrieved; darker = more weight."""
    rows, order = pd.factorize(experts["expert"])
    figure.add_scatter(
        x=experts["event"], y=rows, mode="markers", name="experts",
        marker_symbol="square", marker_size=8, marker_color=experts["gate"], marker_colorscale=scale(colours.load[1:]),
        marker_line_width=0, customdata=experts[["event", "expert", "place", "gate"]].to_numpy(),
        hovertemplate="<b>expert %{customdata[1]}</b> after %{x} events<br>"
        "place %{customdata[2]}, weight %{customdata[3]:.2f}<extra></extra>",
        unselected_marker_opacity=1, row=2, col=1,
    )  # fmt: skip
    _name_rows(figure, [f"expert {expert}" for expert in order], row=2)
    figure.update_yaxes({"tickfont": {"size": 11}}, row=2)
