"""From scores to NDCG, HR and MRR of one relevant item, with ties at their expected value.

If `above` candidates score strictly higher than the target and `tied` others score the same, then a random order of the
ties puts the target at every 0-based rank above .. above + tied equally often. A metric is the mean of its gain g(r) over
those ranks, read from cumulative gains G(r) = g(0) + … + g(r - 1):

    E[g] = (G(above + tied + 1) - G(above)) / (tied + 1)
    NDCG@K: g(r) = 1 / log2(r + 2)      HR@K: g(r) = 1      MRR@K: g(r) = 1 / (r + 1)      for r < K, otherwise 0

So a constant scorer gets chance level exactly (HR@K = K / candidates), never 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from elastic_core.errors import InputError

CUTOFFS = (5, 10, 20)
KINDS = ("NDCG", "HR", "MRR")
NAMES = tuple(f"{kind}@{cutoff}" for kind in KINDS for cutoff in CUTOFFS)


@dataclass(frozen=True)
class Ranks:
    """Per user: candidates strictly above the target, and other candidates with the target's score (int [users])."""

    above: np.ndarray
    tied: np.ndarray

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        return cls(np.concatenate([p.above for p in parts]), np.concatenate([p.tied for p in parts]))

    def of(self, users: np.ndarray) -> Self:
        """Those of some users, in this order."""
        return type(self)(self.above[users], self.tied[users])


def rank(scores: Tensor, targets: Tensor, candidates: Tensor) -> Ranks:
    """Where the target stands among the candidates.

    scores [B, n + 1] (column 0 is padding and never counts), targets int64 [B], candidates bool [B, n + 1]. The target
    need not be marked: it always takes part, and never against itself. A score of -inf is a legal last place.
    Raises InputError where a score other than padding's is NaN or +inf.
    """
    scores, candidates = scores[:, 1:], candidates[:, 1:]
    broken = int((~(scores.amax(1) < torch.inf)).sum())  # NaN wins every maximum
    if broken:
        raise InputError(f"the model gives NaN or +inf scores to {broken} of {len(scores)} users: it has diverged")
    column = (targets - 1).unsqueeze(1)
    own = scores.gather(1, column)  # [B, 1]
    above = ((scores > own) & candidates).sum(1, dtype=torch.int32)
    tied = ((scores == own) & candidates).sum(1, dtype=torch.int32) - candidates.gather(1, column).squeeze(1).int()
    return Ranks(above.cpu().numpy(), tied.cpu().numpy())


def expected(ranks: Ranks) -> dict[str, np.ndarray]:
    """Every metric in NAMES, per user (float64 [users]), in expectation over the order of ties."""
    return {f"{kind}@{cutoff}": _expected(ranks, kind, cutoff) for kind in KINDS for cutoff in CUTOFFS}


def _expected(ranks: Ranks, kind: str, cutoff: int) -> np.ndarray:
    gains = np.append(_gains(kind, cutoff), 0.0)  # g(0) … g(K), 0 beyond
    cumulative = np.concatenate([[0.0], np.cumsum(gains[:-1])])  # G(0) … G(K), constant beyond
    first = np.minimum(ranks.above, cutoff)
    last = np.minimum(ranks.above + ranks.tied + 1, cutoff)
    mean = (cumulative[last] - cumulative[first]) / (ranks.tied + 1)
    return np.where(ranks.tied == 0, gains[first], mean)  # the difference of sums would cost a clear rank its last digits


def _gains(kind: str, cutoff: int) -> np.ndarray:
    ranks = np.arange(cutoff, dtype=np.float64)
    if kind == "NDCG":
        return 1 / np.log2(ranks + 2)
    return 1 / (ranks + 1) if kind == "MRR" else np.ones(cutoff)
