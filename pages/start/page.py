"""Start: what does ELASTIC do with this person’s history? The whole way in one picture, and what changes without a part of it."""

import streamlit as st

from elastic_core.data import Dataset
from elastic_core.services.edits import (
    Add,
    Remove,
    Silence,
    format_edits,
    own_items,
    replace_history,
    toggle_event,
    toggle_expert,
)
from elastic_core.services.person import attribution, inspect
from elastic_core.services.person.attribution import Agreement
from elastic_core.services.person.edited_history import event_rows
from elastic_core.services.person.model_trace import SHOWN
from elastic_core.services.person.recommend import compare_lists
from elastic_core.services.train import run_table
from pages.components import cache, edits, page_context, page_elements, page_text, user_cards
from pages.components.cache import OpenRun, cached_data, cached_resource
from pages.components.controls import place_button
from pages.start import details, strip

TEXT = page_text.load_page_text(__file__)
OWN_ITEMS = "start_yours_items"  # the box for a visitor's own history
MOST_CHOSEN, MOST_OFFERED = 10, 5_000  # items of it, and items that it offers, those that most people chose first
PEOPLE = 200  # who are asked whether the owner of their first suggestion is the expert whose removal lowers it most
# On a low window the answer stands where the introduction stood, so that the picture stays in view.
LOW = """<style>@media (min-width: 768px) and (max-height: 820px) {
  .st-key-start_lead_read { display: none }
  .st-key-start_said [data-testid="stAlertContainer"] { padding: .3rem .7rem }
}</style>"""


@cached_data(12)
def share_agreement(of: OpenRun, people: int, keep_seen: bool) -> Agreement | None:
    """Do shares say what a removal does?"""
    return attribution.share_agreement(of.model, of.dataset, people, keep_seen)


@cached_resource(4)
def popular_items(data: Dataset) -> list[int]:
    """The items that a visitor may choose, the most frequent first."""
    return (data.all_counts()[1:].argsort(kind="stable")[::-1][:MOST_OFFERED] + 1).tolist()


def act_on_picture(what: str, value: int | str) -> None:
    """Something in the picture was pressed: it opens below, or an event or an expert goes, or comes back."""
    if isinstance(value, str):
        details.toggle_details(value)
        return
    number = value
    of_event = what == strip.REMOVED
    after = toggle_event(edit_list, number) if of_event else toggle_expert(edit_list, number)
    is_last = here.n_events < 2 if of_event else here.active_experts == [number]
    if is_last and len(after) > len(edit_list):
        st.toast(TEXT("stays"))
    else:
        edits.set_edits(after)


def show_opening() -> None:
    """What this is, in one sentence; then whom it is about, and how their experts are found."""
    retrieved, own = start.retrieved, own_items(edit_list, int(now.dataset.readable_lengths()[now.user]))
    values = {"one": words.one, "many": words.many, "did": words.did, "person": now.user + 1}
    if own:
        whom = TEXT("whom own", count=len(own), many=words.one if len(own) == 1 else words.many)
    elif now.dataset.in_baskets:
        whom = TEXT("whom basket", events=f"{start.n_events:,}", **values)
    else:
        whom = TEXT("whom", events=start.n_events + 1, **values)
    if retrieved is None:
        st.markdown(f"{TEXT('idea')} {whom} {TEXT('plain', size=f'{now.dataset.catalog.n_items:,}', **values)}")
        st.info(TEXT("no experts"))
        return
    chosen = f"{len(start.experts)} of {retrieved.halves.shape[2] ** 2 or len(start.experts):,} experts"
    how = TEXT("query" if retrieved.ballots is None else "votes", chosen=chosen, **values)
    st.markdown(f"{TEXT('idea')} {whom} {how}", help=TEXT("expert", **values))


