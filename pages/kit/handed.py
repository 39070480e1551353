"""One person's edits, followed from Start to Journey and back: the screen edited last speaks, the other takes it over.

An address moves no widget that stands already, and rooms do not know each other; so an edit waits in the visit, to be taken
once. Start only takes events away; for any other edit of Journey's `removed` is None. Events are places from 0.
"""

from typing import NamedTuple

import streamlit as st

from pages.frame.shell import Context

HANDED, TAKEN = "handed_edits", "handed_taken"
START, JOURNEY = "start", "journey"


class Edited(NamedTuple):
    by: str
    data: str
    user: int
    removed: tuple[int, ...] | None
    silenced: tuple[int, ...] = ()


def give(now: Context, by: str, removed: tuple[int, ...] | None, silenced: tuple[int, ...] = ()) -> None:
    """These are the edits now, made on the screen `by`."""
    st.session_state[HANDED] = Edited(by, now.dataset.hash, now.user, removed, silenced)


def last(now: Context) -> Edited | None:
    """The latest edits of this person, made on either screen."""
    found = st.session_state.get(HANDED)
    return found if found is not None and (found.data, found.user) == (now.dataset.hash, now.user) else None


def waiting(now: Context, here: str) -> Edited | None:
    """What another screen than `here` left for this person and has not been taken."""
    found = last(now)
    return found if found is not None and found.by != here and found != st.session_state.get(TAKEN) else None


def take(now: Context, here: str) -> Edited | None:
    """The same, once."""
    found = waiting(now, here)
    if found is not None:
        st.session_state[TAKEN] = found
    return found
