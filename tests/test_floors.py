"""The training-free floors against loops, and the protocols against published figures of popularity on MovieLens-1M."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from elastic_core.core.batches import history_batch, reading_batch
from elastic_core.data import Catalog, Dataset, Histories, load
from elastic_core.errors import InputError
from elastic_core.models import build
from elastic_core.peers import cooccurrence, frequency
from elastic_core.peers.cooccurrence import CooccurrenceConfig
from elastic_core.peers.due_again import DueAgainConfig
from elastic_core.peers.frequency import FrequencyConfig
from elastic_core.peers.popularity import PopularityConfig
from elastic_core.run_config import DataConfig
from elastic_core.runs.ranks import evaluate


@pytest.fixture
def dataset() -> Dataset:
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 40, 12)
    items = rng.integers(1, 16, lengths.sum()).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    histories = Histories(items, np.arange(len(items)), offsets, np.arange(12).astype(str))
    catalog = Catalog(np.array(["", *map(str, range(1, 16))], dtype=object))
    return Dataset(name="w", label="W", catalog=catalog, histories=histories, licence="none")


def train_histories(dataset: Dataset) -> list[list[int]]:
    return [dataset.histories.user_items(user).tolist()[:-2] for user in range(dataset.histories.n_users)]


def test_popularity_counts_training_events_only(dataset: Dataset) -> None:
    model = build(PopularityConfig(), 15)
    model.fit(dataset)
    flat = [item for history in train_histories(dataset) for item in history]
    assert model.score(history_batch([3, 4], 2))[0, 1:].tolist() == [flat.count(item) for item in range(1, 16)]


def test_own_frequency_matches_a_loop_over_events(dataset: Dataset) -> None:
    model = build(FrequencyConfig(length=8), 15)
    model.fit(dataset)
    counts = dataset.item_counts()
    for history in (train_histories(dataset)[0], [4], [7, 7, 2, 7, 9, 1, 1, 3, 5, 8]):  # the last is longer than what is read
        wanted = counts / (2 * counts.max())
        for age, item in enumerate(reversed(history[-8:])):
            wanted[item] += frequency.DECAY**age
        assert model.score(history_batch(history, 8))[0, 1:].numpy() == pytest.approx(wanted[1:], rel=1e-5)


def shop(people: int = 300) -> Dataset:
    """Everybody buys six of thirty items over and over, each with an interval of its own of 3 to 30 days."""
    rng, events = np.random.default_rng(3), list[tuple[int, float, int]]()
    for person in range(people):
        for item in rng.choice(30, 6, replace=False) + 1:
            interval = float(rng.uniform(3, 30))
            days = np.cumsum(interval * rng.normal(1, 0.1, 60).clip(0.5)) + rng.uniform(0, interval)
            events += [(person, float(day), int(item)) for day in days[days < 200]]
    events.sort()
    owners, days, items = (np.array(column) for column in zip(*events, strict=True))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners))])
    histories = Histories(items.astype(np.int32), (days * 86_400).astype(np.int64), offsets, np.arange(people).astype(str))
    catalog = Catalog(np.array(["", *map(str, range(1, 31))], dtype=object))
    return Dataset(name="shop", label="Shop", catalog=catalog, histories=histories, licence="none")


def test_due_again_knows_what_is_due_and_own_frequency_does_not() -> None:
    data, models = shop(), [build(FrequencyConfig(), 30), build(DueAgainConfig(), 30)]
    for model in models:
        model.fit(data)
    by_frequency, by_rhythm = (evaluate(model, data, protocols=("full-seen",)).metrics["full-seen"]["NDCG@5"] for model in models)
    assert by_rhythm > by_frequency + 0.1
    model, user = models[1], np.array([0])
    batch = reading_batch(data, user, data.split_ends("test")[user], 4_096)
    later = replace(batch, prediction_times=batch.prediction_times + 5 * 86_400)
    assert torch.equal(model.score(batch), model.score(batch)) and not torch.equal(model.score(batch), model.score(later))
    without = replace(batch, prediction_times=None)
    at_the_end = replace(batch, prediction_times=torch.full_like(batch.prediction_times, int(data.histories.times.max())))
    assert torch.equal(model.score(without), model.score(at_the_end)), "a list for now is made at the end of the data"


def test_what_due_again_reads_matches_a_loop_over_events() -> None:
    data = shop(20)
    model = build(DueAgainConfig(), data.catalog)
    model.fit(data)
    items, days = np.array([4, 9, 4, 4, 2]), np.array([0.0, 1.0, 2.0, 8.0, 8.0])
    known, found = model._describe(items, days, 11.0)
    visits = [0.0, 1.0, 2.0, 8.0]
    for item, row in zip(known.tolist(), found, strict=True):
        at = [day for which, day in zip(items, days, strict=True) if which == item]
        decayed = sum(frequency.DECAY**age for age, which in enumerate(items[::-1]) if which == item)
        own = (at[-1] - at[0]) / (len(at) - 1) if len(at) > 1 else math.nan
        first, again, usual = (float(x[item]) for x in (model.first_share, model.again_share, model.interval))
        wanted = [
            decayed, len(at), len(at) / 4, 4 - visits.index(at[-1]), first, again, 11 - at[-1], own,
            (11 - at[-1]) / own, (11 - at[-1]) / usual if usual else math.nan, 3.0,
        ]  # fmt: skip
        assert row == pytest.approx(wanted, rel=1e-5, nan_ok=True)
    gaps = {item: list[float]() for item in range(31)}
    for user in range(20):
        mine, at = data.histories.user_items(user)[:-2], data.histories.times[data.histories.offsets[user] :] / 86_400
        last = dict[int, float]()
        for item, day in zip(mine.tolist(), at, strict=False):
            gaps[item] += [day - last[item]] if item in last else []
            last[item] = day
    for item, found_gaps in gaps.items():
        wanted = sorted(found_gaps)[len(found_gaps) // 2] if found_gaps else 0.0
        assert float(model.interval[item]) == pytest.approx(wanted, rel=1e-5)


def test_cooccurrence_matches_a_loop_over_pairs(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    constants = {"WINDOW": 3, "DECAY": 0.5, "FADE": 0.8, "BACKWARD": 0.3, "SOURCE_POWER": 0.7, "TARGET_POWER": 0.2}
    for name, value in constants.items():
        monkeypatch.setattr(cooccurrence, name, value)
    model = build(CooccurrenceConfig(length=4), 15)
    model.fit(dataset)
    counts = np.zeros((16, 16))
    for history in train_histories(dataset):
        for i, first in enumerate(history):
            for distance, then in enumerate(history[i + 1 : i + 4]):
                counts[first, then] += 0.8**distance
                counts[then, first] += 0.8**distance * 0.3
    n = np.maximum(dataset.item_counts(), 1)
    read = [9, 2, 7, 7, 5]  # the first is beyond the four events that are read
    scores = sum(0.5**j * counts[x] / (n[x] ** 0.7 * n**0.2) for j, x in enumerate(reversed(read[1:])))
    for batch in (history_batch(read, 4), history_batch(read, 9)):
        assert model.score(batch)[0].numpy() == pytest.approx(scores, rel=1e-5)
    short = model.score(history_batch([5], 4))[0].numpy()  # padding adds nothing
    assert short == pytest.approx(counts[5] / (n[5] ** 0.7 * n**0.2), rel=1e-5)


@pytest.mark.parametrize("config", [PopularityConfig(), CooccurrenceConfig()], ids=lambda config: config.name)
def test_held_out_events_change_nothing(dataset: Dataset, config: PopularityConfig | CooccurrenceConfig) -> None:
    items = dataset.histories.items.copy()
    for end in dataset.histories.offsets[1:]:
        items[end - 2 : end] = 1
    other = Dataset(
        name="w",
        label="W",
        catalog=dataset.catalog,
        histories=Histories(items, dataset.histories.times, dataset.histories.offsets, dataset.histories.user_ids),
        licence="none",
    )
    one, two = build(config, 15), build(config, 15)
    one.fit(dataset)
    two.fit(other)
    assert all(torch.equal(a, b) for a, b in zip(one.buffers(), two.buffers(), strict=True))


def test_cooccurrence_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(InputError, match=r"20,001 items"):
        build(CooccurrenceConfig(), 20_001)


def test_floors_on_movielens_1m_reach_the_known_figures(real_data: None) -> None:
    """Popularity is the same everywhere, so its four figures show that the four protocols are the field's."""
    data = load(DataConfig(source="ml-1m"))
    model = build(PopularityConfig(), data.catalog.n_items)
    model.fit(data)
    popularity = evaluate(model, data)
    for protocol, value, margin in (
        ("full", 0.0175, 1e-3),
        ("full-seen", 0.0086, 1e-3),
        ("pop100", 0.041, 4e-3),
        ("uniform100", 0.231, 1e-2),
    ):
        assert popularity.metrics[protocol]["NDCG@10"] == pytest.approx(value, abs=margin), protocol
    neighbours = build(CooccurrenceConfig(), data.catalog.n_items)
    neighbours.fit(data)
    found = evaluate(neighbours, data, protocols=("full",)).metrics["full"]
    assert found["NDCG@10"] > 0.146 and found["HR@10"] > 0.254