def choose_own_items() -> None:
    """One box in every world: what the visitor likes is read in the person's place, from the first choice on."""
    catalog, n_own = now.dataset.catalog, int(now.dataset.readable_lengths()[now.user])
    chosen = list(own_items(edit_list, n_own))
    if st.session_state.get(OWN_ITEMS) != chosen:
        st.session_state[OWN_ITEMS] = chosen
    offered = popular_items(now.dataset)
    likes = TEXT("likes bought" if now.dataset.in_baskets else "likes", many="hobbies" if now.dataset.truth else words.many)
    st.multiselect(
        likes, offered + [item for item in chosen if item not in offered], format_func=catalog.title, key=OWN_ITEMS,
        max_selections=max(MOST_CHOSEN, len(chosen)), placeholder=likes, label_visibility="collapsed", on_change=read_own_items,
        disabled=page_context.is_locked(edits.PARAMETER),
    )  # fmt: skip


def read_own_items() -> None:
    """For the box: these items are the whole history now; none brings the person back."""
    items, n_own = tuple(st.session_state[OWN_ITEMS]), int(now.dataset.readable_lengths()[now.user])
    edits.set_edits(replace_history(items, n_own) if items else ())


def edit_buttons() -> None:
    """Two causal acts, and the way back."""
    last, held = int(edited_person.numbers[-1]), page_context.is_locked(edits.PARAMETER)
    with page_elements.place_in_row("bottom", gap="small"):
        place_button(
            f"Remove the last {words.one}", "start_remove", edits.append_edits, Remove(last, last), icon="backspace",
            disabled=held or here.n_events < 2,
            help=f"Forget “{_title_of_item(here.history.items[-1])}” and ask again.",
        )  # fmt: skip
        if here.strongest is not None:
            place_button(
                f"Silence expert {here.strongest}",
                "start_silence",
                edits.append_edits,
                Silence(here.strongest),
                icon="volume_off",
                disabled=held or len(here.active_experts) < 2,
                help=f"Takes away expert {here.strongest}, {user_cards.lead_words(now.model)}, and asks again.",
            )
        edits.undo_buttons(edit_list, "start")


def show_verdict() -> None:
    """What was edited, and what list and experts answered."""
    if not edit_list:
        return
    phrases = []
    if edited_person.removed:
        phrases.append(f"without {_removed_name()}")
    if edited_person.silenced:
        phrases.append(f"without expert {' and '.join(map(str, edited_person.silenced))}")
    if edited_person.n_added:
        phrases.append(f"with {edited_person.n_added} {words.one if edited_person.n_added == 1 else words.many} added")
    phrases += [f"with expert {expert} × {factor:g}" for expert, factor in edited_person.scales.items() if factor]
    if not phrases:
        return
    truth = "Nobody knows what comes next after another history."
    if here.recommendation.truth is not None:
        truth = f"★ {_title_of_item(here.recommendation.truth)}, which they really {words.did} next, {change.truth_moved}."
    others = here.others_retrieved(start) if edited_person.removed or edited_person.n_added else ""
    text = " and ".join(phrases)
    with st.container(key="start_said"):
        st.info(
            f"**{text[:1].upper()}{text[1:]}:** {truth} {page_context.escape_markdown(change.summary(words.many))} {others}",
            icon=":material/swap_vert:",
        )


def _removed_name() -> str:
    """`the last 2 films`, `Alien`, `3 films`."""
    removed = edited_person.removed
    count = f"{len(removed)} {words.many}"
    if removed[0] > edited_person.numbers[-1]:
        return f"the last {words.one if len(removed) == 1 else count}"
    return count if len(removed) > 1 else _title_of_item(edited_person.events[removed[0] - 1])


def _title_of_item(item: int) -> str:
    return page_context.escape_markdown(inspect.split_year(now.dataset.catalog.title(int(item)))[0])


