"""The year of groceries: events are made as promised, and items have names that people know."""

import pandas as pd

from elastic_core.data.groceries.make import FOLDER, make_events, spell


def test_a_basket_is_one_time_and_an_item_once() -> None:
    items = pd.DataFrame({"product_type": ["MILK", "BEER"]})
    rows = [
        (7, 1, "10:05", "MILK"),
        (7, 1, "10:00", "BEER"),
        (7, 1, "10:06", "MILK"),
        (7, 2, "10:00", "BEER"),
        (9, 3, "09:00", "EGGS"),
        (9, 3, "09:00", "MILK"),
    ]
    bought = pd.DataFrame(rows, columns=["household_id", "basket_id", "transaction_timestamp", "product_type"])
    bought["transaction_timestamp"] = pd.to_datetime("2017-01-01 " + bought["transaction_timestamp"])
    events = make_events(bought, items)
    assert sorted(events["household"].unique()) == [1, 2]
    one, other = sorted(
        (list(zip(mine["time"] % 86400, mine["item"], strict=True)) for _, mine in events.groupby("household")), key=len
    )
    assert one == [(9 * 3600, 1)] and other == [(10 * 3600, 1), (10 * 3600, 2)], "the same second is one basket; EGGS are no item"


def test_items_have_names_that_people_know() -> None:
    items, titles = pd.read_csv(FOLDER / "items.csv"), pd.read_csv(FOLDER / "titles.csv")
    assert items.notna().all(axis=None) and items["title"].str.lower().is_unique
    assert set(titles["product_type"]) <= set(items["product_type"]) and items["title"].iloc[0] == "Milk"
    assert items["group"].nunique() <= 70
    assert spell("FRZN HASHBROWN POTATOES") == "Frozen hashbrown potatoes"
