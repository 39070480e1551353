"""Journey: which experts does this history find, and what if it were different? Read up to any moment, edit, compare."""

import streamlit as st

from elastic_core.services.edits import format_edits, history_edits, initial_history, own_items
from elastic_core.services.person.prediction import Prediction
from pages.components import cache, edits, page_context, page_elements, user_cards
from pages.components.controls import choose_from_list, choose_without_label
from pages.journey import controls, reasons, views
from pages.journey.sentences import TEXT

WITH, FIRST, SECOND, PART = "jrn_with", "the original", "the second run", "jrn_part"
MATTERS, DISPATCHER, OVER_TIME = "What matters?", "The dispatcher", "Over time"


def show_opening() -> None:
    question = "What if this history were different?" if context.model.retrieves else "What does this run make of this history?"
    page_elements.show_title(question)
    n_events, user = int(context.dataset.readable_lengths()[context.user]), context.user
    if context.dataset.in_baskets:
        st.markdown(TEXT("BASKET", person=user + 1, events=f"{n_events:,}", basket=len(context.dataset.next_items(user))))
    else:
        st.markdown(TEXT("IDEA", person=user + 1, did=item_words.verb, events=f"{n_events + 1:,}", many=item_words.plural))
    if not context.model.retrieves:
        st.info(TEXT("INSTEAD"))


def compared_prediction() -> tuple[Prediction | None, str]:
    """The prediction that this one is compared with, and the second run's name if it is that one's; None for nothing."""
    options = [FIRST, *([SECOND] if context.other else [])]
    chosen_run = choose_from_list("Compare with", options, key=WITH, width=190) if context.other else FIRST
    if chosen_run == SECOND and context.other is not None:
        of_history = history_edits(edit_list)
        return cache.user_prediction(context.other, context.user, of_history, keep_seen, n_events), cache.label_run(
            context.other.run
        )
    initial_edits = initial_history(edit_list, int(context.dataset.readable_lengths()[context.user]))
    if edit_list == initial_edits:
        return None, ""
    return cache.user_prediction(context.open_run, context.user, initial_edits, keep_seen, n_events), ""


def show_prediction() -> Prediction:
    """What the list says to the edits: beside the buttons, in full on the right."""
    prediction = cache.user_prediction(context.open_run, context.user, edit_list, keep_seen, n_events)
    with choice_place:
        prediction_before, peer = compared_prediction()
    with verdict_place:
        if prediction_before is not None:
            views.show_verdict(prediction, prediction_before, peer, item_words)
        elif edit_list:
            st.info(TEXT("OWN"), icon=":material/edit_note:")
    with list_place:
        page_elements.show_heading("What comes next")
        views.show_lists(context, prediction, prediction_before, peer)
    if context.model.retrieves:
        page_elements.show_heading("Its experts")
        views.show_experts(context, prediction, None if peer else prediction_before)
    return prediction


def show_reasons(prediction: Prediction) -> None:
    parts = [DISPATCHER, MATTERS, OVER_TIME] if context.model.retrieves else [MATTERS, OVER_TIME]
    part = choose_without_label("Inside", parts, PART)
    page_elements.show_heading(part)
    if part == MATTERS:
        page_elements.show_confidence_notes(reasons.show_influence(context, prediction))
    elif part == DISPATCHER:
        reasons.show_dispatcher(context, prediction)
    else:
        reasons.show_moments(context, moment, keep_seen)


context = page_context.require_context()
item_words = context.item_words

show_opening()
edit_list = edits.current_edits(context)
edit_column, list_column = st.columns([6, 5], gap="medium")  # a cause and its effect stand side by side
with edit_column:
    n_own = int(context.dataset.readable_lengths()[context.user])
    moment = n_own if own_items(edit_list, n_own) else controls.choose_moment(context)  # a list of one's own has no moments
    n_events = None if moment == n_own else moment
    history_place, verdict_place, null_place, choice_place = (
        st.container(),
        st.container(),
        st.container(),
        page_elements.place_in_row("top"),
    )
with list_column:
    list_place = st.container()
    keep_seen = user_cards.choose_keep_seen(context, "jrn_ranked")
edited_user = edits.apply_user_edits(context, edit_list, moment)
with history_place:
    views.show_history(context, edited_user, bool(edit_list))
    controls.show_edit_bar(context, edit_list, edited_user)
if len(edited_user.items):
    show_reasons(show_prediction())
else:
    list_place.info(TEXT("EMPTY"))
page_elements.show_footer(
    "elastic recommend",
    context.run.name,
    *views.command_words(context, edit_list, edited_user, n_events is None),
    "--seen" if keep_seen else "--unseen",
    events=moment,
    edits=format_edits(edit_list),
)
with null_place:
    views.show_null_edits(context, edit_list, keep_seen, n_events)
