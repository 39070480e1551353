"""Figures of systems. Pure: tables in, plotly figures out."""

import textwrap

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from elastic_core.text import escape_plotly as safe
from elastic_core.text import true_minus
from pages.components import plot
from pages.components.plot import Palette

LAYOUT = {
    "margin": {"l": 8, "r": 16, "t": 44, "b": 8}, "dragmode": False, "hovermode": "closest", "showlegend": False,
    "xaxis": {"fixedrange": True}, "yaxis": {"fixedrange": True},
}  # fmt: skip
LINE_HEIGHT, TWO_LINES = 25, 36  # pixels of a row, and of one whose name takes two lines


def draw_forest(
    table: pd.DataFrame,
    colours: Palette,
    sides: tuple[str, str],
    row: str = "short",
    family: str | None = None,
    reach: float = 0.0,
) -> go.Figure:
    """A minus B in NDCG@10, which people know as `sides`, with its interval, one line a row, zero marked. Filled where a
    difference may be claimed (`winner`), else hollow.

    `table`: the columns `row` names, n, A, B, difference, low, high, winner. With `family`, a column, rows of one family stand
    under its name. `reach`: how far from zero the axis goes at least, so that charts can share it."""
    rows, heads = _place_rows(table.assign(name=table[row].map(safe), label=table[row].map(_two_lines)), family)
    claimed = (rows["winner"] != "").to_numpy()
    colour = np.where(rows["difference"] > 0, colours.cool[1], colours.warm[1])
    a, b = map(safe, sides)
    figure = go.Figure()
    figure.add_vline(x=0, line_color=colours.text, line_width=1)
    for i, (low, high, y) in enumerate(rows[["low", "high", "y"]].itertuples(index=False)):
        width = 3 if claimed[i] else 1.5
        figure.add_scatter(x=[low, high], y=[y, y], mode="lines", hoverinfo="skip", line_color=colour[i], line_width=width)
    figure.add_scatter(
        x=rows["difference"], y=rows["y"], mode="markers", customdata=rows[["name", "n", "low", "high", "A", "B"]],
        marker_size=10, marker_color=np.where(claimed, colour, colours.ground), marker_line_color=colour, marker_line_width=2,
        hovertemplate="<b>%{customdata[0]}</b><br>" + a + " %{customdata[4]:.4f}<br>" + b + " %{customdata[5]:.4f}<br>"
        "Difference %{x:+.4f} (%{customdata[2]:+.4f} to %{customdata[3]:+.4f})<br>%{customdata[1]:,} people<extra></extra>",
    )  # fmt: skip
    top = float(rows["y"].max()) + (1.6 if heads else 0.7)
    same_n = len(rows) > 1 and rows["n"].nunique() == 1  # then it is said once, below
    span = float(max(rows["high"].max(), -rows["low"].min(), reach, 1e-4))
    title = "NDCG@10, difference" + (f"<br>n = {rows['n'].iloc[0]:,}" if same_n else "")
    row_height = TWO_LINES if rows["label"].str.contains("<br>").any() else LINE_HEIGHT
    figure.update_layout(LAYOUT, height=124 + int(row_height * top), annotations=_place_notes(rows, colours, sides, top, same_n))
    figure.update_xaxes(
        title=title, range=[-1.1 * span, (1.1 if same_n else 1.75) * span], tickformat="+.2f" if span > 0.02 else "+.3f",
        nticks=5, tickangle=0, zeroline=False,
    )  # fmt: skip
    ticks = dict(zip(rows["y"], rows["label"], strict=True)) | {y: f"<b>{safe(text)}</b>" for y, text in heads.items()}
    figure.update_yaxes(tickvals=list(ticks), ticktext=list(ticks.values()), showgrid=False, zeroline=False, range=[-0.7, top])
    return figure


def _place_rows(table: pd.DataFrame, family: str | None) -> tuple[pd.DataFrame, dict[float, str]]:
    """The rows with a height `y`, the first at the top, and the heights of the families' names."""
    if family is None:
        return table.assign(y=np.arange(len(table), dtype=float)[::-1]), {}
    starts = table[family] != table[family].shift()
    down = np.arange(len(table)) + 1.4 * starts.cumsum().to_numpy()  # a family's name takes more than a row
    heights = down.max() - down
    heads = dict(zip(heights[starts.to_numpy()] + 1, table.loc[starts, family], strict=True))
    return table.assign(y=heights), heads


