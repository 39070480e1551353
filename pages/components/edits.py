"""The edits of the person in view: one list in the visit and in the address, seen and changed on Start, Journey and Experts.

How the parameter `edits` of an address is read is said in elastic_core/services/edits.py. The list belongs to a person: somebody
else begins without edits. Another run keeps those of the history, because its experts are others.
"""

from typing import NamedTuple

import streamlit as st

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.services import edits as edit_lists
from elastic_core.services.edits import Edit, EditedUser, Edits
from elastic_core.services.person.edited_history import edit_items
from elastic_core.services.person.inspect import memory_size
from pages.components import page_context
from pages.components.controls import place_button, write_in_address
from pages.components.page_context import Context

PARAMETER = "edits"  # in the address, and as the name of a lock
STATE = "edits_of_person"


class _EditState(NamedTuple):
    """The list as this visit left it, and whom it is about; `text` is what was written into the address."""

    data: str
    user: int
    run: str
    edits: Edits
    text: str


def current_edits(context: Context) -> Edits:
    """The edits of the person in view: what the address says, if it has come to say something else, or what this visit did."""
    page_context.register_controls({PARAMETER: "Edits"})
    state, parameter = st.session_state.get(STATE), st.query_params.get(PARAMETER)
    if parameter is not None and (state is None or parameter != state.text):
        edit_list = _parse_edits(context, parameter)
    elif state is None or (state.data, state.user) != (context.dataset.hash, context.user):
        edit_list = ()
    else:
        edit_list = state.edits if state.run == context.run.name else edit_lists.history_edits(state.edits)
    _store_edits(context, edit_list)
    return edit_list


def set_edits(edit_list: Edits) -> None:
    """For callbacks: this is the list now, unless a link holds it or it grows too long."""
    context = page_context.require_context()
    if page_context.is_locked(PARAMETER):
        return
    try:
        _check_edits(context, edit_list)
    except InputError as error:
        st.toast(f"{str(error)[:1].upper()}{page_context.escape_markdown(str(error)[1:])}.", icon=":material/info:")
        return
    _store_edits(context, edit_list)


def append_edits(*edit: Edit) -> None:
    """For callbacks: one edit more, or several."""
    set_edits((*current_edits(page_context.require_context()), *edit))


def apply_user_edits(context: Context, edit_list: Edits, n_events: int | None = None) -> EditedUser:
    """Which of the person's events are left and which were added."""
    return edit_items(context.dataset, context.user, edit_list, n_events)


def undo_buttons(edit_list: Edits, prefix: str) -> None:
    """Take back the last edit, or all of them. `prefix` of the buttons' keys is the screen's."""
    held, context = not edit_list or page_context.is_locked(PARAMETER), page_context.require_context()
    before = edit_lists.undo_edit(edit_list, int(context.dataset.readable_lengths()[context.user]))
    place_button("Undo", f"{prefix}_undo", set_edits, before, icon="undo", disabled=held)
    place_button("Reset", f"{prefix}_reset", set_edits, (), icon="restart_alt", disabled=held)


def _parse_edits(context: Context, parameter: str) -> Edits:
    try:
        edit_list = edit_lists.parse_edits(parameter)
        _check_edits(context, edit_list)
    except InputError:
        st.warning("The edits in this address cannot be read, so you see the unchanged history.", icon=":material/info:")
        return ()
    return edit_list


def _check_edits(context: Context, edit_list: Edits) -> None:
    data: Dataset = context.dataset
    edit_lists.check_edits(
        edit_list, int(data.readable_lengths()[context.user]), data.catalog.n_items, memory_size(context.model)
    )
    if len(edit_lists.format_edits(edit_list)) > edit_lists.LONGEST_TEXT:
        raise InputError("these are more edits than an address can hold")


def _store_edits(context: Context, edit_list: Edits) -> None:
    text = edit_lists.format_edits(edit_list)
    st.session_state[STATE] = _EditState(context.dataset.hash, context.user, context.run.name, edit_list, text)
    write_in_address(PARAMETER, text or None)
