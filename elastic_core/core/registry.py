"""The list of models. A new one is one file in this folder, or in a folder that ELASTIC_PLUGINS names, with `@register`."""

from collections.abc import Callable
from typing import TypeVar

import torch

from elastic_core.core.catalog import Catalog
from elastic_core.core.config import ModelConfig
from elastic_core.core.contract import Recommender
from elastic_core.core.shapes import shapes_only
from elastic_core.errors import InputError
from elastic_core.machine import memory_bytes
from elastic_core.scale.row_bank import item_banks, row_banks

MOST_PARAMETERS = 200_000_000  # and buffers: 0.8 GB of weights, 3.2 GB with gradients and the optimiser's two moments
MOST_BANK = 2**30  # numbers in experts that are kept by rows: 16.8 million of width 64
BANK_SHARE = 0.5  # of the machine's memory

_models: dict[str, type[Recommender]] = {}
R = TypeVar("R", bound=type[Recommender])


def register(config: type[ModelConfig]) -> Callable[[R], R]:
    """Ties a model class to its settings; the name is taken by defining those (core/config.py)."""

    def add(cls: R) -> R:
        _models[config.name] = cls
        return cls

    return add


def build(config: ModelConfig, catalog: Catalog | int) -> Recommender:
    """A fresh model for a catalogue; a number stands for that many items of which nothing else is known.

    Raises InputError for an unknown name, listing the known ones, for a model beyond the budget, before it is built, and for one
    that cannot keep or score its items as asked."""
    known = Catalog.numbered(catalog) if isinstance(catalog, int) else catalog
    outline(config, known)
    made = model_class(config.name)(config, known)
    if config.items_by_rows and not item_banks(made):
        raise InputError(f"{config.name} has no item table that is learned by rows: take model.item_bank=dense")
    if config.output == "own" and made.trained and (made.output is None or made.scorer().table is not made.output.weight):
        raise InputError(f"{config.name} scores items in a way of its own: take model.output=tied")
    return made


def outline(config: ModelConfig, catalog: Catalog | int) -> Recommender | None:
    """The model's shapes without its numbers, in milliseconds and no memory; None where only building it could tell.

    Raises InputError with the number and the bound if it would hold more than MOST_PARAMETERS, items by rows among them, or more
    than MOST_BANK in experts that are kept by rows."""
    known = Catalog.numbered(catalog) if isinstance(catalog, int) else catalog
    kind = model_class(config.name)
    if not kind.objective:
        return None  # it has no weights: what it counts from its data has bounds of its own
    try:
        with shapes_only():
            found = kind(config, known)
    except InputError:
        raise
    except (RuntimeError, NotImplementedError, TypeError):  # it asks for a number while it is built
        return None
    items = [table.weight for table in item_banks(found).values()]  # sooner or later every row is changed, and written to disk
    numbers = sum(tensor.numel() for tensor in (*found.parameters(), *found.buffers(), *items))
    if numbers > MOST_PARAMETERS:
        raise InputError(
            f"this model would have {numbers:,} parameters for {known.n_items:,} items; at most {MOST_PARAMETERS:,} are allowed"
        )
    bank = sum(table.weight.numel() for table in row_banks(found).values() if not table.padding)
    most = min(MOST_BANK, int(BANK_SHARE * memory_bytes(torch.device("cpu"))) // 4)
    if bank > most:
        raise InputError(f"this model would have {bank:,} numbers in its experts; at most {most:,} are allowed on this machine")
    return found


def names() -> tuple[str, ...]:
    """In the order of registration: those of this package by name, then your own."""
    return tuple(_models)


def model_class(name: str) -> type[Recommender]:
    if name not in _models:
        raise InputError(f"unknown model {name!r}; known are {', '.join(names())}")
    return _models[name]
