"""Journey: which experts does this history find, and what if it were different? Read up to any moment, edit, compare."""

import streamlit as st

from elastic_core.services.journey import versions
from elastic_core.services.journey.shown import raw_ids
from elastic_core.services.journey.text import encode
from elastic_core.services.person.inspect import Situation
from pages.frame import shell
from pages.journey import answers as cache_journey
from pages.journey import edit, people, reasons, state, views
from pages.journey.words import SAYS
from pages.kit import cache, person, view
from pages.kit.control import bound, one_of_list, switch

WITH, SECOND, PART = "jrn_with", "the second run", "jrn_part"
MATTERS, DISPATCHER, OVER_TIME = "What matters?", "The dispatcher", "Over time"


def opening() -> None:
    asked = "What if this history were different?" if now.model.retrieves else "What does this run make of this history?"
    view.title(asked)
    with view.row():
        st.markdown(SAYS("IDEA", person=now.user + 1, did=words.did, events=last + 1, many=words.many), width="content")
        people.finders(now)
    if not now.model.retrieves:
        st.info(SAYS("INSTEAD"))


def scrubber() -> int:
    """The moment, and what came after it."""
    return int(bound(
        st.slider, f"Read up to {words.one}", 1, last, last, key=state.MOMENT, called="How much is read",
        help=f"What they {words.did} next is hidden from the model. Gold marks it.",
    ))  # fmt: skip


def compared() -> tuple[Situation | None, str, str]:
    """The situation that this one is compared with, its name, and the second run's name if it is that; None for nothing."""
    versions_made = [f"version {number}" for number in range(1, len(tree.versions) + 1)]
    options = ["the original", *versions_made, *([SECOND] if now.other else [])]
    wanted = st.query_params.get(WITH, "")
    if len(options) == 1 and wanted not in ("", *options):  # else the control says so
        state.say(f"There is nothing called {shell.quoted(wanted)} to compare with here.")
    chosen = one_of_list("Compare with", options, key=WITH, width=190) if len(options) > 1 else options[0]
    if chosen == SECOND and now.other is not None:
        return cache_journey.situation(now.other, here.read, stay=stay), *[cache.called(now.other.run)] * 2
    number = options.index(chosen)
    read = versions.read_version(now.dataset, tree, number)
    if number == tree.current or not len(read.items):
        return None, chosen, ""
    return cache_journey.situation(now, read, stay=stay), chosen, ""


def answered() -> None:
    """What the list says to an edit: beside the buttons, in full on the right."""
    with choosing:
        before, name, peer = compared()
    if before is not None:
        with said:
            views.verdict(here, before, name, peer, words)
    with list_place:
        view.heading("What comes next")
        views.lists(now, here, before, peer)
    if now.model.retrieves:
        view.heading("Its experts")
        views.experts(now, here, None if peer else before)


now = shell.context()
words = now.words
last = state.settle(now)

top, below = st.container(), st.container()
with top:
    opening()
    notices = st.container()
    left, right = st.columns([6, 5], gap="medium")  # a cause and its effect stand side by side
with left:
    moment = scrubber()
    if moment < last:
        st.caption(SAYS("CHOSEN_BY" if moment == last - 1 else "TRAINED_ON"))
    drawn, said, chance, choosing = st.container(), st.container(), st.container(), view.row("top")
with right:
    list_place = st.container()
    stay = person.staying(now, "jrn_ranked")
with below:  # first, because the box says which versions there are
    reasoned, kept = st.container(), st.expander("Versions", icon=":material/account_tree:", key="jrn_kept")
    with kept:
        tree = state.code_box(now, moment)
        edit.kept(now, tree)
with drawn:
    views.ribbon(now, tree)
    edit.bar(now, tree)
with choosing:
    edit.versions(now, tree)
with reasoned:
    if tree.here.items:
        here = cache_journey.situation(now, versions.read_version(now.dataset, tree), stay=stay)
        answered()
        parts = [DISPATCHER, MATTERS, OVER_TIME] if now.model.retrieves else [MATTERS, OVER_TIME]
        part = switch("Inside", parts, PART)
        view.heading(part)
        if part == MATTERS:
            view.sure(reasons.influence(now, here))
        elif part == DISPATCHER:
            reasons.reading(now, here)
        else:
            reasons.along(now, moment, stay)
    else:
        list_place.info(SAYS("EMPTY", a=words.a))
with below:
    view.foot(
        "python -m elastic_core recommend", now.run.name, f"--history={raw_ids(now.dataset, tree.here.items)}",
        *(["--seen"] if stay else []), events=moment, edits=encode(tree), version=tree.current,
    )  # fmt: skip
with chance:
    views.by_chance(now, tree, stay)
with notices:  # last, when everything has been said
    state.said()
