"""The list of models. A new one is one file in this folder, or in a folder that ELASTIC_PLUGINS names, with `@register`."""

from collections.abc import Callable
from typing import TypeVar

from elastic_core.config import ModelConfig
from elastic_core.data.catalog import Catalog
from elastic_core.errors import InputError
from elastic_core.models.contract import Recommender

_models: dict[str, type[Recommender]] = {}
R = TypeVar("R", bound=type[Recommender])


def register(config: type[ModelConfig]) -> Callable[[R], R]:
    """Ties a model class to its settings; the name is taken by defining those (config.py)."""

    def add(cls: R) -> R:
        _models[config.name] = cls
        return cls

    return add


def build(config: ModelConfig, catalog: Catalog | int) -> Recommender:
    """A fresh model for a catalogue; a number stands for that many items of which nothing else is known.

    Raises InputError for an unknown name, listing the known ones."""
    known = Catalog.numbered(catalog) if isinstance(catalog, int) else catalog
    return model_class(config.name)(config, known)


def names() -> tuple[str, ...]:
    """In the order of registration: those of this package by name, then your own."""
    return tuple(_models)


def model_class(name: str) -> type[Recommender]:
    if name not in _models:
        raise InputError(f"unknown model {name!r}; known are {', '.join(names())}")
    return _models[name]
