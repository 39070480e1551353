"""How many interests histories show: the truth where it is known, one where there is none."""

import numpy as np
import pytest

from elastic_core.data import load
from elastic_core.data.interest_count import count_interests
from elastic_core.run_config import DataConfig, PlantedConfig


def draw_world(rng: np.random.Generator, seed: int) -> PlantedConfig:
    interests = int(np.exp(rng.uniform(np.log(3), np.log(120))))
    length = int(rng.integers(20, 100))
    return PlantedConfig(
        users=int(rng.integers(500, 3_000)), items=int(rng.integers(8, 40)) * interests, interests=interests, seed=seed,
        interests_per_user=int(rng.integers(2, min(6, interests) + 1)), mean_length=length, max_length=4 * length,
    )  # fmt: skip


def test_it_is_the_truth_in_worlds_of_any_size() -> None:
    rng = np.random.default_rng(11)
    worlds = [draw_world(rng, seed) for seed in range(20)]
    truth = np.array([world.interests for world in worlds])
    counted = np.array([count_interests(load(DataConfig(source="planted", planted=world))).interests for world in worlds])
    assert np.corrcoef(np.log(truth), np.log(counted))[0, 1] > 0.98, (truth, counted)
    assert np.abs(counted - truth).max() <= 1 and np.sum(counted == truth) >= 16, (truth, counted)  # as Evidence says


@pytest.mark.parametrize("users", [200, 2_000])
def test_where_nobody_prefers_anything_there_is_one(users: int) -> None:
    world = PlantedConfig(users=users, items=100, interests=1, interests_per_user=1, noise=1.0, mean_length=30, max_length=60)
    assert count_interests(load(DataConfig(source="planted", planted=world))).interests <= 2
