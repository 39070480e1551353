"""Personal against shared experts, by how many interests share one."""

from pathlib import Path

import pandas as pd
import pytest
from shipped import CHECKPOINTS

from elastic_core.results import store
from elastic_core.results.compare import compare_runs
from elastic_core.results.personal_gain import gain_sentence, personal_gains, read_interest_counts
from elastic_core.results.systems import System, data_sets


def test_a_point_is_the_paired_difference() -> None:
    measured, _ = data_sets(store.load(CHECKPOINTS))
    gains = personal_gains(measured, read_interest_counts(CHECKPOINTS))
    world = next(data_set for data_set in measured if data_set.key == "planted-64")
    own, shared = (world.systems[System("elastic-slots", variant)] for variant in ("", "memory-none"))
    expected = compare_runs(own, shared, "full-seen")
    same_k, of_slots = gains["k"] == own[0].config.model.k, gains["model"].str.contains("slots")
    row = gains[gains["data"].str.contains("(64 ", regex=False) & same_k & of_slots]
    assert row["difference"].tolist() == [pytest.approx(expected.difference)] and row["interests"].tolist() == [64]
    assert row[["low", "high"]].iloc[0].tolist() == pytest.approx([expected.low, expected.high])
    real = gains[~gains["made up"]]
    assert {"MovieLens-100K", "A year of groceries", "Amazon Video Games"} <= set(real["data"]), (
        "with the interests that were counted"
    )
    better = int((real["winner"] == "A").sum())
    assert f"in {better} of {len(real)} comparisons on real data" in gain_sentence(gains)


def test_without_pairs_or_counts_it_says_so(tmp_path: Path) -> None:
    assert read_interest_counts(tmp_path).empty
    gains = personal_gains([], read_interest_counts(tmp_path))
    assert isinstance(gains, pd.DataFrame) and gains.empty and "No model was trained" in gain_sentence(gains)
