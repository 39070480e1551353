"""Models and objectives by name: each name leads to the module that defines it, which is imported when it is first asked for.

The names of this package follow from its files, so that one file is enough for a new model: `peers/gru4rec.py` is the model
`gru4rec`, `objectives/last.py` the objective `last`. A file of your own (plugins.py) adds itself when it is loaded.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from elastic_core import plugins
from elastic_core.errors import InputError, value_text

T = TypeVar("T")
C = TypeVar("C", bound=type)
PACKAGE = Path(__file__).parents[1]


def modules_in(room: str) -> dict[str, str]:
    """Name → module of the files of a folder of this package."""
    stems = sorted(file.stem for file in (PACKAGE / room).glob("*.py") if file.stem != "__init__")
    return {stem.replace("_", "-"): f"elastic_core.{room}.{stem}" for stem in stems}


MODEL_MODULES = {
    "elastic": "elastic_core.core.elastic",
    "sasrec": "elastic_core.core.sasrec",
    "elastic-slots": "elastic_core.slots.elastic_slots",
    "elastic-votes": "elastic_core.slots.elastic_votes",
    **modules_in("peers"),
}
OBJECTIVE_MODULES = {
    "all": "elastic_core.core.objective",
    "window": "elastic_core.core.objective",
    **modules_in("objectives"),
}


class Registry(Mapping[str, T]):
    """Name → class. `kind` says in messages what is registered: "model" or "objective"."""

    def __init__(self, kind: str, modules: Mapping[str, str]) -> None:
        self.kind, self.modules = kind, modules
        self.loaded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self.loaded:
            if name in self.modules:
                import_module(self.modules[name])
            else:
                plugins.load_plugins()
        if name not in self.loaded:
            raise InputError(f"{self.modules[name]} registers no {self.kind} named {name!r}: its file must have its name")
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        """The names of this package in order, then your own."""
        plugins.load_plugins()
        return iter(dict.fromkeys((*sorted(self.modules), *self.loaded)))

    def __len__(self) -> int:
        return len(tuple(iter(self)))

    def find_class(self, name: Any) -> T:
        """The class with this name. Raises InputError for an unknown one, listing the known ones."""
        if not isinstance(name, str) or name not in self:
            folders = os.environ.get(plugins.VARIABLE)
            own = f"{plugins.VARIABLE} names {folders}" if folders else f"{plugins.VARIABLE} must name the folder of your own"
            raise InputError(f"unknown {self.kind} {value_text(name)}; known are {', '.join(sorted(self))} ({own})")
        return self[name]

    def register(self, config: Any) -> Callable[[C], C]:
        """Decorates the class that belongs to the settings `config`, whose name it takes (core/config.py)."""

        def add(cls: C) -> C:
            self.loaded[config.name] = cls  # type: ignore[assignment]
            return cls

        return add
