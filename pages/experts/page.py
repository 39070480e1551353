"""Experts: what does one expert stand for, and does it matter?"""

from collections.abc import Iterable

import streamlit as st

from elastic_core.services.person import inspect
from pages.experts import acts, answers, head, instead, meaning, meeting, table, turning, words
from pages.frame import shell
from pages.kit import cache, view
from pages.kit.control import asked_for, one_of

PART = "exp_part"
EVERY, KNOBS = "All experts", "Knobs"
PARTS = (EVERY, KNOBS, "People", "Genres", "Items", "Remove or swap", "Neighbours", "Training")


def part(name: str) -> Iterable[str]:
    """One part of the dashboard, and what is doubtful about it; only the chosen one is computed."""
    if name == EVERY:
        return table.show(of)
    if name == KNOBS:
        return turning.show(of, now.user)
    if name == "People":
        return meeting.show(of, number, now.user)
    if name == "Genres":
        meaning.genres(of, number)
    elif name == "Items":
        return meaning.items(of, number)
    elif name == "Remove or swap":
        acts.remove(of, number)
    elif name == "Neighbours":
        acts.neighbours(of, number)
    else:
        acts.training(of, number)
    return ()


now = shell.context()
if not now.model.retrieves:
    instead.show(now)
    st.stop()
if reason := inspect.too_many(now.model):
    st.title("What does one expert stand for, and does it matter?", anchor=False)
    st.info(reason)
    view.foot("python -m elastic_core evaluate", now.run.name)
    st.stop()
of = answers.subject(now.run, now.model, now.dataset, now.split)
strongest = cache.strongest(now.run, now.model, now.dataset, now.user, now.split)
assert strongest is not None
number = strongest if now.expert is None else now.expert
turned = st.session_state.get(PART, asked_for(PART, PARTS)) == KNOBS
if turned:  # is about a person: sliders and list stand in one view, without the head of the chosen expert
    st.title(f"What do person {now.user + 1}’s experts do, turned up or down?", anchor=False)
    st.write(words.SAYS("KNOBS_IDEA"))
    doubts: list[str] = []
else:
    st.title(f"What does expert {number} stand for, and does it matter?", anchor=False)
    st.write(words.SAYS("IDEA"))
    head.walk(of, number, strongest, f" Person {now.user + 1}’s strongest." if now.expert is None else "")
    doubts = head.cards(of, number, now.user)
alive = turned or of.survey.traffic.load[number] > 0 or head.dead(of, number)
chosen = one_of("Part", PARTS, key=PART, label_visibility="collapsed")
if alive or chosen == EVERY:
    with st.container(border=True):
        doubts += part(chosen)
view.sure(doubts)
swap = st.session_state.get(acts.SWAP)
one = ("--expert", number, *(("--swap", swap) if swap is not None else ()))
view.foot("python -m elastic_core experts", now.run.name, *{EVERY: (), KNOBS: ("--knobs",)}.get(chosen, one), expert=number)
