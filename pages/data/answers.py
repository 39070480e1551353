"""What the Data page keeps between reruns: cards, opened uploads, drawn worlds."""

import json
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256

import pandas as pd

from elastic_core.core.config import DataConfig, PlantedConfig
from elastic_core.data import Dataset, load, planted
from elastic_core.data.folding import Rule
from elastic_core.data.reading.packing import Upload
from elastic_core.data.reading.reader import Sheet, Table
from elastic_core.data.reading.times import Dates
from elastic_core.runs import Run
from elastic_core.services.data import cards, shelf
from elastic_core.services.data.cards import Card
from pages.kit import cache
from pages.kit.kept import copied, kept


def card(config: DataConfig, tell: Callable[[str], None]) -> tuple[Dataset, Card]:
    """A dataset and its card; `tell` hears what loading does. Raises InputError if it cannot be had."""
    data = cache.dataset(config, tell)
    return data, _card(data, config.k_core, data.label)


@copied(32)
def _card(data: Dataset, k_core: int, label: str) -> Card:
    return cards.card(data, k_core)


def counted(config: DataConfig) -> Card:
    """The card alone: the data are read, counted and let go."""
    return _counted(json.dumps(asdict(config), sort_keys=True), config)


@copied(32)
def _counted(key: str, _config: DataConfig) -> Card:
    return cards.card(load(_config), _config.k_core)


def digest(name: str, data: bytes) -> str:
    return sha256(name.encode("utf-8", "replace") + b"\0" + data).hexdigest()


def opened(name: str, data: bytes) -> tuple[Sheet, dict[str, str]]:
    """An upload as a sheet of text. Shared and read-only. Raises InputError with one sentence."""
    return _opened(digest(name, data), name, data)


@kept(2, "Reading the file …")
def _opened(digest: str, _name: str, _data: bytes) -> tuple[Sheet, dict[str, str]]:
    return shelf.opened(_name, _data)


def checked(digest: str, sheet: Sheet, mapping: dict[str, str], dates: Dates = "", titles: Upload | None = None) -> Table:
    """The rows under a choice of columns. Shared and read-only. Raises as `shelf.checked`."""
    return _checked(digest, tuple(sorted(mapping.items())), dates, titles, sheet)


@kept(2, "Looking at every row …")
def _checked(digest: str, mapping: tuple[tuple[str, str], ...], dates: Dates, titles: Upload | None, _sheet: Sheet) -> Table:
    return shelf.checked(_sheet, dict(mapping), dates, titles)


def folded(
    digest: str, sheet: Sheet, mapping: dict[str, str], found: Table, k_core: int, dates: Dates = "",
    titles: Upload | None = None, ties: Rule = "",
) -> shelf.FileOutcome:  # fmt: skip
    return _folded(digest, tuple(sorted(mapping.items())), k_core, dates, titles, ties, sheet.shown, found)


@kept(3, "Dropping what is too rare to learn from …")
def _folded(
    digest: str, mapping: tuple[tuple[str, str], ...], k_core: int, dates: Dates, titles: Upload | None, ties: Rule, shown: str,
    _found: Table,
) -> shelf.FileOutcome:  # fmt: skip
    return shelf.folded(shown, _found, k_core, ties)


@kept(4, "Drawing the world …")
def world(config: PlantedConfig) -> Dataset:
    """A planted world. Shared and read-only. Raises InputError if it cannot be drawn."""
    return planted(config)


@copied(8, "Asking the oracle of this world …")
def remembered(runs: list[Run], data: Dataset, chosen: str) -> pd.DataFrame:
    """What the systems that were trained on a planted world remember, and the one that is chosen."""
    return cards.remembered_by_runs(runs, data, chosen)
