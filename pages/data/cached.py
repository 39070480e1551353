"""What the Data page keeps between reruns: cards, opened uploads, drawn worlds."""

from hashlib import sha256

import pandas as pd

from elastic_core.data import Dataset, load, planted
from elastic_core.data.preprocessing import Rule
from elastic_core.data.reading.archives import Upload
from elastic_core.data.reading.reader import RawTable, Table
from elastic_core.data.reading.time_columns import Dates
from elastic_core.run_config import DataConfig, PlantedConfig
from elastic_core.runs import Run
from elastic_core.services.data import cards, upload_store
from elastic_core.services.data.cards import Card
from pages.components.cache import cached_data, cached_resource


@cached_data(32)
def make_card(data: Dataset, k_core: int, label: str) -> Card:
    """The same data may stand under two labels."""
    return cards.make_card(data, k_core)


@cached_data(32)
def count_card(config: DataConfig) -> Card:
    """The card alone: the data are read, counted and let go."""
    return cards.make_card(load(config), config.k_core)


def hash_upload(name: str, data: bytes, skip_torn: bool = False) -> str:
    return sha256(name.encode("utf-8", "replace") + b"\0" * (1 + skip_torn) + data).hexdigest()


@cached_resource(2, "Reading the file …")
def open_upload(digest: str, _name: str, _data: bytes, skip_torn: bool = False) -> tuple[RawTable, dict[str, str]]:
    """An upload as a sheet of text. Shared and read-only. Raises InputError with one sentence."""
    return upload_store.open_upload(_name, _data, skip_torn)


@cached_resource(2, "Looking at every row …")
def check_upload(
    digest: str, _raw_table: RawTable, mapping: dict[str, str], dates: Dates = "", titles: Upload | None = None
) -> Table:
    """The rows under a choice of columns. Shared and read-only. Raises as `upload_store.check_upload`."""
    return upload_store.check_upload(_raw_table, mapping, dates, titles)


@cached_resource(3, "Dropping what is too rare to learn from …")
def preprocess_upload(
    digest: str, _raw_table: RawTable, mapping: dict[str, str], _table: Table, k_core: int, dates: Dates = "",
    titles: Upload | None = None, ties: Rule = "",
) -> upload_store.FileOutcome:  # fmt: skip
    return upload_store.preprocess_upload(_raw_table.label, _table, k_core, ties)


@cached_resource(4, "Drawing the world …")
def draw_world(config: PlantedConfig) -> Dataset:
    """A planted world. Shared and read-only. Raises InputError if it cannot be drawn."""
    return planted(config)


@cached_data(8, "Asking the oracle of this world …")
def measure_recall(runs: list[Run], data: Dataset, chosen: str) -> pd.DataFrame:
    """What the systems that were trained on a planted world remember, and the one that is chosen."""
    return cards.remembered_by_runs(runs, data, chosen)
