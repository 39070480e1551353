"""What one screen hands to the next: the events that were taken off the end of a history, and the experts that were silenced.

An address moves no widget that stands already, and rooms do not know each other; so it waits in the visit, to be taken once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.frame.shell import Context

HANDED, TAKEN = "handed_edits", "handed_taken"


@dataclass(frozen=True)
class Edited:
    data: str
    user: int
    removed: int
    silenced: tuple[int, ...]


def give(now: Context, edits: Sequence[int | None]) -> None:
    """These are the edits now: None takes the last event away, a number silences that expert."""
    silenced = tuple(edit for edit in edits if edit is not None)
    st.session_state[HANDED] = Edited(now.dataset.hash, now.user, list(edits).count(None), silenced)


def waiting(now: Context) -> Edited | None:
    """What is there for this person and has not been taken."""
    found: Edited | None = st.session_state.get(HANDED)
    if found is None or found == st.session_state.get(TAKEN) or (found.data, found.user) != (now.dataset.hash, now.user):
        return None
    return found if found.removed or found.silenced else None


def take(now: Context) -> Edited | None:
    """The same, once."""
    found = waiting(now)
    if found is not None:
        st.session_state[TAKEN] = found
    return found
