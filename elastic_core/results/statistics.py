"""Is A better than B? Paired over users, with the noise of training: difference, interval and p.

Both systems are judged on the same users and candidates. a [S_A, n] and b [S_B, n] are a metric by training seed and user;
D is the mean of a minus the mean of b. Another draw of users and other training seeds would give another D; its variance is

    V = s²_users / n + s²_A / S_A + s²_B / S_B

s²_users: between users, of the difference of what either side's seeds give them on average; s²_A, s²_B: between the seeds of a
side, of everybody's mean. (How far a training moves one user besides is in both, so V is on the large side.) Few seeds tell a
variance badly, so D / √V is held against Student's t with as many degrees of freedom as V has by Welch (1947) and Satterthwaite
(1946): V² over the sum of each part squared / its own degrees, n - 1, S_A - 1 and S_B - 1. p is two-sided, the 95% interval D ±
t √V; it leaves out 0 exactly where p < 0.05.

Simulated, it covers the truth in 93 to 98 of 100 draws with two or three seeds a side, whether training moves D not at all or
three times as much as the draw of users does; against a system that needs no training, in 92 to 97 with three seeds, and with
two in 94 to 97 while training moves D no more than users do, and in 88 beyond (tests/results/test_statistics.py). A side that
was trained once shows no spread at all: then users alone are counted, `seeds_counted` is False, and nothing may be claimed
(compare.py). A system that needs no training has no such noise, and one run of it is all there is.
"""

import bisect
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from elastic_core.errors import InputError

LEVEL = 0.05
POWER = 0.8  # how often a difference is to be found
Z_LEVEL, Z_POWER = 1.959963984540054, 0.8416212335729143  # 97.5% and 80% of a normal distribution
SIGN_FLIPS = 10_000
ROUNDING = 1e-12  # of the largest number: what means of the same numbers may differ by
MOST_SEEDS, MOST_USERS, DRAWS = 200, 10**9, 10_000


class Contrast(NamedTuple):
    """A minus B: mean, 95% interval, two-sided p, and whether the noise of training is in them."""

    difference: float
    low: float
    high: float
    p: float
    seeds_counted: bool


class TrainingNoise(NamedTuple):
    """How far a training moves everybody's mean: a variance, and the degrees of freedom that it was estimated with."""

    variance: float
    degrees: int

    @classmethod
    def pool_systems(cls, systems: Sequence[ndarray]) -> "TrainingNoise | None":
        """Over systems [S, n] that were trained alike, of all that were trained twice; None where none was."""
        repeated_sides = [values for values in systems if len(values) > 1]
        degrees = sum(len(values) - 1 for values in repeated_sides)
        total = sum((len(values) - 1) * float(values.mean(1).var(ddof=1)) for values in repeated_sides)
        return cls(total / degrees, degrees) if degrees else None


def paired_difference(
    a: ndarray, b: ndarray, trained: tuple[bool, bool] = (True, True), noise: TrainingNoise | None = None
) -> Contrast:
    """Mean of a [S_A, n] minus mean of b [S_B, n], a metric by training seed and user.

    `trained`: does a seed move A, does one move B? `noise`: what is known of how far a training moves a result, where the two
    sides alone show too little of it; the larger of it and a side's own counts."""
    from scipy.special import stdtr

    seeds_counted = all(len(side) > 1 or not moves for side, moves in zip((a, b), trained, strict=True))
    difference, n = float(a.mean() - b.mean()), a.shape[1]
    smallest = ROUNDING * max(float(np.abs(a).max()), float(np.abs(b).max()))
    if abs(difference) <= smallest:
        difference = 0.0
    if n < 2:
        return Contrast(difference, float("nan"), float("nan"), 1.0, seeds_counted)

    # The parts of the variance, each with its degrees of freedom: users first, then the seeds of either side.
    parts = [(float((a.mean(0) - b.mean(0)).var(ddof=1)) / n, n - 1)]
    repeated_sides = [side for side in (a, b) if seeds_counted and len(side) > 1]
    if noise is None:
        parts += sorted((_seed_variance(side), len(side) - 1) for side in repeated_sides)
    elif repeated_sides:
        pooled = sorted(max(_seed_variance(side), noise.variance / len(side)) for side in repeated_sides)
        parts.append((sum(pooled), noise.degrees))
    variances, degrees = (np.array(column, float)[:, None] for column in zip(*parts, strict=True))

    if variances.sum() <= smallest**2:  # everybody differs by the same: as sure as so many equal signs are
        p = 2.0 ** (1 - n) if difference else 1.0
        known = difference if p < LEVEL or not difference else float("nan")
        return Contrast(difference, known, known, p, seeds_counted)
    half, error = float(half_width(variances, degrees)[0]), float(variances.sum()) ** 0.5
    p = 2 * float(stdtr(_degrees_of_sum(variances, degrees)[0], -abs(difference) / error))
    return Contrast(difference, difference - half, difference + half, p, seeds_counted)


