"""Paired comparisons on differences whose truth is known: people and training seeds both move them."""

import math

import numpy as np
import pytest

from elastic_core.errors import InputError
from elastic_core.evaluation import compare as module
from elastic_core.evaluation.compare import bootstrap, compare, compare_many, contrast, deviations, drawn, sign_flips
from elastic_core.evaluation.evaluate import Report
from elastic_core.evaluation.metrics import Ranks
from elastic_core.evaluation.verdict import ONE_RUN, better, numbers, sentence


def report(above: np.ndarray, **changes: object) -> Report:
    ranks = Ranks(above.astype(np.int32), np.zeros(len(above), np.int32))
    fields = {"users": np.arange(len(above)), "split": "test", "data_hash": "abc", "seed": 0, "seconds": 0.0}
    return Report({"full": ranks}, **(fields | changes))  # type: ignore[arg-type]


def places(seed: int, people: int = 400, good: float = 0.1) -> np.ndarray:
    """Places of a system; the larger `good`, the better."""
    return np.random.default_rng(seed).geometric(good, people) - 1


def simulated(truth: float, seeds: tuple[int, int], people: int, training: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Two sides [S, n]. `training`: the seeds' part of the standard error of the difference, relative to the people's part."""
    person, error = rng.normal(0, 1, (2, people)), 1 / math.sqrt(people)
    sides = []
    for size, mean, own in zip(seeds, (truth, 0.0), (person[0] + person[1], person[0]), strict=True):
        shift = rng.normal(0, training * error * math.sqrt(size / 2), (size, 1))
        sides.append(mean + own + shift + rng.normal(0, 0.3, (size, people)))
    return sides


@pytest.mark.parametrize("seeds", [(3, 3), (5, 5), (3, 5)])
def test_the_interval_covers_the_truth_with_seeds_and_one_of_people_alone_does_not(
    seeds: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RESAMPLES", 1000)
    monkeypatch.setattr(module, "BEYOND", 50)
    covered, alone, claimed = [], [], []
    for i in range(500):
        a, b = simulated(0.2, seeds, 120, 1.0, np.random.default_rng(i))
        found = contrast(a, b, seed=i)
        people_only = contrast(a.mean(0)[None], b.mean(0)[None], seed=i)
        covered.append(found.low <= 0.2 <= found.high)
        alone.append(people_only.low <= 0.2 <= people_only.high)
        assert found.seeds_counted and not people_only.seeds_counted
        claimed.append((found.p <= 0.05) == (not found.low <= 0 <= found.high))
    assert 0.92 <= np.mean(covered) <= 0.98, np.mean(covered)
    assert np.mean(alone) < 0.89, "an interval over people alone is too sure of itself"
    assert all(claimed), "p and interval say the same"


def test_the_fast_way_is_the_slow_one() -> None:
    """The same draws, written out: people and seeds as lists, one mean after the other."""
    rng = np.random.default_rng(3)
    a, b = rng.random((3, 50)) * (rng.random((3, 50)) < 0.4), rng.random((2, 50)) * (rng.random((2, 50)) < 0.4)
    a[:, :8] = b[:, :8] = 0.25  # nobody's difference or deviation: left out of the product
    fast = deviations(a, b, seed=5, seeds=True)
    again = np.random.default_rng(5)
    which = [again.multinomial(len(side), [1 / len(side)] * len(side), module.RESAMPLES) for side in (a, b)]
    moved = (a.mean(0) != b.mean(0)) | (a != a.mean(0)).any(0) | (b != b.mean(0)).any(0)
    counts, totals = (np.concatenate(part) for part in zip(*drawn(again, int(moved.sum()), 50), strict=True))
    truth = float(a.mean() - b.mean())
    for r in range(0, module.RESAMPLES, 97):
        people = [u for u, times in zip(np.flatnonzero(moved), counts[r], strict=True) for _ in range(int(times))]
        total = 0.0
        for side, sign, chosen in ((a, 1, which[0][r]), (b, -1, which[1][r])):
            seeds = [s for s, times in enumerate(chosen) for _ in range(times)]
            stretch = math.sqrt(len(side) / (len(side) - 1))
            for u in people:
                average = sum(side[:, u]) / len(side)
                total += sign * stretch * sum(side[s, u] - average for s in seeds) / len(seeds)
        between = sum(float(a[:, u].mean() - b[:, u].mean()) for u in people) / totals[r] - truth
        assert fast[r] == pytest.approx(between * math.sqrt(50 / 49) + total / totals[r], abs=1e-7)
    found = contrast(a, b, seed=5)
    off = sorted(abs(x) for x in (fast if found.difference >= 0 else deviations(b, a, 5, True)))
    assert found.high - found.difference == pytest.approx(off[-500], abs=1e-12)
    assert found.p == pytest.approx((1 + sum(x >= abs(found.difference) for x in off)) / 10_001)


@pytest.mark.parametrize("people", [module.FEW - 1, 1000])
def test_draws_are_those_of_people_with_replacement(people: int) -> None:
    counts, totals = (np.concatenate(part) for part in zip(*drawn(np.random.default_rng(0), people - 5, people), strict=True))
    assert counts.shape == (module.RESAMPLES, people - 5)
    assert totals.mean() == pytest.approx(people, rel=1e-3)
    assert counts.mean() == pytest.approx(1, abs=2e-3)
    assert counts.var() == pytest.approx(1 - (1 / people if people < module.FEW else 0), abs=6e-3)
    assert (counts == 0).mean() == pytest.approx((1 - 1 / people) ** people if people < module.FEW else math.exp(-1), abs=2e-3)


def test_b_against_a_is_the_mirror_image() -> None:
    rng = np.random.default_rng(1)
    for a, b in ((rng.random((3, 200)), rng.random((2, 200))), (rng.random((1, 40)), rng.random((4, 40)))):
        there, back = contrast(a, b), contrast(b, a)
        assert (there.difference, there.low, there.high) == (-back.difference, -back.high, -back.low)
        assert there.p == back.p and there == contrast(a, b)


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


def test_bootstrap_over_people_agrees_with_the_normal_interval() -> None:
    differences = np.random.default_rng(1).exponential(size=3000)
    error = differences.std(ddof=1) / math.sqrt(3000)
    low, high = bootstrap(differences)
    assert (low, high) == pytest.approx((differences.mean() - 1.96 * error, differences.mean() + 1.96 * error), abs=0.1 * error)
    assert np.isnan(bootstrap(differences[:1])).all()


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
