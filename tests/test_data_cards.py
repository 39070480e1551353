"""Cards and pictures of data, against the slowest way to count the same."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig
from elastic_core.services.data import cards


def test_a_card_counts_what_a_loop_counts(small_world: Dataset) -> None:
    card = cards.make_card(small_world, 5)
    histories = [small_world.histories.user_items(user) for user in range(small_world.histories.n_users)]
    lengths = [len(h) for h in histories]
    assert (card.n_users, card.items, card.events) == (len(histories), len(set(np.concatenate(histories))), sum(lengths))
    assert (card.shortest, card.longest) == (min(lengths), max(lengths)) and card.mean == pytest.approx(np.mean(lengths))
    assert card.density == pytest.approx(sum(lengths) / (card.n_users * card.items))
    first, last = card.span.split(" to ")
    assert first < last and "seed" in card.exact
    assert cards.make_card(replace(small_world, has_times=False), 5).span == "order only"


def test_histograms_lose_nobody(small_world: Dataset) -> None:
    for frame, values, name in (
        (cards.length_histogram(small_world), small_world.histories.lengths, "people"),
        (cards.popularity_histogram(small_world), small_world.all_counts()[1:], "items"),
    ):
        assert frame[name].sum() == len(values) and (np.diff(frame["to"] - frame["from"]) >= 0).all(), "or a bar is a false peak"
        for low, high, count in frame[["from", "to", name]].to_numpy():
            assert count == sum(low <= value <= high for value in values)


def test_the_top_share(small_world: Dataset) -> None:
    counts = sorted(Counter(small_world.histories.items.tolist()).values(), reverse=True)
    top = counts[: -(-len(counts) // 10)]
    assert cards.top_share(small_world) == pytest.approx(sum(top) / sum(counts))


def test_the_split_picture_holds_out_the_last_two(small_world: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = cards.split_table(small_world, 3)
    assert len(frame) == len(small_world.histories.user_items(3))
    assert frame["split"].tolist() == ["train"] * (len(frame) - 2) + ["validation", "test"]
    assert frame["title"].iloc[-1] == small_world.catalog.title(int(small_world.target_items("test")[3]))
    assert frame["title"].iloc[-2] == small_world.catalog.title(int(small_world.target_items("valid")[3]))
    monkeypatch.setattr(cards, "MOST_EVENTS", 5)
    assert cards.split_table(small_world, 3)["event"].tolist() == frame["event"].tolist()[-5:]


def test_interest_blocks_hold_every_event_once(small_world: Dataset) -> None:
    truth = small_world.truth
    assert truth is not None
    frame = cards.interest_blocks(small_world)
    assert frame["events"].sum() == len(small_world.histories.items)
    met = frame[(frame["interest"] != "noise") & (frame["events"] > 0)]
    assert (met["interest"] == met["home"]).mean() > 0.9, "blocks on the diagonal"
    assert frame.loc[frame["interest"] == "noise", "events"].sum() == (truth.event_interest < 0).sum()
    assert len(cards.interest_blocks(small_world, most=50)) <= 50
    assert cards.interest_blocks(small_world, most=50)["events"].sum() == frame["events"].sum()


def test_a_persons_path_is_the_truth_of_their_events(small_world: Dataset) -> None:
    truth, at = small_world.truth, small_world.histories.offsets
    assert truth is not None
    for user in (0, 7):
        path = cards.interest_path(small_world, user)
        expected = [truth.interests[i] if i >= 0 else "noise" for i in truth.event_interest[at[user] : at[user + 1]]]
        assert path["interest"].tolist() == expected
    measured = cards.measured_truth(small_world)
    assert measured["noise"] == pytest.approx((truth.event_interest < 0).mean())
    assert 1 <= measured["interests a person"] <= 4


def test_without_truth_there_is_nothing_to_show(small_world: Dataset) -> None:
    with pytest.raises(InputError, match="no planted truth"):
        cards.interest_path(replace(small_world, truth=None), 0)


def test_choices_put_the_current_data_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "at_hand", lambda name: name == "ml-1m")
    own = DataConfig(source="mine.csv")
    choices = cards.at_hand_choices({"Mine · 1234": own}, own)
    assert list(choices) == ["Mine · 1234", "MovieLens-1M", "A year of groceries", "Planted interests"]
    assert next(iter(cards.at_hand_choices({}, DataConfig(source="other.csv")))) == "The chosen run's data"
    assert "MovieLens-1M" not in cards.unavailable_data()["data"].tolist()
    assert cards.overview_table([]).empty
