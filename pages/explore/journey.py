"""Journey: which experts does this history summon, and what if it were different? Read up to any moment, edit, compare."""

import streamlit as st

from elastic_core.services import inspect, journey
from elastic_core.services.inspect import Situation
from elastic_core.services.journey_shown import choices, raw_ids
from elastic_core.services.journey_text import encode
from elastic_core.services.recommend import moved
from pages.ui import (
    cache,
    cache_journey,
    journey_edit,
    journey_files,
    journey_people,
    journey_reasons,
    journey_views,
    shell,
    view,
)
from pages.ui import journey_state as state

WITH, SECOND = "jrn_with", "the second run"


def opening() -> None:
    st.title("Which experts does this history summon, and what if it were different?", anchor=False)
    experts = "which experts it summons, " if now.model.retrieves else ""
    st.markdown(
        f"Person **{now.user + 1}** {words.did} **{last + 1}** {words.many}. Choose how much of it is read, change it, and see "
        f"{experts}what it is recommended, and which {words.many} are behind that."
    )
    if not now.model.retrieves:
        st.info(
            "This run has no interest memory, so there are no experts to show. Edits, lists and removal tests work all the same."
        )


def scrubber() -> int:
    """The moment, and what came after it."""
    return int(
        st.slider(
            f"Read the first … {words.many}", 1, last, last, key=state.MOMENT, bind="query-params",
            disabled=shell.locked(state.MOMENT),
            help=f"The model reads up to here; what they {words.did} next is held back and marked gold.",
        )
    )  # fmt: skip


def compared() -> tuple[Situation | None, str]:
    """The situation that this one is compared with, and its name; None for nothing."""
    options = [*choices(tree), *([SECOND] if now.other else [])]
    if st.session_state.get(WITH) not in options:
        st.session_state.pop(WITH, None)
    chosen = options[0]
    if len(options) > 1:
        chosen = st.selectbox(
            "Compare with", options, key=WITH, bind="query-params", disabled=shell.locked(WITH), width=300
        ) or options[0]  # fmt: skip
    if chosen == SECOND and now.other is not None:
        peer = cache.opened(now.other, now.dataset)
        return cache_journey.situation(now.other, peer, now.dataset, here.read), f"{now.other.name}, same history"
    number = options.index(chosen)
    read = journey.read(now.dataset, tree, number)
    if number == tree.current or not len(read.items):
        return None, chosen
    return cache_journey.situation(now.run, now.model, now.dataset, read), chosen


def answers() -> None:
    """Experts and lists, beside what they are compared with."""
    before, name = compared()
    same_run = before is not None and bool(before.heard)
    if before is not None:
        journey_views.verdict(here, moved(before.answer, here.answer), name, words)
    left, right = st.columns([2, 3], gap="medium") if now.model.retrieves else (None, st.container())
    if left is not None:
        with left:
            st.subheader("The experts it summons", anchor=False)
            journey_views.experts(now, here, before if same_run and not name.endswith("same history") else None)
    with right:
        st.subheader("What comes next", anchor=False)
        journey_views.lists(now, here, before or here, name, before is not None)


def settings() -> dict[str, str | int]:
    return {"events": moment, "edits": encode(tree), "version": tree.current}


now = shell.context()
words = inspect.words(now.dataset)
shell.lockable({
    state.MOMENT: "How much is read", state.CODE: "Edits", WITH: "Compare with", "jrn_for": "Behind what",
    "jrn_show": "Events shown", "jrn_layer": "Layer",
})  # fmt: skip
last = state.settle(now)

top, below = st.container(), st.container()
with top:
    opening()
    notices = st.container()
    journey_people.finders(now)
    moment = scrubber()
with below:  # first, because the box says which versions there are
    drawn, kept = st.container(), st.expander("Versions: keep, share, load", icon=":material/account_tree:", key="jrn_kept")
    with kept:
        tree = state.code_box(now, moment)
        journey_files.versions(now, tree)
with notices:
    state.said()
with drawn:
    journey_views.ribbon(now, tree, words)
    journey_edit.bar(now, tree, words)
    if tree.here.items:
        here = cache_journey.situation(now.run, now.model, now.dataset, journey.read(now.dataset, tree))
        answers()
        journey_reasons.influence(now, here, words)
        if now.model.retrieves:
            journey_reasons.reading(now, here, words)
    else:
        st.info(f"Nothing has been read yet. Add a {words.one}, or paste a list.")
    journey_reasons.along(now, moment, words)
with below:
    ids = raw_ids(now.dataset, tree.here)
    view.foot(f'python -m elastic_core recommend {now.run.name} --history "{ids}"', **settings())
