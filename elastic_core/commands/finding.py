"""From what is typed to what is meant: a run by folder or name, and the data and weights that belong to it."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import torch

import elastic_core
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Catalog, Dataset
from elastic_core.data.origins import SOURCES
from elastic_core.data.sources import at_hand, gone, load
from elastic_core.errors import InputError
from elastic_core.machine import SPARE, find_device
from elastic_core.models import model_class
from elastic_core.runs import CONFIG, Run, list_runs, open_run

CHECKPOINTS = Path("checkpoints")  # of the folder one is in, else of the checkout
if not CHECKPOINTS.is_dir() and (found := Path(elastic_core.__file__).resolve().parents[1] / CHECKPOINTS).is_dir():
    CHECKPOINTS = found


class Loaded(NamedTuple):
    run: Run
    dataset: Dataset
    model: Recommender


def find_run(name: str) -> Run:
    """`name` is a run folder, or the name of one below checkpoints/. Raises InputError listing the runs there are."""
    for path in (Path(name), CHECKPOINTS / name):
        if (path / CONFIG).is_file():
            return open_run(path)
    known = ", ".join(run.name for run in list_runs(CHECKPOINTS)) or "none yet"
    raise InputError(f"there is no run {name!r}, neither as a folder nor below {CHECKPOINTS}/ (there: {known})")


def load_run(name: str, device: str = "cpu") -> Loaded:
    """The run, its data and its best weights on `device`; weights and data are checked to belong together."""
    run = find_run(name)
    dataset = load(run.config.data, say)
    weights = run.model(dataset)
    torch.set_num_threads(SPARE.now())
    learned = run.last("start").get("data_hash", dataset.hash)
    if learned != dataset.hash:
        say(f"Note: {run.name} was trained on data {learned}, this is {dataset.hash}; scores may not be comparable.")
    return Loaded(run, dataset, weights.to(find_device(device)))


class Opened(NamedTuple):
    run: Run
    catalog: Catalog
    model: Recommender


def open_items(name: str) -> Opened:
    """The run by what its folder holds, weights and items.csv: it travels without its data. Titles that could not come along are
    those of its data, where these are at hand. A model that is fitted needs them; raises InputError without."""
    run = find_run(name)
    if not model_class(run.config.model.name).objective:
        loaded = load_run(name)
        return Opened(run, loaded.dataset.catalog, loaded.model)
    model, catalog, data = run.model(), run.catalog(), run.config.data
    torch.set_num_threads(1)  # what is asked of it are single histories and events, for as long as the command runs
    if catalog.titles is None and not gone(data) and (data.source not in SOURCES or at_hand(data.source)):
        with suppress(InputError):
            known = load(data, say).catalog
            catalog = known if known.ids.astype(str).tolist() == catalog.ids.astype(str).tolist() else catalog
    return Opened(run, catalog, model)


def say(sentence: str) -> None:
    """What is going on, for people: on stderr, so that results can be piped."""
    print(sentence, file=sys.stderr, flush=True)
