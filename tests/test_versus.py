"""Compare: stored ranks agree with the models, groups partition the people, and the arithmetic has slow twins."""

import dataclasses
import json
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from shipped import CHECKPOINTS, shipped_run

from elastic_core import comparisons, disk, recipes, runs
from elastic_core.comparisons import compare_runs, system, systems
from elastic_core.core.elastic import ElasticConfig
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.evaluation.compare import compare, compare_many, holm
from elastic_core.evaluation.verdict import ONE_RUN
from elastic_core.models import build
from elastic_core.peers.cooccurrence import CooccurrenceConfig
from elastic_core.run_config import DataConfig, PlantedConfig
from elastic_core.runs import Run, list_runs
from elastic_core.runs.ranks import Report, evaluate
from elastic_core.services.evidence import slices, standings, versus
from elastic_core.services.evidence.versus import Lists, list_everybody
from elastic_core.services.person.recommend import recommend


@pytest.fixture(scope="module")
def data() -> Dataset:
    planted = PlantedConfig(users=150, items=80, interests=4, mean_length=20, max_length=40)
    return load(DataConfig(source="planted", planted=planted))


def models(data: Dataset) -> list:
    counting = build(CooccurrenceConfig(), data.catalog.n_items)
    counting.fit(data)
    torch.manual_seed(0)
    small = ElasticConfig(length=16, width=16, layers=1, side=4, k=2)
    return [counting.eval(), build(small, data.catalog.n_items).eval()]


@pytest.fixture(scope="module")
def a(data: Dataset) -> Report:
    return evaluate(models(data)[0], data)


@pytest.fixture(scope="module")
def b(data: Dataset) -> Report:
    return evaluate(models(data)[1], data)


@pytest.fixture(scope="module")
def lists(data: Dataset) -> list[Lists]:
    return [list_everybody(model, data) for model in models(data)]


def test_the_lists_are_the_recommendations(data: Dataset, lists: list[Lists]) -> None:
    heard: list[float] = []
    untied = models(data)[1]
    assert np.array_equal(list_everybody(untied, data, tell=heard.append).items, lists[1].items)
    assert heard == sorted(heard) and heard[-1] == 1
    for user in range(0, data.histories.n_users, 7):
        assert lists[1].items[user].tolist() == recommend(untied, data, user)["item"].tolist()


def test_the_paired_difference_equals_a_loop(a: Report, b: Report) -> None:
    found = compare(a, b, "full", "NDCG@10")
    total = 0.0
    for mine, theirs in zip(a.values("full", "NDCG@10"), b.values("full", "NDCG@10"), strict=True):
        total += mine - theirs
    assert found.difference == pytest.approx(total / found.users)
    assert found.low < found.difference < found.high
    counted = versus.duel(a, b)
    assert sum(counted.values()) == found.users
    assert counted["a"] == sum(x < y for x, y in zip(versus.places(a), versus.places(b), strict=True))
    with pytest.raises(InputError, match="full"):
        versus.places(dataclasses.replace(a, ranks={"pop100": a.ranks["pop100"]}))


def seeded(folder: Path, run: Run, seed: int) -> Run:
    """A copy of a run that says it was trained with another seed."""
    copy = Run(Path(shutil.copytree(run.path, folder / f"{run.name}-seed{seed}")))
    disk.write_text(copy.path / runs.CONFIG, json.dumps(run.config.override(f"train.seed={seed}").to_dict()))
    assert copy.config.train.seed == seed
    return copy


def test_runs_that_differ_in_their_seed_are_one_system(tiny_runs: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_runs, tmp_path / "runs"))
    tiny, peer = Run(folder / "tiny"), Run(folder / "tiny-peer")
    other = seeded(folder, tiny, 1)
    shutil.copytree(tiny.path, folder / "copy")
    known = list_runs(folder)
    assert [run.name for run in system(tiny, known)] == ["tiny", other.name], "a copy is no other seed"
    assert [[run.name for run in side] for side in systems(tiny, peer, known)] == [["tiny", other.name], ["tiny-peer"]]
    assert systems(tiny, other, known) == ([tiny], [other]), "two seeds of one system are single runs"
    two = compare_runs([tiny, other], [peer])
    assert two == compare_many([tiny.report(), other.report()], [peer.report()]) or not two.seeds_counted
    assert compare_runs([tiny, other], [peer]).difference == pytest.approx(compare_runs([tiny], [peer]).difference)
    for side, message in (([tiny, peer], "more than their seed"), ([tiny, Run(folder / "copy")], "repeat a seed")):
        with pytest.raises(InputError, match=message):
            compare_runs(side, [peer])
    with pytest.raises(InputError, match="metric"):
        compare_runs([tiny], [peer], "full", "recall")
    (other.path / "ranks.safetensors").unlink()
    assert system(tiny, known) == [tiny], "a seed without ranks does not count"


def test_comparing_two_runs_of_six_thousand_people_opens_no_model_and_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = shipped_run("ml-1m-cpu-elastic"), shipped_run("ml-1m-cpu-sasrec")
    monkeypatch.setattr(Run, "model", lambda *_: pytest.fail("a model was opened"))
    began = time.process_time()
    found = compare_runs([a], [b])
    assert time.process_time() - began < 1
    assert found.users == 6040 and not found.seeds_counted and abs(found.difference) < 0.02
    assert not comparisons.needs_training(shipped_run("ml-1m-popularity"))


