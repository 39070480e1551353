"""What the core can do without, and asks for where it is: sockets that others plug into, by name and before anything is imported.

The core names a socket and the sentence it says where nothing is plugged in; who plugs in (wiring.py) names the module that
holds it. That is imported when it is first asked for, so nobody waits for what is not used.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

from elastic_core.errors import InputError, value_text

T = TypeVar("T")
C = TypeVar("C", bound=type)
_places: dict[str, str] = {}  # socket → "module:name"
_found: dict[str, Any] = {}  # of those that were asked for


def plug(places: Mapping[str, str]) -> None:
    """Say where what belongs into some sockets is found: each as `module:name`."""
    _places.update(places)
    _found.clear()


def plugged(socket: str) -> Any:
    """Return what was plugged into a socket, None where nothing was."""
    if socket not in _found:
        module, _, name = _places.get(socket, "").partition(":")
        _found[socket] = getattr(import_module(module), name) if module else None
    return _found[socket]


def ask_all() -> None:
    """Import whatever is plugged in, so that no later question imports anything."""
    for socket in _places:
        plugged(socket)


def needed(socket: str) -> Any:
    """Return the same. Raises InputError where nothing was plugged in."""
    found = plugged(socket)
    if found is None:
        raise InputError(f"this needs {socket}, which is not there: import elastic_core as a whole")
    return found


class Shelf(Mapping[str, T]):
    """What is registered under names. A name whose module is known is imported when it is asked for."""

    def __init__(self, socket: str) -> None:
        self.socket = socket
        self.held: dict[str, T] = {}  # what was imported by now

    @property
    def homes(self) -> Mapping[str, str]:
        """Name → module, as far as they are known."""
        return plugged(self.socket) or {}

    def __getitem__(self, name: str) -> T:
        if name not in self.held:
            if name in self.homes:
                import_module(self.homes[name])
            else:
                self._own()
        return self.held[name]

    def __iter__(self) -> Iterator[str]:
        """Those of this package by name, then your own."""
        self._own()
        return iter(dict.fromkeys((*sorted(self.homes), *self.held)))

    def __len__(self) -> int:
        return len(tuple(iter(self)))

    def named(self, name: Any) -> T:
        """What has this name. Raises InputError for an unknown one, listing the known ones."""
        if not isinstance(name, str) or name not in self:
            raise InputError(f"unknown {self.socket[:-1]} {value_text(name)}; known are {', '.join(sorted(self))}")
        return self[name]

    def register(self, config: Any) -> Callable[[C], C]:
        """Ties a class to its settings; the name is taken by defining those (core/config.py)."""

        def add(kind: C) -> C:
            self.held[config.name] = kind  # type: ignore[assignment]
            return kind

        return add

    @staticmethod
    def _own() -> None:
        """Import the files of your own (plugins.py), where they can be."""
        load = plugged("plugins")
        if load is not None:
            load()
