"""k-core, preprocessing and splits against slow twins."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_core.core.histories import Dataset
from elastic_core.data.item_features import find_items_by_title
from elastic_core.data.preprocessing import k_core_mask, preprocess
from elastic_core.data.reading import Table
from elastic_core.errors import InputError
from elastic_core.text import natural_order

EVENTS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 3)), min_size=1, max_size=120)


def slow_core(events, k):
    """Users first, one at a time: the other order from the code's, and the same result."""
    events = list(enumerate(events))
    while True:
        users = Counter(user for _, (user, _, _) in events)
        items = Counter(item for _, (_, item, _) in events)
        bad = [e for e in events if users[e[1][0]] < max(k, 3)][:1] or [e for e in events if items[e[1][1]] < k][:1]
        if not bad:
            return {position for position, _ in events}
        events.remove(bad[0])


def make(events, k=2, *, timed=True) -> Dataset:
    frame = pd.DataFrame(events, columns=["user", "item", "time"]).astype({"user": str, "item": str})
    return preprocess(Table(frame if timed else frame[["user", "item"]], None, ""), name="t", label="t", licence="", k_core=k)


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.integers(0, 5))
def test_core_is_the_slow_core(events, k):
    users, items, _ = np.array(events).T
    assert set(np.flatnonzero(k_core_mask(users, items, k)).tolist()) == slow_core(events, k)


@settings(max_examples=150, deadline=None)
@given(EVENTS)
def test_fold_and_split(events):
    try:
        data = make(events)
    except InputError:
        return
    once = list(dict.fromkeys(events))
    kept = slow_core(once, 2)
    once = [event for position, event in enumerate(once) if position in kept]
    h = data.histories
    for user, raw in enumerate(h.user_ids):
        mine = sorted((e for e in once if str(e[0]) == raw), key=lambda e: e[2])  # Python's sort is stable
        assert [data.catalog.ids[i] for i in h.user_items(user)] == [str(item) for _, item, _ in mine]
        assert h.times[h.offsets[user] : h.offsets[user + 1]].tolist() == [time for _, _, time in mine]
        valid, test = data.split_ends("valid")[user], data.split_ends("test")[user]
        assert data.split_ends("train")[user] == valid == test - 1 == h.offsets[user + 1] - 2
        assert h.offsets[user] < valid
        assert data.target_items("valid")[user] == h.items[valid]
        assert data.target_items("test")[user] == h.items[test]
    readable = np.concatenate([h.items[a:b] for a, b in zip(h.offsets[:-1], data.split_ends("train"), strict=True)])
    assert np.array_equal(data.item_counts(), np.bincount(readable, minlength=data.catalog.n_items + 1))
    assert data.all_counts().sum() == len(h.items)
    assert h.items.min() == 1
    assert h.items.max() == data.catalog.n_items


def test_duplicates_and_repeats():
    events = [(u, i, i) for u in range(3) for i in range(5)]
    data = make(events + events[:4])
    assert len(data.histories.items) == 15
    assert data.notes == ("4 rows that repeat user, item and time exactly were dropped",)
    untimed = make(events + events[:4], timed=False)
    assert len(untimed.histories.items) == 19
    assert untimed.histories.times[:9].tolist() == list(range(9))
    assert not untimed.has_times


def test_hash_follows_the_split_and_nothing_else():
    events = [(u, i, i) for u in range(3) for i in range(5)]
    later = [(user, item, time + 7) for user, item, time in events]
    assert make(events).hash == make(later).hash == make(events[::-1]).hash
    assert make(events).hash != make([(user, item, -time + 9) for user, item, time in events]).hash
    assert len(make(events).hash) == 16


def test_natural_order():
    ids = ["b10", "10", "b2", "2", "02", "a", "x1y", "x1"]
    assert [ids[i] for i in natural_order(ids)] == ["02", "2", "10", "a", "b2", "b10", "x1", "x1y"]


def test_catalog_and_lookups():
    catalog = make([(u, i, i) for u in range(3) for i in range(5)]).catalog
    assert catalog.title(1) == "item 0"
    assert catalog.item_number("4") == 5
    assert find_items_by_title(catalog, "ITEM 3").tolist() == [4]
    for call in (
        lambda: catalog.title(0),
        lambda: catalog.title(6),
        lambda: catalog.item_number("9"),
        lambda: catalog.item_number(""),
    ):
        with pytest.raises(InputError):
            call()
    with pytest.raises(InputError, match="train, valid or test"):
        make([(u, i, i) for u in range(3) for i in range(5)]).split_ends("tset")
