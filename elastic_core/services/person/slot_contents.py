"""What one person's slot holds, and whether the name of its expert describes it.

An expert is named after what its slots hold of many people more often than these people's histories do (services/experts). That
says little of one slot: on groceries, a slot holds three times as much of the named type as its household buys, and still only
about a seventh of what it holds is of it. So a name is checked against the slot before both are shown as one thing.
"""

from typing import NamedTuple

import numpy as np

from elastic_core.data import Dataset
from elastic_core.data.item_features import trait_table

FITTING = 0.3  # of what a slot holds: with so much of the named type, the name fits


class SlotContents(NamedTuple):
    """The item that a slot holds most of, its part of the slot, how often it occurs, the part of the slot that is of the named
    type, and whether the name fits; the last two are None where the expert has no name."""

    item: int
    share: float
    times: int
    named_share: float | None
    fits: bool | None


def summarize_slot(dataset: Dataset, items: np.ndarray, event_share: np.ndarray, name: str) -> SlotContents | None:
    """Sum up a slot over the `items` [N] of a history, of which it holds `event_share` [N]; None where it holds nothing."""
    if not event_share.any():
        return None
    # an item that was chosen twice counts together
    item_share = np.bincount(items, event_share, minlength=dataset.catalog.n_items + 1)
    item = int(item_share.argmax())
    top = item, float(item_share[item]), int(np.count_nonzero(event_share[items == item]))
    types, holds = trait_table(dataset.catalog)
    if name not in types:
        return SlotContents(*top, None, None)
    of_type = holds[:, types.index(name)]
    named_share = float(item_share @ of_type)
    return SlotContents(*top, named_share, bool(of_type[item] > 0 or named_share >= FITTING))


def largest_items(items: np.ndarray, event_share: np.ndarray, most: int) -> list[tuple[int, float]]:
    """The items that a slot holds most of, each with its part of the slot, the largest first; an item that is met twice counts
    together."""
    item_share = np.bincount(items, event_share)
    order = np.argsort(-item_share, kind="stable")[:most]
    return [(int(item), float(item_share[item])) for item in order if item_share[item] > 0]
