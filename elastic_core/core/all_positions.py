"""`all`: every position predicts its successor, for causal encoders. Long histories are cut into tiles."""

from dataclasses import dataclass

import numpy as np

from elastic_core.core.config import ObjectiveConfig
from elastic_core.core.objective import Objective, Rows, register, tiles
from elastic_core.models import Recommender


@dataclass(frozen=True, kw_only=True)
class AllConfig(ObjectiveConfig, name="all"):
    pass


@register(AllConfig)
class All(Objective):
    @classmethod
    def refuses(cls, model: Recommender) -> str:
        if not model.causal:
            return "its states read later events"
        if model.retrieves:
            return "its retrieval would read the targets"
        return "it is asked with a mask" if model.masks else ""

    def rows(self, rng: np.random.Generator) -> Rows:
        users = np.flatnonzero(self.ends - self.starts > 1)  # every train event but the first is a target
        which, back, wide = tiles((self.ends - self.starts - 1)[users], self.length, rng, split_short=False)
        return Rows(users[which], self.ends[users[which]] - 1 - back, wide)