def _place_notes(rows: pd.DataFrame, colours: Palette, sides: tuple[str, str], top: float, same_n: bool) -> list[dict]:
    """How many people each row has, where they differ, and on which side of zero who is ahead."""
    quiet = {"showarrow": False, "font": {"size": 11, "color": colours.muted}}
    notes = [
        quiet | {"x": 1, "xref": "paper", "xanchor": "right", "y": y, "text": f"n = {n:,}", "xshift": 4}
        for n, y in rows[["n", "y"]].itertuples(index=False)
        if not same_n
    ]
    a, b = (textwrap.shorten(safe(side), 34, placeholder=" …") for side in sides)
    above = quiet | {"y": top, "yanchor": "bottom", "xanchor": "right"}
    notes.append(above | {"x": 0, "text": f"◀ {b} ahead", "xshift": -6})
    # at the edge, as on a phone there is no room right of zero
    notes.append(above | {"x": 1, "xref": "paper", "text": f"{a} ahead ▶", "yshift": 16})
    return notes


def _two_lines(name: str) -> str:
    """A name that leaves room for the interval; the whole of it is in the hover."""
    return "<br>".join(safe(line) for line in textwrap.wrap(str(name), 36, max_lines=2, placeholder=" …"))


def draw_personal_gain(gains: pd.DataFrame, colours: Palette) -> go.Figure:
    """Personal minus shared experts in NDCG@10, with intervals, against interests an expert (a logarithm): a line through made-up
    worlds of one model and k, single marks with their names for real data. Filled where a difference may be claimed."""
    figure = go.Figure()
    figure.add_hline(y=0, line_color=colours.text, line_width=1)
    groups = gains.assign(
        name=np.where(gains["made up"], "Made up, ", "Real, ") + gains["model"] + ", k = " + gains["k"].astype(str)
    )
    # one name a data set: the first two and the last to the left, the third above, so that names stay apart and inside
    real = gains[~gains["made up"].astype(bool)].drop_duplicates("data").sort_values("interests an expert").index
    label_place = dict.fromkeys(real, "bottom right") | dict.fromkeys(real[-1:], "bottom left")
    label_place |= dict.fromkeys(real[:1], "top left") | dict.fromkeys(real[1:2], "bottom left")
    label_place |= dict.fromkeys(real[2:3], "top right")
    for at, (name, rows) in enumerate(groups.groupby("name", sort=True)):
        is_made_up, colour = bool(rows["made up"].iloc[0]), colours.category_colour(at)
        labels = [_brief(data) if row in label_place else "" for row, data in rows["data"].items()]
        figure.add_scatter(
            x=rows["interests an expert"], y=rows["difference"], name=safe(str(name)),
            customdata=rows[["data", "low", "high", "people"]],
            mode="lines+markers" if is_made_up else "markers+text", text=None if is_made_up else labels,
            textposition=[label_place.get(row, "bottom left") for row in rows.index], textfont_size=11, line_color=colour,
            line_width=1.5, marker_size=10,
            marker_symbol=plot.SYMBOLS[at % len(plot.SYMBOLS)], marker_line_width=2, marker_line_color=colour,
            marker_color=np.where(rows["winner"] != "", colour, colours.ground).tolist(),
            error_y={
                "color": colour, "array": rows["high"] - rows["difference"], "arrayminus": rows["difference"] - rows["low"],
                "width": 3, "thickness": 1.2,
            },
            hovertemplate="<b>%{customdata[0]}</b><br>%{y:+.4f} (%{customdata[1]:+.4f} to %{customdata[2]:+.4f})<br>"
            "%{x:.3g} interests an expert, %{customdata[3]:,} people<extra></extra>",
        )  # fmt: skip
    figure.update_layout(LAYOUT, height=420, showlegend=True, legend={"orientation": "h", "y": -0.2, "yanchor": "top"})
    edges = np.log2(gains["interests an expert"].agg(["min", "max"]))
    ticks = [2.0**at for at in range(int(np.floor(edges["min"])), int(np.ceil(edges["max"])) + 1)]
    figure.update_xaxes(
        title="interests for each retrieved expert", type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks],
        range=(np.log10([ticks[0] * 0.85, ticks[-1] * 1.1])).tolist(),
    )  # fmt: skip
    return figure.update_yaxes(title="personal − shared, NDCG@10", tickformat="+.3f", zeroline=False)


