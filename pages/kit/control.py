"""Controls bound to the address and held by a teacher's link, that take whatever an address asks for."""

import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, TypeVar

import streamlit as st

from pages.frame.locks import locked

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

    An address that names the control and leaves its value empty would choose nothing: such an address is not listened to."""
    bound = {} if st.query_params.get(key) == "" else {"bind": "query-params"}
    first = options[0] if default is None else default
    chosen: Option | None = place.segmented_control(
        label, options, format_func=named, default=first, required=True, key=key, disabled=locked(key), **bound, **look
    )
    return first if chosen is None else chosen


def number(label: str, *limits: Any, key: str, place: Any = st, **look: Any) -> Any:
    """A number: lowest, highest, at first, step, as Streamlit takes them.

    An address may ask for one that is beyond all (`1e400`), of which Streamlit cannot make a whole number: such an address is not
    listened to."""
    asked = st.query_params.get(key)
    bound = {} if asked is not None and _endless(asked) else {"bind": "query-params"}
    return place.number_input(label, *limits, key=key, disabled=locked(key), **bound, **look)


def picked(key: str) -> int | None:
    """For the callback of a list of numbers: which one was taken; None where it is not offered any more.

    A visitor may answer a page while the next one is drawn. Streamlit calls back then with the words that were on the screen."""
    value = st.session_state.get(key)
    return int(value) if isinstance(value, Integral) else None


def _endless(text: str) -> bool:
    try:
        return not math.isfinite(float(text))
    except (ValueError, OverflowError):
        return False
