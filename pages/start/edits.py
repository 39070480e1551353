"""What was broken on the start page, kept in the address: `edits=<run>~<person>~r.x12.145`, r the last event that was left, x12
the twelfth event, 145 an expert."""

import re

import streamlit as st

from elastic_core.services.person.inspect import memory_size
from elastic_core.services.person.recommend import Change, experts_silenced, places_left
from pages.frame.shell import Context
from pages.kit import handed, view
from pages.kit.control import write_in_address

PARAMETER, KEPT, MOST = "edits", "start_edits", 60
Edits = list[Change]
WORD = r"(?:r|x[1-9][0-9]{0,8}|[0-9]{1,9})"


def text(run: str, user: int, done: Edits) -> str:
    """The edits as an address carries them; empty for none."""
    words = ["r" if edit is None else f"x{-edit}" if edit < 0 else str(edit) for edit in done]
    return f"{run}~{user + 1}~" + ".".join(words) if done else ""


def parse(asked: str, run: str, user: int, experts: int) -> Edits | None:
    """The edits of this run and person, or None for a text that is no such thing. Those of somebody else are no edits."""
    found = re.fullmatch(rf"([^~]{{1,100}})~([0-9]{{1,9}})~({WORD}(?:\.{WORD})*)", asked)
    if found is None or found[3].count(".") >= MOST:
        return None
    if found[1] != run or int(found[2]) != user + 1:
        return []
    words = found[3].split(".")
    done = [None if word == "r" else -int(word[1:]) if word[0] == "x" else int(word) for word in words]
    return done if all(edit is None or edit < experts for edit in done) else None


def current(now: Context) -> Edits:
    """What is broken in this view: what Journey did last, then the address, then the visit. Says what cannot be shown here."""
    done: Edits | None
    if (found := handed.take(now, handed.START)) is not None and found.removed is not None and len(found.removed) < MOST:
        tail = found.removed == tuple(range(_events(now) - len(found.removed), _events(now)))
        taken = [None if tail else -place - 1 for place in found.removed]
        done = [*taken, *experts_silenced(_asked(now) or [])]
    else:
        done, before = _asked(now), handed.last(now)
        if done is None:
            st.warning("The edits in this address cannot be read, so you see the unchanged history.", icon=":material/info:")
        elif before is None if done else before is not None and before.by == handed.START:
            _give(now, done)  # an address brought them, or they went when another run was looked at
    _write(now, done or [])
    latest = handed.last(now)
    if latest is not None and latest.by == handed.JOURNEY and (latest.removed is None or len(latest.removed) >= MOST):
        with view.row():
            st.caption("Edited otherwise on Journey; here without that.", width="content")
            st.page_link("journey/page.py", label="The edited history", icon=":material/route:")
    return done or []


def toggled(done: Edits, edit: int, events: int) -> Edits:
    """The same with one edit more, or, where it was made already, without it."""
    known = Edits()
    for each in done:  # the last that was left is an event like any other
        known.append(-places_left(events, known)[-1] - 1 if each is None else each)
    return [each for each in known if each != edit] if edit in known else [*done, edit]


def keep(now: Context, done: Edits) -> None:
    """For callbacks: these are the edits now, here and on Journey."""
    _give(now, done[:MOST])
    _write(now, done)


def _events(now: Context) -> int:
    """How many events may be read of this person."""
    return int(now.dataset.readable()[now.user])


def _asked(now: Context) -> Edits | None:
    """None for a text that is no edits."""
    asked = st.query_params.get(PARAMETER, st.session_state.get(KEPT, ""))
    return parse(asked, now.run.name, now.user, memory_size(now.model)) if asked else []


def _give(now: Context, done: Edits) -> None:
    left = places_left(_events(now), done)
    gone = (place for place in range(_events(now)) if place not in left)
    handed.give(now, handed.START, tuple(gone), experts_silenced(done))


def _write(now: Context, done: Edits) -> None:
    kept = st.session_state[KEPT] = text(now.run.name, now.user, done[:MOST])
    write_in_address(PARAMETER, kept or None)
