"""Is A better than B? Paired over people: mean difference, bootstrap interval and a sign-flip test.

Both systems are judged on the same people and candidates, so the people's differences d_u = a_u - b_u carry the claim.

- Interval: 95% percentile bootstrap of the mean of d over people.
- p: two-sided sign-flip permutation test (Fisher 1935). If A and B are interchangeable, each d_u may as well be -d_u;
  p = (1 + flips with a mean at least as far from 0) / (1 + flips). No distribution is assumed; the smallest p is 1 / 10,001.

Several training seeds: d_u is the difference of the person's averages over seeds, and the spread over seeds is reported
beside it, because people alone say nothing about how far another training run would land.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elastic_core.errors import InputError
from elastic_core.evaluation.evaluate import Report

RESAMPLES = 10_000
CHUNK = 4_000_000  # random numbers held at a time


@dataclass(frozen=True)
class Comparison:
    """A minus B on one metric. `means_a`, `means_b` are the means of the single training seeds."""

    protocol: str
    metric: str
    mean_a: float
    mean_b: float
    difference: float
    low: float
    high: float
    p: float
    users: int
    means_a: tuple[float, ...]
    means_b: tuple[float, ...]

    @property
    def spread_a(self) -> float:
        """Standard deviation over A's training seeds (NaN for one seed)."""
        return _spread(self.means_a)

    @property
    def spread_b(self) -> float:
        return _spread(self.means_b)


def compare(a: Report, b: Report, protocol: str = "full", metric: str = "NDCG@10", seed: int = 0) -> Comparison:
    """Raises InputError if the two were not measured on the same data, split, people and candidates."""
    return compare_many([a], [b], protocol, metric, seed)


def compare_many(
    a: Sequence[Report], b: Sequence[Report], protocol: str = "full", metric: str = "NDCG@10", seed: int = 0
) -> Comparison:
    """The same for several training seeds of each system; they need not be equally many."""
    if not a or not b:
        raise InputError("a comparison needs at least one report on either side")
    for other in (*a[1:], *b):
        _same_footing(a[0], other)
    left = np.stack([report.values(protocol, metric) for report in a])  # [seeds, users]
    right = np.stack([report.values(protocol, metric) for report in b])
    differences = left.mean(0) - right.mean(0)
    low, high = bootstrap(differences, seed)
    return Comparison(
        protocol=protocol,
        metric=metric,
        mean_a=float(left.mean()),
        mean_b=float(right.mean()),
        difference=float(differences.mean()),
        low=low,
        high=high,
        p=sign_flips(differences, seed),
        users=len(differences),
        means_a=tuple(left.mean(1).tolist()),
        means_b=tuple(right.mean(1).tolist()),
    )


def bootstrap(differences: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """95% percentile interval of the mean, people drawn with replacement."""
    rng, n = np.random.default_rng(seed), len(differences)
    means = [differences[rng.integers(0, n, (size, n), dtype=np.int64)].mean(1) for size in _chunks(n)]
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return float(low), float(high)


def sign_flips(differences: np.ndarray, seed: int = 0) -> float:
    """Two-sided p of the mean difference under random signs; people without a difference do not matter."""
    moved = differences[differences != 0]
    if not len(moved):
        return 1.0
    rng, n = np.random.default_rng(seed), len(moved)
    positive = [rng.integers(0, 2, (size, n), dtype=np.int8).astype(np.float64) @ moved for size in _chunks(n)]
    sums = 2 * np.concatenate(positive) - moved.sum()
    extreme = np.abs(sums) >= abs(moved.sum()) - 1e-9 * np.abs(moved).sum()  # equal sums may differ in the last bits
    return float((1 + extreme.sum()) / (1 + RESAMPLES))


def _chunks(people: int) -> list[int]:
    """Sizes that add up to RESAMPLES, each with about CHUNK random numbers."""
    size = max(1, CHUNK // people)
    return [min(size, RESAMPLES - done) for done in range(0, RESAMPLES, size)]


def _same_footing(a: Report, b: Report) -> None:
    for what, one, other in (
        ("data", a.data_hash, b.data_hash),
        ("split", a.split, b.split),
        ("candidate seed", a.seed, b.seed),
    ):
        if one != other:
            raise InputError(f"reports on a different {what} cannot be compared: {one} and {other}")
    if not np.array_equal(a.users, b.users):
        raise InputError(f"reports on different people cannot be compared: {len(a.users)} and {len(b.users)} users")


def _spread(means: tuple[float, ...]) -> float:
    return float(np.std(means, ddof=1)) if len(means) > 1 else float("nan")
