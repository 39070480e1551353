"""Versions to keep: the tree as a table, and as a file to take away and load again."""

import streamlit as st

from elastic_core.services.journey.text import encode, short, to_json
from elastic_core.services.journey.versions import Tree, versions_table
from pages.frame import shell
from pages.frame.shell import Context
from pages.journey import state
from pages.journey.words import SAYS, VERSIONS
from pages.kit import view

FILE = "jrn_file"


def versions(now: Context, tree: Tree) -> None:
    """The table, and the file."""
    view.table("jrn_versions", versions_table(now.dataset, tree), VERSIONS, "All versions: what each follows and what was done")
    if tree.versions and short(tree) != encode(tree):
        st.caption(SAYS("TOO_LARGE" if short(tree) else "TOO_LARGE_AT_ALL"))
    with view.row("bottom"):
        st.download_button(
            "Save versions", lambda: to_json(now.dataset, tree), f"journey-{now.user + 1}.json", "application/json",
            on_click="ignore", icon=":material/download:", key="jrn_save",
        )  # fmt: skip
        if not shell.off("upload"):
            st.file_uploader(
                "Load versions", "json", key=FILE, on_change=_loaded, args=(now,), max_upload_size=1,
                disabled=shell.locked(state.CODE), width="stretch",
            )  # fmt: skip


def _loaded(now: Context) -> None:
    file = st.session_state.get(FILE)
    if file is not None:
        state.load(now, file.getvalue())
