"""One visitor without a browser: speaks Streamlit's own protocol over its websocket, as the page in the browser does.

A visitor keeps what the browser keeps (the drawn widgets and their values, the address, the messages it may be sent by
reference) and sends what the browser sends: after every act the values of all drawn widgets, page, address and context.
"""

import asyncio
import time
import urllib.request
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

XSRF = "_streamlit_xsrf"
# The field of WidgetState that each widget speaks through, and where its message holds a value set by the server.
SPEAKS = {
    "number_input": ("double_value", "value"),
    "slider": ("double_array_value", "value"),
    "select_slider": ("string_array_value", "raw_value"),  # Streamlit's message for it is that of a slider, too
    "selectbox": ("string_value", "raw_value"),
    "button_group": ("string_array_value", "raw_values"),
    "text_input": ("string_value", "value"),
}
Value = float | str | list[float] | list[str] | None


class Refused(Exception):
    """The server showed an error, or none of what was asked for."""


@dataclass
class Visitor:
    """A session. `open` first; then `set`, `press` and `go` return the seconds until the script had finished."""

    address: str
    patience: float = 120.0
    query: dict[str, str] = field(default_factory=dict)
    widgets: dict[str, tuple[str, Any, str]] = field(default_factory=dict)  # id: kind, message, script that drew it
    values: dict[str, Value] = field(default_factory=dict)
    pages: dict[str, str] = field(default_factory=dict)  # path: hash
    at: str = ""  # hash of the page
    main: str = ""  # hash of navigation.py
    received: int = 0  # bytes since the visit began
    _known: dict[str, list[Any]] = field(default_factory=dict)  # message by hash, and runs since it was last used
    _keep_for: int = 2  # runs
    _socket: Any = None

    async def open(self, path: str = "") -> float:
        """The first screen: tokens as a browser gets them, the websocket, the first run."""
        began = time.perf_counter()
        cookies = await asyncio.to_thread(self._cookies)
        token = cookies.get(XSRF, "PLACEHOLDER_AUTH_TOKEN")
        sent = "; ".join(f"{name}={value}" for name, value in cookies.items())
        self._socket = await websockets.connect(
            self.address.replace("http", "ws", 1) + "/_stcore/stream", origin=self.address, subprotocols=["streamlit", token],
            additional_headers={"Cookie": sent}, max_size=None, ping_interval=None, open_timeout=self.patience,
        )  # fmt: skip
        await self._run(page_name=path)
        return time.perf_counter() - began

    async def close(self) -> None:
        if self._socket is not None:
            await self._socket.close()

    async def set(self, key: str, value: Value) -> float:
        """Types or chooses a value."""
        name = self.find(key)
        self._hold(name, self.widgets[name][1].query_param_key, value)
        return await self._run()

    async def press(self, key: str) -> float:
        """Presses a button by its key or its label."""
        return await self._run(pressed=self.find(key))

    async def go(self, path: str) -> float:
        """To another page; of the widgets, those of the frame keep their values."""
        self.widgets = {name: drawn for name, drawn in self.widgets.items() if drawn[2] == self.main}
        self.values = {name: value for name, value in self.values.items() if name in self.widgets}
        bound = {drawn[1].query_param_key for drawn in self.widgets.values() if hasattr(drawn[1], "query_param_key")}
        self.query = {key: value for key, value in self.query.items() if key in bound}
        self.at = self.pages[path]
        return await self._run()

    def find(self, key: str) -> str:
        """The id of an enabled widget on the screen."""
        for name, (_, drawn, _) in self.widgets.items():
            if (name.endswith(f"-{key}") or drawn.label == key) and not drawn.disabled:
                return name
        raise KeyError(key)

    def has(self, key: str) -> bool:
        try:
            return bool(self.find(key))
        except KeyError:
            return False

    def value(self, key: str) -> Value:
        return self.values[self.find(key)]

    def drawn(self, key: str) -> Any:
        """The message of a widget: its limits, options and so on."""
        return self.widgets[self.find(key)][1]

    def _cookies(self) -> dict[str, str]:
        """As a browser has them after its first request: Streamlit's token, and which process a proxy has chosen."""
        with urllib.request.urlopen(self.address + "/_stcore/host-config", timeout=self.patience) as answer:
            set_ = answer.headers.get_all("Set-Cookie") or []
        return {name: held.value for line in set_ for name, held in SimpleCookie(line).items()}

    async def _run(self, pressed: str = "", page_name: str = "") -> float:
        began = time.perf_counter()
        await self._socket.send(self._message(pressed, page_name).SerializeToString())
        await asyncio.wait_for(self._finished(), self.patience)
        return time.perf_counter() - began

    def _message(self, pressed: str, page_name: str) -> BackMsg:
        message = BackMsg()
        run = message.rerun_script
        run.query_string, run.page_script_hash, run.page_name = urlencode(self.query), self.at, page_name
        run.cached_message_hashes.extend(self._known)
        run.context_info.timezone, run.context_info.locale, run.context_info.color_scheme = "UTC", "en-GB", "light"
        run.context_info.url = f"{self.address}/{page_name}"
        for name, value in self.values.items():
            _state(run.widget_states.widgets.add(), name, SPEAKS[self.widgets[name][0]][0], value)
        if pressed:
            state = run.widget_states.widgets.add()
            state.id, state.trigger_value = pressed, True
        return message

    async def _finished(self) -> None:
        """Receives until the script has run to its end. Raises Refused when the screen then shows an error."""
        drawn: dict[str, tuple[str, Any, str]] = {}
        problems: list[str] = []
        while True:
            data = await self._socket.recv()
            self.received += len(data)
            message = self._whole(ForwardMsg.FromString(data))
            kind = message.WhichOneof("type")
            if kind == "new_session":
                drawn, problems = {}, []  # a run that a callback cut short draws again
                self.at, self.main = message.new_session.page_script_hash, message.new_session.main_script_hash
                self._keep_for = message.new_session.config.max_cached_message_age
            elif kind == "navigation":
                self.pages = {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
                self.pages[""] = next(page.page_script_hash for page in message.navigation.app_pages if page.is_default)
                self.at = message.navigation.page_script_hash
            elif kind == "page_info_changed":
                self.query = dict(parse_qsl(message.page_info_changed.query_string))
            elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
                self._draw(message, drawn, problems)
            elif kind == "session_event" and message.session_event.HasField("script_compilation_exception"):
                problems.append(message.session_event.script_compilation_exception.message)
            elif kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                break
        self.widgets = drawn
        self.values = {name: value for name, value in self.values.items() if name in drawn}
        self._forget()
        if problems:
            raise Refused("; ".join(problems))

    def _draw(self, message: ForwardMsg, drawn: dict[str, tuple[str, Any, str]], problems: list[str]) -> None:
        element: Element = message.delta.new_element
        kind = element.WhichOneof("type") or ""
        held = getattr(element, kind) if kind else None
        if kind == "slider" and held.type == held.SELECT_SLIDER:
            kind = "select_slider"
        if kind == "exception":
            problems.append(f"{held.type}: {held.message}")
        if kind in SPEAKS or kind == "button":
            drawn[held.id] = (kind, held, message.metadata.active_script_hash)
        if kind in SPEAKS and (held.set_value or held.id not in self.values):
            self._hold(held.id, held.query_param_key if held.set_value else "", _shown(kind, held))

    def _hold(self, name: str, bound: str, value: Value) -> None:
        """The value of a widget, and of its part of the address."""
        self.values[name] = value
        if bound and value in (None, "", []):
            self.query.pop(bound, None)
        elif bound:
            first = value[0] if isinstance(value, list) else value
            self.query[bound] = f"{first:.0f}" if isinstance(first, float) else str(first)

    def _whole(self, message: ForwardMsg) -> ForwardMsg:
        """The message itself, or the earlier one that it refers to."""
        if message.WhichOneof("type") == "ref_hash":
            kept = self._known[message.ref_hash]
            kept[1] = 0
            whole = ForwardMsg()
            whole.CopyFrom(kept[0])
            whole.metadata.CopyFrom(message.metadata)
            return whole
        if message.metadata.cacheable:
            self._known[message.hash] = [message, 0]
        return message

    def _forget(self) -> None:
        for name, kept in list(self._known.items()):
            kept[1] += 1
            if kept[1] > self._keep_for:
                del self._known[name]


def _shown(kind: str, held: Any) -> Value:
    """What the widget says when nobody has touched it."""
    if held.set_value:
        if SPEAKS[kind][0].endswith("array_value"):
            return list(getattr(held, SPEAKS[kind][1]))
        return getattr(held, SPEAKS[kind][1]) if held.HasField(SPEAKS[kind][1]) else None
    if kind == "selectbox":
        return held.options[held.default] if held.HasField("default") else None
    if kind == "button_group":
        return [held.options[place].content for place in held.default]
    if kind == "slider":
        return list(held.default)
    if kind == "select_slider":
        return [held.options[int(place)] for place in held.default]
    return held.default if held.HasField("default") else None


def _state(state: WidgetState, name: str, field_name: str, value: Value) -> None:
    state.id = name
    if value is None:
        return
    if isinstance(value, list):
        getattr(state, field_name).data.extend(value)
    else:
        setattr(state, field_name, value)
