"""Recall by gap: the oracle has all of it, popularity none, and somebody with a short memory loses it where it must be lost."""

from dataclasses import replace

import numpy as np
import pytest

from elastic_core.data import Dataset, load
from elastic_core.data.synthetic import planted
from elastic_core.memory import recall
from elastic_core.memory.gaps import gaps
from elastic_core.run_config import DataConfig, PlantedConfig

WORLD = PlantedConfig(
    users=150, items=96, interests=12, interests_per_user=5, mean_length=300, max_length=300, drift=0, noise=0.05,
    determinism=0.9, dwell=0.9,
)  # fmt: skip


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load(DataConfig(source="planted", planted=WORLD))


def test_people_dwell_and_are_asked_about_any_interest(world: Dataset) -> None:
    truth, ends = world.truth, world.ends("test")
    assert truth is not None
    interest, items = truth.event_interest, world.histories.items
    inside = np.flatnonzero((interest[:-1] >= 0) & (interest[1:] >= 0))
    last_two = np.concatenate([ends - 2, ends - 1, ends])
    inside = inside[~np.isin(inside + 1, [*last_two, *world.histories.offsets])]
    assert 0.87 < (interest[inside] == interest[inside + 1]).mean() < 0.97  # 0.9, and those who come back at once
    assert (truth.user_mixture[truth.user_mixture > 0] == np.float32(0.2)).all()
    gap = gaps(world)
    assert (gap > 50).sum() > 20 and (gap == 1).sum() < 60
    plain = planted(replace(WORLD, dwell=0.0))
    assert (np.concatenate([[0], np.diff(plain.histories.items)]) != 0).any() and len(plain.histories.items) == len(items)


def test_a_world_without_dwelling_is_what_it_was() -> None:
    """The draws of worlds that shipped runs were trained on must not change."""
    assert planted(PlantedConfig(users=60, items=60, interests=4, mean_length=20, max_length=40)).hash == "0584bdde2b24edf3"


def forgetful(dataset: Dataset, after: int) -> recall.Scores:
    """The oracle, for whom an interest that was silent for `after` events is like one they never had."""
    truth = recall.truth_of(dataset)
    starts, ends = dataset.histories.offsets[:-1], dataset.ends("test")

    def scores(users: np.ndarray) -> np.ndarray:
        known = truth.oracle(dataset.histories.items, np.maximum(ends[users] - after, starts[users]), ends[users], users)
        return np.log(np.maximum(known, 1e-300))

    return scores


def test_the_oracle_recalls_popularity_does_not_and_who_forgets_falls_to_it(world: Dataset) -> None:
    gap = gaps(world)
    best, popular = recall.of_oracle(world), recall.of_popularity(world)
    short = recall.recall(forgetful(world, 20), world)
    near, far = (gap >= 1) & (gap <= 20), gap > 20
    assert np.nanmean(best.place[far]) > 0.55 > 0.45 > np.nanmean(popular.place)
    assert np.nanmean(best.found) > 0.9 and abs(np.nanmean(popular.found) - 0.5) < 0.12
    assert np.nanmean(short.place[near]) == pytest.approx(np.nanmean(best.place[near]), abs=0.02)
    assert abs(np.nanmean(short.place[far]) - np.nanmean(popular.place[far])) < 0.12
    assert np.isnan(best.place[gap == 0]).all()
    table = recall.by_gap({"oracle": best, "popularity": popular}, gap)
    assert table.groupby("system")["people"].sum().tolist() == [int((gap > 0).sum())] * 2
    assert (table.loc[table["system"] == "oracle", "place"].to_numpy() > 0.4).all()


def test_equal_scores_stand_in_the_middle(world: Dataset) -> None:
    same = recall.recall(lambda users: np.zeros((len(users), world.catalog.n_items + 1)), world)
    sizes = np.bincount(recall.truth_of(world).item_interest[1:])
    expected = np.mean([np.mean(1 / np.arange(1, size + 1)) for size in sizes])
    assert np.nanmean(same.place) == pytest.approx(expected, rel=0.05)
