"""The frame of every page: run, second run, person and expert, bound to the address, and how pages ask for them."""

import random
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from elastic_core import text
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.results.systems import data_label
from elastic_core.run_config import DataConfig
from elastic_core.runs import Run
from elastic_core.services import public
from elastic_core.services.data.cards import at_hand_choices
from elastic_core.services.data.upload_store import UploadStore
from elastic_core.services.person import inspect, user_lookup
from pages.components import cache, control_locks, glossary, plot, presenter_mode
from pages.components.cache import OpenRun
from pages.components.control_locks import is_locked as is_locked
from pages.components.control_locks import register_controls as register_controls

RUNS = Path(__file__).resolve().parents[2] / "checkpoints"
CONTEXT, WANTED = "shell_context", "shell_wanted_run"
CLASS, TEACH = "class", "teach"  # in an address: the class a visitor is in, and the key of whoever holds it
OWN_ID_PARAMETER = "who"  # in an address: a person by their id in the data
OWN_ID = "shell_own_id"  # of the person whom the visitor looked up by their id in the data


@dataclass(frozen=True, eq=False)
class Context:
    """What a page is about. `context = page_context.require_context()` has `run`, `dataset` and `model` of its `open_run`
    (components/cache.py), which is what cached functions are asked about: `cache.user_prediction(context.open_run,
    context.user, …)`.

    The person's readable history, oldest first, and what really came next: `recommend.user_history(context.dataset,
    context.user)` in services/person, with `items` and `times` (seconds since 1970, UTC; None where the data have none; a
    made-up world, whose `context.dataset.truth` is not None, has made-up ones); as a table `inspect.history_table`.
    `context.dataset.catalog` knows items by their numbers from 1: `title(item)`, and `genres[item]`, a tuple that may be
    empty; `genres` is None where the data have none. Everybody's events are `dataset.histories.items`, of person u from
    `offsets[u]` to before `dataset.ends("test")[u]`. Genres' colours are `user_cards.genre_colours(context).by_genre`
    (components/user_cards.py); what the data call an item is in `context.item_words`."""

    open_run: OpenRun
    user: int  # dense, from 0; people see `user + 1`
    expert: int | None = None  # None: nothing chosen, pages show the person's strongest
    other: OpenRun | None = None  # a second run on the same data

    @property
    def run(self) -> Run:
        return self.open_run.run

    @property
    def dataset(self) -> Dataset:
        return self.open_run.dataset

    @property
    def model(self) -> Recommender:
        return self.open_run.model

    @property
    def item_words(self) -> inspect.ItemWords:
        """What its data call their items."""
        return inspect.item_words(self.dataset)

    @property
    def keep_seen(self) -> bool:
        """Do people choose again what they have seen, so that it stays in the running?"""
        return cache.measure_repeats(self.dataset).stay


def current_context() -> Context | None:
    """What the sidebar says; None where no run could be opened."""
    return st.session_state.get(CONTEXT)


def require_context() -> Context:
    """The same. A page that cannot have it says why and stops."""
    context = current_context()
    if context is None:
        st.info("This page needs a trained run, and none could be opened. Train one first, or open Start.")
        st.stop()
    return context


def select_run(run_name: str) -> None:
    """Make this the chosen run from the next rerun on."""
    st.session_state[WANTED] = run_name


def select_user(user: int, keep_expert: bool = True) -> None:
    """Make this (dense number, from 0) the chosen person, unless a teacher's link holds them. For widget callbacks."""
    if is_locked("user"):
        return
    st.session_state["user"] = user + 1
    if not keep_expert:
        select_expert(None)


def select_expert(expert: int | None) -> None:
    """Make this the chosen expert on every page, unless a teacher's link holds it; None goes back to the person's strongest. For
    widget callbacks."""
    if expert is None or not is_locked("expert"):
        st.session_state["expert"] = expert


def open_page(page: str) -> None:
    """Opens another page after a callback has set what it is to show; frame, lock and tour write their part of the address again.

    A link with `query_params` would not do: an address moves no widget that stands already.
    """
    st.switch_page(page, query_params={})


def select_random_user() -> None:
    """Choose another person at random, and no expert. For widget callbacks."""
    context = require_context()
    user = random.randrange(max(context.dataset.histories.n_users - 1, 1))
    select_user(user + (user >= context.user and context.dataset.histories.n_users > 1), keep_expert=False)


def view_address(**parameters_to_add: str | int) -> str:
    """The full address of this view, the chosen run and person written out; the person by their own id, too, if they have one:
    a number may be somebody else's when the data are cut anew."""
    context = require_context()
    sidebar_parameters = (control_locks.PARAMETER, CLASS, TEACH, presenter_mode.KEY)
    parameters = {key: value for key, value in st.query_params.to_dict().items() if key not in sidebar_parameters}
    own_id = user_lookup.own_id(context.dataset, context.user)
    own_id_parameter = {OWN_ID_PARAMETER: own_id} if own_id else {}
    parameters |= {"run": context.run.name, "user": str(context.user + 1)}
    return f"{st.context.url or ''}?{urlencode({**parameters, **own_id_parameter, **parameters_to_add})}"


def describe_quality(run: Run, data: Dataset) -> tuple[str, str]:
    """How good the run is, in the protocol in which its data is shown; and the number that runs are compared by."""
    test, keep_seen, item_words = run.last_event("test") or {}, cache.measure_repeats(data).stay, inspect.item_words(data)
    metrics = test.get("protocols", {}).get("full-seen" if keep_seen else "full")
    if not metrics:
        return "Not tested yet", f"NDCG@10: {glossary.METRICS['NDCG@10']}."
    candidates_text = f"all {item_words.plural}" + ("" if keep_seen else " that are new to a person")
    sentence = (
        f"{escape_markdown(data_label(run))}: for {100 * metrics['HR@10']:.0f} of 100 people, the next {item_words.singular} is "
        "among the ten suggestions."
    )
    return sentence, f"Among {candidates_text}. NDCG@10, which counts first places most, is {metrics['NDCG@10']:.3f}."


def data_choices() -> dict[str, DataConfig]:
    """All data on this machine by name, those in view first."""
    context = current_context()
    return at_hand_choices(UploadStore(RUNS / "uploads").list_choices(), context.run.config.data if context else None)


def is_switched_off(act: public.Act) -> bool:
    """Is this off in public mode? Says so, where its controls would be."""
    if reason := public.refusal_reason(act):
        st.info(f"{reason}.", icon=":material/visibility:")
    return bool(reason)


def escape_markdown(foreign_text: object) -> str:
    """What is not ours as it is, in Markdown."""
    return text.escape_markdown(str(foreign_text))


def quote_code(foreign_text: object) -> str:
    """The same as code."""
    return text.inline_code(str(foreign_text))


def is_dark() -> bool:
    return st.context.theme.type == "dark"


def theme_palette() -> plot.Palette:
    return plot.choose_palette(is_dark())
