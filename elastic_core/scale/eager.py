"""Optimisers that begin at once.

Every method of torch's is wrapped in a word to torch's compiler that it should leave it alone, and the first such word of a
process imports that compiler: one to two seconds before the first step of any training, for what is never compiled here.
"""

import inspect
from typing import Any

import torch
from torch.optim import Optimizer

SPOKEN = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")


def unwrapped(kind: type[Optimizer]) -> type[Optimizer]:
    """The same optimiser with what is inside the wrapping; a step is taken without gradients, as theirs is."""
    inside: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in SPOKEN}
    return type(kind.__name__, (kind,), {**inside, "step": torch.no_grad()(inspect.unwrap(kind.step))})


KINDS: Any = {"adam": unwrapped(torch.optim.Adam), "adamw": unwrapped(torch.optim.AdamW)}
