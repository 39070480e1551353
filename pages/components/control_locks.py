"""Teacher's links: `lock=user,run` in an address holds those controls where the link put them.

A help for lessons, no protection: whoever deletes `lock` from the address has every control back.
"""

import re
from collections.abc import Mapping

import streamlit as st

from elastic_core.services.tour import invitation

PARAMETER, HELD, NAMES, PLACE = "lock", "lock_held", "lock_names", "lock_place"
SIDEBAR_CONTROLS = {"run": "Trained run", "vs": "Second run", "user": "Person", "expert": "Expert"}


def read_locks() -> None:
    """What the address locks; stays for the visit and in the address. Called by the layout before any widget."""
    parameter = st.query_params.get(PARAMETER)
    if parameter is not None:
        st.session_state[HELD] = tuple(dict.fromkeys(re.findall(r"[a-z0-9_.]{1,40}", parameter.lower())[:80]))
    locked_names = st.session_state.get(HELD, ())
    if locked_names and parameter is None:
        st.query_params[PARAMETER] = ",".join(locked_names)
    st.session_state[NAMES] = dict(SIDEBAR_CONTROLS)


def is_holding() -> bool:
    """Does a teacher's link hold anything?"""
    return bool(st.session_state.get(HELD))


def is_locked(name: str) -> bool:
    """Does a teacher's link hold this control (a widget's key)?"""
    return name in st.session_state.get(HELD, ())


def register_controls(names: Mapping[str, str]) -> None:
    """A page's own controls: key and what people call it."""
    st.session_state[NAMES] = {**st.session_state.get(NAMES, SIDEBAR_CONTROLS), **names}


def show_link_builder(address: str) -> None:
    """Choose what to hold, take the link."""
    names = st.session_state.get(NAMES, SIDEBAR_CONTROLS)
    with st.popover("Teacher link", icon=":material/school:", key="lock_builder", width="stretch"):
        st.write("The link opens this view and locks what you choose.")
        chosen_names = st.multiselect(
            "Controls to lock", list(names), format_func=names.__getitem__, key="lock_chosen", placeholder="Choose controls"
        )
        reachable_address = invitation.reachable_address(address, st.get_option("server.address"))
        address = reachable_address or address
        joint = "&" if "?" in address else "?"
        st.code(
            f"{address}{joint}{PARAMETER}={','.join(chosen_names)}" if chosen_names else address, language=None, wrap_lines=True
        )
        if reachable_address is None:
            st.caption("This link works on this machine only: see **Class**.")
        st.caption(
            "A pupil can remove the lock: it is the word `lock` in the address, and outside a class the button **Release**."
        )


def show_lock_notice(can_release: bool) -> None:
    """Says what is held, and how to be free. A page names its controls later: then `update_lock_notice` says it again."""
    if st.session_state.get(HELD):
        st.session_state[PLACE] = st.empty()
        update_lock_notice()
        if can_release:
            st.button("Release", key="lock_release", on_click=_release_controls, help="Gives every control back.")


def update_lock_notice() -> None:
    """What is held, by the names known so far."""
    locked_names = st.session_state.get(HELD, ())
    if locked_names:
        names = st.session_state.get(NAMES, SIDEBAR_CONTROLS)
        labels = [names[name] for name in locked_names if name in names]
        names_text = ", ".join(labels) or "controls of another page"
        st.session_state[PLACE].caption(f":material/lock: Locked by this link: {names_text}.")


def _release_controls() -> None:
    st.session_state[HELD] = ()
    st.query_params.pop(PARAMETER, None)
