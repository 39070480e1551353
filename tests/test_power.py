"""What a comparison could have found: variances taken apart again, and differences found as often as is said."""

import numpy as np
import pytest

from elastic_core.commands.compare import power_text
from elastic_core.errors import InputError
from elastic_core.evaluation.compare import contrast
from elastic_core.evaluation.power import Noise, noise

SD = {"people": 0.3, "seed": 0.02, "left": 0.1}


def drawn(rng: np.random.Generator, runs: int, n: int, gap: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Two sides whose noise is known: people differ, trainings differ, and both together."""
    shared, apart = rng.normal(0, 1, n), rng.normal(gap, SD["people"], n)
    sides = (shared + rng.normal(0, SD["seed"], (runs, 1)) + rng.normal(0, SD["left"], (runs, n)) for _ in range(2))
    a, b = sides
    return a + apart, b


def test_the_parts_of_the_noise_are_found_again() -> None:
    rng = np.random.default_rng(0)
    found = [noise(*drawn(rng, 6, 500)) for _ in range(200)]
    for name, want in (("people", SD["people"] ** 2), ("seeds", 2 * SD["seed"] ** 2), ("left", 2 * SD["left"] ** 2)):
        assert np.mean([getattr(one, name) for one in found]) == pytest.approx(want, rel=0.08), name


@pytest.mark.parametrize(("runs", "seed"), [(3, 0.0), (3, 0.02), (2, 0.02), (3, 0.08)])
def test_what_is_detectable_is_found_four_times_out_of_five(runs: int, seed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SD, "seed", seed)
    truth = Noise(SD["people"] ** 2, 2 * seed**2, 2 * SD["left"] ** 2, 400, runs)
    gap, rng = truth.detectable(), np.random.default_rng(1)
    found = [contrast(*drawn(rng, runs, 400, gap)) for _ in range(1000)]
    assert np.std([one.difference for one in found]) == pytest.approx(truth.deviation(), rel=0.07)
    assert np.mean([one.p < 0.05 and one.difference > 0 for one in found]) == pytest.approx(0.8, abs=0.07)


def test_more_people_and_more_seeds_and_where_neither_helps() -> None:
    known = Noise(0.09, 0.0008, 0.02, 900, 3)
    for seeds in (2, 5, 20):
        wanted = known.detectable(seeds=seeds) * 1.0001
        assert known.seeds_for(wanted) == seeds
        people = known.people_for(wanted, seeds)
        assert people and people <= 900 and known.detectable(people, seeds) <= wanted < known.detectable(people - 1, seeds)
    assert known.seeds_for(known.detectable(seeds=10**9) * 0.99) is None
    assert known.people_for(0.8 * known.detectable(people=10**12)) is None
    assert known.detectable(10_000, 30) < known.detectable(seeds=30) < known.detectable()


def test_one_run_does_not_show_its_noise() -> None:
    with pytest.raises(InputError, match="two seeds of either side"):
        noise(np.zeros((1, 40)), np.zeros((3, 40)))


def test_without_noise_everything_is_found() -> None:
    still = Noise(0, 0, 0, 20, 2)
    assert still.detectable() == 0 and still.seeds_for(0.1) == 2 and still.people_for(0.1) == 2
    assert "B is 0" in power_text(still, 0.0)
