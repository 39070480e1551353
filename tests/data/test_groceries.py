"""The year of groceries that lies in the repository: events and items fit together, and have names that people know."""

import pandas as pd

from elastic_core.data.groceries.make import FOLDER, MIN_PURCHASES, spell


def test_events_and_items_fit_together() -> None:
    events, items = pd.read_parquet(FOLDER / "events.parquet"), pd.read_csv(FOLDER / "items.csv")
    counts = events["item"].value_counts()
    assert set(counts.index) == set(range(1, len(items) + 1)) and counts.min() >= MIN_PURCHASES
    more = counts.sort_index().diff().max()
    assert more <= 3, "the most bought come first, but for baskets of the same second"
    assert not events.duplicated().any(), "an item is bought once a basket"
    assert sorted(events["household"].unique()) == list(range(1, events["household"].max() + 1))
    assert all(times.is_monotonic_increasing for _, times in events.groupby("household")["time"])
    assert pd.to_datetime(events["time"], unit="s").dt.year.isin([2016, 2017, 2018]).all()


def test_items_have_names_that_people_know() -> None:
    items, titles = pd.read_csv(FOLDER / "items.csv"), pd.read_csv(FOLDER / "titles.csv")
    assert items.notna().all(axis=None) and items["title"].str.lower().is_unique
    assert set(titles["product_type"]) <= set(items["product_type"]) and items["title"].iloc[0] == "Milk"
    assert items["group"].nunique() <= 70
    assert spell("FRZN HASHBROWN POTATOES") == "Frozen hashbrown potatoes"
