"""Compare: one pass over everybody agrees with the evaluation, groups partition the people, and the arithmetic has slow twins."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from elastic_core.config import DataConfig, PlantedConfig
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.evaluation.compare import compare
from elastic_core.evaluation.evaluate import evaluate
from elastic_core.models import build
from elastic_core.models.cooccurrence import CooccurrenceConfig
from elastic_core.models.elastic import ElasticConfig
from elastic_core.runs import Run, list_runs
from elastic_core.services import versus, versus_slices, versus_table
from elastic_core.services.recommend import recommend
from elastic_core.services.versus import Judged, judge

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def data() -> Dataset:
    planted = PlantedConfig(users=150, items=80, interests=4, mean_length=20, max_length=40)
    return load(DataConfig(source="planted", planted=planted))


@pytest.fixture(scope="module")
def a(data: Dataset) -> Judged:
    model = build(CooccurrenceConfig(), data.catalog.n_items)
    model.fit(data)
    return judge(model, data)


@pytest.fixture(scope="module")
def b(data: Dataset) -> Judged:
    torch.manual_seed(0)
    return judge(build(ElasticConfig(length=16, width=16, layers=1, side=4, k=2, stride=4), data.catalog.n_items), data)


def test_judging_is_the_evaluation_and_the_lists_are_the_recommendations(data: Dataset) -> None:
    model = build(CooccurrenceConfig(), data.catalog.n_items)
    model.fit(data)
    heard: list[float] = []
    found, plain = judge(model, data, tell=heard.append), evaluate(model, data)
    assert heard == sorted(heard) and heard[-1] == 1
    for protocol, table in plain.per_user.items():
        for metric, values in table.items():
            assert np.array_equal(found.report.values(protocol, metric), values), (protocol, metric)
    torch.manual_seed(0)
    untied = build(ElasticConfig(length=16, width=16, layers=1, side=4, k=2, stride=4), data.catalog.n_items).eval()
    lists = judge(untied, data).lists
    for user in range(0, data.histories.n_users, 7):
        assert lists[user].tolist() == recommend(untied, data, user)["item"].tolist()


def test_the_paired_difference_equals_a_loop(a: Judged, b: Judged) -> None:
    found = versus.compared(a, b, "full", "NDCG@10")
    total = 0.0
    for mine, theirs in zip(a.report.values("full", "NDCG@10"), b.report.values("full", "NDCG@10"), strict=True):
        total += mine - theirs
    assert found.difference == pytest.approx(total / found.users)
    assert found == compare(a.report, b.report) or math.isnan(found.spread_a)
    assert found.low < found.difference < found.high
    assert "better" in versus.verdict(found, "A", "B") or "no difference" in versus.verdict(found, "A", "B")
    counted = versus.duel(a, b)
    assert sum(counted.values()) == found.users
    assert counted["a"] == sum(x < y for x, y in zip(a.places, b.places, strict=True))
    with pytest.raises(InputError, match="metric"):
        versus.compared(a, b, "full", "recall")


def test_groups_of_a_family_partition_the_people(data: Dataset) -> None:
    everybody = np.arange(data.histories.n_users)
    found = versus_slices.groups(data)
    for family in versus_slices.FAMILIES:
        parts = [group.users for group in found if group.family == family]
        if family != versus_slices.OVERLAPS:
            assert np.array_equal(np.sort(np.concatenate(parts)), everybody), family
        for part in parts:
            assert len(np.unique(part)) == len(part) > 0
    counts, targets = data.counts(), data.targets("test")
    for group in found:
        if group.name.startswith("cold"):
            assert all(counts[targets[user]] < versus_slices.COLD for user in group.users)


def test_a_forest_row_is_the_plain_mean_of_its_people(data: Dataset, a: Judged, b: Judged) -> None:
    table = versus_slices.forest(a.report, b.report, data, "full", "HR@10")
    by_name = {(g.family, g.name): g.users for g in versus_slices.groups(data)}
    assert len(table) == len(by_name)
    for row in table.to_dict("records"):
        users = by_name[row["family"], row["group"]]
        values = [a.report.values("full", "HR@10")[u] - b.report.values("full", "HR@10")[u] for u in users]
        assert row["n"] == len(values) and row["difference"] == pytest.approx(sum(values) / len(values))
        assert row["low"] <= row["difference"] <= row["high"] and row["adjusted p"] >= row["p"]
    assert f"{len(table)} looks" in versus_slices.remaining(table)


def test_holm_against_the_definition() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 20):
        p = rng.random(size) ** 3
        ranked = sorted(range(size), key=lambda i: p[i])
        slow = [max(min(1.0, (size - j) * p[ranked[j]]) for j in range(ranked.index(i) + 1)) for i in range(size)]
        assert versus_slices.holm(p) == pytest.approx(slow)


def test_extremes_are_the_people_with_the_largest_differences(data: Dataset, a: Judged, b: Judged) -> None:
    table = versus.extremes(a, b, data, "full", "NDCG@10", top=5)
    difference = a.report.values("full", "NDCG@10") - b.report.values("full", "NDCG@10")
    wins = table[table["side"] == "A"]
    assert sorted(wins["difference"], reverse=True) == wins["difference"].tolist()
    assert wins["difference"].tolist() == pytest.approx(sorted(difference[difference >= 0], reverse=True)[: len(wins)])
    for row in table.to_dict("records"):
        assert (row["place_a"] < row["place_b"]) == (row["side"] == "A")
        assert row["title"] == data.catalog.title(int(data.targets("test")[row["user"]]))


def test_list_properties_against_loops(data: Dataset, a: Judged, b: Judged) -> None:
    found, counts = versus.properties(a, data), data.counts()
    shown = [int(item) for row in a.lists for item in row if item]
    assert found.coverage == pytest.approx(len(set(shown)) / data.catalog.n_items)
    assert found.popularity == pytest.approx(sum(counts[item] for item in shown) / len(shown))
    slow = [len(set(x.tolist()) & set(y.tolist()) - {0}) for x, y in zip(a.lists, b.lists, strict=True)]
    assert versus.overlap(a, b).tolist() == slow
    assert versus.overlap(a, a).tolist() == [(row > 0).sum() for row in a.lists]
    assert 0 < versus.chosen_lists(data).coverage <= 1


def test_shipped_runs_on_the_same_data_stand_in_one_table() -> None:
    """Reads metrics files only."""
    runs = list_runs(ROOT / "checkpoints")
    planted = [run for run in runs if run.name.startswith("planted-")]
    if not planted:
        pytest.skip("no shipped runs here")
    data = load(planted[0].config.data)
    same = versus_table.comparable(runs, data)
    assert {run.name for run in planted} <= {run.name for run in same} and all("ml-" not in run.name for run in same)
    table = versus_table.metrics(same, "NDCG@10")
    assert set(table["protocol"]) == set(versus_table.PROTOCOLS) and (table["low"] < table["mean"]).all()
    assert len(versus_table.wide(table)) == len(same)
    elastic = next(run for run in same if run.config.model.name == "elastic")
    other = versus_table.partner(same, elastic)
    assert other is not None and other.name == elastic.name.replace("elastic", "sasrec")
    assert versus_table.partner(same, other) is elastic and versus_table.partner([elastic], elastic) is None
    frame = versus_table.quantities(same, "full", {}, data, versus_table.shipped_latencies(ROOT / "checkpoints"))
    assert set(versus_table.QUANTITIES) <= set(frame.columns) and frame["parameters"].gt(0).any()
    assert frame.set_index("run").loc[elastic.name, "benchmark time"] > 0


def test_what_a_seed_can_move_is_said() -> None:
    shipped = Path(__file__).resolve().parents[1] / "checkpoints"
    names = ("elastic", "elastic-seed1", "elastic-seed2", "cooccurrence", "elastic-pkm-act")
    runs = [Run(shipped / f"ml-100k-{name}") for name in names]
    say = [versus_table.seeds(runs, run, "full", "NDCG@10") for run in runs]
    assert "3 training seeds" in say[0]
    assert "needs no training" in say[3] and "trained once" in say[4]
