"""How a bank of rows lies on disk: the table as it was drawn, written once, and the rows that were changed since.

    bank.safetensors    every bank's table before the first step; never written again
    model.safetensors   everything else, and of every bank `NAME.numbers [r]` and `NAME.rows [r, d]` of the changed rows

So nothing that is written after the start has the size of the bank, and every file is whole or not there. A table is mapped
into memory: what nobody reads is never loaded, and what is written to it stays in memory.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor, int64, nn

from elastic_core.disk import parsing, shown
from elastic_core.errors import InputError
from elastic_core.models import LARGEST
from elastic_core.scale.row_bank import MOST_BANK, RowBank, row_banks, small_state

FILE = "bank.safetensors"
MOST_BYTES = 4 * MOST_BANK + 2**20
AT_ONCE = 1 << 16  # rows of a table that are looked at together


def write_banks(model: nn.Module, path: Path) -> None:
    """The tables of all banks."""
    save_file({name: bank.weight.cpu().contiguous() for name, bank in row_banks(model).items()}, path)


def map_tables(model: nn.Module, path: Path, name: str) -> None:
    """Gives every bank its table from the file. Raises InputError, which calls the file `name`, if it is not of this model or
    holds numbers that are none."""
    with parsing(name):
        found = load_file(path)
    banks = row_banks(model)
    if set(found) != set(banks):
        raise InputError(f"{name} does not fit its configuration: it holds other banks")
    for key, bank in banks.items():
        table = found[key]
        if table.shape != bank.weight.shape or table.dtype != bank.weight.dtype:
            raise InputError(f"{name} does not fit its configuration: {shown(key)} is {list(table.shape)}")
        if not all(bool((part.abs() <= LARGEST).all()) for part in table.split(AT_ONCE)):  # NaN compares false
            raise InputError(f"{name} holds numbers in {shown(key)} that are none, or beyond {LARGEST:g}")
        bank.weight = table.to(bank.weight.device)


def changed_rows(model: nn.Module, numbers: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A model's state with, of its banks, only the rows of these numbers."""
    state = small_state(model)
    for name, bank in row_banks(model).items():
        state |= {f"{name}.numbers": numbers[name], f"{name}.rows": bank.weight[numbers[name]]}
    return state


def put(model: nn.Module, state: dict[str, Any]) -> dict[str, Any]:
    """The inverse: writes changed rows into the tables and returns the model's whole state. Raises InputError for rows that do
    not fit. A state that holds whole tables is returned as it is."""
    whole = dict(state)
    for name, bank in row_banks(model).items():
        if f"{name}.weight" in whole:
            continue
        numbers, rows = whole.pop(f"{name}.numbers", None), whole.pop(f"{name}.rows", None)
        wrong = unfit(bank, numbers, rows)
        if wrong:
            raise InputError(f"{name}: {wrong}")
        bank.weight[numbers.to(bank.weight.device)] = rows.to(bank.weight.device)
        whole[f"{name}.weight"] = bank.weight
    return whole


def unfit(bank: RowBank, numbers: Any, rows: Any) -> str:
    """Why these cannot be some of the bank's rows, each once; nothing if they can."""
    if not isinstance(numbers, Tensor) or numbers.is_meta or numbers.dtype != int64 or numbers.ndim != 1:
        return "it does not say which rows were changed"
    if len(numbers) and not (numbers[0] >= 0 and numbers[-1] < len(bank.weight) and (numbers.diff() > 0).all()):
        return "it has rows that there are none of"
    shape, kind = (len(numbers), bank.weight.shape[1]), bank.weight.dtype
    if not isinstance(rows, Tensor) or rows.is_meta or tuple(rows.shape) != shape or rows.dtype != kind:
        return "it holds other rows"
    return "" if (rows.abs() <= LARGEST).all() else "it has rows that hold no numbers"
