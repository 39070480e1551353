"""Is A better than B? Paired over people, with the noise of training: difference, interval and p.

Both systems are judged on the same people and candidates. a [S_A, n] and b [S_B, n] are a metric by training seed and person;
D is the mean of a minus the mean of b. Another draw of people and other training seeds would give another D; its variance is

    V = s²_people / n + s²_A / S_A + s²_B / S_B

s²_people: between people, of the difference of what either side's seeds give them on average; s²_A, s²_B: between the seeds of a
side, of everybody's mean. (How far a training moves one person besides is in both, so V is on the large side.) Few seeds tell a
variance badly, so D / √V is held against Student's t with as many degrees of freedom as V has by Welch (1947) and Satterthwaite
(1946): V² over the sum of each part squared / its own degrees, n - 1, S_A - 1 and S_B - 1. p is two-sided, the 95% interval D ±
t √V; it leaves out 0 exactly where p < 0.05.

Simulated, it covers the truth in 93 to 98 of 100 draws with two or three seeds a side, whether training moves D not at all or
three times as much as the draw of people does; against a system that needs no training, in 92 to 97 with three seeds, and with
two in 94 to 97 while training moves D no more than people do, and in 88 beyond (tests/test_compare.py). A side that was trained
once shows no spread at all: then people alone are counted, `seeds_counted` is False, and nothing may be claimed (verdict.py). A
system that needs no training has no such noise, and one run of it is all there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from elastic_core.errors import InputError
from elastic_core.evaluation.verdict import LEVEL
from elastic_core.runs.ranks import Report

FLIPS = 10_000
ROUNDING = 1e-12  # of the largest number: what means of the same numbers may differ by


class Contrast(NamedTuple):
    """A minus B: mean, 95% interval, two-sided p, and whether the noise of training is in them."""

    difference: float
    low: float
    high: float
    p: float
    seeds_counted: bool


class Luck(NamedTuple):
    """How far a training moves everybody's mean: a variance, and the degrees of freedom that it was estimated with."""

    variance: float
    degrees: int

    @classmethod
    def of(cls, sides: Sequence[ndarray]) -> "Luck | None":
        """Pooled over systems `[S, n]` that were trained alike, for all that were trained twice; None where none was."""
        some = [side for side in sides if len(side) > 1]
        degrees = sum(len(side) - 1 for side in some)
        total = sum((len(side) - 1) * float(side.mean(1).var(ddof=1)) for side in some)
        return cls(total / degrees, degrees) if degrees else None


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
    seeds_counted: bool

    @property
    def spread_a(self) -> float:
        """Standard deviation over A's training seeds (NaN for one seed)."""
        return _spread(self.means_a)

    @property
    def spread_b(self) -> float:
        return _spread(self.means_b)


def compare(a: Report, b: Report, protocol: str = "full", metric: str = "NDCG@10") -> Comparison:
    """One run against one. Raises InputError as `compare_many` does."""
    return compare_many([a], [b], protocol, metric)


def compare_many(
    a: Sequence[Report],
    b: Sequence[Report],
    protocol: str = "full",
    metric: str = "NDCG@10",
    trained: tuple[bool, bool] = (True, True),
) -> Comparison:
    """The training seeds of two systems; they need not be equally many. `trained`: does a seed move A, does one move B?

    Raises InputError if there are none, or they were not measured on the same data, split, people and candidates.
    """
    if not a or not b:
        raise InputError("a comparison needs at least one report on either side")
    for other in (*a[1:], *b):
        _same_footing(a[0], other)
    left = np.stack([report.values(protocol, metric) for report in a])  # [seeds, users]
    right = np.stack([report.values(protocol, metric) for report in b])
    found = contrast(left, right, trained)
    return Comparison(
        protocol=protocol,
        metric=metric,
        mean_a=float(left.mean()),
        mean_b=float(right.mean()),
        users=left.shape[1],
        means_a=tuple(left.mean(1).tolist()),
        means_b=tuple(right.mean(1).tolist()),
        **found._asdict(),
    )


