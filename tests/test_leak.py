"""Times that tell of the answer: they are the published Δt, and nothing learned from them is a run."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from elastic_core import recipes, tables
from elastic_core.bench import leak
from elastic_core.core.batches import reading_batch
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.models import build
from elastic_core.peers.sma import SMAConfig
from elastic_core.reproduce import rows
from elastic_core.run_config import DataConfig, PlantedConfig
from elastic_core.runs.training import train


def test_moved_times_give_the_published_interval(small_world: Dataset) -> None:
    """Δ_i = t_{i+1} - t_i at every event but the first, the target's time included; across people nothing moves."""
    moved = leak.peeking(small_world)
    users = np.arange(5)
    ends = small_world.ends("test")[users]
    batch = reading_batch(moved, users, ends, 64)
    model = build(SMAConfig(length=64, width=8, layers=1), small_world.catalog)
    after, known = model._intervals(batch)  # type: ignore[operator]
    times, offsets = small_world.histories.times, small_world.histories.offsets
    for row, user in enumerate(users):
        own = times[offsets[user] : offsets[user + 1]]  # the test event is the last: the model must not know when it is
        expected = np.log1p(np.diff(own)[1:] / 60)
        assert np.allclose(after[row][known[row]].numpy(), expected[-known[row].sum() :], atol=1e-5)
    last = offsets[1:] - 1
    assert (moved.histories.times[last] == times[last]).all() and moved.histories.items is small_world.histories.items


def test_what_peeks_becomes_no_run_and_no_row(small_world: Dataset, tmp_path: Path) -> None:
    config = recipes.toy("sma").override("train.epochs=1")
    with pytest.raises(InputError, match="nothing learned here is a run"):
        train(config, leak.peeking(small_world), tmp_path / "run")
    assert not (tmp_path / "run").exists() and not tables.finished(rows(), tmp_path)
    assert not load(DataConfig(source="planted", planted=PlantedConfig(users=60, items=60, interests=4, mean_length=20))).peeks
    assert "peeks" not in {field.name for field in dataclasses.fields(DataConfig)} | {
        f.name for f in dataclasses.fields(PlantedConfig)
    }
    for row in rows():  # nor can a row of the tables ask for it: there is no such setting of a model
        assert getattr(row.config.model, "times", "none") != "next"


def test_times_of_a_world_with_tempo_tell_the_interest() -> None:
    config = PlantedConfig(users=60, items=60, interests=4, mean_length=20, max_length=40, tempo=1.0)
    world = load(DataConfig(source="planted", planted=config))
    assert world.truth is not None
    before = np.diff(world.histories.times, prepend=0)
    inside = np.ones(len(before), dtype=bool)
    inside[world.histories.offsets[:-1]] = False
    for interest in range(4):
        took = before[inside & (world.truth.event_interest == interest)]
        assert (np.abs(took - 60 * 2**interest) <= 6 * 2**interest + 1).all()
