"""The dispatcher, link by link: which events each expert takes (aggregate) and what each event gets back (dispatch).

Every event and every expert meet twice, so N events and k experts cost 2 N k links; events that look at each other cost N².
"""

from dataclasses import dataclass

import numpy as np
import torch

from elastic_core.core.batches import Batch
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender, tracing
from elastic_core.services.journey.trace import packed

LEAST, MOST = 2, 40  # events that are drawn


@dataclass(frozen=True, eq=False)
class Dispatch:
    """The last N events that a model reads, as its first layer takes them and its last gives them back.

    `takes` [k, N]: where an event is written to experts (`written`), how much of it each takes; else how an expert spreads its
    reading over the events. `back` [N, k]: how much an event reads each expert, from when it was the newest; a row sums to 1, or
    to less where a part reads no expert."""

    titles: list[str]
    experts: list[int]
    takes: np.ndarray
    back: np.ndarray
    written: bool

    @property
    def links(self) -> int:
        """Aggregate and dispatch together."""
        return 2 * self.takes.size

    @property
    def pairs(self) -> int:
        """What every event looking at every event would take."""
        return len(self.titles) ** 2

    @property
    def cheaper_from(self) -> int:
        """The number of events from which links are fewer than pairs."""
        return 2 * len(self.experts) + 1


@torch.inference_mode()
def dispatch(model: Recommender, dataset: Dataset, items: np.ndarray, events: int) -> Dispatch:
    """Of a history `items` the last `events`, read with the experts that the whole history retrieves.

    Raises InputError for a model without experts or without a dispatcher, and for less than one event."""
    if not model.retrieves:
        raise InputError("this run has no interest memory, so there is no dispatcher to show")
    if not 1 <= events <= len(items):
        raise InputError(f"this history has 1 to {len(items)} events, not {events}")
    shown = items[-events:]
    whole = packed([items], model.length).items
    prefixes = packed([shown[: end + 1] for end in range(events)], model.length)
    trace = tracing(model).trace(Batch(prefixes.items, whole.expand(events, -1), padded=prefixes.padded))
    takes = trace.taken[-1, :, -events:].numpy().astype(float)
    return Dispatch(
        [dataset.catalog.title(int(item)) for item in shown], trace.retrieved[0].experts[0].tolist(), takes,
        trace.slots[-1].mean(1).numpy().astype(float), trace.strength is not None,
    )  # fmt: skip
