"""All experts as a sortable table; a chosen row becomes the expert of the page."""

from collections import Counter

import pandas as pd
import streamlit as st

from elastic_core.services.experts import ablation
from elastic_core.services.experts.jobs import Passes
from pages.experts import answers
from pages.experts import words as expert_words
from pages.experts.answers import Subject
from pages.frame import shell
from pages.kit import busy, view, waiting
from pages.kit.control import bound, one_of

KEY, ROWS, SHOW, MORE = "exp_table", "exp_rows", "exp_show", "exp_more"
GROUPS = ("all", "hot", "usual", "cold", "dead")
FIRST = ("expert", "people_genre", "people_lift", "interest", "purity", "load", "status", "d_ndcg")


def show(of: Subject, *_: int) -> list[str]:
    """The table and its filter. Returns what luck alone would name."""
    effects = answers.all_effects(of)
    with view.row("bottom"):
        st.subheader(f"All {of.survey.size:,} experts", anchor=False, width="stretch")
        chosen = one_of("Show", GROUPS, key=SHOW, width="content", help=busy.MEANING)
        more = bound(st.toggle, "More columns", key=MORE)
    columns = view.columns(expert_words.SAYS("COLUMNS"))
    shown = answers.listed(of, chosen, effects, tuple(columns))
    st.session_state[ROWS] = shown["expert"].tolist()
    order = [name for name in shown if more or name in FIRST]
    view.table(
        KEY, shown, expert_words.ALL, f"{len(shown)} experts with row, column, people, status, genres and limits",
        column_config={name: columns[name] for name in shown}, column_order=order, height=250, on_select=_picked,
        selection_mode="single-row",
    )  # fmt: skip
    return _below(of, effects)


def _picked() -> None:
    expert = view.chosen_row(KEY, st.session_state.get(ROWS, []))
    if expert is not None:
        shell.look_at(expert)


def _below(of: Subject, effects: pd.DataFrame | None) -> list[str]:
    counts, size = Counter(answers.table(of)["status"]), of.survey.size
    st.caption("The box opens it.")
    doubts = ["**How busy.** " + ", ".join(f"{counts[name]} {name}" for name in GROUPS[1:]) + "."]
    if of.survey.genres:
        labelled, chance = answers.by_chance(of)
        doubts.append(expert_words.SAYS("SURE_NAMES", labelled=labelled, size=size, chance=chance))
    if effects is not None:
        worse, better, chance = ablation.apart(effects)
        doubts.append(expert_words.SAYS("SURE_ALL", worse=worse, better=better, size=len(effects), chance=chance))
    elif of.traffic.experts.shape[1] > 1:
        passes, asked = Passes(shell.RUNS), (of.run, of.dataset.hash)
        waiting.offer(
            passes, passes.latest(**passes.about(*asked)), asked, "exp_all",
            expert_words.SAYS("NOT_MEASURED"), "Remove each and measure",
            "Adds a column: the change of NDCG@10. In the background, for everybody.",
        )  # fmt: skip
    return doubts
