"""Paired comparisons on differences whose truth is known."""

import math

import numpy as np
import pytest

from elastic_core.errors import InputError
from elastic_core.evaluation.compare import bootstrap, compare, compare_many, sign_flips
from elastic_core.evaluation.evaluate import Report


def report(values: np.ndarray, **changes: object) -> Report:
    fields = {"users": np.arange(len(values)), "split": "test", "data_hash": "abc", "seed": 0, "seconds": 0.0}
    return Report({"full": {"NDCG@10": values}}, **(fields | changes))  # type: ignore[arg-type]


def test_p_is_uniform_when_nothing_differs() -> None:
    ps = np.array([sign_flips(np.random.default_rng(i).standard_t(3, 80), seed=i) for i in range(200)])
    for level in (0.05, 0.25, 0.5, 0.75):
        assert abs((ps <= level).mean() - level) < 4 * math.sqrt(level * (1 - level) / 200)


def test_a_known_shift_is_found_and_the_interval_covers_it() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(2000)
    found = compare(report(base + 0.01 + rng.normal(0, 0.05, 2000)), report(base))
    assert found.p < 0.001
    assert 0 < found.low < 0.01 < found.high
    assert found.difference == pytest.approx(found.mean_a - found.mean_b)
    # Pairing matters: people differ by far more than the systems do.
    assert found.high - found.low < 0.1 * 2 * 1.96 * base.std() / math.sqrt(1000) * 2
    back = compare(report(base), report(base + 0.01 + rng.normal(0, 0.05, 2000)))
    assert back.high < 0 and back.p < 0.001


def test_bootstrap_agrees_with_the_normal_interval_and_covers_at_its_level() -> None:
    differences = np.random.default_rng(1).exponential(size=3000)
    error = differences.std(ddof=1) / math.sqrt(3000)
    low, high = bootstrap(differences)
    assert (low, high) == pytest.approx((differences.mean() - 1.96 * error, differences.mean() + 1.96 * error), abs=0.1 * error)
    covered = [low <= 0 <= high for low, high in (bootstrap(np.random.default_rng(i).normal(size=60), i) for i in range(150))]
    assert 0.87 < np.mean(covered) < 0.99


def test_sign_flips_match_all_flips_written_out() -> None:
    differences = np.array([0.3, -0.1, 0.25, 0.0, 0.4, 0.2, 0.05, 0.35])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1).T
    sums = np.abs(signs @ differences)
    exact = (sums >= abs(differences.sum()) - 1e-12).mean()
    assert sign_flips(differences) == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 10_000))


def test_equal_systems_differ_by_nothing() -> None:
    values = np.random.default_rng(0).random(50)
    found = compare(report(values), report(values.copy()))
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)
    assert math.isnan(found.spread_a)


def test_several_seeds_are_averaged_per_person_and_their_spread_is_kept() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((3, 400)) + 0.1, rng.random((2, 400))
    found = compare_many([report(row) for row in a], [report(row) for row in b])
    assert found.difference == pytest.approx((a.mean(0) - b.mean(0)).mean())
    assert found.means_a == pytest.approx(a.mean(1)) and found.means_b == pytest.approx(b.mean(1))
    assert found.spread_a == pytest.approx(a.mean(1).std(ddof=1))
    assert (found.low, found.high) == bootstrap(a.mean(0) - b.mean(0))
    assert found == compare_many([report(row) for row in a], [report(row) for row in b])


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
