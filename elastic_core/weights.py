"""A model from the file of its weights, which may come from anywhere: nothing in it is executed, and nothing believed."""

import math
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_file
from torch.overrides import TorchFunctionMode

from elastic_core import models
from elastic_core.config import ModelConfig
from elastic_core.data.catalog import Catalog
from elastic_core.errors import InputError


def model_from(path: Path, config: ModelConfig, catalog: Catalog, name: str) -> models.Recommender:
    """The model on the CPU. Raises InputError, which calls the file `name`, if it is cut short or does not fit."""
    try:
        weights = load_file(path)
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(f"{name} cannot be read ({error}); it may be cut short") from None
    try:
        with _Budget(sum(values.numel() for values in weights.values())):
            model = models.build(config, catalog)
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{name} does not fit its configuration: {reason}") from None
    return model


class _Budget(TorchFunctionMode):
    """Raises RuntimeError once the tensors that are made hold far more numbers than the weights of a file.

    A model built on torch's device `meta` would show the same without allocating; it imports torch's compiler for it (2 s).
    """

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.left = 4 * numbers + 2**24

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.eye, torch.arange):
            size = args[0] if args and isinstance(args[0], tuple | list) else args[: 1 if func is torch.full else None]
            self.left -= math.prod(int(n) for n in size) ** (2 if func is torch.eye else 1)
            if self.left < 0:
                raise RuntimeError("it asks for far more weights than the file holds")
        return func(*args, **(kwargs or {}))
