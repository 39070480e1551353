"""Acting on an expert and looking around it: remove, swap, siblings, neighbours, its load in training."""

import pandas as pd
import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.experts import ablation, relations
from pages.experts import answers, charts, words
from pages.experts.answers import Subject
from pages.frame import shell
from pages.kit import view
from pages.kit.control import button, number

SWAP = "exp_swap"
Number = st.column_config.NumberColumn


def remove(of: Subject, expert: int, _: int) -> None:
    traffic = of.survey.traffic
    if not traffic.load[expert] or traffic.experts.shape[1] < 2:
        st.write(words.SAYS("NOTHING_TO_REMOVE"))
        return
    some = ablation.random_used(traffic, expert, apart=True)
    chart, ask = st.columns([5, 3], gap="medium")
    with ask:
        other = number("Put this expert in its place", 0, of.survey.size - 1, None, key=SWAP, placeholder="Type a number")
        button("Another at random", "exp_swap_lucky", _other, of, expert, icon="casino", disabled=shell.locked(SWAP))
        replacement = some if other is None else int(other)
        if other is None:
            st.caption(f"Now: expert {some}, drawn at random.")
        if replacement == expert:
            st.info(f"Expert {expert} in its own place changes nothing.")
    table = answers.effects(of, expert, replacement)
    figure = charts.effects(table.assign(name=table["change"].map(words.short)), shell.palette())
    row = table.iloc[0]
    interval = f"{row['low']:+.4f} to {row['high']:+.4f}"
    alt = f"Change of NDCG@10 with 95% intervals: without expert {expert} {row['d_ndcg']:+.4f} ({interval})."
    with chart:
        view.chart("exp_effects", figure, table, words.EFFECTS, alt)
    st.markdown(_sentence(table))
    with st.expander("More: every number", icon=":material/table:"):
        st.dataframe(table, hide_index=True, column_config=view.columns(words.SAYS("RANKS")), alt=alt, key="exp_effect_rows")


def _sentence(table: pd.DataFrame) -> str:
    first, control = table.head(2).to_dict("records")
    verdict, _ = words.effect(first)
    return (
        f"**{verdict.capitalize()}.** Without it, {first['replaced']:.1f} of 10 suggestions are new. Without another of their "
        f"experts: {control['replaced']:.1f}. What came next moves {'down' if first['d_rank_mean'] > 0 else 'up'} by "
        f"{abs(first['d_rank_mean']):.1f} ranks on average."
    )


def _other(of: Subject, expert: int) -> None:
    turn = st.session_state.get("exp_swap_turn", 0) + 1
    st.session_state["exp_swap_turn"] = turn
    st.session_state[SWAP] = ablation.random_used(of.survey.traffic, expert, seed=turn, apart=True)


def neighbours(of: Subject, expert: int, _: int) -> None:
    found, palette = of.survey, shell.palette()
    frame, (row, column) = relations.siblings(found, of.model, expert), found.place(expert)
    lines = relations.lines(found, expert)
    columns = st.columns(2, gap="medium")
    for place, line, at in zip(columns, ("row", "column"), (row, column), strict=True):
        with place:
            st.markdown(f"##### {line.capitalize()} {at}: used {lines[line]:,.0f} times (equal use: {lines['even']:,.0f})")
            part = frame[frame["line"] == line]
            figure = charts.siblings(part, palette, expert, found.band, line)
            busiest = part.loc[part["load"].idxmax()]
            most = f"{busiest['expert']} with {busiest['load']} people"
            alt = f"People of the {len(part)} experts in {line} {at}; the busiest is {most}."
            view.chart(f"exp_line_{line}", figure, part, words.SIBLINGS if line == "row" else None, alt, experts=True)
    left, right = st.columns(2, gap="medium")
    with left:
        usual, high = relations.usual_cosine(of.model, expert)
        st.markdown("##### Most similar")
        st.caption(f"Any other expert has a cosine of {usual:.2f} on average. Only 2.5% have more than {high:.2f}.")
        near = relations.nearest(found, of.model, expert)
        _table(
            "exp_near",
            near,
            words.NEAREST,
            "The most similar experts",
            {"cosine": Number("Cosine", format="%.2f")},
        )
    with right:
        st.markdown("##### Most often used together")
        st.caption(f"By its {found.traffic.load[expert]} people. × 1: as often as by luck.")
        together = relations.retrieved_together(found.traffic, expert)
        if together.empty:
            st.write("Nobody uses it.")
            return
        formats: dict[str, object] = {"together": "Together", "expected": Number("By chance", format="%.1f")}
        formats |= {name: Number(title, format="%.1f") for name, title in (("lift", "×"), ("low", "from"), ("high", "to"))}
        _table("exp_together", together, words.TOGETHER, "Experts that the same people use", formats)


def _table(key: str, frame: pd.DataFrame, about: view.About, alt: str, formats: dict[str, object]) -> None:
    st.session_state[f"{key}_experts"] = frame["expert"].tolist()
    names = {"expert": "Expert", "row": "Row", "column": "Column", "load": "People", "status": "Status"}
    view.table(
        key, frame, about, alt, column_config={**names, **formats}, on_select=lambda: _row(key), selection_mode="single-row"
    )


def _row(key: str) -> None:
    expert = view.chosen_row(key, st.session_state.get(f"{key}_experts", []))
    if expert is not None:
        shell.look_at(expert)


def training(of: Subject, expert: int, _: int) -> None:
    try:
        frame = answers.epochs(of, expert)
    except InputError as error:
        st.write(f"The copies that this run kept cannot be read: {shell.plain(error)}.")
        return
    if frame.empty:
        st.write(words.SAYS("NO_SNAPSHOTS"))
        return
    figure = charts.epochs(frame, shell.palette(), expert, of.survey.band)
    first, last = frame.iloc[0], frame.iloc[-1]
    way = [f"{at['load']:.0f} people after epoch {at['epoch']:.0f}" for at in (first, last)]
    alt = f"People of expert {expert}: {', '.join(way)}."
    view.chart("exp_epochs", figure, frame, words.EPOCHS, alt)
