"""Is A better than B? Paired over people, with the noise of training: difference, interval and p from one bootstrap.

Both systems are judged on the same people and candidates. a [S_A, n] and b [S_B, n] are a metric by training seed and person;
D is the mean of a minus the mean of b. What another draw of people and other training seeds would give is imitated together:

- people are drawn with replacement, the same ones for both sides;
- each side's seeds are drawn with replacement, on their own. S seeds show a variance that is (S - 1) / S of the true one, so
  their deviations from the side's mean are scaled by sqrt(S / (S - 1)) first; people's likewise, by sqrt(n / (n - 1)).

With D* of 10,000 such draws:

- p = (1 + #{|D* - D| >= |D|}) / 10,001, two-sided, the bootstrap centred on what was found (Hall and Wilson 1991);
- the 95% interval is D ± the 500th largest |D* - D|, so it leaves out 0 exactly where p <= 0.05. A symmetric interval is also
  the more exact one (Hall 1988).

Three seeds say little about a spread: simulated, the interval covers the truth in 94-96% while training moves D no more than
the draw of people does, and in 91% where it moves it three times as much (tests/test_compare.py). A side that was trained once
shows no spread at all: then people alone are drawn, `seeds_counted` is False, and nothing may be claimed (verdict.py). A system
that needs no training has no such noise, and one run of it is all there is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from elastic_core.errors import InputError
from elastic_core.evaluation.evaluate import Report

RESAMPLES = 10_000
BEYOND = 500  # so many |D* - D| may lie at or beyond half the interval's width: 5%
CHUNK = 2**17  # numbers drawn at a time: they stay in the processor's cache, which makes all of this three times as fast
FEW = 30  # people fewer than this are drawn one by one, not with a Poisson number each


THRESHOLDS = np.round(2**16 * np.cumsum(np.exp(-1) / np.cumprod([1, *range(1, 7)]))).astype(np.uint16)  # P(Poisson(1) <= k)


class Contrast(NamedTuple):
    """A minus B: mean, 95% interval, two-sided p, and whether the noise of training is in them."""

    difference: float
    low: float
    high: float
    p: float
    seeds_counted: bool


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


def compare(a: Report, b: Report, protocol: str = "full", metric: str = "NDCG@10", seed: int = 0) -> Comparison:
    """One run against one. Raises InputError as `compare_many` does."""
    return compare_many([a], [b], protocol, metric, seed)


def compare_many(
    a: Sequence[Report],
    b: Sequence[Report],
    protocol: str = "full",
    metric: str = "NDCG@10",
    seed: int = 0,
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
    found = contrast(left, right, seed, trained)
    return Comparison(
        protocol=protocol,
        metric=metric,
        mean_a=float(left.mean()),
        mean_b=float(right.mean()),
        difference=found.difference,
        low=found.low,
        high=found.high,
        p=found.p,
        users=left.shape[1],
        means_a=tuple(left.mean(1).tolist()),
        means_b=tuple(right.mean(1).tolist()),
        seeds_counted=found.seeds_counted,
    )


def contrast(a: np.ndarray, b: np.ndarray, seed: int = 0, trained: tuple[bool, bool] = (True, True)) -> Contrast:
    """a [S_A, n] against b [S_B, n], the same people in columns. B against A is the mirror image, to the last bit.

    One person alone gives an interval of NaN. `seed` is that of the bootstrap.
    """
    counted = all(len(side) > 1 or not moves for side, moves in zip((a, b), trained, strict=True))
    difference = float(a.mean() - b.mean())
    if a.shape[1] < 2:
        return Contrast(difference, float("nan"), float("nan"), 1.0, counted)
    first, second = (a, b) if _order(a) >= _order(b) else (b, a)  # which side draws its seeds first must not matter
    off = np.abs(deviations(first, second, seed, seeds=counted))
    half = float(np.partition(off, RESAMPLES - BEYOND)[RESAMPLES - BEYOND])
    p = float((1 + (off >= abs(difference)).sum()) / (1 + RESAMPLES))
    return Contrast(difference, difference - half, difference + half, p, counted)


def deviations(a: np.ndarray, b: np.ndarray, seed: int, seeds: bool) -> np.ndarray:
    """D* - D, float64 [RESAMPLES]. `seeds`: are training seeds drawn too, or people alone?

    One product of the counts of people [RESAMPLES, n] with n × (1 + S_A + S_B) numbers: differences of the seeds' averages, and
    each seed's deviation from its side's average. Whose numbers are all 0 changes no sum and is only counted.
    """
    rng, n = np.random.default_rng(seed), a.shape[1]
    columns, shares = [a.mean(0) - b.mean(0)], []
    for side, sign in ((a, 1), (b, -1)):
        if seeds and len(side) > 1:
            columns.extend(sign * np.sqrt(len(side) / (len(side) - 1)) * (side - side.mean(0)))
            shares.append(rng.multinomial(len(side), np.full(len(side), 1 / len(side)), RESAMPLES) / len(side))
    numbers = np.stack(columns, axis=1)  # [n, 1 + S_A + S_B]
    moved = numbers.any(1)
    single = numbers[moved].astype(np.float32)
    sums = [counts @ single / total[:, None] for counts, total in drawn(rng, len(single), n)]
    means = np.concatenate(sums).astype(np.float64)  # [RESAMPLES, 1 + S_A + S_B]
    off = (means[:, 0] - numbers[:, 0].mean()) * np.sqrt(n / (n - 1))
    return off + (means[:, 1:] * np.hstack(shares)).sum(1) if shares else off


def drawn(rng: np.random.Generator, shown: int, people: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """How often each of the first `shown` of `people` is drawn [chunk, shown], and how many draws there are in all [chunk].

    Few people are drawn with replacement, as often as there are people. Of many, each is drawn Poisson(1) times and the mean
    divided by the draws (the Poisson bootstrap, Hanley and MacGibbon 2006): the same up to 1 / people, and far faster, because a
    count is how many of seven thresholds 16 random bits reach (which is Poisson(1) to 2^-16).
    """
    size = max(1, CHUNK // max(shown, 1))
    for done in range(0, RESAMPLES, size):
        rows = min(size, RESAMPLES - done)
        if people < FEW:
            counts = rng.multinomial(people, np.full(people, 1 / people), rows)
            yield counts[:, :shown].astype(np.float32), np.full(rows, people)
            continue
        bits = rng.integers(0, 2**64, -(-rows * shown // 4), dtype=np.uint64).view(np.uint16)[: rows * shown]
        flat = np.zeros(len(bits), np.uint8)
        for threshold in THRESHOLDS:
            flat += (bits >= threshold).view(np.uint8)
        counts = flat.reshape(rows, shown).astype(np.float32)
        yield counts, counts.sum(1) + rng.poisson(people - shown, rows)


def bootstrap(differences: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """95% interval of the mean of one run's differences [n], over people: for a change that needs no other training."""
    found = contrast(differences[None], np.zeros((1, len(differences))), seed, trained=(False, False))
    return found.low, found.high


