"""The bench of the memory: what it measures, what it says of it, and that its share of exact searches can fall."""

from pathlib import Path

import numpy as np
import pytest
import torch
from measuring import but

from elastic_core.bench import bank, goals
from elastic_core.bench.store import read_rows, write_rows
from elastic_core.core.elastic import Keys, ProductKeys, top_pairs
from elastic_core.memory.routing import Routing, random_choices
from elastic_core.run_config import PlantedConfig


def test_rows_and_figures_of_every_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = {"SMALL": 16, "MIDDLE": 64, "MILLION": 144, "LARGE": 256, "QUERIES": 8, "FEW": 8, "ASKED": 4, "LENGTH": 8}
    for name, value in {
        **small,
        "K": 4,
        "WORLD": PlantedConfig(users=40, items=40, interests=4, mean_length=12, max_length=24),
    }.items():
        monkeypatch.setattr(bank, name, value)
    rows = [row for part in bank.PARTS for row in bank.measure_bank(part, torch.device("cpu"), rounds=1, warmup=0)]
    write_rows(tmp_path / "bank.csv", [*rows, *rows])
    assert [vars(row) for row in read_rows(tmp_path / "bank.csv", "bank")] == [vars(row) for row in rows]
    assert {row.exact for row in rows if row.system == "product-keys"} == {1.0}
    rows = [but(row, processor=0.001 * row.experts * (10 if row.system != "rows" else 1)) for row in rows]
    told = bank.bank_figures(rows)
    assert list(told.values()) == pytest.approx([1e6 * 1.44 / 8, 1, 1, 256 / 64, 10, 10, 9, 9, 9, 9])
    assert all(what in bank.bank_table(rows) for what in told)
    assert all(goal.value(rows) in told.values() for goal in goals.GOALS if goal.file == "bank")
    moved = [but(row, torch="other") for row in rows if row.experts == bank.MILLION]
    told = list(bank.bank_figures(moved))
    assert told == ["search, us", "exact", "SparseAdam", "fused Adam"], "figures of other code are not mixed"


def test_a_search_that_misses_an_expert_is_not_called_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    keys, queries = ProductKeys(bank.WIDTH, 32), torch.randn(16, bank.WIDTH)
    assert bank.exactness(keys, queries) == 1
    calls = []

    def misses(halves: torch.Tensor, k: int) -> Keys:
        calls.append(1)
        found = top_pairs(halves, k + 1)
        return Keys(found.indices[:, 1:], found.scores[:, 1:]) if len(calls) == 1 else Keys(*(x[:, :k] for x in found))

    monkeypatch.setattr(bank, "top_pairs", misses)
    assert bank.exactness(keys, queries) == 0.5


@pytest.mark.parametrize("size", [9, 100, 5_000])
def test_the_random_router_s_loads_are_those_of_all_experts(size: int) -> None:
    """Of many experts only the loads that can differ from zero are held; the twin holds them all."""
    people, k = 30, 3
    nothing = np.zeros(0)
    traffic = Routing(np.zeros((people, k), int), nothing, np.zeros(size, int), nothing, nothing, nothing, 0.0)
    drawn = random_choices(people, k, size, 40, 5)
    loads = np.stack([np.sort(np.bincount(experts.ravel(), minlength=size)) for experts in drawn])
    low, high, used = traffic.chance(40, 5)
    assert np.array_equal(low, np.quantile(loads, 0.025, axis=0)) and np.array_equal(high, np.quantile(loads, 0.975, axis=0))
    assert used == pytest.approx((loads > 0).mean())
