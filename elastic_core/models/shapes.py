"""Modules that have shapes and no numbers: what a model would take is known before anything of its size is made.

They are built on torch's device `meta`, which allocates nothing. Filling a tensor there is left out: it would change nothing, and
torch imports its compiler for it (one to two seconds).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


@contextmanager
def shapes_only() -> Iterator[None]:
    """Inside, what modules make of numbers is without them."""
    with torch.device("meta"), _Unfilled():
        yield


class _Unfilled(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "__setitem__" or (name.endswith("_") and not name.endswith("__") and name != "requires_grad_"):
            given = (*args, *(kwargs or {}).values())
            filled = next((value for value in given if isinstance(value, Tensor)), None)
            if filled is not None and filled.is_meta:
                return filled
        return func(*args, **(kwargs or {}))
