"""Baskets: the last one is held out whole, and nothing rests on the order inside one."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_core.core.batches import Batch, reading_batch
from elastic_core.core.evaluate import rank_users
from elastic_core.core.histories import Catalog, Dataset
from elastic_core.core.objective import All, AllConfig
from elastic_core.data.baskets import BasketDataset, hold_out_baskets, with_baskets
from elastic_core.data.by_time import by_time
from elastic_core.data.preprocessing import preprocess
from elastic_core.data.reading import Table
from elastic_core.data.sources import load
from elastic_core.errors import InputError
from elastic_core.models import build
from elastic_core.recipes import model_settings
from elastic_core.run_config import DataConfig
from elastic_core.runs.basket_scores import basket_scores

EVENTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8), st.integers(0, 5)), min_size=1, max_size=120)


def folded(events: list[tuple[int, int, int]], timed: bool = True) -> Dataset:
    frame = pd.DataFrame(events, columns=["user", "item", "time"]).astype({"user": str, "item": str})
    return preprocess(Table(frame if timed else frame[["user", "item"]], None, ""), name="t", label="t", licence="", k_core=0)


def shop(seed: int = 0) -> list[tuple[int, int, int]]:
    """Thirty people, each with four to nine baskets of two to six of forty items."""
    rng = np.random.default_rng(seed)
    return [
        (user, int(item), 10 * day)
        for user in range(30)
        for day in range(rng.integers(4, 10))
        for item in rng.choice(40, rng.integers(2, 7), replace=False)
    ]


@settings(max_examples=150, deadline=None)
@given(EVENTS)
def test_the_split_is_the_slow_split(events: list[tuple[int, int, int]]) -> None:
    try:
        data = with_baskets(folded(events))
    except InputError:
        return
    histories = data.histories
    wanted = {}
    for user in {user for user, _, _ in events}:
        times = sorted({time for who, _, time in events if who == user})
        if len(times) >= 3:
            wanted[str(user)] = [{str(item) for who, item, at in events if (who, at) == (user, time)} for time in times]
    assert set(histories.user_ids) == set(wanted)
    for user, raw in enumerate(histories.user_ids):
        start, stop = histories.offsets[user], histories.offsets[user + 1]
        edges = [start, data.split_ends("valid")[user], data.split_ends("test")[user], stop]
        found = [{data.catalog.ids[i] for i in histories.items[a:b]} for a, b in itertools.pairwise(edges)]
        assert found == [set.union(*wanted[raw][:-2]), wanted[raw][-2], wanted[raw][-1]]
        for split, basket in (("valid", found[1]), ("test", found[2])):
            assert data.catalog.ids[data.target_items(split)[user]] in basket  # type: ignore[arg-type]
            assert {data.catalog.ids[i] for i in data.next_items(user, split)} == basket  # type: ignore[arg-type]
    borders = zip(histories.offsets[:-1], data.split_ends("train"), strict=True)
    learned = np.concatenate([histories.items[start:end] for start, end in borders])
    assert np.array_equal(data.item_counts(), np.bincount(learned, minlength=data.catalog.n_items + 1))


def test_the_order_of_a_files_rows_inside_a_basket_says_nothing() -> None:
    rows = shop()
    data = with_baskets(folded(rows))
    shuffled = with_baskets(folded([rows[i] for i in np.random.default_rng(1).permutation(len(rows))]))
    assert shuffled.hash == data.hash
    assert np.array_equal(shuffled.target_items("test"), data.target_items("test"))
    by_id = [data.target_items("test")[u] == data.next_items(u).min() for u in range(30)]
    assert 0 < np.mean(by_id) < 0.7, "the target is not simply the lowest id"


def test_an_epoch_draws_the_order_anew_and_stays_in_its_basket() -> None:
    data = with_baskets(folded(shop()))
    objective = All(AllConfig(), data, 200)

    def shown(epoch: int) -> list[tuple[int, ...]]:
        """Every person's training events, as a batch of the epoch has them."""
        rows = [row for batch in objective.epoch_batches(epoch, 3, 64) for row in batch.items.numpy()]
        return sorted(tuple(row[row > 0].tolist()) for row in rows)

    assert shown(1) == shown(1), "an epoch that is gone through again is the same"
    assert shown(1) != shown(2)
    other = data.reorder_events(np.random.default_rng(7))
    for a, b in itertools.pairwise([*np.flatnonzero(np.diff(data.baskets, prepend=-1)), None]):
        assert sorted(other.histories.items[a:b]) == sorted(data.histories.items[a:b])
    assert not np.array_equal(other.histories.items, data.histories.items)


def test_training_asks_for_an_item_of_the_next_basket_and_never_for_a_held_out_one() -> None:
    """Every item is made another one, so that a target tells the place it comes from."""
    data = with_baskets(folded(shop()))
    places = np.arange(1, len(data.histories.items) + 1, dtype=np.int32)
    catalog = Catalog.from_count(len(places))
    data = replace(data, catalog=catalog, histories=replace(data.histories, items=places))
    owner = np.repeat(np.arange(30), data.histories.lengths)
    asked = set()
    for epoch in range(20):
        for batch in All(AllConfig(), data, 200).epoch_batches(epoch, 3, 64):
            rows, columns = np.nonzero(batch.targets.numpy())  # type: ignore[union-attr]
            here, there = batch.items.numpy()[rows, columns] - 1, batch.targets.numpy()[rows, columns] - 1  # type: ignore[union-attr]
            assert (owner[here] == owner[there]).all() and (data.baskets[there] == data.baskets[here] + 1).all()
            assert (there < data.split_ends("train")[owner[there]]).all()
            asked |= set(there.tolist())
    first = data.histories.times == data.histories.times[data.histories.offsets[:-1]][owner]
    assert asked == set(np.flatnonzero(~first & (places - 1 < data.split_ends("train")[owner])).tolist()), "all but first baskets"


