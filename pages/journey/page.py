"""Journey: which experts does this history find, and what if it were different? Read up to any moment, edit, compare."""

import streamlit as st

from elastic_core.services.edits import format_edits, history_edits
from elastic_core.services.person.prediction import Prediction
from pages.components import cache, edits, page_context, page_elements, user_cards
from pages.components.controls import choose_from_list, choose_without_label
from pages.journey import controls, reasons, views
from pages.journey.sentences import TEXT

WITH, FIRST, SECOND, PART = "jrn_with", "the original", "the second run", "jrn_part"
MATTERS, DISPATCHER, OVER_TIME = "What matters?", "The dispatcher", "Over time"


def opening() -> None:
    asked = "What if this history were different?" if now.model.retrieves else "What does this run make of this history?"
    page_elements.show_title(asked)
    n_events = int(now.dataset.readable()[now.user]) + 1
    st.markdown(TEXT("IDEA", person=now.user + 1, did=words.did, events=n_events, many=words.many))
    if not now.model.retrieves:
        st.info(TEXT("INSTEAD"))


def compared() -> tuple[Prediction | None, str]:
    """The prediction that this one is compared with, and the second run's name if it is that one's; None for nothing."""
    options = [FIRST, *([SECOND] if now.other else [])]
    chosen = choose_from_list("Compare with", options, key=WITH, width=190) if now.other else FIRST
    if chosen == SECOND and now.other is not None:
        of_history = history_edits(edit_list)
        return cache.user_prediction(now.other, now.user, of_history, keep_seen, n_events), cache.label_run(now.other.run)
    return (cache.user_prediction(now.open_run, now.user, (), keep_seen, n_events) if edit_list else None), ""


def answered() -> Prediction:
    """What the list says to the edits: beside the buttons, in full on the right."""
    here = cache.user_prediction(now.open_run, now.user, edit_list, keep_seen, n_events)
    with choosing:
        before, peer = compared()
    if before is not None:
        with said:
            views.verdict(here, before, peer, words)
    with list_place:
        page_elements.show_heading("What comes next")
        views.lists(now, here, before, peer)
    if now.model.retrieves:
        page_elements.show_heading("Its experts")
        views.experts(now, here, None if peer else before)
    return here


def inside(here: Prediction) -> None:
    parts = [DISPATCHER, MATTERS, OVER_TIME] if now.model.retrieves else [MATTERS, OVER_TIME]
    part = choose_without_label("Inside", parts, PART)
    page_elements.show_heading(part)
    if part == MATTERS:
        page_elements.show_confidence_notes(reasons.influence(now, here))
    elif part == DISPATCHER:
        reasons.dispatcher(now, here)
    else:
        reasons.along(now, moment, keep_seen)


now = page_context.require_context()
words = now.item_words

opening()
edit_list = edits.current_edits(now)
left, right = st.columns([6, 5], gap="medium")  # a cause and its effect stand side by side
with left:
    moment = controls.moment(now)
    n_events = None if moment == now.dataset.readable()[now.user] else moment
    drawn, said, null_place, choosing = st.container(), st.container(), st.container(), page_elements.place_in_row("top")
with right:
    list_place = st.container()
    keep_seen = user_cards.choose_keep_seen(now, "jrn_ranked")
edited_person = edits.apply_user_edits(now, edit_list, moment)
with drawn:
    views.ribbon(now, edited_person, bool(edit_list))
    controls.edit_bar(now, edit_list, edited_person)
if len(edited_person.items):
    inside(answered())
else:
    list_place.info(TEXT("EMPTY"))
page_elements.show_footer(
    "python -m elastic_core recommend", now.run.name, *views.command_words(now, edit_list, edited_person, n_events is None),
    *(["--seen"] if keep_seen else []), events=moment, edits=format_edits(edit_list),
)  # fmt: skip
with null_place:
    views.beside_null(now, edit_list, keep_seen, n_events)
