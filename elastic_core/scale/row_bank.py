"""A table of which a training step touches only the rows that were looked up: for millions of experts, or of items.

As a parameter, a table of K rows would have a gradient, two moments and a running average of K rows, all of which every step
reads and writes. Here the rows of a look-up become a leaf of the step's graph, so their gradient has their size, and who takes
the step (scale/rows.py) sums it by row and changes these rows alone. The table is neither parameter nor buffer: whatever
walks over those must not walk over millions of rows. Its key in a state is that of the `nn.Embedding` it stands for.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.errors import InputError
from elastic_core.machine import memory_bytes

MOST_BANK = 2**30  # numbers in experts that are kept by rows: 16.8 million of width 64
BANK_SHARE = 0.5  # of the machine's memory


class LookedUp(NamedTuple):
    """One look-up of a training step: the rows' numbers `[...]` and what they were, a leaf `[..., d]` of the graph."""

    numbers: Tensor
    rows: Tensor


class RowBank(nn.Module):
    """Rows `[K, d]`; numbers `[...]` → `[..., d]`. `rate`: the learning rate of its own, 0: the training's. `rule`: how they
    learn (scale/row_rules.py). `padding`: row 0 stays as it is, whoever looks it up."""

    by_rows = True

    def __init__(
        self, count: int, width: int, rate: float = 0.0, rule: Literal["adagrad", "adam"] = "adagrad", padding: bool = False
    ) -> None:
        super().__init__()
        self.rate, self.rule, self.padding = rate, rule, padding
        self.weight = torch.empty(count, width)
        self._record: list[LookedUp] | None = None

    @staticmethod
    def check_room(banks: Mapping[str, "RowBank"]) -> None:
        """Raises InputError if a model's banks, those of items aside, hold more numbers than this machine has room for."""
        bank = sum(table.weight.numel() for table in banks.values() if not table.padding)
        most = min(MOST_BANK, int(BANK_SHARE * memory_bytes(torch.device("cpu"))) // 4)
        if bank > most:
            said = f"this model would have {bank:,} numbers in its experts"
            raise InputError(f"{said}; at most {most:,} are allowed on this machine")

    def forward(self, numbers: Tensor) -> Tensor:
        rows = functional.embedding(numbers, self.weight)
        if self._record is not None and torch.is_grad_enabled():
            self._record.append(LookedUp(numbers, rows.requires_grad_()))
        return rows

    @contextmanager
    def recorded(self) -> Iterator[list[LookedUp]]:
        """Inside, look-ups are leaves that gradients reach, and are told in the list."""
        self._record = record = list[LookedUp]()
        try:
            yield record
        finally:
            self._record = None

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self.weight = fn(self.weight)
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"] = self.weight

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, metadata: Any, strict: bool, missing: list[str], *rest: Any
    ) -> None:
        given = state_dict.pop(prefix + "weight", None)  # no parameter: the parent would call it unexpected
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, *rest)
        if given is None:
            missing.append(prefix + "weight")
        elif given.shape != self.weight.shape:
            rest[1].append(f"size mismatch for {prefix}weight: {list(given.shape)} where {list(self.weight.shape)} belongs")
        elif given is not self.weight:
            self.weight.copy_(given)


def row_banks(model: nn.Module) -> dict[str, RowBank]:
    """The banks of a model by name."""
    return {name: module for name, module in model.named_modules() if isinstance(module, RowBank)}


def small_state(model: nn.Module) -> dict[str, Tensor]:
    """A model's state without the tables of its banks."""
    large = {f"{name}.weight" for name in row_banks(model)}
    return {key: value for key, value in model.state_dict().items() if key not in large}
