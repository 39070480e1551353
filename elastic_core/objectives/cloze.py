"""`cloze` (BERT4Rec, Sun et al. 2019): random events are masked and predicted from everything else, later events too.

The input that asks is an item of its own, number n_items + 1. So that the model also meets the question of serving, some rows
end at a random event, which is masked alone (Sun et al. add such samples as well).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch

from elastic_core.core.batches import Batch, left_pad, left_pad_times, needed_columns
from elastic_core.core.config import ObjectiveConfig, Within
from elastic_core.core.objective import EpochRows, Objective, register, tile_targets
from elastic_core.models import Recommender


@dataclass(frozen=True, kw_only=True)
class ClozeConfig(ObjectiveConfig, name="cloze"):
    mask_share: Annotated[float, Within(0.01, 1)] = 0.3  # of a row's events
    last_share: Annotated[float, Within(0, 1)] = 0.2  # rows that end at a masked event and have no other


@register(ClozeConfig)
class Cloze(Objective):
    shows: ClassVar[Literal["past", "others"]] = "others"
    config: ClozeConfig

    @classmethod
    def refusal_reason(cls, model: Recommender) -> str:
        return "" if model.masks else "it has no mask to be asked with"

    def epoch_rows(self, rng: np.random.Generator) -> EpochRows:
        """`wide` counts the events of a row that are its own: only they may be masked, so each is met evenly often."""
        users = np.flatnonzero(self.ends - self.starts > 1)
        which, back, wide = tile_targets((self.ends - self.starts)[users], self.length, rng, split_short=False)
        return EpochRows(users[which], self.ends[users[which]] - back, wide)

    def make_batch(self, rows: EpochRows, rng: np.random.Generator) -> Batch:
        alone = rng.random(len(rows.users)) < self.config.last_share
        last = rows.last - alone * rng.integers(0, rows.wide)  # every event of a row is as likely as any other
        columns = needed_columns(last - self.starts[rows.users], self.length)
        items = left_pad(self.dataset.histories, rows.users, last, columns)
        own = torch.arange(columns) >= columns - torch.from_numpy(rows.wide)[:, None]
        masked = torch.from_numpy(rng.random(items.shape) < self.config.mask_share) & own & (items > 0)
        masked[alone] = torch.arange(columns) == columns - 1
        masked_items = items.masked_fill(masked, self.dataset.catalog.n_items + 1)
        times = left_pad_times(self.dataset, rows.users, last, columns)
        if times is not None:
            times = times.masked_fill(masked, 0)  # when it happened belongs to the answer
        return Batch(masked_items, masked_items, items * masked, times, padded=bool((items[:, 0] == 0).any()))

    def epoch_size(self, batch: int) -> tuple[int, float]:
        steps, own = super().epoch_size(batch)
        rows = max(len(self.epoch_rows(np.random.default_rng(0)).users) / steps, 1.0)
        return steps, self.config.last_share * rows + (1 - self.config.last_share) * self.config.mask_share * own
