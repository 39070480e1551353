"""`window` (ours): many targets from one pass of a causal encoder, one retrieval for all of them.

What is retrieved comes from before the window's first target: there the situation is exactly that of serving, and later
targets use a retrieval that is up to a window old, as a live system that refreshes its retrieval now and then would.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import torch
from torch import Tensor

from elastic_core.core.batches import Batch, left_pad, needed_columns
from elastic_core.core.config import ObjectiveConfig, Within
from elastic_core.core.objective import Objective, Rows, register, tiles
from elastic_core.models import Recommender


@dataclass(frozen=True, kw_only=True)
class WindowConfig(ObjectiveConfig, name="window"):
    span: Annotated[int, Within(1, 131_072)] = 100  # targets that share one retrieval, at most
    retrieval: Literal["whole", "random"] = "whole"  # from all events before the cut, or three times in four from a random part


@register(WindowConfig)
class Window(Objective):
    config: WindowConfig

    @classmethod
    def refuses(cls, model: Recommender) -> str:
        if not model.causal:
            return "its states read later events"
        return "it is asked with a mask" if model.masks else ""

    def rows(self, rng: np.random.Generator) -> Rows:
        users = np.flatnonzero(self.ends - self.starts > 1)
        span = min(self.config.span, self.length)
        # a short history is cut in two: as one window, its retrieval would always read a single event
        which, back, wide = tiles((self.ends - self.starts - 1)[users], span, rng, split_short=True)
        return Rows(users[which], self.ends[users[which]] - 1 - back, wide)

    def batch(self, rows: Rows, rng: np.random.Generator) -> Batch:
        cuts = rows.last + 1 - rows.wide  # the first target; everything before it may be read
        columns = needed_columns(cuts - self.starts[rows.users], self.length)
        earlier = left_pad(self.dataset.histories, rows.users, cuts, columns)
        if self.config.retrieval == "random":
            earlier = _random_parts(earlier, rng)
        return replace(super().batch(rows, rng), retrieval_items=earlier)


def _random_parts(items: Tensor, rng: np.random.Generator) -> Tensor:
    """Left-padded histories `[B, n]` → random parts of them, in order: three rows in four keep 1 … all events, the logarithm of
    the number even, so that what is retrieved cannot follow from how much somebody watched."""
    there = (items > 0).numpy()
    have = there.sum(1)
    wanted = np.ceil(np.exp(rng.random(len(items)) * np.log(np.maximum(have, 1)))).astype(np.int64)
    wanted = np.where(rng.random(len(items)) < 0.25, have, wanted)
    luck = np.where(there, rng.random(items.shape), np.inf)
    kept = luck.argsort(1).argsort(1) < wanted[:, None]
    order = kept.argsort(1, kind="stable")  # what is dropped to the left, the rest in its order
    return torch.from_numpy(np.take_along_axis(items.numpy() * kept, order, 1)[:, -max(int(wanted.max()), 1) :].copy())
