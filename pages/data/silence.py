"""What runs still knew after hundreds of events of silence: the rows that `recall --write` kept, as curves."""

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from elastic_core.memory import recall
from elastic_core.text import figure as safe
from pages.frame import shell
from pages.kit import cache, plot, view
from pages.kit.control import one_of
from pages.kit.plot import Palette, frame

MEASURE = "dat_silence"
PLACE, FOUND = "Where in it they were", "That they have it"
COLUMNS = {PLACE: "place", FOUND: "found"}
TITLES = {PLACE: "1 / rank within the interest", FOUND: "of interests never had, given less"}
KNOWN = ("planted oracle", "popularity")
ABOUT = view.About(
    "Which systems still know an interest that was silent for hundreds of events?",
    "On a planted world of long histories, whose people dwell in one interest while the others wait. What came next is of any of "
    "their interests alike. Where: 1 / rank of what came next among the items of its own interest. That: to which share of the "
    "interests that the person never had the model gives less than to this one, each against its popularity (by chance one "
    "half). Dotted: the planted oracle, who knows every event’s interest, and popularity, which knows nothing of the person.",
    "At short silences the last events tell all. Only a curve that stays above popularity at the right remembers; few interests "
    "were silent for longest, so look at the interval in the table.",
    test="tests/test_recall.py::test_the_oracle_recalls_popularity_does_not_and_who_forgets_falls_to_it",
)


def show() -> None:
    """Nothing where no rows were kept."""
    table = recall.read(shell.RUNS / "benchmarks" / "recall.csv")
    table = table[table["split"] == "test"]
    if table.empty:
        return
    table = table[table["world"] == table["world"].iloc[-1]]
    st.subheader("What is left after hundreds of events of silence?", anchor=False)
    measure = one_of("Asked", [PLACE, FOUND], key=MEASURE, width="content")
    column = COLUMNS[measure]
    far = table[table["gap"] == table["gap"].iloc[-1]].set_index("system")
    ordered = far.drop(index=list(KNOWN), errors="ignore").sort_values(column, ascending=False)
    if len(ordered):
        best, known = ordered.iloc[0], [f"{name} {far.loc[name, column]:.2f}" for name in KNOWN if name in far.index]
        st.markdown(
            f"After {shell.plain(str(best['gap']))} events ({best['people']} people) **{shell.plain(str(ordered.index[0]))}** "
            f"recalls most: {best[column]:.2f} ± {best[f'{column}_ci']:.2f}; {', '.join(known)}."
        )
    alt = f"{measure}, by how long the interest was silent, for {table['system'].nunique()} systems."
    figure = cache.drawn(curves, table, column, TITLES[measure], plot.palette(shell.is_dark()))
    view.chart("dat_silence_chart", figure, table.drop(columns=["world", "split"]), ABOUT, alt)


def curves(table: pd.DataFrame, column: str, title: str, p: Palette) -> go.Figure:
    """A line a system over the silences; dotted for oracle and popularity."""
    figure = go.Figure()
    for i, (name, rows) in enumerate(table.groupby("system", sort=False)):
        quiet = name in KNOWN
        colour = p.text if quiet else p.categories[i % len(p.categories)]
        figure.add_scatter(
            x=rows["gap"], y=rows[column], mode="lines+markers", name=safe(str(name)),
            customdata=rows[["people", f"{column}_ci"]],
            line={"width": 1.5 if quiet else 2.5, "color": colour, "dash": "dot" if quiet else "solid"},
            hovertemplate="%{y:.2f} ± %{customdata[1]:.2f} · %{customdata[0]} people<extra>" + safe(str(name)) + "</extra>",
        )  # fmt: skip
    figure.update_xaxes(title="events since the interest last showed", type="category", showgrid=False, fixedrange=True)
    figure.update_yaxes(title=title, rangemode="tozero", fixedrange=True)
    return frame(figure, p, 400, legend=True)