def contrast(a: ndarray, b: ndarray, trained: tuple[bool, bool] = (True, True), luck: Luck | None = None) -> Contrast:
    """a [S_A, n] against b [S_B, n], the same people in columns. B against A is the mirror image, to the last bit.

    One person alone gives an interval of NaN. `luck`: what trainings of other systems show of their noise, which two seeds that
    happen to lie close do not; the larger of it and a side's own counts.
    """
    from scipy.special import stdtr

    counted = all(len(side) > 1 or not moves for side, moves in zip((a, b), trained, strict=True))
    difference, n = float(a.mean() - b.mean()), a.shape[1]
    least = ROUNDING * max(float(np.abs(a).max()), float(np.abs(b).max()))
    if abs(difference) <= least:
        difference = 0.0
    if n < 2:
        return Contrast(difference, float("nan"), float("nan"), 1.0, counted)
    parts = [(float((a.mean(0) - b.mean(0)).var(ddof=1)) / n, n - 1)]
    several = [side for side in (a, b) if counted and len(side) > 1]
    if luck is None:
        parts += sorted((_between(side), len(side) - 1) for side in several)
    elif several:
        parts.append((sum(sorted(max(_between(side), luck.variance / len(side)) for side in several)), luck.degrees))
    variances, degrees = (np.array(of, float)[:, None] for of in zip(*parts, strict=True))
    if variances.sum() <= least**2:  # everybody differs by the same: as sure as so many equal signs are
        p = 2.0 ** (1 - n) if difference else 1.0
        known = difference if p < LEVEL or not difference else float("nan")
        return Contrast(difference, known, known, p, counted)
    half, error = float(half_width(variances, degrees)[0]), float(variances.sum()) ** 0.5
    p = 2 * float(stdtr(_together(variances, degrees)[0], -abs(difference) / error))
    return Contrast(difference, difference - half, difference + half, p, counted)


def half_width(variances: ndarray, degrees: ndarray) -> ndarray:
    """Half the 95% interval [m] of a sum of parts with these estimated variances [parts, m] and degrees of freedom [parts, 1]."""
    from scipy.special import stdtrit  # the inverse of Student's t distribution function

    return -np.asarray(stdtrit(_together(variances, degrees), LEVEL / 2)) * np.sqrt(variances.sum(0))


def _together(variances: ndarray, degrees: ndarray) -> ndarray:
    """Degrees of freedom of the sum, by Welch and Satterthwaite: [m]."""
    return variances.sum(0) ** 2 / (variances**2 / degrees).sum(0)


def _between(side: ndarray) -> float:
    """What the training seeds of a side [S, n] add to the variance of its mean."""
    return float(side.mean(1).var(ddof=1)) / len(side)


def over_people(differences: ndarray) -> tuple[float, float]:
    """95% interval of the mean of one run's differences [n], over people: for a change that needs no other training."""
    found = contrast(differences[None], np.zeros((1, len(differences))), trained=(False, False))
    return found.low, found.high


def sign_flips(differences: ndarray) -> float:
    """Two-sided p of the mean difference [n] under random signs (Fisher 1935); people without a difference do not matter.

    For the handful of people who share an expert (services/experts/ablation.py): exact where an interval of so few is a guess.
    """
    moved = differences[differences != 0]
    if not len(moved):
        return 1.0
    rng, n = np.random.default_rng(0), len(moved)
    size = max(1, 2 * 10**6 // n)
    sizes = [min(size, FLIPS - done) for done in range(0, FLIPS, size)]
    positive = [rng.integers(0, 2, (rows, n), dtype=np.int8).astype(np.float64) @ moved for rows in sizes]
    sums = 2 * np.concatenate(positive) - moved.sum()
    extreme = np.abs(sums) >= abs(moved.sum()) - 1e-9 * np.abs(moved).sum()  # equal sums may differ in the last bits
    return float((1 + extreme.sum()) / (1 + FLIPS))


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


def holm(p: ndarray) -> ndarray:
    """p values `[m]` of m questions to the same people, adjusted by Holm (1979): the i-th smallest of m times m - i + 1, never
    falling, at most 1."""
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted
