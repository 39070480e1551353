"""The grid of all experts for one person, and one of them in words."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from elastic_core.memory.routing import Routing, band
from elastic_core.services.experts.overview import busyness
from elastic_core.services.method import notes
from elastic_core.services.person import inspect
from elastic_core.services.person.inspect import Situation
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import busy, cache, open_expert, person, plot, squares, tiles
from pages.kit.control import picked

EXPERT, GRID = "grid_expert", "grid_chart"
Edits = Sequence[int | None]


def grid(now: Context, here: Situation, edits: Edits = ()) -> None:
    """Query, grid, and the expert that was clicked or chosen; `edits` are what led from the person to `here`."""
    found = here.found
    if found is None or not found.halves.shape[2]:
        if found is not None:
            st.write("This run has no keys to look experts up by, so there is no grid.")
        return
    traffic = cache.traffic(now.run, now.model, now.dataset, now.split)
    table, width = inspect.experts_table(found, traffic.load), found.query.shape[1]
    palette = plot.palette(shell.is_dark())
    st.session_state[EXPERT] = here.strongest if now.expert is None else now.expert
    retrieved = ", ".join(map(str, found.experts[0].tolist()))
    grid, beside = st.columns([6, 5], gap="medium")  # a click, and what it opens
    with grid:
        halves = found.query[0].unflatten(0, (2, -1)).tolist()
        st.html(tiles.query_strip(halves, palette, f"The query: {width} numbers in two halves"))
        squares.draw(
            table, palette, key=GRID, on_pick=_picked, selected=st.session_state[EXPERT], silenced=here.silenced,
            locked=shell.locked("expert"),
            alt=f"Grid of {len(table)} experts, coloured by how many people retrieve them. Retrieved, best first: {retrieved}.",
        )  # fmt: skip
        how = (
            "Strips: the query; orange scores rows, blue columns, a square sums both. Numbers mark the highest."
            if found.ballots is None
            else f"Numbers mark the {len(found.experts[0])} chosen, most wanted first. The strips above show the average search."
        )
        load = f"Load: {notes.WORDS['load']}."
        st.caption(f"Each square is an expert: the stronger its colour, the more people use it. {how}", help=load)
    with beside:
        _one(now, here, table, found.experts[0].tolist(), traffic, edits)


def whose(now: Context, here: Situation) -> None:
    """How busy each of the retrieved experts is, what it stands for, and the way to its page."""
    if here.found is None:
        st.write("This run has no memory, so there are none.")
        return
    traffic = cache.traffic(now.run, now.model, now.dataset, now.split)
    retrieved = here.found.experts[0].numpy()
    found = cache.evidence(now.run, now.model, now.dataset, now.split)
    labels = {} if found is None else {int(expert): found.label(expert) for expert in retrieved}
    about = {expert: shell.plain(label.genres[0]) for expert, label in labels.items() if not label.weak}
    states, hint = busyness(traffic, retrieved), busy.MEANING
    for state, many in busy.people(*band(traffic)).items():
        if not (states == state).any():
            continue
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            st.markdown(f"**{state.capitalize()}** :small[:gray[({many})]]", width="content", help=hint)
            hint = ""
            for expert in retrieved[states == state].tolist():
                open_expert.button(expert, about.get(expert, ""))
    if about:
        words = inspect.words(now.dataset)
        st.caption(f"The word names what its people {words.did} more than others do. Click to open.")


def _picked() -> None:
    expert = squares.picked(GRID)
    if expert is not None and not shell.locked("expert"):
        shell.look_at(expert)


def _chosen() -> None:
    expert = picked(EXPERT)
    if expert is not None:
        shell.look_at(expert)


def _one(now: Context, here: Situation, table: pd.DataFrame, retrieved: list[int], traffic: Routing, edits: Edits) -> None:
    order = [*retrieved, *np.setdiff1d(np.arange(len(table)), retrieved).tolist()]
    # Streamlit remembers a choice by its label, so a label must not change with the person.
    expert = st.selectbox(
        "Expert", order, key=EXPERT, format_func=lambda e: f"Expert {e}",
        on_change=_chosen, disabled=shell.locked("expert"),
    )  # fmt: skip
    row = table.iloc[expert]
    quiet = ", silenced by you" if expert in here.silenced else f", weight {row['gate']:.2f}"
    place = f"**Retrieved here, rank {row['rank']:.0f}{quiet}.**" if row["rank"] else "**Not retrieved here.**"
    found = here.found
    score = (
        f"Row {row['row']:.0f}, column {row['column']:.0f}. It got {found.votes[0, expert]:.1%} of this history’s votes "
        f"(of everybody’s: {found.usual[expert]:.1%})"
        if found is not None and found.votes is not None and found.usual is not None
        else f"Score {row['score']:.2f} = {row['row_score']:.2f} (row {row['row']:.0f}) + {row['column_score']:.2f} "
        f"(column {row['column']:.0f})"
    )
    st.markdown(
        f"{place} {score}. **{row['load']:.0f} of {len(traffic.experts):,} people** use it; equal use would be "
        f"{inspect.even_load(traffic):.0f}."
    )
    if line := _meaning(now, expert):
        st.markdown(line)
    if not row["rank"]:
        _others(expert, traffic)
    elif here.heard == [expert]:
        st.markdown("The only expert left: there is no list without it.")
    else:
        films = cache.named(now.run, now.model, now.dataset, here.read.items).get(expert)
        if films:
            before = " (with all experts heard)" if here.silenced else ""
            st.markdown(f"**It reads**{before} {shell.plain(films)}.")
        _effect(now, here, expert, edits)


def _meaning(now: Context, expert: int) -> str:
    """The genres that its people choose more than others do, if that is beyond chance; else that it is not."""
    found, words = cache.evidence(now.run, now.model, now.dataset, now.split), inspect.words(now.dataset)
    label = found and found.label(expert)
    if not label or not label.genres:
        return ""
    how = f"{label.lift:.1f} × everybody’s, 95% {label.low:.1f} to {label.high:.1f}"
    first = shell.plain(label.genres[0])
    if label.weak:
        return f"**Stands for no genre** beyond chance; most {words.did}: {first} ({how})."
    return f"**Stands for {shell.plain(label.text)}:** its {label.n} people {words.did} {first} {how}."


def _others(expert: int, traffic: Routing) -> None:
    people = inspect.people_of(traffic, expert, top=3)
    if people.empty:
        st.markdown("It is **dead**: nobody retrieves it.")
        return
    st.markdown("It changes nothing in this list; loudest for:")
    with st.container(horizontal=True):
        for user in people["user"]:
            st.button(
                f"Person {user + 1}", key=f"grid_meet_{user}", on_click=shell.meet, args=(int(user),),
                disabled=shell.locked("user"),
            )  # fmt: skip


def _effect(now: Context, here: Situation, expert: int, edits: Edits) -> None:
    found = cache.effect(now.run, now.model, now.dataset, here, expert)
    up, down = st.columns(2)
    up.markdown(f"**Makes likelier**\n{_lines(found.promotes)}", help="For this person: chance with it over chance without it.")
    down.markdown(f"**Holds back**\n{_lines(found.holds_back)}")
    if expert in here.heard:
        away = cache.chance(now.run, now.model, now.dataset, now.user, now.split, [*edits, expert], here.stay)
        person.by_chance(away, now, "other experts")


def _lines(table: pd.DataFrame) -> str:
    rows = [f"\n- ×{row.times:.2f} {shell.plain(inspect.split_year(str(row.title))[0])}" for row in table.itertuples()]
    return "".join(rows) or "\n- nothing near the top"


def table_twin(now: Context, here: Situation) -> None:
    """The grid as a table."""
    panel = st.expander("Experts as a table", icon=":material/table:", on_change="rerun")
    if panel.open and here.found is not None and here.found.halves.shape[2]:
        traffic = cache.traffic(now.run, now.model, now.dataset, now.split)
        frame = inspect.experts_table(here.found, traffic.load)
        names = cache.named(now.run, now.model, now.dataset, here.read.items)
        frame["reads most"] = frame["expert"].map(names).fillna("")
        panel.dataframe(
            frame, hide_index=True, alt="All experts: row, column, score, how many people retrieve it, rank and gate here"
        )
