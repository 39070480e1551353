"""Start: what does ELASTIC do with this person’s history? The whole way in one picture, and what changes without a part of it."""

from collections.abc import Mapping

import streamlit as st

from elastic_core.data import Dataset
from elastic_core.models import as_retrieving_model
from elastic_core.results.personal_gain import gain_sentence
from elastic_core.services.edits import (
    Add,
    Remove,
    Silence,
    format_edits,
    initial_history,
    own_items,
    replace_history,
    toggle_event,
    toggle_expert,
)
from elastic_core.services.person import attribution, inspect
from elastic_core.services.person.attribution import Agreement
from elastic_core.services.person.edited_history import event_rows
from elastic_core.services.person.model_trace import MOST_SHOWN, largest_effect
from elastic_core.services.person.recommend import compare_lists
from elastic_core.services.train import run_table
from pages.components import cache, edits, page_context, page_elements, page_text, results, user_cards
from pages.components.cache import OpenRun, cached_data, cached_resource
from pages.components.controls import place_button
from pages.start import details, strip

TEXT = page_text.load_page_text(__file__)
OWN_ITEMS = "start_yours_items"  # the box for a visitor's own history
MOST_CHOSEN, MOST_OFFERED = 5, 5_000  # items of it, and items that it offers, those that most people chose first
N_USERS = 200  # who are asked whether the owner of their first suggestion is the expert whose removal lowers it most
# On a low window the introduction is printed smaller beside an answer, and on a very low one it goes: the picture stays in view.
LOW = """<style>@media (min-width: 768px) and (max-height: 820px) {
  .st-key-start_lead_read p { font-size: .8rem; line-height: 1.3 }
  .st-key-start_said [data-testid="stAlertContainer"] { padding: .3rem .7rem }
}
@media (min-width: 768px) and (max-height: 720px) {
  .st-key-start_lead p { font-size: .9rem; line-height: 1.45 }
  .st-key-start_lead_read { display: none }
}</style>"""


@cached_data(12)
def share_agreement(open_run: OpenRun, n_users: int, keep_seen: bool) -> Agreement | None:
    """Do shares say what a removal does?"""
    return attribution.share_agreement(open_run.model, open_run.dataset, n_users, keep_seen)


@cached_resource(4)
def popular_items(data: Dataset) -> list[int]:
    """The items that a visitor may choose, the most frequent first, but none whose title only contains a typed word (`tea` in
    `steaks`) before one that has it: Enter takes the first match."""
    items = (data.all_counts()[1:].argsort(kind="stable")[::-1][:MOST_OFFERED] + 1).tolist()
    return [items[at] for at in inspect.order_by_words([data.catalog.title(item) for item in items])]


def act_on_picture(act: str, value: int | str) -> None:
    """Something in the picture was pressed: it opens below, or an event or an expert goes, or comes back."""
    if isinstance(value, str):
        details.toggle_details(value)
        return
    number = value
    is_event = act == strip.REMOVED
    edits_after = toggle_event(edit_list, number) if is_event else toggle_expert(edit_list, number)
    is_last = prediction.n_events < 2 if is_event else prediction.active_experts == [number]
    if is_last and len(edits_after) > len(edit_list):
        st.toast(TEXT("stays"))
    else:
        edits.set_edits(edits_after)


def show_opening() -> None:
    """What this is, in one sentence; then whom it is about, and how their experts are found."""
    retrieved = initial_prediction.retrieved
    values = {"one": item_words.singular, "many": item_words.plural, "did": item_words.verb, "person": context.user + 1}
    if own_history:
        history_text = TEXT(
            "whom own", count=len(own_history), many=item_words.singular if len(own_history) == 1 else item_words.plural
        )
    elif context.dataset.in_baskets:
        n_next = len(context.dataset.next_items(context.user))
        history_text = TEXT("whom basket", events=f"{initial_prediction.n_events:,}", basket=n_next, **values)
    else:
        history_text = TEXT("whom", events=initial_prediction.n_events, **values)
    if retrieved is None:
        st.markdown(f"{TEXT('idea')} {history_text} {TEXT('plain', size=f'{context.dataset.catalog.n_items:,}', **values)}")
        st.info(TEXT("no experts"))
        return
    experts_text = (
        f"{len(initial_prediction.experts)} of {retrieved.halves.shape[2] ** 2 or len(initial_prediction.experts):,} experts"
    )
    search_text = TEXT("query" if retrieved.ballots is None else "votes", chosen=experts_text, **values)
    slot_text = TEXT("slot", **values) if trace.event_share is not None else ""
    st.markdown(f"{TEXT('idea')} {history_text} {search_text} {slot_text}", help=explain_words(values))


