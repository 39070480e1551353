"""Paired comparisons on differences whose truth is known: people and training seeds both move them."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from elastic_core.core.evaluate import Ranks
from elastic_core.errors import InputError
from elastic_core.evaluation.compare import Contrast, compare, compare_many, contrast, over_people, sign_flips
from elastic_core.evaluation.verdict import ONE_RUN, better, interval, numbers, p_text, sentence
from elastic_core.runs.ranks import Report


def report(above: np.ndarray, **changes: object) -> Report:
    ranks = Ranks(above.astype(np.int32), np.zeros(len(above), np.int32))
    fields = {"users": np.arange(len(above)), "split": "test", "data_hash": "abc", "seed": 0, "seconds": 0.0}
    return Report({"full": ranks}, **(fields | changes))  # type: ignore[arg-type]


def places(seed: int, people: int = 400, good: float = 0.1) -> np.ndarray:
    """Places of a system; the larger `good`, the better."""
    return np.random.default_rng(seed).geometric(good, people) - 1


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
        found, people_only = contrast(a, b, trained), contrast(a.mean(0)[None], b.mean(0)[None], trained)
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
    found = contrast(a, b)
    if variance < 1e-12:
        return
    t = stats.t(variance**2 / sum(part**2 / degrees for part, degrees in parts))
    half = t.ppf(0.975) * math.sqrt(variance)
    assert (found.low, found.high) == pytest.approx((found.difference - half, found.difference + half), rel=1e-9, abs=1e-12)
    assert found.p == pytest.approx(2 * t.sf(abs(found.difference) / math.sqrt(variance)), rel=1e-6, abs=1e-12)


def test_one_run_has_no_noise_of_training_to_show_and_nothing_is_claimed() -> None:
    good, bad = [report(places(i, good=0.4)) for i in range(3)], [report(places(9, good=0.05))]
    found = compare_many(good, bad)
    assert found.low > 0 and not found.seeds_counted and found.means_b == (found.mean_b,)
    assert better(found) == "" and ONE_RUN in sentence(found, "X", "Y") and "better" not in sentence(found, "X", "Y")
    alone = contrast(np.stack([r.values("full", "NDCG@10") for r in good]).mean(0)[None], bad[0].values("full", "NDCG@10")[None])
    assert (found.low, found.high, found.p) == pytest.approx((alone.low, alone.high, alone.p), abs=1e-7), "people only"
    floor = compare_many(good, bad, trained=(True, False))  # one run of what needs no training is all there is
    assert floor.seeds_counted and better(floor) == "A" and sentence(floor, "X", "Y").startswith("X is better than Y")
    assert better(compare_many(bad, good, trained=(False, True))) == "B"
    assert ONE_RUN in numbers(found) and ONE_RUN not in numbers(floor)


def test_equal_systems_differ_by_nothing() -> None:
    seeds = [report(places(i)) for i in range(3)]
    found = compare(seeds[0], seeds[0])
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1) and math.isnan(found.spread_a)
    found = compare_many(seeds, seeds)
    assert found.low < 0 < found.high and found.p == 1 and "no difference can be claimed" in sentence(found, "X", "Y")
    assert found.spread_a == pytest.approx(np.std(found.means_a, ddof=1))


def test_what_rounding_leaves_is_no_difference_and_what_few_all_share_is_no_claim() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        one = rng.random((1, 30))
        same = contrast(np.repeat(one, 3, 0), one, trained=(True, False))  # (x + x + x) / 3 may not be x
        assert (same.difference, same.low, same.high, same.p) == (0, 0, 0, 1) and better(same) == ""
        assert contrast(np.repeat(one, 3, 0), np.repeat(one, 2, 0)).p == 1
    for people in range(2, 9):  # A hits, B misses, all of them alike: no variance, and no more than so many equal signs
        found = contrast(np.ones((2, people)), np.zeros((2, people)))
        assert found.p == 2.0 ** (1 - people) and found.seeds_counted
        assert better(found) == ("A" if people > 5 else "") and np.isnan(found.low) == (people <= 5)
    assert contrast(np.zeros((2, 9)), np.zeros((2, 9))) == Contrast(0, 0, 0, 1, True)


def test_over_people_alone_it_is_student_s_interval() -> None:
    differences = np.random.default_rng(1).exponential(size=30)
    student = stats.ttest_1samp(differences, 0).confidence_interval()
    assert over_people(differences) == pytest.approx((student.low, student.high))
    assert np.isnan(over_people(differences[:1])).all()


def test_a_p_is_not_told_more_exactly_than_noise_is_known() -> None:
    assert (p_text(0.01234), p_text(0.0001), p_text(0.00009), p_text(0.0)) == ("0.0123", "0.0001", "< 0.0001", "< 0.0001")
    assert interval(Contrast(0.1, 0.05, 0.15, 1e-9, True)) == "95% +0.0500 to +0.1500, p < 0.0001"
    assert interval(Contrast(0.1, 0.05, 0.15, 0.02, True)) == "95% +0.0500 to +0.1500, p = 0.0200"


def test_sign_flips_match_all_flips_written_out() -> None:
    differences = np.array([0.3, -0.1, 0.25, 0.0, 0.4, 0.2, 0.05, 0.35])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1).T
    sums = np.abs(signs @ differences)
    exact = (sums >= abs(differences.sum()) - 1e-12).mean()
    assert sign_flips(differences) == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 10_000))


@pytest.mark.parametrize(
    "changes",
    [{"data_hash": "abd"}, {"split": "valid"}, {"seed": 1}, {"users": np.arange(1, 11)}, {"users": np.arange(10)[::-1]}],
)
def test_unlike_reports_are_refused(changes: dict) -> None:
    values = np.zeros(10)
    with pytest.raises(InputError, match="cannot be compared"):
        compare(report(values), report(values, **changes))
    with pytest.raises(InputError, match="cannot be compared"):
        compare_many([report(values), report(values, **changes)], [report(values)])


def test_a_missing_metric_is_named() -> None:
    with pytest.raises(InputError, match="pop100"):
        compare(report(np.zeros(4)), report(np.zeros(4)), "pop100")
    with pytest.raises(InputError, match="at least one report"):
        compare_many([], [report(np.zeros(4))])
