"""Folders in a list that are not what the list is of: a line each with its reason, and a way to be rid of them."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import streamlit as st

from elastic_core.files import UnreadableFolder
from elastic_core.services import public
from pages.kit import shell, view
from pages.kit.control import button

FEW = 3  # lines that stand open


def lines(faults: Sequence[UnreadableFolder], what: str, key: str, remove: Callable[[str], None] | None = None) -> None:
    """`what`: what such a folder would be, as in `no run`. `remove` is a callback that takes the folder's own name."""
    place = nullcontext() if len(faults) <= FEW else st.expander(f"{len(faults)} folders here are {what} that can be read")
    with place:
        for number, fault in enumerate(faults):
            with view.row():
                st.caption(f"The folder {shell.plain(fault.name)} is {what} that can be read: {shell.plain(fault.reason)}.")
                if remove is not None:
                    button(
                        "Remove it", f"{key}_{number}_{fault.name}", remove, fault.path.name, type="tertiary",
                        disabled=public.on(),
                    )  # fmt: skip
