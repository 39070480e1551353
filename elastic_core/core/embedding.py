"""The input of every sequence model here: item embedding plus learned position (method: X of Eq. 1).

Histories are left-padded, so column N-1 is always the most recent event and a column's index counts back from it.
"""

import math

import torch
from torch import Tensor, nn

from elastic_core.core.dropout import Dropout
from elastic_core.core.padding import masked
from elastic_core.errors import InputError
from elastic_core.scale.row_bank import RowBank

SPREAD = 0.02  # standard deviation of an item's numbers at the start


def rows_of(count: int, width: int, rows: bool, rate: float) -> nn.Embedding | RowBank:
    """Return a table `[count, width]`; `rows`: a step touches only what it looks up, with a learning `rate` of their own."""
    return RowBank(count, width, rate) if rows else nn.Embedding(count, width)


def item_table(n_items: int, width: int, spread: float, rows: bool) -> nn.Embedding | RowBank:
    """A row for every item, `[n_items + 1, width]`: normal with a standard deviation of `spread`, zero for padding (row 0).

    `rows`: a step touches only the items it looks up (`ModelConfig.item_bank`)."""
    count = n_items + 1
    table = RowBank(count, width, rule="adam", padding=True) if rows else nn.Embedding(count, width, padding_idx=0)
    nn.init.normal_(table.weight, std=spread)
    with torch.no_grad():
        table.weight[0] = 0
    return table


class EventEmbedding(nn.Module):
    """Items `[B, N]` (0 pads) → `[B, N, d]`. The item table also scores candidates (Eq. 8), unless `model.output` is `own`.
    Positions can be left out; `rows` as of `item_table`."""

    def __init__(self, n_items: int, length: int, width: int, dropout: float, positions: bool = True, rows: bool = False) -> None:
        super().__init__()
        self.items = item_table(n_items, width, SPREAD, rows)
        self.positions = nn.Parameter(torch.empty(length, width)) if positions else None
        self.dropout = Dropout(dropout)
        self.scale = math.sqrt(width)
        if self.positions is not None:
            nn.init.normal_(self.positions, std=SPREAD)

    def forward(self, items: Tensor, padded: bool = True) -> Tensor:
        return self.place(self.content(items), items > 0 if padded else None)

    def place(self, content: Tensor, real: Tensor | None) -> Tensor:
        """What the events are and where they stand: `[B, N, d]`, zero on padding. Raises InputError for too many."""
        if self.positions is not None and content.shape[1] > len(self.positions):
            raise InputError(f"this model reads {len(self.positions)} events, not {content.shape[1]}")
        return masked(self.dropout(content + self.where(slice(-content.shape[1], None))), real)

    def where(self, columns: slice | int) -> Tensor | float:
        """The positions of these columns of a full window `[n, d]` or `[d]`; 0 without positions."""
        return 0.0 if self.positions is None else self.positions[columns]

    def content(self, items: Tensor) -> Tensor:
        """What the events are, without where they stand: `[B, N, d]`, zero on padding. Input of the query network."""
        found: Tensor = self.items(items)
        return found * self.scale if isinstance(self.items, RowBank) else found.mul_(self.scale)  # of a bank it is a leaf
