"""Differences whose truth is known: users and training seeds both move them; what could have been found; Holm."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from elastic_core.commands.compare import power_text
from elastic_core.errors import InputError
from elastic_core.results.compare import find_winner
from elastic_core.results.statistics import (
    Contrast,
    NoiseParts,
    adjust_by_holm,
    half_width_of_mean,
    interval_over_users,
    paired_difference,
    sign_flip_test,
)


def simulated(truth: float, seeds: tuple[int, int], people: int, training: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Two sides [S, n]; 0 seeds: it needs no training. `training`: the seeds' part of the standard error of the difference,
    relative to the people's part; a training moves single people as much again as they differ by themselves."""
    error, sides = math.sqrt(2 / people), []
    shift = training * error / math.sqrt(sum(1 / size for size in seeds if size))
    for size, mean in zip(seeds, (truth, 0.0), strict=True):
        own = mean + rng.normal(0, 1, people)
        moved = rng.normal(0, shift, (size, 1)) + rng.normal(0, 1, (size, people))
        sides.append(own + moved if size else own[None])
    return sides


@pytest.mark.parametrize(
    ("seeds", "training", "low", "high"),
    [
        ((3, 3), 0.0, 0.94, 0.99),  # single people that a training moves are counted twice
        ((3, 3), 1.0, 0.93, 0.98),
        ((3, 3), 3.0, 0.92, 0.98),
        ((2, 2), 1.0, 0.92, 0.98),
        ((2, 2), 3.0, 0.91, 0.97),
        ((3, 2), 3.0, 0.91, 0.98),
        ((3, 0), 1.0, 0.92, 0.98),
        ((3, 0), 3.0, 0.88, 0.96),
        ((2, 0), 1.0, 0.91, 0.98),
        ((2, 0), 3.0, 0.83, 0.93),  # one degree of freedom tells little
    ],
)
def test_the_interval_covers_the_truth_as_often_as_it_says(
    seeds: tuple[int, int], training: float, low: float, high: float
) -> None:
    covered, alone, trained = [], [], (True, bool(seeds[1]))
    for i in range(1000):
        a, b = simulated(0.2, seeds, 120, training, np.random.default_rng(i))
        found, people_only = paired_difference(a, b, trained), paired_difference(a.mean(0)[None], b.mean(0)[None], trained)
        covered.append(found.low <= 0.2 <= found.high)
        alone.append(people_only.low <= 0.2 <= people_only.high)
        assert found.seeds_counted and not people_only.seeds_counted
        assert (found.p < 0.05) == (not found.low <= 0 <= found.high), "p and interval say the same"
    assert low <= np.mean(covered) <= high, np.mean(covered)
    if training >= 1:
        assert np.mean(alone) < 0.91, "an interval over people alone is too sure of itself"


@settings(max_examples=50, deadline=None)
@given(seeds=st.tuples(st.integers(2, 4), st.integers(2, 4)), people=st.integers(2, 40), seed=st.integers(0, 10_000))
def test_the_variance_is_its_parts_written_out(seeds: tuple[int, int], people: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.random((size, people)) * (rng.random((size, people)) < 0.5) for size in seeds)
    parts = [(statistics.variance([a[:, u].mean() - b[:, u].mean() for u in range(people)]) / people, people - 1)]
    parts += [(statistics.variance([float(np.mean(run)) for run in side]) / len(side), len(side) - 1) for side in (a, b)]
    variance = sum(part for part, _ in parts)
    found = paired_difference(a, b)
    if variance < 1e-12:
        return
    t = stats.t(variance**2 / sum(part**2 / degrees for part, degrees in parts))
    half = t.ppf(0.975) * math.sqrt(variance)
    assert (found.low, found.high) == pytest.approx((found.difference - half, found.difference + half), rel=1e-9, abs=1e-12)
    assert found.p == pytest.approx(2 * t.sf(abs(found.difference) / math.sqrt(variance)), rel=1e-6, abs=1e-12)


def test_what_rounding_leaves_is_no_difference_and_what_few_all_share_is_no_claim() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        one = rng.random((1, 30))
        same = paired_difference(np.repeat(one, 3, 0), one, trained=(True, False))  # (x + x + x) / 3 may not be x
        assert (same.difference, same.low, same.high, same.p) == (0, 0, 0, 1) and find_winner(same) == ""
        assert paired_difference(np.repeat(one, 3, 0), np.repeat(one, 2, 0)).p == 1
    for people in range(2, 9):  # A hits, B misses, all of them alike: no variance, and no more than so many equal signs
        found = paired_difference(np.ones((2, people)), np.zeros((2, people)))
        assert found.p == 2.0 ** (1 - people) and found.seeds_counted
        assert find_winner(found) == ("A" if people > 5 else "") and np.isnan(found.low) == (people <= 5)
    assert paired_difference(np.zeros((2, 9)), np.zeros((2, 9))) == Contrast(0, 0, 0, 1, True)


