"""Finding somebody worth looking at: by length, by genre, by what one run gains over another."""

import pandas as pd
import streamlit as st

from elastic_core.services.person import inspect, people
from pages.frame import shell
from pages.frame.shell import Context
from pages.journey import answers
from pages.journey.words import SAYS
from pages.kit import cache, view
from pages.kit.control import button

BY, TABLE, EVERYBODY = "jrn_by", "jrn_everybody", "everybody, as a table"
LONG, SHORT, GENRE, GAIN, LOSS = "longest history", "shortest history", "most of a genre", "largest gain", "largest loss"


def finders(now: Context) -> None:
    """By what sets people apart; by an id or a title, the sidebar does."""
    held = shell.locked("user")
    panel = st.popover("Find someone by …", icon=":material/person_search:", key="jrn_finding", on_change="rerun", disabled=held)
    if panel.open:
        with panel:
            _finder(now)


def _finder(now: Context) -> None:
    genres = inspect.common_genres(now.dataset, top=30)
    options = [EVERYBODY, LONG, SHORT, *([GENRE] if genres else []), *([GAIN, LOSS] if now.other else [])]
    by = st.selectbox("By", options, key=BY)
    if by == EVERYBODY:
        _table(now)
        return
    if now.other is None:
        st.caption(SAYS("SECOND"))
    if by == GENRE:
        found = people.by_genre(now.dataset, st.selectbox("Genre", genres, key="jrn_by_genre"))
        notes = [f"{row.share:.0%} of {row.events}" for row in found.itertuples()]
    elif by in (GAIN, LOSS):
        found, notes = _gains(now, by == LOSS)
    else:
        found = people.by_length(now.dataset, by == LONG)
        notes = [f"{row.events} events" for row in found.itertuples()]
    for user, note in zip(found["user"].tolist(), notes, strict=True):
        button(f"Person {user + 1}: {note}", f"jrn_meet_{user}", shell.meet, user, False, disabled=shell.locked("user"))


def _table(now: Context) -> None:
    """Everybody; a row opens the person."""
    words, expert, number = now.words, None, st.column_config.NumberColumn
    if now.model.retrieves:
        expert = cache.strongest(now, now.user) if now.expert is None else now.expert
    frame = answers.everybody(now, expert)
    columns = {
        "events": f"{words.many} read",
        "rank": number(f"rank of what they {words.did} next", format="%.0f"),
        "share": number(f"weight of expert {expert}", format="percent"),
    }
    st.caption(f"{len(frame):,} people. The box before a row opens that person.")
    st.dataframe(
        frame, key=TABLE, hide_index=True, height=320, on_select=_opened, selection_mode="single-row", column_config=columns,
        alt=f"Everybody: how many {words.many} they have, the rank of what came next, and the weight of one expert",
    )  # fmt: skip
    view.remember("everybody", frame)


def _opened() -> None:
    for user in st.session_state[TABLE]["selection"]["rows"]:  # one at most
        shell.meet(int(user), keep_expert=False)


def _gains(now: Context, losses: bool) -> tuple[pd.DataFrame, list[str]]:
    assert now.other is not None
    among = f"all {'' if now.stay else 'new '}{now.words.many}"
    runs = shell.plain(f"{cache.called(now.run)} against {cache.called(now.other.run)}")
    st.caption(f"The rank of what came next among {among}: {runs}. {SAYS('EXTREME')}")
    found = people.gains(answers.target_ranks(now), answers.target_ranks(now.other), losses)
    return found, [f"rank {row.rank:.0f} against {row.other:.0f}" for row in found.itertuples()]
