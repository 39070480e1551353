"""One `load` for all data: a DataFrame, the path of a file or folder, a named source, or the planted world."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pandas as pd

from elastic_core.core.histories import Dataset
from elastic_core.data.source_catalog import GROCERIES, PLANTED, SOURCES, source_names
from elastic_core.data.synthetic import planted
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig

if TYPE_CHECKING:
    from elastic_core.data.frames import Titles

Progress = Callable[[str], None]


def load(
    source: "DataConfig | pd.DataFrame | Path | str",
    progress: Progress | None = None,
    *,
    user: str = "",
    item: str = "",
    time: str | None = None,
    title: str = "",
    genres: str = "",
    titles: "Titles | Path | str" = "",
    dates: Literal["", "day-first", "month-first"] = "",
    k_core: int = 5,
    ties: Literal["", "file", "reversed", "random"] = "",
    baskets: Literal["", "yes", "no"] = "",
    fallback: bool = False,
) -> Dataset:
    """Histories from a DataFrame, a file or folder, a named source such as `ml-100k`, or the settings of a run (`DataConfig`).

    user, item, time, title, genres: your names of these columns; where you say none, they are recognised, and `data.understood`
    says as what. time="" where there is no time and the rows are in order. titles: a file of titles; of a DataFrame also a frame
    with the columns item and title, or a mapping from item to title. dates: what 03/04/2024 means. k_core: fewest events of an
    item and of a person. ties: in which order events of one time stand. baskets: whether events at one time are a set.
    `progress` hears short sentences about what is being done. With `fallback`, a named source that cannot be had is replaced by
    the planted world, and the notes say so.

    Raises InputError with one sentence: what is wrong with the data, or what was tried to get the named source.

    >>> import elastic_core, pandas
    >>> rows = [(f"visitor {i % 9}", f"page {i * i % 7}", i) for i in range(90)]
    >>> frame = pandas.DataFrame(rows, columns=["visitor", "page", "at"])
    >>> data = elastic_core.load(frame, user="visitor", item="page", time="at")
    >>> data.sizes()
    {'people': 9, 'items': 4, 'events': 90}
    """
    report_progress = progress or (lambda sentence: None)
    if isinstance(source, DataConfig):
        return replace(_load_config(source, report_progress, fallback), config=source)
    names = {"user": user, "item": item, "time": time or "", "title": title, "genres": genres}
    columns = {role: str(column) for role, column in names.items() if column or (role == "time" and time is not None)}
    path = str(titles) if isinstance(titles, str | Path) else ""
    config = DataConfig(
        source=str(source) if isinstance(source, str | Path) else "",
        columns=columns, titles=path, dates=dates, k_core=k_core, ties=ties, baskets=baskets,
    )  # fmt: skip
    try:
        return _load_named(source, config, titles, report_progress, fallback)
    except InputError as error:
        from elastic_core.data.frames import advice_in_python

        raise InputError(advice_in_python(str(error))) from None


def _load_named(
    source: object, config: DataConfig, titles: "Titles | Path | str", report_progress: Progress, fallback: bool
) -> Dataset:
    path = config.titles
    if isinstance(source, pd.DataFrame):
        return _load_frame(source, replace(config, titles=_whole_path(path)), titles, report_progress)
    if not isinstance(source, str | Path):
        raise InputError(f"data are a DataFrame, a path or a name ({', '.join(source_names())}), not a {type(source).__name__}")
    if not isinstance(titles, str | Path):
        raise InputError("titles as a table go with a DataFrame of events; name a file of titles here")
    if config.source not in source_names():  # a run finds its data again, wherever it is opened
        config = replace(config, source=_whole_path(config.source), titles=_whole_path(path))
    return replace(_load_config(config, report_progress, fallback), config=config)


def _whole_path(text: str) -> str:
    """The absolute path of what is there; the text as it is of what is not."""
    path = Path(text).expanduser()
    return str(path.resolve()) if text and path.exists() else text


def _load_frame(frame: pd.DataFrame, config: DataConfig, titles: "Titles | Path | str", report_progress: Progress) -> Dataset:
    from elastic_core.data import frames, load_files

    if not isinstance(titles, str | Path):
        frame = frames.add_titles(frame, config.columns.get("item", "item"), titles)
    data = frames.parquet_bytes(frame)
    config = replace(config, source=frames.FILE)
    return replace(load_files.read_bytes(config, data, report_progress), config=config, files={frames.FILE: data})


def _load_config(config: DataConfig, report_progress: Progress, fallback: bool) -> Dataset:
    if config.source == PLANTED:
        if config.columns or config.dates or config.titles or config.ties:
            raise InputError("the planted world is no file: data.columns, dates, titles and ties have nothing to say")
        report_progress("Drawing the planted world.")
        return planted(config.planted, config.k_core)
    if config.source == GROCERIES:
        from elastic_core.data.read_groceries import read_groceries

        report_progress("Reading a year of groceries.")
        return read_groceries(config)
    from elastic_core.data import load_files  # readers and what downloads, when there is something to read

    if config.source not in SOURCES:
        return load_files.read_own(config, report_progress)
    try:
        path, notes = load_files.locate_source(config.source, report_progress)
    except InputError as error:
        if not fallback:
            raise
        report_progress(f"{error} The planted world is used instead.")
        world = planted(config.planted, config.k_core)
        return replace(world, notes=(*world.notes, f"{error}; this is the planted world instead"))
    return load_files.read_named(config, path, notes, report_progress)
