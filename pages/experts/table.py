"""All experts as a sortable table; a chosen row becomes the expert of the page."""

import pandas as pd
import streamlit as st

from elastic_core.services.experts import ablation
from elastic_core.services.experts.jobs import Passes
from pages.experts import answers
from pages.experts import words as expert_words
from pages.experts.answers import Subject
from pages.frame import shell
from pages.kit import view, waiting
from pages.kit.control import one_of

KEY, ROWS, SHOW = "exp_table", "exp_rows", "exp_show"
GROUPS = ("all", "hot", "usual", "cold", "dead")
Number = st.column_config.NumberColumn


def _columns() -> dict[str, object]:
    return {
        "expert": Number("Expert", pinned=True, width=60),
        "row": Number("Row", width=50), "column": Number("Column", width=60),
        "load": Number("People", help="Who retrieve it", width=70),
        "status": st.column_config.TextColumn("Status", help="Against a random router", width=70),
        "people_genre": st.column_config.TextColumn("Genre of its people", help="Most over-represented in their histories"),
        "people_lift": Number("× everybody", format="%.2f", help="Share there over everybody’s"),
        "people_low": Number("from", format="%.2f", help="Lower limit: above 1 it is not weak"),
        "people_high": Number("to", format="%.2f"),
        "d_ndcg": Number("ΔNDCG@10 without", format="%+.4f", help="Mean over its people, full; negative: they need it"),
        "d_low": Number("Δ from", format="%+.4f"), "d_high": Number("Δ to", format="%+.4f"),
        "interest": st.column_config.TextColumn("True interest", help="Of most events it reads most (planted truth)"),
        "purity": Number("Purity", format="percent", help="Share of those events with that interest"),
        "purity_chance": Number("by chance", format="percent"),
        "events": Number("Events", help="That it reads most, noise left out"),
        "reads_genre": st.column_config.TextColumn("Genre it reads", help="Most over-weighted in the same histories"),
        "reads_lift": Number("× even reading", format="%.2f"),
        "reads_low": Number("reads from", format="%.2f"), "reads_high": Number("reads to", format="%.2f"),
        "traffic": Number("Traffic", format="percent", help="Share of all gates"),
        "spread": Number("Score spread", format="%.2f", help="Standard deviation of its score over everybody"),
    }  # fmt: skip


def show(of: Subject) -> None:
    """The table, its filter, and the line that says what chance would label."""
    frame, effects = answers.table(of), answers.all_effects(of)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.subheader(f"All {of.survey.size:,} experts", anchor=False, width="stretch")
        chosen = one_of("Show", GROUPS, key=SHOW, default="all", width="content")
    if effects is not None:
        named = {"low": "d_low", "high": "d_high"}
        frame = frame.merge(effects.rename(columns=named).drop(columns=["n", "d_rank_median"]), on="expert", how="left")
    shown = frame if chosen == "all" else frame[frame["status"] == chosen]
    shown = shown.sort_values("load", ascending=False, kind="stable", ignore_index=True)
    st.session_state[ROWS] = shown["expert"].tolist()
    columns = _columns()
    order = [name for name in columns if name in shown]
    view.table(
        KEY, shown[order], expert_words.ALL, f"{len(shown)} experts with row, column, people, status, genres and limits",
        column_config={name: columns[name] for name in order}, height=250, on_select=_picked,
        selection_mode="single-row",
    )  # fmt: skip
    _below(of, effects)


def _picked() -> None:
    rows = st.session_state[KEY]["selection"]["rows"]
    known = st.session_state.get(ROWS, [])
    if rows and rows[0] < len(known) and not shell.locked("expert"):
        shell.look_at(int(known[rows[0]]))


def _below(of: Subject, effects: pd.DataFrame | None) -> None:
    counts = answers.table(of)["status"].value_counts()
    words = "A row’s left edge opens it. " + ", ".join(f"{counts.get(name, 0)} {name}" for name in GROUPS[1:]) + "."
    if of.survey.genres:
        labelled, chance = answers.by_chance(of)
        words += f" {labelled} of {of.survey.size:,} have a genre beyond chance; with people shuffled: {chance:.0f}."
    if effects is not None:
        worse, better, chance = ablation.apart(effects)
        words += (
            f" Removed one at a time (95% leaves 0 out): people are worse off without {worse} of {len(effects)}, better without "
            f"{better}; chance alone would give up to {chance:.0f}."
        )
    st.caption(words)
    if effects is None and of.survey.traffic.experts.shape[1] > 1:
        passes, asked = Passes(shell.RUNS), (of.run, of.data.hash, of.split)
        waiting.offer(
            passes, passes.latest(**passes.about(*asked)), asked, "exp_all",
            "What each does for its people is not measured yet.", "Remove every expert in turn and measure",
            "Adds a column: change of NDCG@10. In the background; kept for all.",
        )  # fmt: skip
