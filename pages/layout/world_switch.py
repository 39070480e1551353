"""One switch over the screens of a run: real shoppers, the made-up world, real films, the paper's model, and the run that a
visitor chose.

It stands above those that are about a run (`Screen.worlds`). The made-up world shows what can be shown where the truth is known,
shoppers and films what is left of it where nobody knows it.
"""

from collections.abc import Mapping

import streamlit as st

from elastic_core.core.elastic import ElasticConfig
from elastic_core.data import Dataset
from elastic_core.data.source_catalog import GROCERIES, PLANTED, at_hand, is_deleted, source_names
from elastic_core.results.systems import model_label
from elastic_core.runs import Run
from elastic_core.services import public
from pages.components import cache, page_context
from pages.components.cache import OpenRun

SHOPPERS, MADE_UP, FILMS, PAPER = "Real shoppers", "Made-up world", "Real films", "Paper’s model"
OWN, OTHER = "Your run", "Another run"
FILM_DATA = "ml-100k"
SLOTS = (
    "This run is our variant, ELASTIC with interest slots: each slot suggests items by itself. The paper’s ELASTIC mixes all "
    "slots into one vector."
)
KEY, TURNED, CHOSEN = "world", "world_turned", "world_chosen"
DATA_SHOWN, LAST_USERS = "world_at", "world_met"  # which data are shown, and whom the visitor met last in each


def offered_worlds(runs: Mapping[str, Run], current: Run, chosen_name: str | None = None) -> dict[str, Run]:
    """What the switch offers, by name, the run `current` among it. `runs` in the sidebar's order, the best first;
    `chosen_name` is that of the last one that was none of these."""
    shipped = [run for run in runs.values() if not run.name.startswith("local-")]
    shoppers, made_up, films = (
        next((run for run in shipped if run.config.data.source == source and _has_item_experts(run)), None)
        for source in (GROCERIES, PLANTED, FILM_DATA)
    )
    data = [run.config.data for run in (current, made_up, films, shoppers) if run]
    papers = [run for run in shipped if isinstance(run.config.model, ElasticConfig)]
    paper = next((run for data_config in data for run in papers if run.config.data == data_config), None)
    worlds = {name: run for name, run in ((SHOPPERS, shoppers), (MADE_UP, made_up), (FILMS, films), (PAPER, paper)) if run}
    names = [run.name for run in worlds.values()]
    there = {name: run for name, run in runs.items() if not is_deleted(run.config.data)}
    own_run = current if current.name not in names else there.get(chosen_name or "") or _latest_local_run(there)
    if own_run is not None and own_run.name not in names:
        worlds[OWN if own_run.name.startswith("local-") or own_run.config.data.source not in source_names() else OTHER] = own_run
    return worlds


def _latest_local_run(runs: Mapping[str, Run]) -> Run | None:
    """The visitor's latest training, so that a link which is opened again offers it, too. Among strangers it may be anybody's."""
    local = [run for run in runs.values() if run.name.startswith("local-") and not public.is_public()]
    return max(local, key=lambda run: run.path.stat().st_mtime, default=None)


def _has_item_experts(run: Run) -> bool:
    """Has it experts for everybody to retrieve, which were asked to stand for items?"""
    model = run.config.model
    return getattr(model, "interest_weight", 0) > 0 and getattr(model, "memory", "none") != "none"


def describe_world(name: str, run: Run, data: Dataset) -> str:
    """What this choice shows, and what another would change; Markdown."""
    n_users, truth = f"{data.histories.n_users:,}", data.truth
    if name == SHOPPERS:
        return f"**{n_users} households, a year of groceries**"
    if name == MADE_UP and truth is not None:
        return f"**{n_users} people with {len(truth.interests)} hobbies**: we know why they chose."
    if name == FILMS:
        return f"**{n_users} people, {data.catalog.n_items:,} films**"
    if name == PAPER:
        place_text = "in the made-up world" if truth is not None else "on the same data"
        return f"**The paper’s ELASTIC {place_text}**: all its experts make each suggestion together."
    if name == OWN:
        reason_text = ": we know why they chose." if truth is not None else ""
        return f"**Your run on {page_context.escape_markdown(data.label)}**{reason_text}"
    return f"**{page_context.escape_markdown(f'{model_label(run.config.model.name)}, {data.label}')}**: chosen on the left."


def show_world_switch(runs: Mapping[str, Run]) -> None:
    """Called by navigation.py above the pages that are shown so."""
    context = page_context.current_context()
    if context is None:  # the page says so
        return
    worlds = offered_worlds(runs, context.run, st.session_state.get(CHOSEN))
    current = next(name for name, run in worlds.items() if run.name == context.run.name)
    if current in (OWN, OTHER):
        st.session_state[CHOSEN] = context.run.name
    if len(worlds) < 2:
        return
    st.session_state[KEY] = current
    must_download = FILMS in worlds and current != FILMS and not at_hand(FILM_DATA)
    download_text = f" “{FILMS}” first downloads 5 MB." if must_download else ""
    with st.container(key="world_switch"):  # as high for a long sentence as for a short one, so that the title stays in place
        widths = [11, 9] if len(worlds) < 5 else [13, 7]
        choice, sentence_place = st.columns(widths, vertical_alignment="center")  # what was pressed stays in view
    choice.segmented_control(
        "What is shown", list(worlds), key=KEY, required=True, label_visibility="collapsed", on_change=_select_world,
        args=({name: run.name for name, run in worlds.items()},), disabled=page_context.is_locked("run"),
    )  # fmt: skip
    with sentence_place.container(key="world_sentence"):
        st.markdown(
            f":small[{describe_world(current, context.run, context.dataset)}{download_text}]",
            help=SLOTS if _has_item_experts(context.run) else None,
        )


def _select_world(runs: dict[str, str]) -> None:
    name = runs.get(str(st.session_state.get(KEY)))
    if name is not None and not page_context.is_locked("run"):
        page_context.select_run(name)
        st.session_state[TURNED] = True


def settle_user(open_run: OpenRun, parameters: dict[str, str | None]) -> None:
    """After a turn: who is looked at. On the same data the person stays; on others it is who was met there last, or whom these
    open with. Called by the sidebar before its boxes; `parameters` is what they are to show."""
    if not st.session_state.pop(TURNED, False):
        return
    parameters["vs"] = parameters["expert"] = st.session_state["vs"] = None
    page_context.select_expert(None)
    data = open_run.dataset.hash
    if st.session_state.get(DATA_SHOWN) != data and not page_context.is_locked("user"):
        last_users = st.session_state.get(LAST_USERS, {})
        st.session_state["user"] = 1 + last_users.get(data, cache.example_user(open_run))
        parameters["user"] = str(st.session_state["user"])


def remember_user(data: Dataset, user: int) -> None:
    """Whom the visitor looks at, for the way back. Called by the sidebar after its boxes."""
    st.session_state[DATA_SHOWN] = data.hash
    st.session_state[LAST_USERS] = {**st.session_state.get(LAST_USERS, {}), data.hash: user}
