"""Sub-keys that nobody meets (ours): after an epoch they move to what people ask, so that their experts are found.

A product key is a pair of sub-keys, so use is counted on 2·√K sub-keys and not on K experts. A sub-key is met if a training step
retrieved any of its √K experts.
"""

import numpy as np
import torch
from torch import Tensor, nn

from elastic_core.data.batches import Batch
from elastic_core.layers.interest_memory import InterestMemory
from elastic_core.models import Recommender, memory_of
from elastic_core.training.rows import Summed


class Met:
    """Which sub-keys of the (only) memory were met since the last revival: `met` bool `[2, side]`."""

    def __init__(self, model: Recommender) -> None:
        self.model = model
        self.name, memory = _memory(model)
        self.side = memory.keys.side
        self.met = torch.zeros(2, self.side, dtype=torch.bool, device=memory.keys.sub_keys.device)

    def add(self, touched: dict[str, Summed]) -> None:
        """Counts what one step retrieved."""
        found = touched.get(f"{self.name}.values")
        if found is not None:
            self.met[0, found.numbers // self.side] = True
            self.met[1, found.numbers % self.side] = True

    @property
    def unmet(self) -> int:
        return int((~self.met).sum())

    @torch.no_grad()
    def revive(self, batch: Batch, optimizer: torch.optim.Optimizer, average: nn.Module | None, rng: np.random.Generator) -> int:
        """Moves unmet sub-keys to what the histories of `batch` ask, one query each, and so no more of a half than there are
        queries; their length is the mean one of those that were met. The optimiser forgets the old ones, and an average starts
        anew from them. Returns how many were moved."""
        memory, moved = _memory(self.model)[1], 0
        keys, was_training = memory.keys.sub_keys, self.model.training
        asked = memory_of(self.model.eval()).retrieve(batch).query.unflatten(-1, (2, -1)).to(keys.dtype)
        self.model.train(was_training)
        for half in range(2):
            dead = torch.from_numpy(rng.permutation((~self.met[half]).nonzero().squeeze(1).cpu().numpy())).to(keys.device)
            from_whom = torch.from_numpy(rng.permutation(len(asked))[: len(dead)].copy()).to(keys.device)
            dead, alive = dead[: len(from_whom)], keys[half, self.met[half]]
            if not len(dead) or not len(alive):
                continue
            anew = nn.functional.normalize(asked[from_whom, half], dim=-1) * alive.norm(dim=-1).mean()
            moments = [value for value in optimizer.state.get(keys, {}).values() if isinstance(value, Tensor) and value.ndim]
            keys[half, dead] = anew
            if average is not None:
                _memory(average)[1].keys.sub_keys[half, dead] = anew
            for moment in moments:
                moment[half, dead] = 0
            moved += len(dead)
        self.met.zero_()
        return moved


def _memory(model: nn.Module) -> tuple[str, InterestMemory]:
    return next((name, module) for name, module in model.named_modules() if isinstance(module, InterestMemory))
