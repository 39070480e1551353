"""Load, chance and recovery on a world whose truth is known."""

from pathlib import Path

import numpy as np
import pytest

from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.memory.recovery import recover
from elastic_core.memory.routing import Routing, routing
from elastic_core.recipes import recipe
from elastic_core.runs import open_run

SHIPPED = Path(__file__).resolve().parents[1] / "checkpoints"


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load(recipe("planted").data)


def test_shipped_planted_run_beats_popularity_widely_and_its_memory_lives(world: Dataset) -> None:
    run = open_run(SHIPPED / "planted-elastic")
    floor = open_run(SHIPPED / "planted-popularity").last("test")
    test = run.last("test")
    assert test and floor
    for protocol, values in test["protocols"].items():
        assert values["NDCG@10"] > 2 * floor["protocols"][protocol]["NDCG@10"], protocol
    found = routing(run.model(), world, "test")
    assert found.used >= 0.9 and found.entropy >= 0.85
    assert (found.used, found.entropy) == pytest.approx((test["used"], test["entropy"]), abs=2e-3)


def test_the_gauges_of_the_query_ask_every_history_once(world: Dataset) -> None:
    """The raw query is what the retrieval itself started from, not a second pass through the query network."""
    model = open_run(SHIPPED / "planted-elastic").model()
    passes: list[np.ndarray] = []
    network = model.memories[0].query_network  # type: ignore[index, union-attr]
    network.register_forward_hook(lambda module, given, asked: passes.append(asked.detach().numpy()))  # type: ignore[union-attr, operator]
    found = routing(model, world, "valid", batch=200)
    people = world.histories.n_users
    assert len(passes) == -(-people // 200)
    raw = np.concatenate(passes)
    shares = np.linalg.svd(raw - raw.mean(0), compute_uv=False) ** 2
    assert found.raw_spectrum == pytest.approx(shares / shares.sum(), abs=1e-6)


def test_experts_recover_the_planted_interests_beyond_chance(world: Dataset) -> None:
    scores = recover(open_run(SHIPPED / "planted-elastic").model(), world, people=500, shuffles=20)
    for score in (scores.strongest, scores.retrieved, scores.events):
        assert score.ami > score.ami_chance_high + 0.05
        assert score.purity > 1.5 * score.purity_chance
        assert abs(score.ami_chance) < 0.02  # adjusted: chance is zero
    with pytest.raises(InputError, match="planted world"):
        recover(open_run(SHIPPED / "planted-sasrec").model(), world)


def test_a_random_router_lies_in_its_own_chance_band_and_a_collapsed_one_does_not() -> None:
    rng = np.random.default_rng(0)
    people, k, size = 400, 8, 64
    experts = np.stack([rng.choice(size, k, replace=False) for _ in range(people)])

    def of(chosen: np.ndarray) -> Routing:
        load = np.bincount(chosen.ravel(), minlength=size)
        return Routing(chosen, np.ones(chosen.shape), load, load.astype(float), np.ones(1), np.ones(1), 0.0)

    fair, collapsed = of(experts), of(experts % k)
    low, high, used = fair.chance()
    inside = (np.sort(fair.load) >= low) & (np.sort(fair.load) <= high)
    assert inside.mean() > 0.8 and used == 1.0
    assert fair.entropy > 0.99 and fair.gini < 0.15
    assert collapsed.used == k / size and collapsed.gini > 0.8 and collapsed.entropy < 0.6
