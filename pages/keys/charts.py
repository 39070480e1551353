"""The figures of the page on product keys: tables to plotly figures. Pure: no streamlit, no state.

Rows are warm and columns cool on every figure; clickable squares carry the expert's number as `customdata`.
"""

import math

import pandas as pd

from elastic_core.services.person.inspect import Words
from elastic_core.text import figure as safe
from pages.kit.plot import Palette, frame
from pages.kit.sketch import Sketch

STROKE, SQUARE = 24, 14  # pixels of the weightiest vote of one event, and of those of all earlier ones
GRID_PIXELS = 268  # side of a square grid: with margins it fits a phone
HALVES = {"row": "q₁ chooses rows", "column": "q₂ chooses columns"}


def query(table: pd.DataFrame, p: Palette) -> Sketch:
    """Step 1: the query's numbers, its two halves apart by colour and by a line."""
    figure = Sketch()
    for half, part in table.groupby("half", sort=False):
        hover = "number %{x}: %{y:.2f}<extra></extra>"
        figure.add_bar(
            x=part["position"], y=part["value"], name=HALVES[str(half)], marker={"color": _hue(str(half), p)}, hovertemplate=hover
        )
    figure.add_vline(len(table) / 2 - 0.5, line={"color": p.text, "width": 2, "dash": "dot"})
    figure.update_layout(bargap=0.15)
    figure.update_xaxes(title={"text": "number within the query"})
    figure.update_yaxes(title={"text": "value"})
    return frame(figure, p, 300, legend=True)


