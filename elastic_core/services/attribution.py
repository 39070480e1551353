"""Who suggests an item, and after which event: read off the prediction itself, where a model's slots predict one by one.

With a mixture every item's probability is a sum over parts, p(item) = Σ_s π_s p_s(item). The part an expert contributes, divided
by the sum, is its share of the suggestion; no approximation and nothing taken away. What its slot holds most of is the event the
expert speaks after. For models that mix their experts into one vector there is no such reading.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from elastic_core.data import Dataset
from elastic_core.data.batches import history_batch
from elastic_core.errors import InputError
from elastic_core.models import Recommender, can_retrieve
from elastic_core.services.recommend import Edit, Reading

CLEAR = 0.25  # of what a slot holds: below that no single event stands for it


@dataclass(frozen=True)
class Reason:
    """One suggestion. `expert` is None for the part that reads no slot; `after` is a dense item id, None if none stands out."""

    item: int
    expert: int | None
    share: float  # of the item's probability
    after: int | None

    def sentence(self, dataset: Dataset) -> str:
        """`expert 147 (62%), after Alien`."""
        who = "no expert: what was just chosen" if self.expert is None else f"expert {self.expert}"
        after = f", after {dataset.catalog.title(self.after)}" if self.after is not None else ""
        return f"{who} ({self.share:.0%}){after}"


@torch.inference_mode()
def reasons(model: Recommender, read: Reading, items: Sequence[int], edit: Edit | None = None) -> list[Reason] | None:
    """The part with the largest share of every item; None where the model's experts do not predict by themselves."""
    if not can_retrieve(model) or not len(read.items) or not len(items):
        return None
    try:
        found = model.attribute(history_batch(read.items, model.length), torch.tensor([list(items)]), edit)
    except InputError:
        return None
    recent, experts = np.asarray(read.items)[-model.length :], found.experts[0].tolist()
    held = found.held[0].numpy()[:, -len(recent) :]
    best = found.parts[0].max(-1)
    rows = []
    for item, part, share in zip(items, best.indices.tolist(), best.values.tolist(), strict=True):
        slot = part if part < len(experts) else None
        clear = slot is not None and held[slot].max() >= CLEAR
        after = int(recent[held[slot].argmax()]) if slot is not None and clear else None
        rows.append(Reason(int(item), None if slot is None else experts[slot], share, after))
    return rows
