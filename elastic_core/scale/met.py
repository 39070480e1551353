"""What rows have met before (`core.batches.Met`), asked without a number for every item of the catalogue."""

import torch
from torch import Tensor

from elastic_core.core.batches import Met


def met_among(met: Met, chosen: Tensor, n_items: int) -> Tensor:
    """The columns `chosen [C]` (none of them 0) of `Met.among`, without the others: `[M, C]`."""
    ordered = chosen.sort().values
    column = torch.full((n_items + 1,), len(chosen), device=chosen.device)
    column[ordered] = torch.searchsorted(ordered, ordered)  # equal ones have one column: nobody asks how many
    items = column[met.known(n_items)]
    found = torch.zeros(len(items), len(chosen) + 1, device=items.device).scatter_(1, items, 1.0)
    return found[:, column[chosen]]


def met_own(met: Met, own: Tensor, n_items: int) -> Tensor:
    """Whether every row has met its own item: `[M]` → float `[M, 1]`."""
    return (met.known(n_items) == own.unsqueeze(1)).any(1, keepdim=True).float()


def met_pairs(met: Met, n_items: int) -> tuple[Tensor, Tensor]:
    """Every row and item that `Met.among` has a 1 for, each once: int64 `[E]`, `[E]`, in the order of the items."""
    items = met.known(n_items)
    key = (items * len(items) + torch.arange(len(items), device=items.device).unsqueeze(1)).flatten().unique()
    found, row = key.div(max(len(items), 1), rounding_mode="floor"), key % max(len(items), 1)
    return row[found > 0], found[found > 0]
