"""One `load` for all data: a named source, the planted world, or the path of a file or folder."""

from collections.abc import Callable
from dataclasses import replace

from elastic_core.core.histories import Dataset
from elastic_core.data.source_catalog import GROCERIES, PLANTED, SOURCES
from elastic_core.data.synthetic import planted
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig


def load(config: DataConfig, progress: Callable[[str], None] | None = None, *, fallback: bool = False) -> Dataset:
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
    if config.source == GROCERIES:
        from elastic_core.data.read_groceries import read_groceries

        tell("Reading a year of groceries.")
        return read_groceries(config)
    from elastic_core.data import load_files  # readers and what downloads, when there is something to read

    if config.source not in SOURCES:
        return load_files.read_own(config, tell)
    try:
        path, notes = load_files.locate(config.source, tell)
    except InputError as error:
        if not fallback:
            raise
        tell(f"{error} The planted world is used instead.")
        world = planted(config.planted, config.k_core)
        return replace(world, notes=(*world.notes, f"{error}; this is the planted world instead"))
    return load_files.read_named(config, path, notes, tell)
