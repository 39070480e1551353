"""A forest plot: differences with their intervals, one line a question. Pure: a table in, a plotly figure out."""

import textwrap

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from elastic_core.text import figure as safe
from pages.kit.plot import Palette

LAYOUT = {
    "margin": {"l": 8, "r": 8, "t": 8, "b": 8}, "dragmode": False, "hovermode": "closest", "showlegend": False,
    "xaxis": {"fixedrange": True}, "yaxis": {"fixedrange": True},
}  # fmt: skip


def forest(
    table: pd.DataFrame, colours: Palette, name: str, sides: tuple[str, str], row: str = "group", family: str | None = None
) -> go.Figure:
    """A minus B, which people know as `sides`, with its interval, one line a row, zero marked. Filled where a difference may be
    claimed (`who`), else hollow.

    `table`: the columns `row` names, n, A, B, difference, low, high, who. With `family`, a column, rows of one family stand
    under its name.
    """
    shown, heads = _placed(table.assign(**{row: table[row].map(safe), "short": table[row].map(_short)}), family)
    clear = (shown["who"] != "").to_numpy()
    tone = np.where(shown["difference"] > 0, colours.cool[1], colours.warm[1])
    figure, (a, b) = go.Figure(), map(safe, sides)
    figure.add_vline(x=0, line_color=colours.text, line_width=1)
    for i, (low, high, y) in enumerate(shown[["low", "high", "y"]].itertuples(index=False)):
        figure.add_scatter(
            x=[low, high], y=[y, y], mode="lines", hoverinfo="skip", line_color=tone[i], line_width=3 if clear[i] else 1.5
        )
    figure.add_scatter(
        x=shown["difference"], y=shown["y"], mode="markers", customdata=shown[[row, "n", "low", "high", "A", "B"]],
        marker_size=10, marker_color=np.where(clear, tone, colours.ground), marker_line_color=tone, marker_line_width=2,
        hovertemplate="<b>%{customdata[0]}</b><br>" + a + " %{customdata[4]:.4f}<br>" + b + " %{customdata[5]:.4f}<br>"
        "Difference %{x:+.4f} (%{customdata[2]:+.4f} to %{customdata[3]:+.4f})<br>%{customdata[1]:,} people<extra></extra>",
    )  # fmt: skip
    quiet = {"showarrow": False, "font": {"size": 11, "color": colours.muted}}
    alike = len(shown) > 1 and shown["n"].nunique() == 1  # then it is said once
    notes = [
        quiet | {"x": 1, "xref": "paper", "xanchor": "right", "y": y, "text": f"n = {n:,}", "xshift": 4}
        for n, y in shown[["n", "y"]].itertuples(index=False)
        if not alike
    ]
    span, top = float(max(shown["high"].max(), -shown["low"].min(), 1e-4)), float(shown["y"].max()) + (1.6 if heads else 0.7)
    for text, anchor, shift in ((f"◀ {_brief(b)} ahead", "right", -6), (f"{_brief(a)} ahead ▶", "left", 6)):
        notes.append(quiet | {"x": 0, "y": top, "yanchor": "bottom", "xanchor": anchor, "text": text, "xshift": shift})
    pixels = 36 if shown["short"].str.contains("<br>").any() else 25  # a row
    figure.update_layout(
        LAYOUT, height=92 + int(pixels * top), margin_t=26, annotations=notes,
        xaxis_title=f"{name}, difference" + (f", n = {shown['n'].iloc[0]:,}" if alike else ""),
        xaxis_range=[-1.1 * span, (1.1 if alike else 1.75) * span], xaxis_tickformat="+.2f" if span > 0.02 else "+.3f",
        xaxis_nticks=5, xaxis_tickangle=0, xaxis_zeroline=False,
    )  # fmt: skip
    labels = dict(zip(shown["y"], shown["short"], strict=True)) | {y: f"<b>{safe(text)}</b>" for y, text in heads.items()}
    figure.update_yaxes(tickvals=list(labels), ticktext=list(labels.values()), showgrid=False, zeroline=False, range=[-0.7, top])
    return figure


def _placed(table: pd.DataFrame, family: str | None) -> tuple[pd.DataFrame, dict[float, str]]:
    """The rows with a height `y`, the first at the top, and the heights of the families' names."""
    if family is None:
        return table.assign(y=np.arange(len(table), dtype=float)[::-1]), {}
    starts = table[family] != table[family].shift()
    down = np.arange(len(table)) + 1.4 * starts.cumsum().to_numpy()
    heights = down.max() - down
    heads = dict(zip(heights[starts.to_numpy()] + 1, table.loc[starts, family], strict=True))
    return table.assign(y=heights), heads


def _short(name: str) -> str:
    """Two lines at most, that leave room for the interval; the whole name is in the hover."""
    return "<br>".join(safe(line) for line in textwrap.wrap(str(name), 36, max_lines=2, placeholder=" …"))


def _brief(side: str) -> str:
    """As much of a name as there is room for above one half of the chart."""
    return textwrap.shorten(side, 34, placeholder=" …")
