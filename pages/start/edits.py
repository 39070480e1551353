"""What was broken on the start page, kept in the address: `edits=<run>~<person>~r.r.145`, r an event, a number an expert."""

import re

import streamlit as st

from elastic_core.services.person.inspect import memory_size
from pages.frame.shell import Context
from pages.kit import handed

PARAMETER, KEPT, MOST = "edits", "start_edits", 60
Edits = list[int | None]


def text(run: str, user: int, done: Edits) -> str:
    """The edits as an address carries them; empty for none."""
    return f"{run}~{user + 1}~" + ".".join("r" if edit is None else str(edit) for edit in done) if done else ""


def parse(asked: str, run: str, user: int, experts: int) -> Edits | None:
    """The edits of this run and person, or None for a text that is no such thing. Those of somebody else are no edits."""
    found = re.fullmatch(r"([^~]{1,100})~([0-9]{1,9})~((?:r|[0-9]{1,9})(?:\.(?:r|[0-9]{1,9}))*)", asked)
    if found is None or found[3].count(".") >= MOST:
        return None
    if found[1] != run or int(found[2]) != user + 1:
        return []
    done: Edits = [None if word == "r" else int(word) for word in found[3].split(".")]
    return done if all(edit is None or edit < experts for edit in done) else None


def current(now: Context) -> Edits:
    """What is broken in this view: what Journey did last, then the address, then the visit. Says what cannot be shown here."""
    done: Edits | None
    if (found := handed.take(now, handed.START)) is not None and found.removed in range(MOST):
        done = [*[None] * (found.removed or 0), *(edit for edit in _asked(now) or [] if edit is not None)]
    else:
        done = _asked(now)
        if done is None:
            st.warning("The edits in this address cannot be read, so you see the unchanged history.", icon=":material/info:")
        elif done and handed.last(now) is None:
            _give(now, done)  # an address brought them
    _write(now, done or [])
    latest = handed.last(now)
    if latest is not None and latest.by == handed.JOURNEY and latest.removed not in range(MOST):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption("Edited otherwise than at its end on Journey; here without that.", width="content")
            st.page_link("journey/page.py", label="The edited history", icon=":material/route:")
    return done or []


def keep(now: Context, done: Edits) -> None:
    """For callbacks: these are the edits now, here and on Journey."""
    _give(now, done[:MOST])
    _write(now, done)


def _asked(now: Context) -> Edits | None:
    """None for a text that is no edits."""
    asked = st.query_params.get(PARAMETER)
    if asked is None:
        asked = st.session_state.get(KEPT, "")
    return parse(asked, now.run.name, now.user, memory_size(now.model)) if asked else []


def _give(now: Context, done: Edits) -> None:
    handed.give(now, handed.START, done.count(None), tuple(edit for edit in done if edit is not None))


def _write(now: Context, done: Edits) -> None:
    kept = st.session_state[KEPT] = text(now.run.name, now.user, done[:MOST])
    if kept:
        st.query_params[PARAMETER] = kept
    else:
        st.query_params.pop(PARAMETER, None)
