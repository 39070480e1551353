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
        genre = st.selectbox("Genre", genres, key="jrn_by_genre")
        found = people.by_genre(now.dataset, genre)
        notes = [f"{row.share:.0%} of {row.events}" for row in found.itertuples()]
    elif by in (GAIN, LOSS):
        found, notes = _gains(now, by == LOSS)
    else:
        found = people.by_length(now.dataset, by == LONG)
        notes = [f"{row.events} events" for row in found.itertuples()]
    for user, note in zip(found["user"], notes, strict=True):
        name = f"Person {user + 1}: {note}"
        button(name, f"jrn_meet_{user}", shell.meet, int(user), False, disabled=shell.locked("user"))


def _table(now: Context) -> None:
    """Everybody; a row opens the person."""
    words = now.words
    expert = None
    if now.model.retrieves:
        strongest = cache.strongest(now, now.user)
        expert = strongest if now.expert is None else now.expert
    frame = answers.everybody(now, expert)
    number = st.column_config.NumberColumn
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
    rows = st.session_state[TABLE]["selection"]["rows"]
    if rows:
        shell.meet(int(rows[0]), keep_expert=False)


def _gains(now: Context, losses: bool) -> tuple[pd.DataFrame, list[str]]:
    assert now.other is not None
    mine = answers.target_ranks(now)
    theirs = answers.target_ranks(now.other)
    many, stay = now.words.many, now.stay
    new = "" if stay else "new "
    st.caption(
        f"The rank of what came next among all {new}{many}: "
        f"{shell.plain(f'{cache.called(now.run)} against {cache.called(now.other.run)}')}. " + SAYS("EXTREME")
    )
    found = people.gains(mine, theirs, losses)
    return found, [f"rank {row.rank:.0f} against {row.other:.0f}" for row in found.itertuples()]
