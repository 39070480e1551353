"""Controls: one call draws a widget, binds it to the address, and lets a teacher's link hold it.

They take whatever an address asks for: what Streamlit could not read is not listened to, and what is not offered is said."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from elastic_core.text import escape_markdown
from pages.components.control_locks import is_locked, register_controls

Option = TypeVar("Option")
Options = Sequence[Option] | Mapping[Option, str]
LONGEST = 60  # of what an address asks for, as it is said back


def bind_widget(
    widget: Callable[..., Any], label: str, *args: Any, key: str, control_name: str = "", listen: bool = True, **look: Any
) -> Any:
    """`widget` (`st.slider`, or a place's own: `left.slider`) with its usual arguments. `control_name`: its name among the
    controls that a link may hold, where that is not its label. `listen`: whether what the address says of it is heard."""
    register_controls({key: control_name or label})
    return widget(label, *args, key=key, disabled=is_locked(key), **({"bind": "query-params"} if listen else {}), **look)


def place_button(
    label: str, key: str, act: Callable[..., object], *arguments: object, icon: str = "", place: Any = st, **look: Any
) -> bool:
    """A button that calls `act(*arguments)` before the page is drawn again. `icon` is the name of a material one."""
    return bool(place.button(label, key=key, on_click=act, args=arguments, icon=f":material/{icon}:" if icon else None, **look))


def choose_one(
    label: str, options: Options[Option], *, key: str, default: Option | None = None,
    format_option: Callable[[Option], str] = str, place: Any = st, **look: Any,
) -> Option:  # fmt: skip
    """Which of `options` is chosen, at first `default` (or the first); `format_option` tells what people read,
    where `options` does not map them to it.

    An address that names the control and leaves its value empty would choose nothing."""
    options, format_option = _name_options(options, format_option)
    first = options[0] if default is None else default
    _apply_address(label, options, key, first, format_option, format_option(first))
    option = bind_widget(
        place.segmented_control, label, options, format_func=format_option, default=first, required=True, key=key,
        listen=st.query_params.get(key) != "", **look,
    )  # fmt: skip
    return first if option is None else option


def choose_without_label(label: str, options: Options[Option], key: str, **look: Any) -> Option:
    """The same where the options say it all: the label is only read out."""
    return choose_one(label, options, key=key, label_visibility="collapsed", **look)


def choose_from_list(label: str, options: Options[Option], *, key: str, first: Option | None = None, **look: Any) -> Option:
    """A list of which one is chosen, at first `first` (or the first).

    One that is not offered any more is written over with `first`: were it only forgotten, the browser would go on showing it."""
    options, format_option = _name_options(options, look.pop("format_func", str))
    first = options[0] if first is None else first
    _apply_address(label, options, key, first, format_option, escape_markdown(format_option(first)))
    is_stale = key in st.session_state and st.session_state[key] not in options
    if is_stale:
        st.session_state[key] = first
    option = bind_widget(
        st.selectbox, label, options, 0 if is_stale else options.index(first), key=key, format_func=format_option, **look
    )
    return first if option is None else option


def _name_options(
    options: Options[Option], format_option: Callable[[Option], str]
) -> tuple[list[Option], Callable[[Option], str]]:
    return list(options), options.__getitem__ if isinstance(options, Mapping) else format_option


def option_in_address(key: str, options: Sequence[Option], format_option: Callable[[Option], str] = str) -> Option | None:
    """Which of `options` an address asks for, before its control is drawn; None where it asks for none of them.

    Streamlit itself knows an option by its whole label, escapes and all. One typed by hand may be its value, the label as it is
    read, or a part that only one label has."""
    parameter = st.query_params.get(key, "")
    if not parameter:
        return None
    if (exact_matches := [option for option in options if format_option(option) == parameter]) and len(exact_matches) == 1:
        return exact_matches[0]
    parameter = parameter.casefold()
    readable_options = [(option, re.sub(r"\\(\W)", r"\1", format_option(option)).casefold()) for option in options]
    matches = [option for option, name in readable_options if parameter in (name, str(option).casefold())]
    matches = matches or [option for option, name in readable_options if parameter in name]
    return matches[0] if len(matches) == 1 else None


def _apply_address(
    label: str, options: Sequence[Option], key: str, first: Option, format_option: Callable[[Option], str], shown_option: str
) -> None:
    """Takes what an address asks for, or says that it is not offered; `shown_option` is what is shown then."""
    text = st.query_params.get(key, "")
    if not text or key in st.session_state or text in map(format_option, options):
        return
    option = option_in_address(key, options, format_option)
    if option is not None:
        st.session_state[key] = option
    else:
        st.toast(
            f"{label}: “{escape_markdown(text[:LONGEST])}” is not offered here. Shown: {shown_option}.",
            icon=":material/link_off:",
            duration="long",
        )


def write_in_address(key: str, value: str | None) -> None:
    """Writes what a control holds that is not bound to the address into it; nothing takes its name out."""
    if value is None:
        st.query_params.pop(key, None)
    elif st.query_params.get(key) != value:
        st.query_params[key] = value


def number_input(label: str, *limits: Any, key: str, place: Any = st, **look: Any) -> Any:
    """A number: lowest, highest, at first, step, as Streamlit takes them.

    An address may ask for one that is beyond all (`1e400`), of which Streamlit cannot make a whole number."""
    parameter = st.query_params.get(key)
    return bind_widget(
        place.number_input, label, *limits, key=key, listen=parameter is None or not _is_infinite(parameter), **look
    )


def _is_infinite(text: str) -> bool:
    try:
        return not math.isfinite(float(text))
    except (ValueError, OverflowError):
        return False
