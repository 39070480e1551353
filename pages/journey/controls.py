"""What a hand does on the Journey page: choose how much is read, remove events, add items, type a history of one's own."""

from contextlib import suppress

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.edits import Add, EditedUser, Edits, Remove
from elastic_core.services.journey.typed_items import parse_items
from elastic_core.services.person import inspect
from elastic_core.text import parse_number
from pages.components import edits, page_context, page_elements
from pages.components.controls import bind_widget, place_button
from pages.components.page_context import Context
from pages.journey.sentences import TEXT

MOMENT, EVENT, TITLE_PART, LIST = "jrn_t", "jrn_event", "jrn_add", "jrn_list"
MOMENT_OF = "jrn_moment_of"  # whose moment stands in the session
PROBLEMS = 20  # lines of a typed list that are named in full


def choose_moment(context: Context) -> int:
    """How many of the person's events are read, and what came after them. Another person starts at their last moment."""
    last_moment, owner = int(context.dataset.readable_lengths()[context.user]), (context.dataset.hash, context.user)
    parameter = st.session_state.get(MOMENT, st.query_params.get(MOMENT))
    if st.session_state.get(MOMENT_OF, owner) != owner:
        st.session_state[MOMENT] = last_moment
    elif parameter is not None and not 1 <= (parse_number(parameter) or 0) <= last_moment:
        st.warning(
            f"This person has no moment {page_context.quote_code(parameter)}, only 1 to {last_moment}. You see the last one."
        )
        st.session_state[MOMENT] = last_moment
    st.session_state[MOMENT_OF] = owner
    item_word, verb = context.item_words.singular, context.item_words.verb
    moment = int(bind_widget(
        st.slider, f"Read up to {item_word}", 1, last_moment, last_moment, key=MOMENT, control_name="How much is read",
        help=f"What they {verb} next is hidden from the model; gold marks it.",
    ))  # fmt: skip
    if moment < last_moment:
        is_validation = moment >= context.dataset.readable_lengths("valid")[context.user]
        st.caption(TEXT("CHOSEN_BY" if is_validation else "TRAINED_ON"))
    return moment


def set_moment(number: int) -> None:
    """For callbacks: read up to this event."""
    st.session_state[MOMENT] = number


def show_edit_bar(context: Context, edit_list: Edits, edited_user: EditedUser) -> None:
    """One row: the quickest act first."""
    edits_locked, n_left = page_context.is_locked(edits.PARAMETER), len(edited_user.numbers)
    with page_elements.place_in_row("bottom"):
        last_event = int(edited_user.numbers[-1]) if n_left else 0
        place_button(
            f"Remove the last {context.item_words.singular}", "jrn_last", edits.append_edits, Remove(last_event, last_event),
            icon="backspace", disabled=edits_locked or n_left < 2,
        )  # fmt: skip
        with st.popover(f"Add {context.item_words.with_article}", icon=":material/add:", disabled=edits_locked, key="jrn_adding"):
            _offer_items(context)
        with st.popover("Remove", icon=":material/delete:", disabled=edits_locked or n_left < 2, key="jrn_removing"):
            _offer_removal(context, edited_user)
        with st.popover("Your own list", icon=":material/edit_note:", disabled=edits_locked, key="jrn_typing"):
            _offer_typed_list(context, edited_user)
        edits.undo_buttons(edit_list, "jrn")


def _offer_items(context: Context) -> None:
    text = st.text_input("Part of a title", key=TITLE_PART, max_chars=80)
    if not text.strip():
        return
    table = inspect.find_items(context.dataset, text)
    if table.empty:
        st.write(f"No title has these words. There are {context.dataset.catalog.n_items:,} {context.item_words.plural}.")
        return
    titles = dict(zip(table["item"], table["title"], strict=True))
    item = int(
        st.selectbox(context.item_words.singular.capitalize(), list(titles), format_func=titles.__getitem__, key="jrn_add_item")
    )
    place_button("Add it", "jrn_add_do", edits.append_edits, Add((item,)), type="primary")


def _offer_removal(context: Context, edited_user: EditedUser) -> None:
    numbers, catalog = edited_user.numbers.tolist(), context.dataset.catalog
    if len(numbers) < 2:
        return
    newest = numbers[::-1]
    if st.session_state.get(EVENT) not in newest:
        st.session_state[EVENT] = newest[0]
    label = f"{context.item_words.singular.capitalize()} (the latest first)"
    names = {number: f"{number}. {catalog.title(int(edited_user.events[number - 1]))}" for number in newest}
    chosen = int(st.selectbox(label, newest, key=EVENT, format_func=names.__getitem__))
    place_button("Remove it", "jrn_remove_one", edits.append_edits, Remove(chosen, chosen), icon="delete")
    first, last = st.select_slider(
        "A stretch", numbers, (numbers[-2], numbers[-1]), key=f"jrn_stretch_{numbers[0]}_{numbers[-1]}_{len(numbers)}"
    )
    place_button("Remove the stretch", "jrn_remove_many", edits.append_edits, Remove(first, last), icon="delete")


def _offer_typed_list(context: Context, edited_user: EditedUser) -> None:
    samples = context.dataset.catalog.titles_of(context.dataset.all_counts().argsort()[::-1][:3])
    with st.form("jrn_typed", border=False):
        label = f"Your list: one {context.item_words.singular} a line, the oldest first"
        text = st.text_area(label, key=LIST, height=100, max_chars=20_000, placeholder="\n".join(samples), help=TEXT("TYPED"))
        st.form_submit_button("Read this list", type="primary", on_click=_read_list, help="Ctrl+Enter does the same.")
    if not text.strip():
        return
    try:
        typed_items = parse_items(context.dataset, text)
    except InputError as error:
        st.error(format_error(error))
        return
    for problem in typed_items.problems[:PROBLEMS]:
        st.warning(page_context.escape_markdown(problem), icon=":material/help:")
    if len(typed_items.problems) > PROBLEMS:
        lines = ", ".join(problem.split(",")[0].removeprefix("Line ") for problem in typed_items.problems[PROBLEMS:])
        st.warning(f"We did not understand lines {lines} either.", icon=":material/help:")
    if typed_items.problems:
        count = len(typed_items.items)
        label = f"Read the {count} understood {context.item_words.singular if count == 1 else context.item_words.plural}"
        edits_to_add = (
            Add(typed_items.items),
            Remove(1, len(edited_user.events)),
        )  # in this order, so that something is left all the time
        place_button(label, "jrn_list_do", edits.append_edits, *edits_to_add, disabled=not count)


def _read_list() -> None:
    """For the form: a list of which every line is understood takes the place of the history at once."""
    context = page_context.require_context()
    with suppress(InputError):
        typed_items = parse_items(context.dataset, str(st.session_state[LIST]))
        if typed_items.items and not typed_items.problems:
            edited_user = edits.apply_user_edits(context, edits.current_edits(context), st.session_state.get(MOMENT))
            edits.append_edits(Add(typed_items.items), Remove(1, len(edited_user.events)))


def format_error(error: InputError) -> str:
    """What is wrong, as a sentence for a place that reads Markdown."""
    text = page_context.escape_markdown(error)
    return f"{text[:1].upper()}{text[1:]}."