def lines(table: pd.DataFrame, first: float, second: float, p: Palette) -> Sketch:
    """A query of two numbers: every sub-key a point on the line of its half, labelled with its rank, and where q stands."""
    figure = Sketch()
    for (half, part), q, y, name in zip(table.groupby("half", sort=False), (first, second), (1, 0), ("q₁", "q₂"), strict=True):
        hue = _hue(str(half), p)
        figure.add_scatter(
            x=part["at"], y=[y] * len(part), mode="markers+text", name=f"{half} sub-keys", text=part["rank"].map("{}.".format),
            textposition="top center", marker={"size": 12, "color": hue, "line": {"color": p.line, "width": 1}},
            customdata=part[["sub_key", "score"]],
            hovertemplate=str(half) + " sub-key %{customdata[0]} at %{x:.2f}: score %{customdata[1]:.2f}<extra></extra>",
        )  # fmt: skip
        figure.add_scatter(
            x=[q], y=[y], mode="markers+text", text=[name], textposition="bottom center", showlegend=False,
            marker={"symbol": "diamond-open", "size": 16, "color": p.gold, "line": {"width": 3}},
            hovertemplate=name + " = %{x:.2f}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(range=[-1.1, 1.1], title={"text": "value"}, zeroline=True, zerolinecolor=p.muted, fixedrange=True)
    figure.update_yaxes(range=[-0.6, 1.6], tickvals=[1, 0], ticktext=["rows", "columns"], zeroline=False, fixedrange=True)
    return frame(figure, p, 250, legend=True)


def strips(table: pd.DataFrame, p: Palette, keep: bool) -> Sketch:
    """Steps 2 and 3: every sub-key's score, one strip a half; with `keep`, what is left behind is only an outline."""
    figure = Sketch(2, vertical_spacing=0.18, subplot_titles=("row sub-keys, by q₁", "column sub-keys, by q₂"))
    for number, (half, part) in enumerate(table.groupby("half", sort=False), start=1):
        hue, kept = _hue(str(half), p), part["kept"] if keep else part["kept"] | True
        figure.add_bar(
            x=part["sub_key"],
            y=part["score"],
            marker={"color": [hue if stays else "rgba(0,0,0,0)" for stays in kept], "line": {"color": hue, "width": 1}},
            text=[f"{rank}." if keep and stays else "" for rank, stays in zip(part["rank"], kept, strict=True)],
            textposition="outside",
            cliponaxis=False,
            customdata=part["rank"],
            hovertemplate=str(half) + " sub-key %{x}: score %{y:.2f}, rank %{customdata}<extra></extra>",
            row=number,
            col=1,
        )
    low, high = min(table["score"].min(), 0), max(table["score"].max(), 0)
    room = (high - low) * 0.15
    figure.update_yaxes(range=[low - room, high + room], title={"text": "score"})
    return frame(figure, p, 300)


def candidates(table: pd.DataFrame, p: Palette, staircase: bool) -> Sketch:
    """Step 4: ranks against ranks. With the staircase, squares that cannot win are empty."""
    n = int(max(table["rank_row"].max(), table["rank_column"].max()))
    alive = table["can_win"] if staircase else table["can_win"] | True
    square = square_size(n)
    figure = Sketch()
    for part, colour, name in ((table[alive], p.load[1], "can win"), (table[~alive], "rgba(0,0,0,0)", "cannot win")):
        figure.add_scatter(
            x=part["rank_column"],
            y=part["rank_row"],
            mode="markers+text",
            name=name,
            marker={"symbol": "square", "size": square, "color": colour, "line": {"color": p.line, "width": 1}},
            text=part["ranks_product"] if n <= 12 else None,
            textfont={"color": p.text if name == "can win" else p.muted, "size": min(13, square * 0.5)},
            customdata=part[["row", "column", "row_score", "column_score", "score"]],
            hovertemplate="row %{customdata[0]} and column %{customdata[1]}<br>%{customdata[2]:.2f} + %{customdata[3]:.2f} = "
            "%{customdata[4]:.2f}<br>" + name + "<extra></extra>",
        )
    square_axes(figure, "rank of the column's score", "rank of the row's score", 0.5, n + 0.5)
    figure.update_xaxes(side="top")
    return frame(figure, p, GRID_PIXELS + 90)


def grid(table: pd.DataFrame, p: Palette, reveal: bool, picked: int | None) -> Sketch:
    """Step 5: all experts. Before the reveal the candidates stand out; after it the winners carry their place."""
    side = int(table["row"].max()) + 1
    square = square_size(side + 1)
    figure = Sketch()
    _edges(figure, table, p, side, square)
    won = table["place"].notna() & reveal
    groups = (
        (table[~table["candidate"]], "not a candidate", p.load[0], p.line, 1.0),
        (table[table["candidate"] & ~won], "candidate", p.load[1], p.muted, 1.0),
        (table[won], "winner", p.load[2], p.lit, 2.0),
    )
    for part, name, colour, line, width in groups:
        figure.add_scatter(
            x=part["column"],
            y=part["row"],
            mode="markers+text",
            name=name,
            text=part["place"].astype(str) if name == "winner" and side <= 16 else None,
            textfont={"color": p.text, "size": min(14, square * 0.6)},
            marker={"symbol": "square", "size": square, "color": colour, "line": {"color": line, "width": width}},
            customdata=part["expert"],
            hovertemplate="expert %{customdata}: row %{y}, column %{x}<br>" + name + "<extra></extra>",
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
        )
    if picked is not None:
        at = table[table["expert"] == picked]
        ring = {"symbol": "square-open", "size": square + 5, "color": p.gold, "line": {"width": 3}}
        figure.add_scatter(
            x=at["column"], y=at["row"], mode="markers", marker=ring, customdata=at["expert"], hoverinfo="skip", name="your pick"
        )
    square_axes(figure, "column", "row", -1.7, side - 0.4)
    return frame(figure, p, GRID_PIXELS + 110, legend=True)


def vectors(table: pd.DataFrame, p: Palette) -> Sketch:
    """Steps 6 and 7: the winners' vectors, one row each."""
    wide = table.pivot(index="place", columns="position", values="value")
    names = table.drop_duplicates("place").set_index("place")["expert"].map("#{}".format)
    largest = float(table["value"].abs().max()) or 1.0
    figure = Sketch().add_heatmap(
        z=wide.to_numpy(),
        y=[f"{place}. {names[place]}" for place in wide.index],
        zmin=-largest,
        zmax=largest,
        colorscale=[[0, p.cool[1]], [0.5, p.load[0]], [1, p.warm[1]]],
        colorbar={"thickness": 10, "title": {"text": "value", "side": "right"}},
        hovertemplate="%{y}, number %{x}: %{z:.2f}<extra></extra>",
    )
    figure.update_xaxes(title={"text": "number within the expert"})
    figure.update_yaxes(autorange="reversed", type="category")
    return frame(figure, p, 120 + 22 * len(wide))


def weights(table: pd.DataFrame, p: Palette, even: float = 1.0, named: str = "no gate") -> Sketch:
    """How much each winner counts; the dotted line is what all of them would without their scores."""
    names = [f"{place}. #{expert}" for place, expert in zip(table["place"], table["expert"], strict=True)]
    figure = Sketch().add_bar(
        x=names, y=table["weight"], marker={"color": p.load[2]}, customdata=table["score"],
        hovertemplate="%{x}: weight %{y:.2f} from score %{customdata:.2f}<extra></extra>",
    )  # fmt: skip
    figure.add_hline(even, line={"color": p.text, "width": 1, "dash": "dot"})
    figure.add_annotation(x=1, xref="x domain", xanchor="right", y=even, yanchor="bottom", text=named, showarrow=False)
    figure.update_xaxes(title={"text": "winner: place and expert"})
    figure.update_yaxes(title={"text": "weight"})
    return frame(figure, p, 300)


def tally(marks: pd.DataFrame, sums: pd.DataFrame, event: int, words: Words, p: Palette) -> Sketch:
    """Who voted for whom: events along x (`marks` with their `title`), a row an elected expert and one for all others, and
    beside each row the sum of its votes and, as a line, how many are usual. The event that is looked at has a line, too."""
    k, colours = len(sums) - 1, [p.load[-1]] * (len(sums) - 1) + [p.muted]
    names = [f"{place}. #{expert}" for place, expert in zip(sums["place"][:k], sums["expert"][:k], strict=True)] + ["others"]
    figure = Sketch(
        1, 2, shared_yaxes=True, horizontal_spacing=0.02, column_widths=[0.78, 0.22],
        subplot_titles=(f"votes of the last {words.many}", "all votes"),
    )  # fmt: skip
    single = marks["event"] > 0
    first, last = int(marks.loc[single, "event"].min()), int(marks["event"].max())
    if event >= first:
        figure.add_vline(event, line={"color": p.gold, "width": 6}, layer="below", opacity=0.35)
    stroke = {"symbol": "line-ns-open", "line": {"width": 3}}
    for some, marker, power in ((single, stroke, 1), (~single, {"symbol": "square"}, 0.5)):  # by height, and by area
        part = marks[some]
        size = (part["votes"] / part["votes"].max()) ** power * (STROKE if power == 1 else SQUARE)
        numbered = [f"{n}. {title}" if n else "" for n, title in zip(part["event"], part["title"], strict=True)]
        texts = [
            f"{safe(name)}<br>expert {row.experts}: {row.share:.0%} of its vote, {row.votes:.1%} of all votes" if name
            else f"all {words.many} before: {row.votes:.1%} of all votes"
            for name, row in zip(numbered, part.itertuples(), strict=True)
        ]  # fmt: skip
        figure.add_scatter(
            x=part["event"].where(part["event"] > 0, first - 2), y=part["row"], mode="markers", name="votes",
            marker={"color": [colours[row] for row in part["row"]], "size": size.clip(lower=3), **marker},
            customdata=[[name] for name in numbered], hovertext=texts, hovertemplate="%{hovertext}<extra></extra>",
            selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": 1}}, row=1, col=1,
        )  # fmt: skip
    figure.add_bar(  # of all others only the number: its bar would make those of the elected short
        x=[*sums["votes"][:k], 0], y=list(range(k + 1)), orientation="h", marker={"color": colours},
        customdata=sums[["votes", "events"]], text=[f"{part:.0%}" for part in sums["votes"]],
        textposition="outside", cliponaxis=False,
        hovertemplate="%{customdata[0]:.1%} of all votes, from %{customdata[1]} " + words.many + "<extra></extra>", row=1, col=2,
    )  # fmt: skip
    figure.add_scatter(
        x=sums["usual"][:k], y=list(range(k)), mode="markers", hovertemplate="%{x:.1%} of everybody’s votes<extra></extra>",
        marker={"symbol": "line-ns-open", "size": 16, "color": p.text, "line": {"width": 2}}, row=1, col=2,
    )  # fmt: skip
    plain = {"showgrid": False, "zeroline": False, "fixedrange": True}
    before = {} if bool(single.all()) else {first - 2: "before"}
    ends = before | {first: "" if before else str(first)} | {last: str(last)}
    along = {"tickvals": list(ends), "ticktext": list(ends.values()), "range": [min(ends) - 1, last + 1]}
    figure.update_xaxes({**plain, **along, "title": {"text": f"{words.many}, old to new", "standoff": 0}}, row=1, col=1)
    most = max(float(sums["votes"][:k].max()), 1e-6)
    figure.update_xaxes({**plain, "showticklabels": False, "range": [0, 1.6 * most]}, row=1, col=2)
    rows = {"range": [k + 0.5, -0.5], "tickvals": list(range(k + 1)), "ticktext": names}
    figure.update_yaxes({**plain, **rows, "showgrid": True, "gridcolor": p.line}, row=1, col=1)
    figure.update_yaxes({**plain, **rows, "showticklabels": False}, row=1, col=2)
    return frame(figure, p, 90 + 30 * (k + 1))


def _hue(half: str, p: Palette) -> str:
    return p.warm[1] if half == "row" else p.cool[1]


def square_size(n: int) -> float:
    return max(3.0, GRID_PIXELS / (n + 1) * 0.86)


def _edges(figure: Sketch, table: pd.DataFrame, p: Palette, side: int, square: float) -> None:
    """The two strips again, along the grid: each row's and each column's own score."""
    rows = table.drop_duplicates("row").sort_values("row")
    columns = table.drop_duplicates("column").sort_values("column")
    for x, y, part, scale, name in (
        ([-1.25] * side, rows["row"], rows["row_score"], p.warm, "row score"),
        (columns["column"], [-1.25] * side, columns["column_score"], p.cool, "column score"),
    ):
        marker = {"symbol": "square", "size": square * 0.8, "color": part, "colorscale": [[0, scale[0]], [1, scale[1]]]}
        hover = name + " %{text}<extra></extra>"
        figure.add_scatter(
            x=x,
            y=y,
            mode="markers",
            marker=marker,
            text=[f"{v:.2f}" for v in part],
            hovertemplate=hover,
            showlegend=False,
            name=name,
        )


def square_axes(figure: Sketch, x: str, y: str, low: float, high: float) -> None:
    first, last = max(0, math.ceil(low)), math.floor(high)
    ticks = list(range(first, last + 1, 1 + (last - first) // 10))
    plain = {"showgrid": False, "zeroline": False, "tickvals": ticks, "constrain": "domain", "fixedrange": True}
    figure.update_xaxes(title={"text": x}, range=[low, high], tickangle=0, **plain)
    figure.update_yaxes(title={"text": y}, range=[high, low], scaleanchor="x", **plain)
