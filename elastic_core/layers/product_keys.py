"""Product keys (Eq. 6-7; Lample et al. 2019): the best k of K = side² keys from 2·side comparisons, exactly.

A key is a pair of sub-keys, its score the sum of two halves, so with both halves sorted the pair of ranks (i, j),
counted from 1, is beaten by the i·j - 1 pairs above and left of it: only pairs with i·j <= k can win.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.errors import InputError


class Keys(NamedTuple):
    """The k best keys of each query, best first: their number `row · side + column` and score, both `[B, k]`."""

    indices: Tensor
    scores: Tensor


@lru_cache(maxsize=256)
def candidate_ranks(k: int, side: int) -> tuple[tuple[int, int], ...]:
    """The pairs of ranks (from 0) that can be among the k best: (i + 1)(j + 1) <= k. Fewer than k²."""
    return tuple((i, j) for i in range(min(k, side)) for j in range(min(k // (i + 1), side)))


@lru_cache(maxsize=256)
def _ranks_on(k: int, side: int, device: torch.device) -> Tensor:
    """`candidate_ranks` `[C, 2]`, on the device once: a copy in every step would be waited for."""
    with torch.inference_mode(False):
        return torch.tensor(candidate_ranks.__wrapped__(k, side), device=device)


def top_pairs(halves: Tensor, k: int) -> Keys:
    """Half scores `[B, 2, side]` → the k best sums. Exact: equals `exhaustive` up to the order of equal scores."""
    side = halves.shape[-1]
    if not 1 <= k <= side * side:
        raise InputError(f"k must lie in 1 … side² = {side * side}, not {k}")
    best, where = halves.topk(min(k, side), dim=-1)
    ranks = (_ranks_on.__wrapped__ if torch.compiler.is_compiling() else _ranks_on)(k, side, halves.device)
    sums = best[:, 0, ranks[:, 0]] + best[:, 1, ranks[:, 1]]
    scores, winners = sums.topk(k, dim=-1)
    rows = where[:, 0].gather(1, ranks[winners, 0])
    columns = where[:, 1].gather(1, ranks[winners, 1])
    return Keys(rows * side + columns, scores)


def exhaustive(halves: Tensor, k: int) -> Keys:
    """The slow twin: all side² sums, then their k best. What product keys avoid, and what they must equal."""
    sums = (halves[:, 0, :, None] + halves[:, 1, None, :]).flatten(1)
    scores, indices = sums.topk(k, dim=-1)
    return Keys(indices, scores)


class ProductKeys(nn.Module):
    """Two sets of `side` sub-keys of width d/2. Queries `[B, d]` → half scores `[B, 2, side]`.

    With `cosine`, both halves of the query and all sub-keys are brought to unit norm and their product is scaled by a
    learned temperature, so that no sub-key wins by its length; without, the plain inner products of Eq. 7 (whose second
    half, printed with q1 again, reads q2 here).
    """

    def __init__(self, width: int, side: int, cosine: bool = True) -> None:
        super().__init__()
        self.side, self.cosine = side, cosine
        bound = 1 / math.sqrt(width // 2)
        self.sub_keys = nn.Parameter(torch.empty(2, side, width // 2).uniform_(-bound, bound))
        self.log_temperature = nn.Parameter(torch.tensor(math.log(4.0))) if cosine else None

    def forward(self, query: Tensor) -> Tensor:
        halves: Tensor = query.unflatten(-1, (2, -1))
        keys: Tensor = self.sub_keys
        if self.log_temperature is not None:
            halves = functional.normalize(halves, dim=-1) * self.log_temperature.exp()
            keys = functional.normalize(keys, dim=-1)
        return torch.einsum("bhd,hsd->bhs", halves, keys)
