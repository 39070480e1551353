"""What `objective.retrieval=random` lets the retrieval read (ours): a part of what came before."""

import numpy as np
import torch
from torch import Tensor


def random_parts(items: Tensor, rng: np.random.Generator) -> Tensor:
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
