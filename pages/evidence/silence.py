"""Which model remembers? What systems still know of an interest that was silent for long: the rows that `recall --write` kept."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from elastic_core.memory.recall import CHANCE, NULLS
from elastic_core.text import figure as safe
from pages.frame import shell
from pages.kit import cache, judged, prose, view
from pages.kit.control import one_of
from pages.kit.plot import SYMBOLS, Palette, frame

MEASURE = "res_silence"
PLACE, FOUND = "Where in it they were", "That they have it"
COLUMNS = {PLACE: "place", FOUND: "found"}
TITLES = {PLACE: "1 / rank within the interest", FOUND: "of interests never had, given less"}


def show() -> None:
    """Nothing where no rows were kept."""
    table = judged.recalled(shell.RUNS)
    if table.empty:
        return
    panel = st.expander("Which model remembers after hundreds of events?", key="res_remembers", on_change="rerun")
    if not panel.open:
        return
    with panel:
        st.caption("Asked in a made-up world of long histories, whatever data is chosen above.")
        column = COLUMNS[one_of("Asked", [PLACE, FOUND], key=MEASURE)]
        said = words(table, column)
        st.markdown(shell.plain(said))
        figure = cache.drawn(curves, table, column, shell.palette())
        title = TITLES[PLACE if column == "place" else FOUND]
        view.chart("res_silence_chart", figure, table, prose.of(__file__).about("SILENCE"), f"{title} by silence. {said}")


def words(table: pd.DataFrame, column: str) -> str:
    """Who has most at the longest silence, beside the nulls."""
    far = table[table["gap"] == table["gap"].iloc[-1]].sort_values(column, ascending=False)
    systems, nulls = far[~far["system"].isin(NULLS)], far[far["system"].isin(NULLS)]
    told = [
        f"{row['system']} {row[column]:.2f} ± {row[f'{column}_ci']:.2f}" for _, row in pd.concat([systems[:1], nulls]).iterrows()
    ]
    chance = f", by chance {CHANCE:.2f}" if column == "found" else ""
    return f"Silent for {far['gap'].iloc[0]} events ({far['people'].iloc[0]:,} people): {', '.join(told)}{chance}."


def curves(table: pd.DataFrame, column: str, p: Palette) -> go.Figure:
    """`tables.recalled`: a line a system over the silences with its whiskers, side by side; dotted for oracle and popularity."""
    gaps, names = list(dict.fromkeys(table["gap"])), list(dict.fromkeys(table["system"]))
    figure, coloured = go.Figure(), [name for name in names if name not in NULLS]
    for i, name in enumerate(names):
        rows, quiet = table[table["system"] == name], name in NULLS
        at = coloured.index(name) if not quiet else 0
        aside = 0.0 if quiet or len(coloured) < 2 else 0.5 * (at / (len(coloured) - 1) - 0.5)
        colour = p.muted if quiet else p.category(at)
        figure.add_scatter(
            x=[gaps.index(gap) + aside for gap in rows["gap"]], y=rows[column], mode="lines+markers", name=safe(name),
            customdata=rows[["gap", "people", f"{column}_ci", "seeds"]],
            error_y={"array": np.nan_to_num(rows[f"{column}_ci"]), "thickness": 1, "width": 2},
            line_width=1.5 if quiet else 2, line_color=colour, line_dash="dot" if quiet else "solid",
            marker_size=6 if quiet else 8, marker_symbol=SYMBOLS[(i if quiet else at) % len(SYMBOLS)],
            hovertemplate="silent for %{customdata[0]}: %{y:.2f} ± %{customdata[2]:.2f}<br>%{customdata[1]:,} people, "
            "trainings: %{customdata[3]}<extra>" + safe(name) + "</extra>",
        )  # fmt: skip
    if column == "found":
        figure.add_hline(y=CHANCE, line_color=p.text, line_width=1)
    title = TITLES[PLACE if column == "place" else FOUND]
    return frame(  # legend above: below, the axis is taller where its words are tilted
        figure, p, 440, legend=True, xaxis_title="events since the interest last showed", xaxis_tickvals=list(range(len(gaps))),
        xaxis_ticktext=gaps, xaxis_showgrid=False, xaxis_range=[-0.5, len(gaps) - 0.5], xaxis_zeroline=False, yaxis_title=title,
        yaxis_rangemode="tozero",
    )  # fmt: skip