def sign_flips(differences: np.ndarray, seed: int = 0) -> float:
    """Two-sided p of the mean difference [n] under random signs (Fisher 1935); people without a difference do not matter.

    For the handful of people who share an expert (services/experts/ablation.py): exact where a bootstrap of so few is too sure.
    """
    moved = differences[differences != 0]
    if not len(moved):
        return 1.0
    rng, n = np.random.default_rng(seed), len(moved)
    size = max(1, 2 * 10**6 // n)
    sizes = [min(size, RESAMPLES - done) for done in range(0, RESAMPLES, size)]
    positive = [rng.integers(0, 2, (rows, n), dtype=np.int8).astype(np.float64) @ moved for rows in sizes]
    sums = 2 * np.concatenate(positive) - moved.sum()
    extreme = np.abs(sums) >= abs(moved.sum()) - 1e-9 * np.abs(moved).sum()  # equal sums may differ in the last bits
    return float((1 + extreme.sum()) / (1 + RESAMPLES))


def _order(side: np.ndarray) -> tuple[float, int, bytes]:
    return float(side.mean()), len(side), side.tobytes()


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


def holm(p: np.ndarray) -> np.ndarray:
    """p values `[m]` of m questions to the same people, adjusted by Holm (1979): the i-th smallest of m times m - i + 1, never
    falling, at most 1."""
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted
