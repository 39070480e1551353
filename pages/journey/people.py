"""Finding somebody worth looking at: by length, by genre, by what one run gains over another."""

import pandas as pd
import streamlit as st

from elastic_core.services.person import inspect, people
from pages.frame import shell
from pages.frame.shell import Context
from pages.journey import answers
from pages.kit import cache, person

BY = "jrn_by"
LONG, SHORT, GENRE, GAIN, LOSS = "longest history", "shortest history", "most of a genre", "largest gain", "largest loss"


def finders(now: Context) -> None:
    """By a title, or by what sets people apart."""
    person.finder(now)
    held = shell.locked("user")
    panel = st.popover("Find someone by …", icon=":material/person_search:", key="jrn_finding", on_change="rerun", disabled=held)
    if panel.open:
        with panel:
            _finder(now)


def _finder(now: Context) -> None:
    genres = inspect.common_genres(now.dataset, top=30)
    options = [LONG, SHORT, *([GENRE] if genres else []), *([GAIN, LOSS] if now.other else [])]
    by = st.selectbox("By", options, key=BY)
    if now.other is None:
        st.caption("Choose a second run on the left to find those for whom one run does much better than the other.")
    if by == GENRE:
        genre = st.selectbox("Genre", genres, key="jrn_by_genre")
        found = people.by_genre(now.dataset, genre, now.split)
        notes = [f"{row.share:.0%} of {row.events}" for row in found.itertuples()]
    elif by in (GAIN, LOSS):
        found, notes = _gains(now, by == LOSS)
    else:
        found = people.by_length(now.dataset, now.split, by == LONG)
        notes = [f"{row.events} events" for row in found.itertuples()]
    for user, note in zip(found["user"], notes, strict=True):
        name = f"Person {user + 1}: {note}"
        st.button(name, key=f"jrn_meet_{user}", on_click=shell.meet, args=(int(user), False), disabled=shell.locked("user"))


def _gains(now: Context, losses: bool) -> tuple[pd.DataFrame, list[str]]:
    assert now.other is not None
    other = cache.opened(now.other, now.dataset)
    mine = answers.target_ranks(now.run, now.model, now.dataset, now.split)
    theirs = answers.target_ranks(now.other, other, now.dataset, now.split)
    many, stay = inspect.words(now.dataset).many, cache.repeats(now.dataset, now.split).stay
    st.caption(
        f"Rank of what came next among all {many}{'' if stay else ' not met before'}, over all {len(mine):,} people of the test: "
        f"{shell.plain(now.run.name)} against {shell.plain(now.other.name)}. These are the most extreme people, not typical ones."
    )
    found = people.gains(mine, theirs, losses)
    return found, [f"rank {row.rank:.0f} against {row.other:.0f}" for row in found.itertuples()]
