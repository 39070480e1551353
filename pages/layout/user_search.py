"""Finding a person by what the visitor knows of them: their id in the data, or something they chose."""

from collections.abc import Callable
from contextlib import suppress

import streamlit as st

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig
from elastic_core.services.person import inspect, user_lookup
from pages.components import cache, page_context
from pages.components.controls import place_button
from pages.components.page_context import quote_code

USERS_LISTED = 6  # that a title lists
SelectUser = Callable[[int], None]


def show_search_box(data: Dataset, source: DataConfig, key: str, select_user: SelectUser, disabled: bool = False) -> None:
    """A line to type into. An id that is there is taken at once; what may be meant otherwise is listed below.

    Streamlit keeps what a callback is given: no data, but where they are from."""
    item_words = inspect.item_words(data)
    st.text_input(
        "Find a person",
        key=key,
        max_chars=80,
        placeholder="id or title",
        help=f"Such as {quote_code(example_id(data))}, or part of a title they {item_words.verb}.",
        on_change=_take_typed_id,
        args=(source, key, select_user),
        disabled=disabled,
    )
    text = str(st.session_state.get(key) or "").strip()
    if text and not disabled:
        _list_matches(data, text, key, select_user)


def example_id(data: Dataset) -> str:
    """An id as these data have them."""
    return str(data.histories.user_ids[data.histories.n_users // 2])


def format_user(data: Dataset, user: int) -> str:
    """`person 17 (id u_8841)`; the id where it says more than the number. Escaped."""
    own_id = user_lookup.own_id(data, user)
    return f"person {user + 1} (id {page_context.escape_markdown(own_id)})" if own_id else f"person {user + 1}"


def _take_typed_id(source: DataConfig, key: str, select_user: SelectUser) -> None:
    text = str(st.session_state.get(key) or "")
    with suppress(InputError):
        data = cache.load_dataset(source)
        matches = user_lookup.find_users(data, text)
        if len(matches) == 1 and user_lookup.is_id(data, matches[0], text):
            _select_found_user(matches[0], key, select_user, str(data.histories.user_ids[matches[0]]))


def _select_found_user(user: int, key: str, select_user: SelectUser, own_id: str | None) -> None:
    if own_id is not None:
        st.session_state[page_context.OWN_ID] = own_id
    st.session_state[key] = ""
    select_user(user)


def _list_matches(data: Dataset, text: str, key: str, select_user: SelectUser) -> None:
    matches_by_id, items = user_lookup.find_users(data, text), inspect.find_items(data, text, top=20)
    for user in matches_by_id:
        _place_user_button(data, user, key, select_user, str(data.histories.user_ids[user]))
    item_words = inspect.item_words(data)
    if items.empty:
        if not matches_by_id:
            st.caption(f"No id and no title here has {quote_code(text)}. Ids look like {quote_code(example_id(data))}.")
        return
    titles = dict(zip(items["item"], items["title"], strict=True))
    item = int(st.selectbox(f"Who {item_words.verb}", list(titles), format_func=titles.__getitem__, key=f"{key}_item"))
    users = inspect.people_with(data, item)
    st.caption(f"{len(users):,} people {item_words.verb} it before their last event" + ("; the latest:" if len(users) else "."))
    for user in users["user"].head(USERS_LISTED).tolist():
        if user not in matches_by_id:
            _place_user_button(data, user, key, select_user, None)


def _place_user_button(data: Dataset, user: int, key: str, select_user: SelectUser, own_id: str | None) -> None:
    name = format_user(data, user)
    place_button(
        name[:1].upper() + name[1:], f"{key}_{user}", _select_found_user, user, key, select_user, own_id, width="stretch"
    )
