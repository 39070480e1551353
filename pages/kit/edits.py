"""The edits of the person in view: one list in the visit and in the address, seen and changed on Start, Journey and Experts.

How the parameter `edits` of an address is read is said in elastic_core/services/edits.py. The list belongs to a person: somebody
else begins without edits. Another run keeps those of the history, because its experts are others.
"""

from typing import NamedTuple

import streamlit as st

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.services import edits as edit_lists
from elastic_core.services.edits import Edit, EditedPerson, Edits
from elastic_core.services.person.edited import edit_items
from elastic_core.services.person.inspect import memory_size
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit.control import button, write_in_address

PARAMETER = "edits"  # in the address, and as the name of a lock
KEPT = "edits_of_person"


class _Kept(NamedTuple):
    """The list as this visit left it, and whom it is about; `text` is what was written into the address."""

    data: str
    user: int
    run: str
    edits: Edits
    text: str


def current(now: Context) -> Edits:
    """The edits of the person in view: what the address says, if it has come to say something else, or what this visit did."""
    shell.lockable({PARAMETER: "Edits"})
    kept, asked = st.session_state.get(KEPT), st.query_params.get(PARAMETER)
    if asked is not None and (kept is None or asked != kept.text):
        made = _read(now, asked)
    elif kept is None or (kept.data, kept.user) != (now.dataset.hash, now.user):
        made = ()
    else:
        made = kept.edits if kept.run == now.run.name else edit_lists.history_edits(kept.edits)
    _keep(now, made)
    return made


def change(made: Edits) -> None:
    """For callbacks: this is the list now, unless a link holds it or it grows too long."""
    now = shell.context()
    if shell.locked(PARAMETER):
        return
    try:
        _check(now, made)
    except InputError as error:
        st.toast(f"{str(error)[:1].upper()}{shell.plain(str(error)[1:])}.", icon=":material/info:")
        return
    _keep(now, made)


def append(*edit: Edit) -> None:
    """For callbacks: one edit more, or several."""
    change((*current(shell.context()), *edit))


def person(now: Context, made: Edits, n_events: int | None = None) -> EditedPerson:
    """Which of the person's events are left and which were added."""
    return edit_items(now.dataset, now.user, made, n_events)


def undo_buttons(made: Edits, prefix: str) -> None:
    """Take back the last edit, or all of them. `prefix` of the buttons' keys is the screen's."""
    held = not made or shell.locked(PARAMETER)
    button("Undo", f"{prefix}_undo", change, made[:-1], icon="undo", disabled=held)
    button("Reset", f"{prefix}_reset", change, (), icon="restart_alt", disabled=held)


def _read(now: Context, asked: str) -> Edits:
    try:
        made = edit_lists.parse_edits(asked)
        _check(now, made)
    except InputError:
        st.warning("The edits in this address cannot be read, so you see the unchanged history.", icon=":material/info:")
        return ()
    return made


def _check(now: Context, made: Edits) -> None:
    data: Dataset = now.dataset
    edit_lists.check_edits(made, int(data.readable()[now.user]), data.catalog.n_items, memory_size(now.model))
    if len(edit_lists.format_edits(made)) > edit_lists.LONGEST_TEXT:
        raise InputError("these are more edits than an address can hold")


def _keep(now: Context, made: Edits) -> None:
    text = edit_lists.format_edits(made)
    st.session_state[KEPT] = _Kept(now.dataset.hash, now.user, now.run.name, made, text)
    write_in_address(PARAMETER, text or None)
