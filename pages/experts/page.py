"""Experts: what does one expert stand for, and does it matter?"""

import streamlit as st

from pages.components import cache, edits, page_context, page_elements
from pages.components.controls import choose_without_label, option_in_address
from pages.experts import cached, expert_summary, knobs, panels, sentences

PART = "exp_part"
EVERY, TURN = "All experts", "Turn it"
# One part of the dashboard, of which only the chosen one is computed; it returns what is doubtful about it.
PARTS = {
    EVERY: panels.show_all_experts,
    TURN: knobs.show_knobs,
    "People and items": panels.show_users_and_items,
    "Neighbours": panels.show_neighbours,
}


context = page_context.require_context()
page_elements.require_experts(context, "What does one expert stand for, and does it matter?")
edits.current_edits(context)  # so that a link's edits are this person's, whichever part is open
subject = cached.survey_run(context.open_run)
strongest = cache.strongest_expert(context.open_run, context.user)
assert strongest is not None
number = strongest if context.expert is None else context.expert
is_turning = st.session_state.get(PART, option_in_address(PART, list(PARTS))) == TURN
if is_turning:  # is about a person: sliders and list stand in one view, without the head of the chosen expert
    page_elements.show_title(f"What do person {context.user + 1}’s experts do, turned up or down?")
    st.write(sentences.TEXT("KNOBS_IDEA"))
    doubts: list[str] = []
else:
    page_elements.show_title(f"What does expert {number} stand for, and does it matter?")
    st.write(sentences.TEXT("IDEA"))
    lead = sentences.TEXT("LEAD", person=context.user + 1)
    expert_summary.show_navigation(subject, number, context.user, strongest, lead)
    doubts = expert_summary.show_summary(subject, number, context.user)
has_users = is_turning or subject.traffic.load[number] > 0 or expert_summary.show_dead_notice(subject, number)
chosen = choose_without_label("Part", list(PARTS), PART)
if has_users or chosen == EVERY:
    with st.container(border=True):
        doubts += PARTS[chosen](subject, number, context.user) or ()
page_elements.show_confidence_notes(doubts)
swap = st.session_state.get(knobs.SWAP)
command = [] if chosen == EVERY else ["--expert", number]
if chosen == TURN and swap is not None:
    command += ["--swap", swap]
page_elements.show_footer("elastic experts", context.run.name, *command, expert=number)