def test_groups_of_a_family_partition_the_people(data: Dataset) -> None:
    everybody = np.arange(data.histories.n_users)
    found = slices.groups(data)
    for family in slices.FAMILIES:
        parts = [group.users for group in found if group.family == family]
        if family != slices.OVERLAPS:
            assert np.array_equal(np.sort(np.concatenate(parts)), everybody), family
        for part in parts:
            assert len(np.unique(part)) == len(part) > 0
    counts, targets = data.counts(), data.targets("test")
    for group in found:
        if group.name.startswith("cold"):
            assert all(counts[targets[user]] < slices.COLD for user in group.users)


def test_a_forest_row_is_the_plain_mean_of_its_people(data: Dataset, a: Report, b: Report) -> None:
    table = slices.forest([a], [b], data, "full", "HR@10")
    by_name = {(g.family, g.name): g.users for g in slices.groups(data)}
    assert len(table) == len(by_name)
    for row in table.to_dict("records"):
        users = by_name[row["family"], row["group"]]
        values = [a.values("full", "HR@10")[u] - b.values("full", "HR@10")[u] for u in users]
        assert row["n"] == len(values) and row["difference"] == pytest.approx(sum(values) / len(values))
        assert row["low"] <= row["difference"] <= row["high"] and row["adjusted p"] >= row["p"]
    said = slices.remaining(table)
    assert f"{len(table)} groups" in said and ONE_RUN in said and not table["seeds_counted"].any()
    counted = slices.forest([a], [b], data, "full", "HR@10", trained=(False, False))
    assert "Holm" in slices.remaining(counted) and ONE_RUN not in slices.remaining(counted)


def test_holm_against_the_definition() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 20):
        p = rng.random(size) ** 3
        ranked = sorted(range(size), key=lambda i: p[i])
        slow = [max(min(1.0, (size - j) * p[ranked[j]]) for j in range(ranked.index(i) + 1)) for i in range(size)]
        assert holm(p) == pytest.approx(slow)


def test_extremes_are_the_people_with_the_largest_differences(data: Dataset, a: Report, b: Report) -> None:
    table = versus.extremes(a, b, data, "full", "NDCG@10", top=5)
    difference = a.values("full", "NDCG@10") - b.values("full", "NDCG@10")
    wins = table[table["side"] == "A"]
    assert sorted(wins["difference"], reverse=True) == wins["difference"].tolist()
    assert wins["difference"].tolist() == pytest.approx(sorted(difference[difference >= 0], reverse=True)[: len(wins)])
    for row in table.to_dict("records"):
        assert (row["place_a"] < row["place_b"]) == (row["side"] == "A")
        assert row["title"] == data.catalog.title(int(data.targets("test")[row["user"]]))


def test_list_properties_against_loops(data: Dataset, lists: list[Lists]) -> None:
    a, b = lists
    found, counts = versus.properties(a.items, data), data.counts()
    shown = [int(item) for row in a.items for item in row if item]
    assert found.coverage == pytest.approx(len(set(shown)) / data.catalog.n_items)
    assert found.popularity == pytest.approx(sum(counts[item] for item in shown) / len(shown))
    slow = [len(set(x.tolist()) & set(y.tolist()) - {0}) for x, y in zip(a.items, b.items, strict=True)]
    assert versus.shared_items(a, b).tolist() == slow
    assert versus.shared_items(a, a).tolist() == [(row > 0).sum() for row in a.items]
    assert 0 < versus.properties(data.targets("test")[:, None], data).coverage <= 1


def test_shipped_runs_on_the_same_data_stand_in_one_table() -> None:
    """Reads ranks and logs only."""
    runs = list_runs(CHECKPOINTS)
    planted = [run for run in runs if run.config.data == recipes.planted().data]
    if not planted:
        pytest.skip("no shipped runs here")
    data = load(planted[0].config.data)
    same = standings.comparable(runs, data)
    assert {run.name for run in planted} <= {run.name for run in same} and all("ml-" not in run.name for run in same)
    elastic = next(run for run in same if run.name == "planted-elastic")
    other = standings.partner(same, elastic)
    twins = [run for run in same if run.name != elastic.name == run.name.replace(run.config.model.name, "elastic")]
    assert other is twins[0] and {"planted-sasrec", "planted-elastic-slots"} <= {run.name for run in twins}
    assert standings.partner(same, other) is elastic and standings.partner([elastic], elastic) is None
    frame = standings.quantities(same, "full", {}, data)
    assert set(standings.QUANTITIES) <= set(frame.columns) and frame["parameters"].gt(0).any()


def test_what_a_seed_can_move_is_said(tiny_runs: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_runs, tmp_path / "runs"))
    tiny, peer = Run(folder / "tiny"), Run(folder / "tiny-peer")
    known = [tiny, peer, seeded(folder, tiny, 1), seeded(folder, tiny, 2)]
    assert "3 training seeds" in standings.seeds(known, tiny, "full", "NDCG@10")
    assert "trained once" in standings.seeds(known, peer, "full", "NDCG@10")
    assert "needs no training" in standings.seeds([], shipped_run("planted-cooccurrence"), "full", "NDCG@10")
