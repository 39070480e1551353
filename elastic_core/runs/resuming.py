"""Does what an interrupted training left fit the training that wants to go on? Asked before any of it is used.

A resume file may be anybody's: its shapes, its numbers and its progress are compared with a fresh learner's.
"""

import math
from typing import Any

import torch
from torch import Tensor

from elastic_core.core.step import Learner
from elastic_core.errors import InputError
from elastic_core.models import LARGEST
from elastic_core.scale.bank_files import unfit
from elastic_core.scale.rows import LearnerOfRows, RowLearner


def check_resume(kept: dict[str, Any], learner: Learner | None, epochs: int, name: str) -> None:
    """Raises InputError, which calls the file `name`, if it is not of this training; without a learner, its progress alone."""
    wrong = _progress(kept, epochs) or ("" if learner is None else _learned(kept, learner))
    if wrong:
        raise InputError(f"{name} is damaged; delete it to start this run again ({wrong})")


def _progress(kept: dict[str, Any], epochs: int) -> str:
    whole = [kept.get(name) for name in ("epoch", "step", "best_epoch")]
    if not all(type(value) is int and 0 <= value < 2**53 for value in whole):
        return "it does not count epochs and steps"
    if not whole[2] <= whole[0] <= epochs:  # type: ignore[operator]
        return "it is of another number of epochs"
    seconds, best = kept.get("seconds"), kept.get("best")
    if (type(seconds) is not float and type(seconds) is not int) or not 0 <= seconds < 1e12:
        return "it does not say how long it took"
    if type(best) is not float or not (math.isfinite(best) or best == -math.inf):
        return "its best validation is no number"
    return ""


def _learned(kept: dict[str, Any], learner: Learner) -> str:
    wanted = learner.state()
    wrong = _mismatch(kept.get("model"), wanted["model"]) or _mismatch(kept.get("average", {}), wanted.get("average", {}))
    wrong = wrong or _optimizer(kept.get("optimizer"), learner.optimizer)
    return wrong or (_rows(kept.get("rows"), learner.rows) if isinstance(learner, LearnerOfRows) else "")


def _rows(found: Any, learner: RowLearner) -> str:
    """Of every bank, rows that exist, and for each a number that is none below zero and a step that was taken."""
    steps, banks = (found.get("steps"), found.get("banks")) if isinstance(found, dict) else (None, None)
    if type(steps) is not int or not 0 <= steps < 2**31 or not isinstance(banks, dict) or set(banks) != set(learner.kept):
        return "it holds other banks"
    for name, kept in learner.kept.items():
        state, numbers = banks[name], None
        if isinstance(state, dict):
            numbers = state.get("numbers")
            wrong = unfit(kept.bank, numbers, state.get("rows"))
            if not wrong and kept.average is not None:
                wrong = unfit(kept.average, numbers, state.get("average"))
            if wrong:
                return wrong
        if not isinstance(state, dict) or not isinstance(numbers, Tensor):
            return "it holds other banks"
        for key, table in {"counted": kept.counted, **kept.rule.kept}.items():
            values, most = state.get(key), LARGEST if table.is_floating_point() else steps
            if not isinstance(values, Tensor) or not _fits_tensor(values, table.new_empty(len(numbers), *table.shape[1:])):
                return f"{key} of {name} does not fit"
            least = -most if key in kept.rule.signed else 0
            if len(values) and not (values.min() >= least and values.max() <= most):
                return f"{key} of {name} does not fit"
    return ""


def _mismatch(found: Any, wanted: dict[str, Any]) -> str:
    if not isinstance(found, dict) or set(found) != set(wanted):
        return "it holds other weights"
    return next((f"it holds another {key}" for key, value in wanted.items() if not _fits_tensor(found[key], value)), "")


def _fits_tensor(found: Any, wanted: Tensor) -> bool:
    """The same shape and kind, and every number one."""
    same = isinstance(found, Tensor) and not found.is_meta and found.layout == torch.strided and found.shape == wanted.shape
    return bool(same and found.dtype == wanted.dtype and found.isfinite().all())


def _optimizer(found: Any, optimizer: torch.optim.Optimizer) -> str:
    """Its groups must be those of a fresh one, and every parameter's moments of that parameter's shape."""
    fresh = optimizer.state_dict()["param_groups"]
    if not isinstance(found, dict) or not isinstance(found.get("state"), dict) or found.get("param_groups") != fresh:
        return "it is of another optimiser"
    sizes = dict(zip((i for group in fresh for i in group["params"]), _parameters(optimizer), strict=True))
    moments = _moments(optimizer)
    for i, state in found["state"].items():
        if i not in sizes or not isinstance(state, dict) or set(state) != set(moments):
            return "it is of another optimiser"
        for key, single in moments.items():
            if not _fits_tensor(state[key], torch.zeros(()) if single else sizes[i]):
                return f"{key} of parameter {i} does not fit"
    return ""


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _moments(optimizer: torch.optim.Optimizer) -> dict[str, bool]:
    """What the optimiser keeps of every parameter, and whether it is a single number: asked of a parameter of two."""
    toy = torch.zeros(2, requires_grad=True)
    toy.grad = torch.zeros(2)
    options = {key: value for key, value in optimizer.param_groups[0].items() if key != "params"}
    kind: Any = type(optimizer)
    stand_in = kind([{"params": [toy], **options}])
    stand_in.step()
    return {key: value.ndim == 0 for key, value in stand_in.state[toy].items()}
