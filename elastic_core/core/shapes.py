"""Modules that have shapes and no numbers: what a model would take is known before anything of its size is made.

They are built on torch's device `meta`, which allocates nothing. Filling a tensor there, or scaling it by a number, is left out:
it would change nothing, and torch imports its compiler for it (one to two seconds).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

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