def equivalence_test(
    a: ndarray, b: ndarray, margin: float, trained: tuple[bool, bool] = (True, True), noise: TrainingNoise | None = None
) -> float:
    """p of the means differing by `margin` or more, either way: the larger of two one-sided tests (Schuirmann 1987), with the
    variance and degrees of freedom of `paired_difference`."""
    one_sided = []
    for shift in (margin, -margin):
        contrast = paired_difference(a + shift, b, trained, noise)
        one_sided.append(contrast.p / 2 if contrast.difference * shift > 0 else 1 - contrast.p / 2)
    return max(one_sided)


def half_width(variances: ndarray, degrees: ndarray) -> ndarray:
    """Half the 95% interval [m] of a sum of parts with these estimated variances [parts, m] and degrees of freedom [parts, 1]."""
    from scipy.special import stdtrit  # the inverse of Student's t distribution function

    return -np.asarray(stdtrit(_degrees_of_sum(variances, degrees), LEVEL / 2)) * np.sqrt(variances.sum(0))


def _degrees_of_sum(variances: ndarray, degrees: ndarray) -> ndarray:
    """Degrees of freedom of the sum, by Welch and Satterthwaite: [m]."""
    return variances.sum(0) ** 2 / (variances**2 / degrees).sum(0)


def _seed_variance(side: ndarray) -> float:
    """What the training seeds of a side [S, n] add to the variance of its mean."""
    return float(side.mean(1).var(ddof=1)) / len(side)


def interval_over_users(differences: ndarray) -> tuple[float, float]:
    """95% interval of the mean of one run's differences [n], over users: for a change that needs no other training."""
    measured = paired_difference(differences[None], np.zeros((1, len(differences))), trained=(False, False))
    return measured.low, measured.high


def half_width_of_mean(values: Sequence[float]) -> float:
    """Half the 95% interval of the mean of two or more trainings, by Student's t."""
    n = len(values)
    variance = float(np.var(values, ddof=1)) / n
    if not variance:
        return 0.0
    return float(half_width(np.array([[variance]]), np.array([[n - 1.0]]))[0])


