"""The figure of the step *Vote* of the page on product keys: tables to a plotly figure. Pure: no streamlit, no state."""

import pandas as pd

from elastic_core.services.person.inspect import Words
from elastic_core.text import figure as safe
from pages.kit.plot import STEADY, Palette, frame
from pages.kit.sketch import Sketch

STROKE, SQUARE = 24, 14  # pixels of the weightiest vote of one event, and of those of all earlier ones


def tally(marks: pd.DataFrame, sums: pd.DataFrame, event: int, words: Words, p: Palette) -> Sketch:
    """Who voted for whom: events along x (`marks` with their `title`), a row an elected expert and one for all others, and
    beside each row the sum of its votes and, in brackets, how many are usual. The event that is looked at has a line, too."""
    k = len(sums) - 1
    elected, colours = sums[:k], [p.load[-1]] * k + [p.muted]
    names = [*(f"{row.place}. expert {row.expert}" for row in elected.itertuples()), "all others"]
    single = marks["event"] > 0
    drawn = f"votes of {'all' if single.all() else 'the last'} {words.many}"
    figure = Sketch(
        1, 2, shared_yaxes=True, horizontal_spacing=0.02, column_widths=[0.78, 0.22], subplot_titles=(drawn, "votes (average)")
    )
    first, last = int(marks.loc[single, "event"].min()), int(marks["event"].max())
    if event >= first:
        figure.add_vline(event, line_color=p.gold, line_width=6, layer="below", opacity=0.35)
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
            **STEADY, row=1, col=1,
        )  # fmt: skip
    figure.add_bar(  # of all others only the number: its bar would make those of the elected short
        x=[*elected["votes"], 0], y=list(range(k + 1)), orientation="h", marker_color=colours,
        customdata=sums[["votes", "events"]],
        text=[*(f"{row.votes:.0%} ({row.usual:.1%})" for row in elected.itertuples()), f"{sums['votes'].iloc[k]:.0%}"],
        textposition="outside", cliponaxis=False,
        hovertemplate="%{customdata[0]:.1%} of all votes, from %{customdata[1]} " + words.many + "<extra></extra>", row=1, col=2,
    )  # fmt: skip
    before = {} if single.all() else {first - 2: "before"}
    ends = before | {first: "" if before else str(first)} | {last: str(last)}
    figure.update_xaxes(showgrid=False, zeroline=False)
    figure.update_xaxes(
        row=1, col=1, tickvals=list(ends), ticktext=list(ends.values()), range=[min(ends) - 1, last + 1],
        title_text=f"{words.many}, old to new", title_standoff=0,
    )  # fmt: skip
    figure.update_xaxes(showticklabels=False, range=[0, 2 * max(float(elected["votes"].max()), 1e-6)], row=1, col=2)
    figure.update_yaxes(showgrid=False, zeroline=False, range=[k + 0.5, -0.5], tickvals=list(range(k + 1)), ticktext=names)
    figure.update_yaxes(showgrid=True, gridcolor=p.line, row=1, col=1)
    figure.update_yaxes(showticklabels=False, row=1, col=2)
    return frame(figure, p, 90 + 30 * (k + 1))


def learning(curve: pd.DataFrame, p: Palette) -> Sketch:
    """The toy's loss with a gate and without."""
    figure = Sketch()
    styles = {"softmax": ("with the gate", p.categories[2], "solid"), "none": ("without", p.categories[4], "dash")}
    for gate, part in curve.groupby("gate", sort=False):
        name, colour, dash = styles[str(gate)]
        hover = "step %{x}: loss %{y:.2f}<extra>" + name + "</extra>"
        line = {"color": colour, "dash": dash, "width": 3}
        figure.add_scatter(x=part["step"], y=part["loss"], mode="lines", name=name, line=line, hovertemplate=hover)
    figure.update_xaxes(title_text="training step")
    figure.update_yaxes(title_text="loss (mean squared error)", rangemode="tozero")
    return frame(figure, p, 320, legend=True)
