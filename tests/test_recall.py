"""Recall by gap: the oracle has all of it, popularity none, and somebody with a short memory loses it where it must be lost."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from elastic_core import readme, tables
from elastic_core.commands import main
from elastic_core.commands import recall as command
from elastic_core.data import Dataset, load
from elastic_core.data.synthetic import planted
from elastic_core.memory import recall
from elastic_core.memory.gaps import gaps
from elastic_core.run_config import DataConfig, PlantedConfig
from pages.evidence import silence
from pages.kit import plot

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


def test_what_is_kept_is_drawn_with_its_nulls_and_intervals(
    tiny_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the command's own file: seeds of a named system are one curve, and whoever may say more stands beside."""
    assert tables.recalled(tmp_path).empty and "Which model remembers" not in readme.results(tmp_path)
    monkeypatch.setattr(command, "FILE", tmp_path / recall.FILE)
    names = {"planted-long-elastic": "tiny", "planted-long-elastic-seed1": "tiny-peer", "mine": "tiny"}
    copies = [str(shutil.copytree(tiny_runs / source, tmp_path / name)) for name, source in names.items()]
    assert main(["recall", *copies, "--write"]) == 0 and "planted oracle" in capsys.readouterr().out
    kept, table = recall.read_recall(tmp_path / recall.FILE), tables.recalled(tmp_path)
    assert list(dict.fromkeys(table["system"])) == [*recall.NULLS, "ELASTIC", "mine"]
    assert table["gap"].drop_duplicates().tolist() == [recall.name_of(*each) for each in recall.BINS][: table["gap"].nunique()]
    for gap, mine in kept.groupby("gap"):
        here = table[table["gap"] == gap].set_index("system")
        of = mine.set_index("system")
        both = of.loc[["planted-long-elastic", "planted-long-elastic-seed1"]]
        for column in ("place", "place_ci", "found", "found_ci"):
            assert here.loc["ELASTIC", column] == pytest.approx(both[column].mean(), nan_ok=True)
            assert here.loc["popularity", column] == pytest.approx(of.loc["popularity", column], nan_ok=True)
        assert here["seeds"].to_dict() == {"planted oracle": 1, "popularity": 1, "ELASTIC": 2, "mine": 1}
        assert here.loc["mine", "people"] == of.loc["mine", "people"]
    figure = silence.curves(table, "place", plot.LIGHT)
    for trace in figure.data:
        of = table[table["system"] == trace.name]
        assert list(trace.y) == of["place"].tolist() and list(trace.error_y.array) == np.nan_to_num(of["place_ci"]).tolist()
        assert (trace.line.dash == "dot") == (trace.name in recall.NULLS)
    assert len({trace.marker.symbol for trace in figure.data[2:]}) == 2, "told apart without colour"
    assert silence.curves(table, "found", plot.DARK).layout.shapes[0].y0 == recall.CHANCE
    longest = table[table["gap"] == table["gap"].iloc[-1]].set_index("system")
    said = silence.words(table, "place")
    assert all(f"{name} {longest.loc[name, 'place']:.2f}" in said for name in recall.NULLS)
    (first, second) = readme.results(tmp_path).split("\n\n")[-3:-1]
    assert f"| ELASTIC | 2 | {table.set_index(['gap', 'system']).loc[('1', 'ELASTIC'), 'place']:.2f} ± " in first
    assert "(chance: 0.50)" in second and first.count("\n") == second.count("\n") == 5


def test_equal_scores_stand_in_the_middle(world: Dataset) -> None:
    same = recall.recall(lambda users: np.zeros((len(users), world.catalog.n_items + 1)), world)
    sizes = np.bincount(recall.truth_of(world).item_interest[1:])
    expected = np.mean([np.mean(1 / np.arange(1, size + 1)) for size in sizes])
    assert np.nanmean(same.place) == pytest.approx(expected, rel=0.05)
