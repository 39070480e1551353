"""From what is typed to the run that is meant, its data and weights."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import torch

from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Catalog, Dataset
from elastic_core.data.source_catalog import SOURCES, at_hand, is_deleted
from elastic_core.data.sources import load
from elastic_core.errors import InputError
from elastic_core.machine import SPARE, find_device
from elastic_core.models import model_class
from elastic_core.runs import CONFIG, Run, list_runs
from elastic_core.runs.checkpoints import CHECKPOINTS


class Loaded(NamedTuple):
    run: Run
    dataset: Dataset
    model: Recommender


def find_run(name: str) -> Run:
    """`name` is a run folder, or the name of a run in checkpoints/. Raises InputError listing the runs there are."""
    if (Path(name) / CONFIG).is_file():
        return Run(Path(name))
    from elastic_core.results import store  # a training reads no tables

    if (run := store.find_run(CHECKPOINTS, name)) is not None:
        return run
    known = ", ".join(run.name for run in list_runs(CHECKPOINTS)) or "none yet"
    raise InputError(f"there is no run {name!r}, neither as a folder nor in {CHECKPOINTS}/ (there: {known})")


def load_run(name: str, device: str = "cpu") -> Loaded:
    """The run, its data and its best weights on `device`; weights and data are checked to belong together."""
    run = find_run(name)
    dataset = load(run.config.data, print_note)
    weights = run.model(dataset)
    torch.set_num_threads(SPARE.count_spare())
    learned = run.last_event("start").get("data_hash", dataset.hash)
    if learned != dataset.hash:
        print_note(f"Note: {run.name} was trained on data {learned}, this is {dataset.hash}; scores may not be comparable.")
    return Loaded(run, dataset, weights.to(find_device(device)))


def open_items(name: str) -> tuple[Run, Catalog, Recommender]:
    """The run by what its folder holds, weights and items.csv: it travels without its data. Titles that could not come along are
    those of its data, where these are at hand. A model that is fitted needs them; raises InputError without."""
    run = find_run(name)
    if not model_class(run.config.model.name).objective:
        loaded = load_run(name)
        return run, loaded.dataset.catalog, loaded.model
    model, catalog, data = run.model(), run.catalog(), run.config.data
    torch.set_num_threads(1)  # what is asked of it are single histories and events, for as long as the command runs
    if catalog.titles is None and not is_deleted(data) and (data.source not in SOURCES or at_hand(data.source)):
        with suppress(InputError):
            known = load(data, print_note).catalog
            catalog = known if known.ids.astype(str).tolist() == catalog.ids.astype(str).tolist() else catalog
    return run, catalog, model


def print_note(sentence: str) -> None:
    """What is going on, for people: on stderr, so that results can be piped."""
    print(sentence, file=sys.stderr, flush=True)
