"""Which difference could these runs have found, and how many people and training seeds would a smaller one take?

A metric by training seed s and person u is taken as mean + seed + person + what is left of both, on either side:

    Var(D) = σ²_people / n + (σ²_seed,A + σ²_seed,B) / S + (σ²_left,A + σ²_left,B) / (n S)

σ²_people is the spread over people of the true difference, σ²_seed how far a training moves the mean of everybody, σ²_left how
far it moves one person besides. Estimated from a [S, n] and b [S, n] as in a two-way analysis of variance (Searle, Casella and
McCulloch 1992, ch. 4); an estimate below zero counts as zero. `compare` finds a difference (p < 0.05, two-sided) where it exceeds
half its interval, which few seeds tell badly; how often that is, is drawn DRAWS times. Three seeds say little about σ²_seed,
too: it may well be half or twice as large.
"""

import bisect
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from elastic_core.errors import InputError
from elastic_core.evaluation.compare import half_width
from elastic_core.evaluation.verdict import LEVEL

FOUND = 0.8  # how often the difference is to be found
MOST_SEEDS, MOST_PEOPLE = 200, 10**9
DRAWS = 10_000


class Noise(NamedTuple):
    """Where the noise of a comparison comes from; variances."""

    people: float
    seeds: float  # both sides together
    left: float  # both sides together
    n: int  # people that were asked
    runs: int  # seeds of a side

    def deviation(self, people: int | None = None, seeds: int | None = None) -> float:
        """Standard deviation of the difference with so many people and seeds a side (default: as many as there are)."""
        n, runs = people or self.n, seeds or self.runs
        return math.sqrt(self.people / n + self.seeds / runs + self.left / (n * runs))

    def detectable(self, people: int | None = None, seeds: int | None = None) -> float:
        """The smallest difference that `compare` finds four times out of five."""
        n, runs = people or self.n, max(seeds or self.runs, 2)
        if not self.deviation(n, runs):
            return 0.0
        left, rng = self.left / (n * runs), np.random.default_rng(0)
        parts = [(self.people / n + left, n - 1), *[(self.seeds / runs / 2 + left / 2, runs - 1)] * 2]  # what compare estimates
        seen = np.array([part * rng.chisquare(own, DRAWS) / own for part, own in parts])
        half = half_width(seen, np.array([own for _, own in parts])[:, None])
        return float(np.quantile(half - self.deviation(n, runs) * rng.standard_normal(DRAWS), FOUND))

    def seeds_for(self, difference: float) -> int | None:
        """How many seeds a side find this difference; None where not even MOST_SEEDS do, because people alone are too few."""
        return _first(range(2, MOST_SEEDS + 1), lambda runs: self.detectable(seeds=runs) <= difference)

    def people_for(self, difference: float, seeds: int | None = None) -> int | None:
        """How many people find this difference; None where not even MOST_PEOPLE do, because seeds alone are too few."""
        sizes = [2]
        while self.detectable(sizes[-1], seeds) > difference:
            if sizes[-1] > MOST_PEOPLE:
                return None
            sizes.append(2 * sizes[-1])
        return _first(range(sizes[-2] if len(sizes) > 1 else 2, sizes[-1] + 1), lambda n: self.detectable(n, seeds) <= difference)


def _first(numbers: range, enough: Callable[[int], bool]) -> int | None:
    """The least of rising numbers that are `enough`, and all beyond it; None where even the last is not."""
    place = bisect.bisect_left(numbers, True, key=enough)
    return numbers[place] if place < len(numbers) else None


def of_interval(low: float, high: float) -> float:
    """The difference that a comparison with this 95% interval would have found four times out of five."""
    normal = NormalDist()
    sure = normal.inv_cdf(1 - LEVEL / 2)
    return (high - low) / 2 * (sure + normal.inv_cdf(FOUND)) / sure


def noise(a: ndarray, b: ndarray) -> Noise:
    """From a metric by seed and person, [S, n] on both sides. Raises InputError for fewer than two seeds or people."""
    if min(a.shape[0], b.shape[0], a.shape[1]) < 2 or a.shape[1] != b.shape[1]:
        raise InputError("power needs two seeds of either side at least, and the same people: one run does not show its noise")
    (seed_a, left_a), (seed_b, left_b) = _moved(a), _moved(b)
    apart = float((a.mean(0) - b.mean(0)).var(ddof=1))
    people = max(0.0, apart - left_a / len(a) - left_b / len(b))
    return Noise(people, seed_a + seed_b, left_a + left_b, a.shape[1], min(len(a), len(b)))


def _moved(values: ndarray) -> tuple[float, float]:
    """How far a training moves everybody's mean, and a person besides: variances."""
    runs, n = values.shape
    centred = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    left = float((centred**2).sum() / ((runs - 1) * (n - 1)))
    return max(0.0, float(values.mean(1).var(ddof=1)) - left / n), left
