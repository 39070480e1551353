"""Sets of experts: chosen by lasso or text, kept under a name, taken away as a file. Small sets live in the address."""

import numpy as np
import pandas as pd
import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.map import layouts, picture, trust
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import view
from pages.kit.control import bound, button
from pages.map import words

TEXT, LARGE, KEPT, NAME, SAID, FILE = "map_set", "map_large", "map_kept", "map_name", "map_said", "map_file"


def choose(experts: list[int]) -> None:
    """Make this the chosen set. For callbacks."""
    text = picture.ranges_text(experts)
    small = len(text) <= picture.WRITTEN
    st.session_state[TEXT], st.session_state[LARGE] = (text, []) if small else ("", sorted(experts))


def chosen(table: pd.DataFrame) -> tuple[list[int], list[str]]:
    """The chosen experts and what of the text names none. Known before the box is drawn, because the map comes first."""
    text = str(st.session_state.get(TEXT, st.query_params.get(TEXT, "")) or "")
    large = [e for e in st.session_state.get(LARGE, []) if e < len(table)]
    return picture.pick(text, table) if text.strip() else (large, [])


def bar(now: Context, experts: list[int], unknown: list[str], values: np.ndarray) -> None:
    """The box, and what can be done with a set."""
    kept = st.session_state.setdefault(KEPT, {}).setdefault(now.run.name, {})
    with view.row("bottom"):
        bound(
            st.text_input,
            "Choose experts",
            key=TEXT,
            placeholder="draw, or type: 12, 40-47, row 3, Comedy",
            width=420,
            max_chars=4_000,
            help=words.SAYS("SETS_HELP"),
        )
        button("Clear", "map_clear", choose, [], icon="close", disabled=not experts)
        with st.popover("More", icon=":material/more_horiz:", key="map_more"):
            st.text_input("Keep the chosen experts as", key=NAME, max_chars=40, placeholder="night owls", disabled=not experts)
            button("Keep", "map_keep", _keep, kept, experts, disabled=not experts)
            _files(now, kept, values)
    if unknown:
        st.warning("No expert is called " + ", ".join(shell.quoted(part) for part in unknown[:5]) + " in this run.")
    if said := st.session_state.pop(SAID, ""):
        st.warning(shell.plain(said))
    for name, members in list(kept.items()):
        with view.row():
            label = f"{shell.plain(name)} ({len(members)})"
            button(label, f"map_show_{name}", choose, members, icon="bookmark")
            button("Forget", f"map_drop_{name}", kept.pop, name, None, type="tertiary")


def summary(experts: list[int], table: pd.DataFrame, values: np.ndarray) -> None:
    """What a set has in common."""
    part = table.iloc[experts]
    share = part["load"].sum() / max(table["load"].sum(), 1)
    said = f"**{len(part)} experts chosen** ({len(part) / len(table):.1%} of all). They carry {share:.1%} of the traffic."
    if "people_genre" in table and (names := picture.commonest(picture.labels(part, "genre"), 3)):
        said += f" Genres of their people: {', '.join(map(shell.plain, names))}."
    if 1 < len(part) < len(table):
        tight, low, high = trust.tightness(values, np.array(experts))
        said += f" How similar they are (mean cosine): **{tight:.2f}**. Random sets: {low:.2f} to {high:.2f}."
    st.markdown(said)
    shown = part.filter(["expert", "row", "column", "load", "people_genre", "people_lift", "interest"])
    with st.expander("As a table", on_change="rerun", key="map_members") as panel:
        if panel.open:
            view.table("map_members_table", shown, words.SET, "The chosen experts: place, people and genre", height=240)


def _keep(kept: dict[str, list[int]], experts: list[int]) -> None:
    name = " ".join(str(st.session_state.get(NAME, "")).split())[:40] or f"set {len(kept) + 1}"
    if len(kept) >= 20 and name not in kept:
        st.session_state[SAID] = "Twenty sets are kept already. Forget one first."
    else:
        kept[name] = experts


def _files(now: Context, kept: dict[str, list[int]], values: np.ndarray) -> None:
    mark = layouts.values_fingerprint(values)
    text = picture.to_file(now.run.name, mark, kept)
    st.download_button(
        "Download",
        text,
        f"{now.run.name}-sets.json",
        "application/json",
        disabled=not kept,
        on_click="ignore",
        key="map_down",
    )
    if not shell.off("upload"):
        given = (kept, len(values), mark)
        st.file_uploader("Open a file", type="json", key=FILE, max_upload_size=1, on_change=_open, args=given)


def _open(kept: dict[str, list[int]], size: int, mark: str) -> None:
    file = st.session_state.get(FILE)
    if file is None:
        return
    try:
        run, was, sets = picture.from_file(file.getvalue(), size)
    except InputError as error:
        st.session_state[SAID] = f"{error}."
        return
    kept.update(dict(list(sets.items())[: 20 - len(kept)]))
    if was != mark:
        st.session_state[SAID] = f"These sets were made with another run ({run}). The numbers may mean other experts here."
