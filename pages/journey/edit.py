"""The hands of the journey page: remove, add, move, paste, undo. Every button makes a version; nothing is lost."""

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.journey.text import encode, parse_list, short, to_json
from elastic_core.services.journey.versions import Add, Cut, Move, Replace, Tree, versions_table
from elastic_core.services.person import inspect
from pages.frame import shell
from pages.frame.shell import Context
from pages.journey import state
from pages.journey.words import SAYS, VERSIONS
from pages.kit import view
from pages.kit.control import button, picked

EVENT, TEXT, LIST, VERSION, FILE = "jrn_event", "jrn_add", "jrn_list", "jrn_version", "jrn_file"


def bar(now: Context, tree: Tree) -> None:
    """One row: the quickest act first."""
    held, count = shell.locked(state.CODE), len(tree.here.items)
    with view.row("bottom"):
        button(
            f"Remove the last {now.words.one}", "jrn_last", state.do, Cut(count - 1, count), icon="backspace",
            disabled=held or count < 2,
        )  # fmt: skip
        with st.popover(f"Add {now.words.a}", icon=":material/add:", disabled=held, key="jrn_adding"):
            _add(now, tree)
        with st.popover("Move or remove", icon=":material/swap_vert:", disabled=held or not count, key="jrn_changing"):
            _change(now, tree)
        with st.popover("Your own list", icon=":material/edit_note:", disabled=held, key="jrn_pasting"):
            _paste(now)
        button("Undo", "jrn_undo", state.undo, icon="undo", disabled=held or not tree.current)


def versions(now: Context, tree: Tree) -> None:
    """Go to any version."""
    if not tree.versions:
        return
    table = versions_table(now.dataset, tree)
    names = {row.version: f"v{row.version}: {row.what}"[:70] for row in table.itertuples()}
    st.session_state[VERSION] = tree.current
    st.selectbox(
        "Version", list(names), key=VERSION, format_func=names.__getitem__, on_change=_went,
        disabled=shell.locked(state.CODE), width=220,
        help="Every change is kept.",
    )  # fmt: skip


def _went() -> None:
    version = picked(VERSION)
    if version is not None:
        state.go(version)


def _add(now: Context, tree: Tree) -> None:
    text = st.text_input("Part of a title", key=TEXT, max_chars=80)
    if not text.strip():
        return
    found = inspect.find_items(now.dataset, text)
    if found.empty:
        st.write(f"No title has these words. There are {now.dataset.catalog.n_items:,} {now.words.many}.")
        return
    titles = dict(zip(found["item"], found["title"], strict=True))
    item = int(st.selectbox(now.words.one.capitalize(), list(titles), format_func=titles.__getitem__, key="jrn_add_item"))
    count = len(tree.here.items)
    place = st.number_input("As event number", 1, count + 1, count + 1, key=f"jrn_add_at_{count}", help="1 = the earliest.")
    button("Add it", "jrn_add_do", state.do, Add(item, int(place) - 1), type="primary")


def _change(now: Context, tree: Tree) -> None:
    items, catalog = tree.here.items, now.dataset.catalog
    if not items:
        return
    last = len(items) - 1
    newest = range(last, -1, -1)
    if st.session_state.get(EVENT) not in newest:
        st.session_state[EVENT] = last
    label = f"{now.words.one.capitalize()} (the latest first)"
    at = int(st.selectbox(label, newest, key=EVENT, format_func=lambda i: f"{i + 1}. {catalog.title(items[i])}"))
    moves = {"Earlier": ("arrow_back", at - 1), "Later": ("arrow_forward", at + 1), "To the start": ("first_page", 0),
             "To the end": ("last_page", last)}  # fmt: skip
    with view.row("top"):
        for name, (icon, to) in moves.items():
            button(name, f"jrn_move_{icon}", _move, at, to, icon=icon, disabled=to == at or to not in newest)
        button("Remove it", "jrn_cut_one", state.do, Cut(at, at + 1), icon="delete")
    if last:
        first, end = st.slider("A stretch", 1, last + 1, (last, last + 1), key=f"jrn_stretch_{last}")
        button("Remove the stretch", "jrn_cut_many", state.do, Cut(first - 1, end))


def _move(at: int, to: int) -> None:
    state.do(Move(at, to))
    st.session_state[EVENT] = to


def _paste(now: Context) -> None:
    st.write(SAYS("PASTE", one=now.words.one))
    samples = now.dataset.catalog.called(now.dataset.all_counts().argsort()[::-1][:3])
    text = st.text_area("Your list", key=LIST, height=180, max_chars=20_000, placeholder="\n".join(samples))
    if not text.strip():
        button("Start from nothing", "jrn_nothing", state.do, Replace(()), help=f"No {now.words.many} yet.")
        return
    try:
        found = parse_list(now.dataset, text)
    except InputError as error:
        st.error(state.sentence(error))
        return
    for problem in found.problems[:20]:
        st.warning(shell.plain(problem), icon=":material/help:")
    if len(found.problems) > 20:
        lines = ", ".join(problem.split(",")[0].removeprefix("Line ") for problem in found.problems[20:])
        st.warning(f"Not understood either: lines {lines}.", icon=":material/help:")
    count, some = len(found.items), "the understood" if found.problems else "these"
    label = f"Read {some} {count} {now.words.one if count == 1 else now.words.many}"
    button(label, "jrn_list_do", state.do, Replace(found.items), type="primary", disabled=not count)


def kept(now: Context, tree: Tree) -> None:
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
