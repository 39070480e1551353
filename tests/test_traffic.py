"""Traffic: every number against its definition, and the random router against a simulated one."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from elastic_core import recipes
from elastic_core.data import Dataset
from elastic_core.memory.routing import RoutedUsers, random_choices
from elastic_core.runs import Run
from elastic_core.services.traffic import load as t
from elastic_core.services.traffic import over_time as runs

loads = arrays(np.int64, st.sampled_from([4, 9, 16, 64]), elements=st.integers(0, 50)).filter(lambda load: load.sum() > 0)


def routed(people: int, k: int, size: int, seed: int) -> RoutedUsers:
    rng = np.random.default_rng(seed)
    (experts,) = random_choices(people, k, size, 1, seed)
    gates = rng.random((people, k)).astype(np.float32) + 0.1
    load = np.bincount(experts.ravel(), minlength=size)
    none = np.zeros(2)
    return RoutedUsers(experts, gates, load, np.bincount(experts.ravel(), gates.ravel(), size), none, none, 0.0)


def flow(people: int = 300, k: int = 4, size: int = 64, seed: int = 0, measure: t.Measure = "people") -> t.Traffic:
    return t.select_traffic(routed(people, k, size, seed), np.ones(people, dtype=bool), measure)


@settings(max_examples=60, deadline=None)
@given(loads)
def test_gini_divergence_and_holders_are_their_definitions(load: np.ndarray) -> None:
    n, share = len(load), load / load.sum()
    assert t.gini_index(load) == pytest.approx(np.abs(load[:, None] - load).sum() / (2 * n * load.sum()))
    assert t.load_divergence(load) == pytest.approx(sum(p * np.log(p * n) for p in share if p > 0), abs=1e-9)
    for wanted in (0.5, 0.9, 0.99):
        held = t.count_holders(load, wanted)
        hottest = np.sort(load)[::-1]
        assert hottest[:held].sum() >= wanted * load.sum() - 1e-6
        assert hottest[: held - 1].sum() < wanted * load.sum()


def test_extremes() -> None:
    even, one = np.full(16, 3), np.eye(16)[5] * 7
    assert (t.gini_index(even), t.load_divergence(even), t.count_holders(even, 0.5)) == (0, 0, 8)
    assert (t.count_holders(one, 0.99), t.load_divergence(one)) == (1, pytest.approx(np.log(16)))
    assert t.by_marginals(np.outer([1, 2, 3], [4, 1, 1]).ravel()) == pytest.approx(1)


@pytest.mark.parametrize("measure", ["people", "gate"])
def test_tables_add_up_to_people_times_k(measure: t.Measure) -> None:
    now = flow(measure=measure)
    band = t.compare_with_random_router(now, draws=20)
    table, sides = band.experts, band.sides
    assert table["load"].sum() == pytest.approx(300 * 4) and table["share"].sum() == pytest.approx(1)
    assert sides.groupby("half")["load"].sum().tolist() == pytest.approx([1200, 1200])
    row = sides[(sides["half"] == "row") & (sides["key"] == 3)].iloc[0]
    assert row["load"] == pytest.approx(table.loc[table["row"] == 3, "load"].sum())
    assert row["dead"] == (table.loc[table["row"] == 3, "load"] == 0).sum()
    stripes = t.load_by_batch(now, top=64, count=5)
    assert stripes.groupby("batch")["share"].sum().tolist() == pytest.approx([1] * 5)
    assert stripes.drop_duplicates("batch")["people"].sum() == 300


@pytest.mark.parametrize(("k", "size"), [(4, 64), (8, 16)])
def test_random_choices_are_different_and_uniform(k: int, size: int) -> None:
    (chosen,) = random_choices(20_000, k, size, 1, seed=3)
    assert all(len(set(row)) == k for row in chosen[:500].tolist())
    counts, expected = np.bincount(chosen.ravel(), minlength=size), 20_000 * k / size
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_the_band_covers_a_simulated_random_router() -> None:
    """95% of experts, rows and health numbers of fresh random routers lie within the limits."""
    band = t.compare_with_random_router(flow(), draws=200)
    fresh = [t.select_traffic(routed(300, 4, 64, seed), np.ones(300, dtype=bool), "people") for seed in range(100, 220)]
    each = np.concatenate([now.load for now in fresh])
    assert 0.93 <= np.mean((each >= band.each[0]) & (each <= band.each[1])) <= 0.985
    ordered = np.stack([np.sort(now.load)[::-1] for now in fresh])
    assert ((ordered >= band.ordered[0]) & (ordered <= band.ordered[1])).mean() >= 0.94
    gini = np.array([t.gini_index(now.load) for now in fresh])
    assert 0.88 <= ((gini >= band.health.at["gini", "low"]) & (gini <= band.health.at["gini", "high"])).mean() <= 1
    assert band.top[-1] == pytest.approx(1) and band.top[0] > 1 / 64


def test_a_collapsed_router_stands_out() -> None:
    experts = np.tile(np.arange(4), (300, 1))
    gates, none = np.ones((300, 4), dtype=np.float32), np.zeros(2)
    routing = RoutedUsers(experts, gates, np.bincount(experts.ravel(), minlength=64), np.zeros(64), none, none, 0.0)
    now = t.select_traffic(routing, np.ones(300, dtype=bool), "people")
    table = t.compare_with_random_router(now, draws=20).experts
    assert table["state"].value_counts().to_dict() == {"dead": 60, "hot": 4}
    assert t.health_of(now)["marginals"] == pytest.approx(1), "one row explains every dead cell"


def test_groups_of_people(small_world: Dataset) -> None:
    readable = small_world.split_ends("test") - small_world.histories.offsets[:-1]
    short, long = (t.group_table(small_world, name, "test") for name in (t.SHORT, t.LONG))
    assert short.sum() == long.sum() == 15 and readable[short].max() <= np.sort(readable)[15] <= readable[long].min()
    assert t.group_table(small_world, t.EVERYBODY, "test").all()
    genre = next(name for name in t.length_groups(small_world) if name.startswith(t.FANS)).removeprefix(t.FANS)
    fans = t.group_table(small_world, t.FANS + genre, "test")
    offsets, ends = small_world.histories.offsets, small_world.split_ends("test")
    share = np.array(
        [
            np.mean([genre in small_world.catalog.genres[i] for i in small_world.histories.items[offsets[u] : ends[u]]])
            for u in range(60)
        ]
    )
    assert share[fans].min() >= share[~fans].max() - 1e-12


def test_what_a_run_recorded_by_epoch_is_read(small_world: Dataset, tmp_path: Path) -> None:
    config = dataclasses.replace(recipes.toy(), data=recipes.toy().data)

    def finished(name: str, *changes: str, data_hash: str = "") -> Run:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config.override(*changes).to_dict()))
        events = [
            {"event": "start", "data_hash": data_hash or small_world.hash},
            {
                "event": "epoch",
                "epoch": 1,
                "loss": 1,
                "seconds": 1,
                "valid": {"NDCG@10": 0.1},
                "used": 0.5,
                "entropy": 0.8,
                "gini": 0.4,
            },
            {"event": "test", "users": 60, "protocols": {"full": {"NDCG@10": 0.1}}, "errors": {"full": {"NDCG@10": 0.01}}},
            {"event": "end", "reason": "done", "best_epoch": 1, "seconds": 1},
        ]
        (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, events)))
        return Run(folder)

    here = finished("a")
    assert runs.by_epoch(here)[["entropy", "ndcg"]].to_numpy().tolist() == [[0.8, 0.1]]
    frame, loads = runs.epochs_to_play(here)
    assert frame["half"].isna().all() and len(frame) == 1 and loads.empty, "totals without copies"


def test_what_is_played_are_the_copies_that_a_run_kept(tiny_runs: Path) -> None:
    run = Run(tiny_runs / "tiny")
    frame, loads = runs.epochs_to_play(run)
    assert frame["epoch"].tolist() == loads.index.tolist() == [epoch for epoch, _ in run.snapshot_files()] and len(frame) == 2
    for row, (_, load) in zip(frame.to_dict("records"), loads.iterrows(), strict=True):
        assert row["used"] == pytest.approx((load > 0).mean(), abs=1e-4), "as the run recorded it"
        ordered, least = sorted(load, reverse=True), int(row["half"])
        assert sum(ordered[:least]) >= load.sum() / 2 > sum(ordered[: least - 1])


def test_last_used() -> None:
    loads = pd.DataFrame([[3, 0, 1, 0], [2, 0, 0, 5], [4, 0, 0, 6]], index=[1, 2, 4])
    assert runs.last_used(loads).tolist() == [4, 0, 1, 4]