def sign_flip_test(differences: ndarray) -> float:
    """Two-sided p of the mean difference [n] under random signs (Fisher 1935); users without a difference do not matter.

    For the handful of users who share an expert (services/experts/ablation.py): exact where an interval of so few is a guess."""
    changed = differences[differences != 0]
    if not len(changed):
        return 1.0
    rng, n = np.random.default_rng(0), len(changed)
    chunk = max(1, 2 * 10**6 // n)  # flips at once, so that the signs fit into memory
    chunks = [min(chunk, SIGN_FLIPS - done) for done in range(0, SIGN_FLIPS, chunk)]
    positive = [rng.integers(0, 2, (flips, n), dtype=np.int8).astype(np.float64) @ changed for flips in chunks]
    sums = 2 * np.concatenate(positive) - changed.sum()
    extreme = np.abs(sums) >= abs(changed.sum()) - 1e-9 * np.abs(changed).sum()  # equal sums may differ in the last bits
    return float((1 + extreme.sum()) / (1 + SIGN_FLIPS))


def adjust_by_holm(p: ndarray) -> ndarray:
    """p values `[m]` of m questions to the same users, adjusted by Holm (1979): the i-th smallest of m times m - i + 1, never
    falling, at most 1."""
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def wilson_interval(share: ndarray | float, n: int, z: float = 1.96) -> tuple[ndarray, ndarray]:
    """95% interval of a share of `n` users, never below 0 or above 1 (Wilson 1927). Takes whole arrays of shares, which scipy's
    does not."""
    middle, reach = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return (middle - reach) / (1 + z**2 / n), (middle + reach) / (1 + z**2 / n)


# --- power ------------------------------------------------------------------------------------------------------------


class NoiseParts(NamedTuple):
    """Where the noise of a comparison comes from, as in a two-way analysis of variance (Searle, Casella and McCulloch 1992,
    ch. 4):

        Var(D) = users / n + seeds / S + rest / (n S)

    `users`: the spread over users of the true difference; `seeds`: how far a training moves the mean of everybody, `rest`: how
    far it moves one user besides, both sides together. Three seeds say little of `seeds`: it may be half or twice as large."""

    users: float
    seeds: float
    rest: float
    n: int  # users that were asked
    n_seeds: int  # of a side

    @classmethod
    def from_seeds(cls, a: ndarray, b: ndarray) -> "NoiseParts":
        """From a metric by seed and user, [S, n] on both sides. Raises InputError for fewer than two seeds or users."""
        if min(a.shape[0], b.shape[0], a.shape[1]) < 2 or a.shape[1] != b.shape[1]:
            raise InputError(
                "power needs two seeds of either side at least, and the same people: one run does not show its noise"
            )
        (seeds_a, rest_a), (seeds_b, rest_b) = _variance_components(a), _variance_components(b)
        variance_of_difference = float((a.mean(0) - b.mean(0)).var(ddof=1))
        users = max(0.0, variance_of_difference - rest_a / len(a) - rest_b / len(b))  # an estimate below zero counts as zero
        return cls(users, seeds_a + seeds_b, rest_a + rest_b, a.shape[1], min(len(a), len(b)))

    def detectable_difference(self, users: int | None = None, seeds: int | None = None) -> float:
        """The smallest difference that `paired_difference` finds four times out of five, with so many users and seeds a side
        (default: as many as there are). Few seeds tell the width of the interval badly, so how wide it comes out is drawn
        DRAWS times."""
        n, n_seeds = users or self.n, max(seeds or self.n_seeds, 2)
        residual = self.rest / (n * n_seeds)
        deviation = math.sqrt(self.users / n + self.seeds / n_seeds + residual)
        if not deviation:
            return 0.0
        side = self.seeds / n_seeds / 2 + residual / 2
        expected = np.array([self.users / n + residual, side, side])  # what contrast estimates, on the large side
        degrees, rng = np.array([n - 1, n_seeds - 1, n_seeds - 1], float), np.random.default_rng(0)
        estimated = np.array([part * rng.chisquare(own, DRAWS) / own for part, own in zip(expected, degrees, strict=True)])
        half = half_width(estimated, degrees[:, None])
        return float(np.quantile(half - deviation * rng.standard_normal(DRAWS), POWER))

    def seeds_for(self, difference: float) -> int | None:
        """How many seeds a side find this difference; None where not even MOST_SEEDS do, because users alone are too few."""
        return _find_first(range(2, MOST_SEEDS + 1), lambda seeds: self.detectable_difference(seeds=seeds) <= difference)

    def users_for(self, difference: float, seeds: int | None = None) -> int | None:
        """How many users find this difference; None where not even MOST_USERS do, because seeds alone are too few."""
        upper = 2  # doubled, as beyond some size more users may need more: fewer degrees of freedom are left to the seeds
        while self.detectable_difference(upper, seeds) > difference:
            if upper > MOST_USERS:
                return None
            upper *= 2
        return _find_first(
            range(max(upper // 2, 2), upper + 1), lambda users: self.detectable_difference(users, seeds) <= difference
        )


def _find_first(numbers: range, is_enough: Callable[[int], bool]) -> int | None:
    """The least of rising numbers that `is_enough`, as all of them beyond it are; None where even the last is not."""
    place = bisect.bisect_left(numbers, True, key=is_enough)
    return numbers[place] if place < len(numbers) else None


def _variance_components(values: ndarray) -> tuple[float, float]:
    """How far a training moves everybody's mean, and one user besides: variances of [S, n]."""
    n_seeds, n = values.shape
    centred = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    residual = float((centred**2).sum() / ((n_seeds - 1) * (n - 1)))
    return max(0.0, float(values.mean(1).var(ddof=1)) - residual / n), residual


def detectable_from_interval(low: float, high: float) -> float:
    """The difference that a comparison with this 95% interval would have found four times out of five."""
    return (high - low) / 2 * (Z_LEVEL + Z_POWER) / Z_LEVEL
