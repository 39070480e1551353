"""Controls: one call draws a widget, binds it to the address, and lets a teacher's link hold it.

They take whatever an address asks for: what Streamlit could not read is not listened to."""

import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, TypeVar

import streamlit as st

from pages.frame.locks import lockable, locked

Option = TypeVar("Option")


def bound(
    widget: Callable[..., Any], label: str, *args: Any, key: str, called: str = "", listen: bool = True, **look: Any
) -> Any:
    """`widget` (`st.slider`, or a place's own: `left.slider`) with its usual arguments. `called`: its name among the controls
    that a link may hold, where that is not its label. `listen`: whether what the address says of it is heard."""
    lockable({key: called or label})
    return widget(label, *args, key=key, disabled=locked(key), **({"bind": "query-params"} if listen else {}), **look)


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

    An address that names the control and leaves its value empty would choose nothing."""
    first = options[0] if default is None else default
    chosen: Option | None = bound(
        place.segmented_control, label, options, format_func=named, default=first, required=True, key=key,
        listen=st.query_params.get(key) != "", **look,
    )  # fmt: skip
    return first if chosen is None else chosen


def one_of_list(label: str, options: Sequence[Option], *, key: str, first: Option | None = None, **look: Any) -> Option:
    """A list of which one is chosen, at first `first` (or the first).

    One that is not offered any more is written over with `first`: were it only forgotten, the browser would go on showing it."""
    first = options[0] if first is None else first
    gone = key in st.session_state and st.session_state[key] not in options
    if gone:
        st.session_state[key] = first
    chosen: Option | None = bound(st.selectbox, label, options, 0 if gone else list(options).index(first), key=key, **look)
    return first if chosen is None else chosen


def number(label: str, *limits: Any, key: str, place: Any = st, **look: Any) -> Any:
    """A number: lowest, highest, at first, step, as Streamlit takes them.

    An address may ask for one that is beyond all (`1e400`), of which Streamlit cannot make a whole number."""
    asked = st.query_params.get(key)
    return bound(place.number_input, label, *limits, key=key, listen=asked is None or not _endless(asked), **look)


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
