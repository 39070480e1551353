"""A model from its settings: is there room for it, and can it score its items as its settings say?"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from elastic_core.core.config import ModelConfig
from elastic_core.core.contract import Recommender, model_class
from elastic_core.core.histories import Catalog
from elastic_core.errors import InputError

MOST_PARAMETERS = 200_000_000  # and buffers: 0.8 GB of weights, 3.2 GB with gradients and the optimiser's two moments


def build(config: ModelConfig, catalog: Catalog | int) -> Recommender:
    """A fresh model for a catalogue; a number stands for that many items of which nothing else is known.

    Raises InputError for an unknown name, listing the known ones, for a model beyond the budget, before it is built, and for one
    that cannot keep or score its items as asked."""
    known = Catalog.numbered(catalog) if isinstance(catalog, int) else catalog
    outline(config, known)
    made = model_class(config.name)(config, known)
    if config.output == "own" and made.trained and (made.output is None or made.scorer().table is not made.output.weight):
        raise InputError(f"{config.name} scores items in a way of its own: take model.output=tied")
    return made


def outline(config: ModelConfig, catalog: Catalog | int) -> Recommender | None:
    """The model's shapes without its numbers, in milliseconds and no memory; None where only building it could tell.

    Raises InputError with the number and the bound if it would hold more than MOST_PARAMETERS."""
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
    numbers = sum(tensor.numel() for tensor in (*found.parameters(), *found.buffers()))
    if numbers > MOST_PARAMETERS:
        raise InputError(
            f"this model would have {numbers:,} parameters for {known.n_items:,} items; at most {MOST_PARAMETERS:,} are allowed"
        )
    return found


# --- shapes without numbers ------------------------------------------------------------------------------------------


SCALED = ("mul", "rmul", "div", "truediv", "rtruediv", "add", "radd", "sub", "rsub", "normalize")  # with numbers alone


@contextmanager
def shapes_only() -> Iterator[None]:
    """Inside, what modules make of numbers is without them."""
    with torch.device("meta"), _Unfilled():
        yield


class _Unfilled(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given, name = (*args, *(kwargs or {}).values()), getattr(func, "__name__", "")
        if func in (torch.eye, torch.randn):
            sizes = (args[0], args[-1]) if func is torch.eye else args
            return torch.empty(*sizes, **{key: value for key, value in (kwargs or {}).items() if key != "generator"})
        if func is torch.arange and all(isinstance(number, int) for number in args):
            return torch.empty(len(range(*args)), dtype=(kwargs or {}).get("dtype") or torch.int64)
        in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__") and name != "requires_grad_")
        tensors = [value for value in given if isinstance(value, Tensor)]
        if tensors and tensors[0].is_meta and (in_place or (name.strip("_") in SCALED and len(tensors) == 1)):
            return tensors[0] if in_place else torch.empty(tensors[0].shape, dtype=tensors[0].dtype)
        return func(*args, **(kwargs or {}))