def show_picture() -> None:
    """The strip, and what its list is chosen from."""
    rows = event_rows(now.dataset, edited_person, SHOWN, SHOWN)
    opened = details.current_details(now, edited_person, here.recommendation.table["item"].tolist())
    traffic = cache.route_everybody(now.open_run) if here.retrieved is not None else None
    names = user_cards.name_user_experts(now, here) if here.retrieved is not None else {}
    trace = strip.show_strip(
        now, rows, here, change, names=names, traffic=traffic, changed=bool(edit_list), opened=str(opened or ""),
        on_act=act_on_picture,
    )  # fmt: skip
    if opened is not None:
        details.show_details(now, opened, edited_person, here, trace)
    gold = "what the next basket held" if now.dataset.in_baskets else f"the {words.one} they really {words.did} next"
    among = {"left": f"{here.recommendation.n_candidates:,}", "many": words.many, "gold": gold}
    st.caption(TEXT("all" if keep_seen else "new ones", done=words.done, **among))


def show_notes() -> None:
    """How often such a list is right, how this person was chosen, and whether another edit would have done the same."""
    panel = st.expander("How sure?", icon=":material/help:", on_change="rerun", key="start_sure")
    with panel:
        if not panel.open:
            return
        if line := run_table.hit_line(now.run.last_event("test"), words, keep_seen):
            st.markdown(line)
        if now.user == cache.example_user(now.open_run):
            st.markdown(TEXT("example"))
        st.markdown(TEXT("careful"))
        null = cache.null_edits(now.open_run, now.user, edit_list, keep_seen) if edit_list else None
        if null is None:
            st.markdown(TEXT("nothing yet"))
        else:
            user_cards.show_null_comparison(
                null, now, f"other {words.many}" if isinstance(edit_list[-1], Add | Remove) else "other experts"
            )
            page_elements.remember_table("chance", null.table)


def show_agreement() -> None:
    """Does what the lines say agree with what a removal does? Last, when all else is on the screen: it asks many people."""
    found = share_agreement(now.open_run, PEOPLE, now.keep_seen)
    if found is not None:
        often = "Often, not always" if found.owners >= 3 * found.chance else "Rarely"
        truly = "Yes" if found.owners >= 0.9 else "Mostly" if found.owners >= 0.5 else often
        held, by_chance = (round(share * found.n_users) for share in (found.owners, found.chance))
        agree.markdown(TEXT("truth", truly=truly, people=found.n_users, owners=held, chance=by_chance))


def show_links() -> None:
    """Links that lead on; run, person and edits stay."""
    opens = start.strongest if now.expert is None else now.expert
    which = "one expert" if opens is None else f"expert {opens}"
    with page_elements.place_in_row("top"):
        st.page_link("keys/page.py", label="How is the search so fast?", icon=":material/grid_on:")
        st.page_link("journey/page.py", label="What if the history were different?", icon=":material/route:")
        st.page_link("experts/page.py", label=f"What does {which} stand for?", icon=":material/hub:")


now = page_context.require_context()
words = now.item_words

heading, acting = st.container(), st.container()
body, controls = st.container(), page_elements.place_in_row("bottom")
with heading:
    page_elements.show_title("What does ELASTIC do with one person’s history?")
    edit_list = edits.current_edits(now)
with controls:
    keep_seen = user_cards.choose_keep_seen(now, "start_ranked")
edited_person = edits.apply_user_edits(now, edit_list)
start, here = (cache.user_prediction(now.open_run, now.user, edits_made, keep_seen) for edits_made in ((), edit_list))
change = compare_lists(start.recommendation, here.recommendation)

st.html(LOW)
with heading, st.container(key="start_lead_read" if edit_list else "start_lead"):
    show_opening()
with acting:
    choose_own_items()
    edit_buttons()
    show_verdict()
with body:
    show_picture()
    agree = st.empty()
show_notes()
show_links()
page_elements.remember_table("history", inspect.history_table(now.dataset, start.history, start.n_events))
page_elements.remember_table("suggestions", change.table)
page_elements.show_footer(
    "elastic recommend", now.run.name, f"--user={now.dataset.histories.user_ids[now.user]}",
    *(["--seen"] if keep_seen else []),
    *([f"--edits={format_edits(edit_list)}"] if edit_list else []),
)  # fmt: skip
show_agreement()
