"""`last` (the paper, by its RecBole set-up): one target per sample, the item after a prefix; the encoder may read all of it."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from elastic_core.core.config import ObjectiveConfig, Within
from elastic_core.core.objective import EpochRows, Objective, register
from elastic_core.models import Recommender


@dataclass(frozen=True, kw_only=True)
class LastConfig(ObjectiveConfig, name="last"):
    prefixes_per_user: Annotated[int, Within(0, 1_000_000)] = 4  # random ones in an epoch; 0: every prefix (the paper)


@register(LastConfig)
class Last(Objective):
    config: LastConfig

    @classmethod
    def refusal_reason(cls, model: Recommender) -> str:
        return "it is asked with a mask" if model.masks else ""

    def epoch_rows(self, rng: np.random.Generator) -> EpochRows:
        lengths = self.ends - self.starts - 1
        user_numbers = np.flatnonzero(lengths > 0)
        n_prefixes = self.config.prefixes_per_user
        users = np.repeat(user_numbers, np.minimum(n_prefixes, lengths[user_numbers]) if n_prefixes else lengths[user_numbers])
        if n_prefixes:
            events_back = rng.integers(0, lengths[users])
        else:
            events_back = np.arange(len(users)) - np.repeat(
                np.cumsum(lengths[user_numbers]) - lengths[user_numbers], lengths[user_numbers]
            )
        return EpochRows(users, self.ends[users] - 1 - events_back, np.ones(len(users), np.int64))
