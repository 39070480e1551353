"""A model from its settings: is there room for it, and can it score its items as its settings say?"""

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
    known_catalog = Catalog.from_count(catalog) if isinstance(catalog, int) else catalog
    outline(config, known_catalog)
    model = model_class(config.name)(config, known_catalog)
    if config.output == "own" and model.trained and (model.output is None or model.scorer().table is not model.output.weight):
        raise InputError(f"{config.name} scores items in a way of its own: take model.output=tied")
    return model


def outline(config: ModelConfig, catalog: Catalog | int) -> Recommender | None:
    """The model's shapes without its numbers, in milliseconds and no memory; None where only building it could tell.

    Raises InputError with the number and the bound if it would hold more than MOST_PARAMETERS."""
    known_catalog = Catalog.from_count(catalog) if isinstance(catalog, int) else catalog
    kind = model_class(config.name)
    if not kind.objective:
        return None  # it has no weights: what it counts from its data has bounds of its own
    try:
        with torch.device("meta"), SkipFilling():
            model = kind(config, known_catalog)
    except InputError:
        raise
    except (RuntimeError, NotImplementedError, TypeError):  # it asks for a number while it is built
        return None
    numbers = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    if numbers > MOST_PARAMETERS:
        raise InputError(
            f"this model would have {numbers:,} parameters for {known_catalog.n_items:,} items; "
            f"at most {MOST_PARAMETERS:,} are allowed"
        )
    return model


class SkipFilling(TorchFunctionMode):
    """Leaves out what would fill or scale a tensor of the device `meta`, which has a shape and no numbers.

    It only saves time, the shapes are the same without it: at the first `normal_`, `eye` or product on `meta` torch 2.13 imports
    its compiler, 1.2 s of processor in every process that opens a run.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        if func is torch.randn:
            return torch.empty(*args, **{key: value for key, value in kwargs.items() if key != "generator"})
        if func is torch.eye:
            return torch.empty(args[0], args[-1], **kwargs)
        if func is torch.arange and isinstance(args[-1], int):
            return torch.empty(len(range(*args)), **({"dtype": torch.int64} | kwargs))
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        if tensors and tensors[0].is_meta:
            if name == "__setitem__" or (name.endswith("_") and not name.endswith("__") and name != "requires_grad_"):
                return tensors[0]  # filled in place
            if name in ("mul", "div", "normalize") and len(tensors) == 1:  # scaled by a number
                return torch.empty(tensors[0].shape, dtype=tensors[0].dtype)
        return func(*args, **kwargs)