def test_over_users_alone_it_is_student_s_interval() -> None:
    differences = np.random.default_rng(1).exponential(size=30)
    student = stats.ttest_1samp(differences, 0).confidence_interval()
    assert interval_over_users(differences) == pytest.approx((student.low, student.high))
    assert np.isnan(interval_over_users(differences[:1])).all()
    assert half_width_of_mean(differences) == pytest.approx((student.high - student.low) / 2)


def test_sign_flips_match_all_flips_written_out() -> None:
    differences = np.array([0.3, -0.1, 0.25, 0.0, 0.4, 0.2, 0.05, 0.35])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1).T
    sums = np.abs(signs @ differences)
    exact = (sums >= abs(differences.sum()) - 1e-12).mean()
    assert sign_flip_test(differences) == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 10_000))


def test_holm_against_the_definition() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 20):
        p = rng.random(size) ** 3
        ranked = sorted(range(size), key=lambda i: p[i])
        slow = [max(min(1.0, (size - j) * p[ranked[j]]) for j in range(ranked.index(i) + 1)) for i in range(size)]
        assert adjust_by_holm(p) == pytest.approx(slow)


# --- power ---

SD = {"users": 0.3, "seed": 0.02, "rest": 0.1}


def drawn(rng: np.random.Generator, runs: int, n: int, gap: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Two sides whose noise is known: people differ, trainings differ, and both together."""
    shared, apart = rng.normal(0, 1, n), rng.normal(gap, SD["users"], n)
    sides = (shared + rng.normal(0, SD["seed"], (runs, 1)) + rng.normal(0, SD["rest"], (runs, n)) for _ in range(2))
    a, b = sides
    return a + apart, b


def test_the_parts_of_the_noise_are_found_again() -> None:
    rng = np.random.default_rng(0)
    found = [NoiseParts.from_seeds(*drawn(rng, 6, 500)) for _ in range(200)]
    for name, want in (("users", SD["users"] ** 2), ("seeds", 2 * SD["seed"] ** 2), ("rest", 2 * SD["rest"] ** 2)):
        assert np.mean([getattr(one, name) for one in found]) == pytest.approx(want, rel=0.08), name


@pytest.mark.parametrize(("runs", "seed"), [(3, 0.0), (3, 0.02), (2, 0.02), (3, 0.08)])
def test_what_is_detectable_is_found_four_times_out_of_five(runs: int, seed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SD, "seed", seed)
    truth = NoiseParts(SD["users"] ** 2, 2 * seed**2, 2 * SD["rest"] ** 2, 400, runs)
    gap, rng = truth.detectable_difference(), np.random.default_rng(1)
    found = [paired_difference(*drawn(rng, runs, 400, gap)) for _ in range(1000)]
    assert np.mean([one.p < 0.05 and one.difference > 0 for one in found]) == pytest.approx(0.8, abs=0.07)


def test_more_people_and_more_seeds_and_where_neither_helps() -> None:
    known = NoiseParts(0.09, 0.0008, 0.02, 900, 3)
    for seeds in (2, 5, 20):
        wanted = known.detectable_difference(seeds=seeds) * 1.0001
        assert known.seeds_for(wanted) == seeds
        people = known.users_for(wanted, seeds)
        assert (
            people
            and people <= 900
            and known.detectable_difference(people, seeds) <= wanted < known.detectable_difference(people - 1, seeds)
        )
    assert known.seeds_for(known.detectable_difference(seeds=10**9) * 0.99) is None
    assert known.users_for(0.8 * known.detectable_difference(users=10**12)) is None
    assert known.detectable_difference(10_000, 30) < known.detectable_difference(seeds=30) < known.detectable_difference()


def test_one_run_does_not_show_its_noise() -> None:
    with pytest.raises(InputError, match="two seeds of either side"):
        NoiseParts.from_seeds(np.zeros((1, 40)), np.zeros((3, 40)))


def test_without_noise_everything_is_found() -> None:
    still = NoiseParts(0, 0, 0, 20, 2)
    assert still.detectable_difference() == 0 and still.seeds_for(0.1) == 2 and still.users_for(0.1) == 2
    assert "B is 0" in power_text(still, 0.0)