def explain_words(words: Mapping[str, object]) -> str:
    """Memory, expert, slot and dispatcher, and how this model makes the list."""
    by_slot = attribution.can_attribute(as_retrieving_model(context.model))
    words = {"size": f"{context.dataset.catalog.n_items:,}", **words}
    scores_text = TEXT("scores by slot" if by_slot else "scores by mix", **words)
    return TEXT("expert", scores=scores_text, variant=f" {TEXT('variant')}" if by_slot else "", **words)


def choose_own_items() -> None:
    """One box in every world: what the visitor likes is read in the person's place, from the first choice on."""
    catalog, chosen_items = context.dataset.catalog, list(own_history)
    if st.session_state.get(OWN_ITEMS) != chosen_items:
        st.session_state[OWN_ITEMS] = chosen_items
    offered_items = popular_items(context.dataset)
    label = TEXT(
        "likes bought" if context.dataset.in_baskets else "likes", many="hobbies" if context.dataset.truth else item_words.plural
    )
    st.multiselect(
        label, offered_items + [item for item in chosen_items if item not in offered_items], format_func=catalog.title,
        key=OWN_ITEMS, max_selections=max(MOST_CHOSEN, len(chosen_items)), placeholder=label, label_visibility="collapsed",
        filter_mode="contains", select_all=False, on_change=read_own_items,
        disabled=page_context.is_locked(edits.PARAMETER) or page_context.is_locked("user"),
    )  # fmt: skip


def read_own_items() -> None:
    """For the box: these items are the whole history now; none brings the person back."""
    items = tuple(st.session_state[OWN_ITEMS])
    edits.set_edits(replace_history(items, n_own) if items else ())


def edit_buttons() -> None:
    """Two causal acts, and the way back."""
    last_event, edits_locked = int(edited_user.numbers[-1]), page_context.is_locked(edits.PARAMETER)
    with page_elements.place_in_row("bottom", gap="small"):
        place_button(
            f"Remove the last {item_words.singular}", "start_remove", edits.append_edits, Remove(last_event, last_event),
            icon="backspace", disabled=edits_locked or prediction.n_events < 2,
            help=f"Forget “{_title_of_item(prediction.history.items[-1])}” and ask again.",
        )  # fmt: skip
        if effect is not None:
            moved_text = TEXT(
                "effect", expert=effect.expert, lost=effect.n_lost, moved=effect.n_moved, count=len(prediction.active_experts)
            )
            place_button(
                f"Remove expert {effect.expert}", "start_silence", edits.append_edits, Silence(effect.expert),
                icon="volume_off", disabled=edits_locked, help=moved_text,
            )  # fmt: skip
        elif prediction.experts:
            is_last = len(prediction.active_experts) < 2
            place_button(
                "The last expert stays" if is_last else "No single expert moves this list", "start_silence", edits.append_edits,
                icon="volume_off", disabled=True, help=TEXT("stays" if is_last else "no effect"),
            )  # fmt: skip
        edits.undo_buttons(edit_list, "start")


def show_verdict() -> None:
    """What was edited, and what list and experts answered. A list of the visitor's own is where edits begin, not one of them."""
    phrases = []
    n_before = n_own + len(own_history)  # events before the first edit
    if removed_numbers := [number for number in edited_user.removed_numbers if not own_history or number > n_own]:
        phrases.append(f"without {_removed_name(removed_numbers)}")
    if edited_user.silenced_experts:
        phrases.append(f"without expert {' and '.join(map(str, edited_user.silenced_experts))}")
    if n_added := int((edited_user.numbers > n_before).sum()):
        phrases.append(f"with {n_added} {item_words.singular if n_added == 1 else item_words.plural} added")
    phrases += [f"with expert {expert} × {factor:g}" for expert, factor in edited_user.scales.items() if factor]
    if not phrases:
        return
    truth_text = "" if own_history else "Nobody knows what comes next after another history."
    if prediction.recommendation.truth is not None:
        truth_title = _title_of_item(prediction.recommendation.truth)
        truth_text = user_cards.describe_truth(prediction, change, f"★ {truth_title}, which they really {item_words.verb} next,")
    other_experts_text = prediction.others_retrieved(initial_prediction) if removed_numbers or n_added else ""
    text = " and ".join(phrases)
    with st.container(key="start_said"):
        st.info(
            f"**{text[:1].upper()}{text[1:]}:** {truth_text} "
            f"{page_context.escape_markdown(change.summary(item_words.plural))} {other_experts_text}",
            icon=":material/swap_vert:",
        )


def _removed_name(removed_numbers: list[int]) -> str:
    """`the last 2 films`, `Alien`, `3 films`."""
    count = f"{len(removed_numbers)} {item_words.plural}"
    if removed_numbers[0] > edited_user.numbers[-1]:
        return f"the last {item_words.singular if len(removed_numbers) == 1 else count}"
    return count if len(removed_numbers) > 1 else _title_of_item(edited_user.events[removed_numbers[0] - 1])


def _title_of_item(item: int) -> str:
    return page_context.escape_markdown(inspect.split_year(context.dataset.catalog.title(int(item)))[0])


def show_picture() -> None:
    """The strip, and what its list is chosen from."""
    open_details = details.current_details(context, edited_user, prediction.recommendation.table["item"].tolist())
    traffic = cache.route_everybody(context.open_run) if prediction.retrieved is not None else None
    names = user_cards.name_user_experts(context, prediction) if prediction.retrieved is not None else {}
    strip.show_strip(
        context, rows, prediction, trace, change, offered=effect and effect.expert, names=names, traffic=traffic,
        changed=is_changed, open_details=str(open_details or ""), on_act=act_on_picture,
    )  # fmt: skip
    if open_details is not None:
        details.show_details(context, open_details, edited_user, prediction, trace)
    gold_text = (
        "what the next basket held"
        if context.dataset.in_baskets
        else f"the {item_words.singular} they really {item_words.verb} next"
    )
    if n_hidden := _n_hidden_next_items():
        gold_text += f"; {n_hidden} more {item_words.plural} of that basket rank lower"
    caption_values = {"left": f"{prediction.recommendation.n_candidates:,}", "many": item_words.plural}
    caption_values["gold"] = "" if own_history else f"Gold: {gold_text}. {user_cards.note_seen_next(prediction)}".strip()
    st.caption(TEXT("all" if keep_seen else "new ones", done=item_words.participle, **caption_values))


def _n_hidden_next_items() -> int:
    """How many products of the next basket the picture does not show, because they rank too low."""
    recommendation = prediction.recommendation
    if not (context.dataset.in_baskets and keep_seen) or recommendation.truth is None:
        return 0
    n_shown = recommendation.table["is_truth"].sum() + recommendation.below["is_truth"].sum()
    return len(context.dataset.next_items(context.user)) - int(n_shown)


def show_notes() -> None:
    """How often such a list is right, how this person was chosen, and whether another edit would have done the same."""
    panel = st.expander("How sure?", icon=":material/help:", on_change="rerun", key="start_sure")
    with panel:
        if not panel.open:
            return
        if line := run_table.hit_line(context.run.last_event("test"), item_words, keep_seen):
            st.markdown(line)
        if context.user == cache.example_user(context.open_run):
            st.markdown(TEXT("example"))
        st.markdown(TEXT("careful"))
        if trace.suggestion_share is not None:
            st.markdown(TEXT("small share", many=item_words.plural))
        gains = results.measure_personal_gains(results.measured_data(page_context.RUNS)[0], page_context.RUNS)
        st.markdown(page_context.escape_markdown(gain_sentence(gains)))
        null_comparison = cache.null_edits(context.open_run, context.user, edit_list, keep_seen) if is_changed else None
        if null_comparison is None:
            st.markdown(TEXT("nothing yet"))
        else:
            user_cards.show_null_comparison(
                null_comparison,
                context,
                f"other {item_words.plural}" if isinstance(edit_list[-1], Add | Remove) else "other experts",
            )
            page_elements.remember_table("chance", null_comparison.table)


def show_agreement() -> None:
    """Does what the lines say agree with what a removal does? Last, when all else is on the screen: it asks many people."""
    agreement = share_agreement(context.open_run, N_USERS, context.keep_seen)
    if agreement is not None:
        weak_verdict = "Not always, but far more often than by chance" if agreement.owners >= 3 * agreement.chance else "Rarely"
        verdict = "Yes" if agreement.owners >= 0.9 else "Mostly" if agreement.owners >= 0.5 else weak_verdict
        n_owned, n_by_chance = (round(share * agreement.n_users) for share in (agreement.owners, agreement.chance))
        text = TEXT("truth", truly=verdict, people=agreement.n_users, owners=n_owned, chance=n_by_chance)
        agreement_place.markdown(text)


def show_links() -> None:
    """Links that lead on; run, person and edits stay."""
    opened_expert = context.expert
    if opened_expert is None:
        opened_expert = cache.strongest_expert(context.open_run, context.user, initial_edits)
    expert_text = "one expert" if opened_expert is None else f"expert {opened_expert}"
    with page_elements.place_in_row("center"):
        st.page_link("keys/page.py", label="How is the search so fast?", icon=":material/grid_on:")
        st.page_link("experts/page.py", label=f"What does {expert_text} stand for?", icon=":material/hub:")
        if trace.event_share is None:
            st.page_link("journey/page.py", label="What if the history were different?", icon=":material/route:")
        elif place_button(
            f"What does each {item_words.singular} get back?", "start_dispatcher", details.show_dispatcher_first, icon="route",
            type="tertiary",
        ):  # fmt: skip
            page_context.open_page("journey/page.py")


context = page_context.require_context()
item_words = context.item_words

heading, edit_area = st.container(), st.container()
body, controls = st.container(), page_elements.place_in_row("bottom")
with heading:
    page_elements.show_title("What does ELASTIC do with one person’s history?")
    edit_list = edits.current_edits(context)
with controls:
    keep_seen = user_cards.choose_keep_seen(context, "start_ranked")
edited_user = edits.apply_user_edits(context, edit_list)
n_own = int(context.dataset.readable_lengths()[context.user])
own_history, initial_edits = own_items(edit_list, n_own), initial_history(edit_list, n_own)
is_changed = edit_list != initial_edits
initial_prediction, prediction = (
    cache.user_prediction(context.open_run, context.user, edits_made, keep_seen) for edits_made in (initial_edits, edit_list)
)
change = compare_lists(initial_prediction.recommendation, prediction.recommendation)
rows = event_rows(context.dataset, edited_user, MOST_SHOWN, MOST_SHOWN)
trace = strip.model_trace(context, rows, prediction)
effect = largest_effect(trace.experts, trace.ranks_without_expert, trace.without_expert)
if effect is not None and effect.n_lost + effect.n_moved == 0:
    effect = None  # nothing to show

st.html(LOW)
with heading, st.container(key="start_lead_read" if is_changed else "start_lead"):
    show_opening()
with edit_area:
    choose_own_items()
    edit_buttons()
    show_verdict()
with body:
    show_picture()
    agreement_place = st.empty()
show_notes()
show_links()
page_elements.remember_table(
    "history", inspect.history_table(context.dataset, initial_prediction.history, initial_prediction.n_events)
)
page_elements.remember_table("suggestions", change.table)
page_elements.show_footer(
    "elastic recommend", context.run.name, f"--user={context.dataset.histories.user_ids[context.user]}",
    "--seen" if keep_seen else "--unseen",
    *([f"--edits={format_edits(edit_list)}"] if edit_list else []),
)  # fmt: skip
show_agreement()
