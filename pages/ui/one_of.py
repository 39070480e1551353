"""A choice of exactly one thing: bound to the address, held by a teacher's link, and never without a choice."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

from pages.ui.lock import locked

Option = TypeVar("Option")


def one_of(
    label: str,
    options: Sequence[Option],
    *,
    key: str,
    default: Option | None = None,
    named: Callable[[Option], str] = str,
    place: Any = st,
    **look: Any,
) -> Option:
    """Which of `options` is chosen, at first `default` (or the first); `named` is what people read.

    An address that names the control and leaves its value empty would choose nothing: it is read as one that does not name it."""
    if st.query_params.get(key) == "":
        st.query_params.pop(key)
    first = options[0] if default is None else default
    chosen: Option | None = place.segmented_control(
        label, options, format_func=named, default=first, required=True, key=key, bind="query-params", disabled=locked(key),
        **look,
    )  # fmt: skip
    return first if chosen is None else chosen
