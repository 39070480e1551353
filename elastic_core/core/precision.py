"""What is exact under autocast: sums, searches and what is carried from event to event stay in float32.

A device that knows no autocast (torch's `meta`, on which shapes are tried) has none to be turned off.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")


def without_autocast(kind: str) -> contextlib.AbstractContextManager[Any]:
    """Around what must not be rounded, on a kind of device (`cpu`, `cuda`)."""
    return contextlib.nullcontext() if kind == "meta" else torch.autocast(kind, enabled=False)


def autocast_to(kind: str) -> torch.dtype | None:
    """The lesser precision that products are asked for; None where autocast is off."""
    return torch.get_autocast_dtype(kind) if kind != "meta" and torch.is_autocast_enabled(kind) else None


def precise(function: Callable[P, R]) -> Callable[P, R]:
    """Runs `function` without autocast and with its half-precision tensors (given by position) as float32.

    A sum in bfloat16 stops growing at 256 times its terms, and a logit of 20 rounded to 8 bits is off by a factor of e^0.06.
    """

    def raised(x: Any) -> Any:
        return x.float() if isinstance(x, Tensor) and x.dtype in (torch.bfloat16, torch.float16) else x

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        kind = next(x.device.type for x in args if isinstance(x, Tensor))
        with without_autocast(kind):
            return function(*(raised(x) for x in args), **kwargs)

    return run