def _brief(title: str) -> str:
    return safe(title.removesuffix(" (reassembled)").replace("A year of ", ""))


def draw_ownership(table: pd.DataFrame, colours: Palette) -> go.Figure:
    """A bar a system: for which part of the people the first suggestion belongs to one expert, with a line where chance would be
    and, beside it, what the setting costs in NDCG@10."""
    rows = table[::-1].reset_index(drop=True)
    names = [f"{_brief(data)}, k = {k}" for data, k in rows[["data", "k"]].itertuples(index=False)]
    costs = [
        "" if np.isnan(change) else f"  NDCG@10 {change:+.1%} ({low:+.1%} to {high:+.1%})"
        for change, low, high in rows[["change", "low", "high"]].itertuples(index=False)
    ]
    figure = go.Figure()
    figure.add_bar(
        x=rows["belongs"], y=list(range(len(rows))), orientation="h", marker_color=colours.categories[0], width=0.6,
        text=[true_minus(f"{part:.0%}{cost}") for part, cost in zip(rows["belongs"], costs, strict=True)], textposition="outside",
        cliponaxis=False, customdata=rows[["system", "chance", "people", "runs"]].map(lambda value: safe(str(value))),
        hovertemplate="<b>%{customdata[0]}</b><br>%{x:.1%} of %{customdata[2]} people, runs: %{customdata[3]}<extra></extra>",
        name="belongs to one expert",
    )  # fmt: skip
    figure.add_scatter(
        x=rows["chance"], y=list(range(len(rows))), mode="markers", marker_symbol="line-ns-open", marker_size=18,
        marker_line_width=3, marker_color=colours.text, name="by chance",
        hovertemplate="By chance: %{x:.1%}<extra></extra>",
    )  # fmt: skip
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}
    figure.update_layout(LAYOUT, height=110 + 34 * len(rows), showlegend=True, legend=legend)
    title = "people whose first suggestion belongs to one expert"
    figure.update_xaxes(title=title, range=[0, 1.05], tickformat=".0%", dtick=0.25)
    return figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=names, showgrid=False, zeroline=False)


def draw_memory_size(table: pd.DataFrame, n_subkeys: int, k: int, colours: Palette) -> go.Figure:
    """The paper's Figure 5: NDCG@10 (dots with 95% intervals) and share of experts in use (diamonds, right axis), on the left
    against √K where k experts are retrieved, on the right against k where √K is `n_subkeys`."""
    figure = make_subplots(
        1, 2, specs=[[{"secondary_y": True}] * 2], subplot_titles=(f"k = {k}", f"√K = {n_subkeys}"), horizontal_spacing=0.08
    )
    panels = (("√K", table[table["k"] == k]), ("k", table[table["√K"] == n_subkeys]))
    for place, (name, part) in enumerate(panels, start=1):
        marks = {"x": part[name], "mode": "markers", "marker_size": 10, "text": part["runs"].map(safe), "row": 1, "col": place}
        figure.add_scatter(
            **marks, y=part["NDCG@10"], name="NDCG@10", showlegend=place == 1, marker_color=colours.categories[0],
            error_y={"type": "data", "array": part["± 95%"], "thickness": 1.2},
            hovertemplate="<b>%{text}</b><br>NDCG@10 %{y:.4f}<extra></extra>",
        )  # fmt: skip
        figure.add_scatter(
            **marks, y=part["in use"], name="experts in use", showlegend=place == 1, marker_color=colours.categories[4],
            marker_symbol="diamond-open", marker_line_width=2, secondary_y=True,
            hovertemplate="<b>%{text}</b><br>%{y:.1%} of experts in use<extra></extra>",
        )  # fmt: skip
        ticks = sorted({int(value) for value in part[name]})
        figure.update_xaxes(title=name, type="log", tickvals=ticks, ticktext=list(map(str, ticks)), row=1, col=place)
    top = float((table["NDCG@10"] + table["± 95%"].fillna(0)).max())
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True, range=[0, 1.05 * top], secondary_y=False)  # one scale for both panels
    figure.update_yaxes(fixedrange=True, range=[0, 1.05], tickformat=".0%", dtick=0.25, showgrid=False, secondary_y=True)
    return figure.update_layout(
        plot.LAYOUT, height=340, margin_t=60, legend_y=1.14, yaxis_title="test NDCG@10", yaxis2_showticklabels=False
    )