@pytest.mark.parametrize("name", ["sasrec", "elastic", "elastic-slots"])
def test_no_score_sees_the_held_out_basket(name: str) -> None:
    """Whatever is in the last basket, but for the target, scores and ranks among all items are the same."""
    data = with_baskets(folded(shop()))
    model = build(model_settings(name, length=16, width=8, layers=1, n_subkeys=4, k=2), data.catalog).eval()
    items = data.histories.items.copy()
    for user, (start, stop) in enumerate(zip(data.split_ends("test"), data.histories.offsets[1:], strict=True)):
        items[start + 1 : stop] = 1 + (items[start + 1 : stop] + user) % data.catalog.n_items
    altered = BasketDataset(**{**vars_of(data), "histories": data.histories.__class__(items, *rest_of(data))})
    users = np.arange(30)
    for world in (data, altered):
        batch = reading_batch(world, users, world.split_ends("test"), 16)
        assert (batch.items.numpy()[:, -1] == data.histories.items[data.split_ends("test") - 1]).all()
    one, other = (rank_users(model, world, "test", ("full-seen",))["full-seen"].places for world in (data, altered))
    assert np.array_equal(one, other)


def vars_of(data: BasketDataset) -> dict[str, object]:
    return {name: value for name, value in vars(data).items() if name not in ("hash",)}


def rest_of(data: BasketDataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return data.histories.times, data.histories.offsets, data.histories.user_ids


def test_what_looks_like_a_shop_is_read_as_baskets_and_what_does_not_is_left() -> None:
    baskets = folded(shop())
    assert isinstance(hold_out_baskets(baskets, "", ""), BasketDataset)
    assert hold_out_baskets(baskets, "no", "") is baskets and hold_out_baskets(baskets, "", "file") is baskets
    two_days = folded([(user, item, item // 5) for user in range(20) for item in range(10)])
    assert two_days.ties.events > 0.8 and hold_out_baskets(two_days, "", "") is two_days, "no third basket to learn from"
    one_by_one = folded([(user, item, 10 * at) for user in range(5) for at, item in enumerate(range(6))])
    assert hold_out_baskets(one_by_one, "", "") is one_by_one
    assert hold_out_baskets(one_by_one, "yes", "").hash != one_by_one.hash
    with pytest.raises(InputError, match="has no times"):
        with_baskets(folded(shop(), timed=False))
    with pytest.raises(InputError, match="nobody has 3 baskets"):
        with_baskets(folded([(user, item, user) for user in range(4) for item in range(5)]))
    with pytest.raises(InputError, match="leaves no order inside a basket"):
        DataConfig(source="groceries", baskets="yes", ties="file")


def test_a_date_splits_between_baskets() -> None:
    split = by_time(with_baskets(folded(shop())))
    for user in split.users_with_target("test"):
        mine = split.histories.times[split.histories.offsets[user] : split.histories.offsets[user + 1]]
        border = split.split_ends("test")[user] - split.histories.offsets[user]
        assert mine[border - 1] < split.dates[1] <= mine[border]


def test_groceries_come_with_the_package() -> None:
    data = load(DataConfig(source="groceries"))
    assert isinstance(data, BasketDataset) and (data.histories.n_users, data.catalog.n_items) == (2_404, 1_323)
    assert "CC0" in data.licence and data.catalog.title(1) == "Milk" and "Milk and cream" in data.catalog.genres[1]  # type: ignore[index]
    with pytest.raises(InputError, match="groceries are no file"):
        load(DataConfig(source="groceries", dates="day-first"))


class Fixed:
    """Scores everybody alike: item i by `numbers[i]`."""

    length = 4

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers = torch.from_numpy(numbers).float()

    def score(self, batch: Batch) -> torch.Tensor:
        return self.numbers.expand(len(batch.items), -1)


def test_a_list_of_ten_against_the_whole_basket_is_the_slow_count() -> None:
    data = with_baskets(folded(shop()))
    numbers = np.random.default_rng(5).permutation(data.catalog.n_items + 1)
    found = basket_scores(Fixed(numbers), data)
    listed = [int(item) for item in np.argsort(-numbers[1:]) + 1][:10]
    shares, gains = [], []
    for user in range(data.histories.n_users):
        basket = set(data.next_items(user).tolist())
        shares.append(len(basket & set(listed)) / len(basket))
        won = sum(1 / math.log2(place + 2) for place, item in enumerate(listed) if item in basket)
        gains.append(won / sum(1 / math.log2(place + 2) for place in range(min(10, len(basket)))))
    assert found["basket NDCG@10"] == pytest.approx(np.mean(gains)) and found["basket recall@10"] == pytest.approx(
        np.mean(shares)
    )
    assert found["basket recall@10 error"] == pytest.approx(np.std(shares, ddof=1) / math.sqrt(len(shares)))
