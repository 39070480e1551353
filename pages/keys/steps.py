"""The steps of the product-key search: which one is shown, what it says, and the votes that follow it."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
import streamlit as st

from elastic_core import text
from elastic_core.services.keys import votes
from elastic_core.services.keys.search import Lesson
from elastic_core.services.keys.votes import VoteTally
from pages.components import page_context, page_elements
from pages.components.cache import cached_figure
from pages.components.controls import option_in_address, write_in_address
from pages.keys import charts, search_picture
from pages.keys.sentences import TEXT

STEPS = ("Split", "Score", "Keep", "Pair", "Win", "Gather", "Weigh")
VOTING = (*STEPS, "Vote")
UNWRITTEN = STEPS[:5]  # where the experts are not written out, only found
STEP, EVENT, TALLY = "keys_step", "keys_event", "keys_tally"
ANGLES, TOY_K = ("keys_q1", "keys_q2"), "keys_toy_k"
AT_FIRST = {"keys_q1": 250, "keys_q2": 120, "keys_toy_k": 3}
REFUSED_STEP = "keys_said"  # of a step that an address asked for and nobody has


class Scene(NamedTuple):
    """What all steps are about; `name` changes when the query or the keys do. `election` where it is one event that asks,
    `angles` of the 4 × 4."""

    lesson: Lesson
    query_owner: str
    name: str
    election: VoteTally | None = None
    angles: tuple[int, int] | None = None
    note: str = ""

    @property
    def steps(self) -> Sequence[str]:
        return VOTING if self.election else STEPS if len(self.lesson.values) else UNWRITTEN


# --- what the browser and the address say ----------------------------------------------------------------------------


def toy_query() -> tuple[int, int, int]:
    """Directions of both halves of the query of the 4 × 4, in degrees, and how many are wanted; the address says them, too."""
    page_context.register_controls({ANGLES[0]: "Query of the 4 × 4"})
    for key, default in AT_FIRST.items():
        if key not in st.session_state:
            parameter, highest = text.parse_number(st.query_params.get(key, "")), search_picture.MOST if key == TOY_K else 359
            st.session_state[key] = parameter if parameter is not None and parameter <= highest else default
        _write_unusual(key, st.session_state[key], default)
    first, second, k = (int(st.session_state[key]) for key in AT_FIRST)
    return first, second, max(k, 1)


def choose_step(scene: Scene) -> str:
    """Which step is shown; the address says it, too. One that is not offered (any more) is the first."""
    page_context.register_controls({STEP: "Step"})
    parameter, first = st.query_params.get(STEP, ""), scene.steps[0]
    if parameter and STEP not in st.session_state:
        st.session_state[STEP] = option_in_address(STEP, scene.steps)
        if st.session_state[STEP] is None and st.session_state.get(REFUSED_STEP) != parameter:
            st.session_state[REFUSED_STEP] = parameter
            message = f"Step: “{text.escape_markdown(parameter[:60])}” is not offered here. Shown: {first}."
            st.toast(message, icon=":material/link_off:", duration="long")
    if st.session_state.get(STEP) not in scene.steps:
        st.session_state[STEP] = first
    _write_unusual(STEP, st.session_state[STEP], first)
    return str(st.session_state[STEP])


def _write_unusual(key: str, value: str | int, default: str | int) -> None:
    """Into the address, as a bound control does: what is usual is not said."""
    write_in_address(key, None if value == default else str(value))


def follow_browser(offered_steps: Sequence[str]) -> None:
    """The browser went on to another step, or turned the query."""
    state = search_picture.browser_state()
    if state.get("step") in offered_steps and not page_context.is_locked(STEP):
        st.session_state[STEP] = state["step"]
    if not page_context.is_locked(ANGLES[0]):
        for key, angle in zip(ANGLES, state.get("angles", ()), strict=False):
            st.session_state[key] = angle
        if "k" in state:
            st.session_state[TOY_K] = state["k"]


# --- words and tables ------------------------------------------------------------------------------------------------


def step_texts(scene: Scene) -> dict[str, str]:
    """What every step says, for the picture to fill with its numbers."""
    kind, election = scene.lesson.kind, scene.election
    texts = {name: TEXT(name) for name in (*STEPS[:6], "Keep all", "Pair one")}
    texts["Weigh"] = TEXT(kind if kind in ("softmax", "vote", "none") else "other")
    texts["Vote"] = ""
    if election:
        weigh_text = texts["Weigh"].replace("{one}", election.words.singular)
        texts |= {"Gather": TEXT("Gather votes"), "Weigh": weigh_text, "Vote": _describe_votes(election)}
    return texts


# --- votes -----------------------------------------------------------------------------------------------------------


def _vote_table(election: VoteTally) -> pd.DataFrame:
    return votes.vote_table(election.retrieved, election.newest).merge(election.events, on="event")


def _describe_votes(election: VoteTally) -> str:
    vote_rows, k = _vote_table(election), election.retrieved.experts.shape[1]
    m = len(vote_rows) // len(election.events)
    own_rows = vote_rows[vote_rows["event"] == election.event]
    split_text = ", ".join(f"{row.share:.0%} to expert **{row.expert}**" for row in own_rows.itertuples())
    matches_text = f"the {m} experts that match it best" if m > 1 else "the expert that matches it best"
    title = text.one_line(own_rows["title"].iloc[0]).replace("*", " ").replace("{", "(").replace("}", ")")
    return TEXT("VOTE", one=election.words.singular, each=matches_text, k=k, title=f"“{title}”", split=split_text)


def show_votes(election: VoteTally) -> None:
    """Many events ask, the most wanted experts win: who voted for whom."""
    item_words, sums, vote_rows = election.words, votes.vote_sums(election.retrieved), _vote_table(election)
    k = len(sums) - 1
    experts_text = ", ".join(f"expert {row.expert} {row.votes:.0%}" for row in sums.head(k).itertuples())
    marks = votes.vote_marks(vote_rows).merge(election.events, on="event", how="left")
    explanation = page_elements.ChartText(
        f"Which {item_words.singular} asked for which expert?",
        f"The model read all {len(election.events):,} {item_words.plural}. Each stroke is a vote, and its height says how much "
        "it counts. Squares hold all earlier votes together, bars the sum of a row. The number in brackets is what an average "
        "person gives.",
        "Many votes do not mean that the expert helps. To see that, remove it on Start.",
    )
    alt = (
        f"Strokes: which of the last {item_words.plural} voted for which of the {k} chosen experts. Most wanted first: "
        f"{experts_text}. All other experts: {sums['votes'].iloc[k]:.0%}."
    )
    figure = cached_figure(charts.draw_votes, marks, sums, election.event, item_words, page_context.theme_palette())
    page_elements.show_chart(
        TALLY,
        figure,
        vote_rows.assign(elected=vote_rows["row"] < k).drop(columns="row"),
        explanation,
        alt,
        on_select=_select_clicked_event,
    )
    st.caption(f"Click a stroke to follow the search of that {item_words.singular}.")


def _select_clicked_event() -> None:
    """A stroke was clicked: its event is looked at."""
    if (mark := page_elements.clicked_mark(TALLY)) and not page_context.is_locked(EVENT):
        st.session_state[EVENT] = mark[0]
