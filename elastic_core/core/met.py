"""What people have met before: for scorers that add a learned number to it, and for judging what is new."""

from typing import NamedTuple

import torch
from torch import Tensor

from elastic_core.core.batches import Batch


class Met(NamedTuple):
    """What every row has met: row r of the states the items in `items[row[r]]`, up to column `upto[r]` where that is given."""

    items: Tensor  # [B, N] 0 pads; numbers beyond the catalogue are no items
    row: Tensor  # [M]
    upto: Tensor | None = None  # [M]

    @classmethod
    def by(cls, batch: Batch) -> "Met":
        """What is read of every history, for the state after it."""
        return cls(batch.items, torch.arange(len(batch.items), device=batch.items.device))

    def among(self, n_items: int, part: slice = slice(None)) -> Tensor:
        """1 where a row has met an item, float `[M, n_items + 1]`; column 0 is 0."""
        items = self._known(n_items, part)
        found = torch.zeros(len(items), n_items + 1, device=items.device).scatter_(1, items, 1.0)
        found[:, 0] = 0
        return found

    def of(self, chosen: Tensor, n_items: int) -> Tensor:
        """The columns `chosen [C]` (none of them 0) of `among`, without the others: `[M, C]`."""
        ordered = chosen.sort().values
        column = torch.full((n_items + 1,), len(chosen), device=chosen.device)
        column[ordered] = torch.searchsorted(ordered, ordered)  # equal ones have one column: nobody asks how many
        items = column[self._known(n_items)]
        found = torch.zeros(len(items), len(chosen) + 1, device=items.device).scatter_(1, items, 1.0)
        return found[:, column[chosen]]

    def at(self, own: Tensor, n_items: int) -> Tensor:
        """Whether every row has met its own item: `[M]` → float `[M, 1]`."""
        return (self._known(n_items) == own.unsqueeze(1)).any(1, keepdim=True).float()

    def pairs(self, n_items: int) -> tuple[Tensor, Tensor]:
        """Every row and item that `among` has a 1 for, each once: int64 `[E]`, `[E]`, in the order of the items."""
        items = self._known(n_items)
        key = (items * len(items) + torch.arange(len(items), device=items.device).unsqueeze(1)).flatten().unique()
        found, row = key.div(max(len(items), 1), rounding_mode="floor"), key % max(len(items), 1)
        return row[found > 0], found[found > 0]

    def _known(self, n_items: int, part: slice = slice(None)) -> Tensor:
        """The items `[M, N]` that rows have met, 0 in all other places."""
        items = self.items[self.row[part]]
        if self.upto is not None:
            later = torch.arange(items.shape[1], device=items.device) > self.upto[part].unsqueeze(1)
            items = items.masked_fill(later, 0)
        return items.masked_fill(items > n_items, 0)
