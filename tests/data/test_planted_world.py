"""The planted world: the same on every run, truthful, fast; and the measures of recovery against known twins."""

import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_core.data import load, planted
from elastic_core.errors import InputError
from elastic_core.memory.recovery import label_agreement
from elastic_core.run_config import DataConfig, PlantedConfig

SMALL = PlantedConfig(users=400, items=320, interests=8, mean_length=40, max_length=200)


def test_one_seed_one_world():
    first, again, other = planted(SMALL), load(DataConfig(source="planted", planted=SMALL)), planted(replace(SMALL, seed=1))
    assert first.hash == again.hash == "71f1de2b1a13ba6b"
    assert np.array_equal(first.histories.times, again.histories.times)
    assert first.hash != other.hash


@pytest.mark.parametrize("config", [SMALL, replace(SMALL, items=3_000, popularity=1.5, mean_length=20)])
def test_truth_is_aligned(config):
    """The second world loses many items to the k-core."""
    data = planted(config)
    truth, h = data.truth, data.histories
    assert truth is not None
    assert len(truth.item_interest) == len(truth.successors) == len(truth.popularity) == data.catalog.n_items + 1
    assert truth.user_mixture.shape == (h.n_users, config.interests)
    assert np.allclose(truth.user_mixture.sum(1), 1, atol=1e-5)
    assert ((truth.user_mixture > 0).sum(1) == config.interests_per_user).all()
    planned = truth.event_interest >= 0
    assert np.array_equal(truth.item_interest[h.items][planned], truth.event_interest[planned])
    assert abs((~planned).mean() - config.noise) < 0.05
    for item in range(1, data.catalog.n_items + 1):
        assert data.catalog.genres is not None
        assert data.catalog.genres[item] == (truth.interests[truth.item_interest[item]],)
        assert data.catalog.title(item).startswith(truth.interests[truth.item_interest[item]] + " ")
    assert len({data.catalog.title(i) for i in range(1, data.catalog.n_items + 1)}) == data.catalog.n_items
    assert min(data.all_counts()[1:].min(), h.lengths.min()) >= 5
    assert (np.diff(h.times)[np.diff(np.repeat(np.arange(h.n_users), h.lengths)) == 0] > 0).all()


def test_dynamics():
    data = planted(replace(SMALL, noise=0.0, drift=0.0, determinism=1.0, interests_per_user=1))
    truth, h = data.truth, data.histories
    assert truth is not None
    assert data.catalog.n_items == SMALL.items
    inside = np.diff(np.repeat(np.arange(h.n_users), h.lengths)) == 0
    rank = (truth.successors[h.items[:-1]] == h.items[1:, None])[inside]
    assert rank.any(1).all()
    assert np.allclose(rank.mean(0), [0.6, 0.25, 0.15], atol=0.02)
    assert all(len(set(row)) == 3 for row in truth.successors[1:].tolist())
    mean = planted(replace(SMALL, users=4_000)).histories.lengths.mean()
    assert abs(mean / SMALL.mean_length - 1) < 0.1


def test_oracle_beats_popularity():
    data = planted(SMALL)
    truth, h = data.truth, data.histories
    assert truth is not None
    users = np.arange(h.n_users)
    chance = truth.oracle(h.items, h.offsets[:-1], data.split_ends("test"), users)
    assert (chance >= 0).all()
    assert (chance.sum(1) <= 1 + 1e-9).all()
    target = data.target_items("test")
    popular = data.item_counts() / data.item_counts().sum()
    assert np.log(chance[users, target]).mean() > np.log(np.maximum(popular[target], 1e-9)).mean() + 1


def test_a_million_events_quickly():
    config = PlantedConfig(users=10_000, items=5_000, interests=64, mean_length=110, max_length=2_000)
    started = time.process_time()
    events = len(planted(config).histories.items)
    assert events > 1_000_000
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    "change", [{"users": 1}, {"items": 20}, {"interests_per_user": 9}, {"mean_length": 500}, {"noise": 1.5}, {"popularity": -1.0}]
)
def test_impossible_worlds(change):
    with pytest.raises(InputError, match=r"data\.planted"):
        planted(replace(SMALL, **change))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 4)), min_size=2, max_size=80))
def test_purity_against_a_count_by_hand(pairs):
    found, true = np.array(pairs).T
    kept = [pair for pair in pairs if pair[1] >= 0]  # noise is nobody's
    by_loop = sum(max(Counter(t for f, t in kept if f == label).values()) for label in {f for f, _ in kept})
    assert label_agreement(found, true)["purity"] == pytest.approx(by_loop / max(len(kept), 1))


def test_recovery_of_the_truth_itself():
    truth = planted(SMALL).truth
    assert truth is not None
    perfect = label_agreement(truth.event_interest, truth.event_interest)
    chance = label_agreement(np.random.default_rng(0).integers(0, 8, len(truth.event_interest)), truth.event_interest)
    assert (perfect["purity"], perfect["ami"]) == pytest.approx((1, 1))
    assert abs(chance["ami"]) < 0.01
