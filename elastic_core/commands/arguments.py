"""What commands share: their arguments, and from what is typed to the run that is meant, its data and weights."""

import argparse
import math
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import torch

from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Catalog, Dataset
from elastic_core.data.source_catalog import SOURCES, at_hand, is_deleted
from elastic_core.data.sources import load
from elastic_core.errors import InputError
from elastic_core.machine import SPARE, find_device
from elastic_core.models import model_class
from elastic_core.run_config import DataConfig
from elastic_core.runs import CONFIG, Run, list_runs
from elastic_core.runs.checkpoints import CHECKPOINTS as CHECKPOINTS

Arguments = argparse._ActionsContainer  # a parser, or a group of one


def split_commas(text: str) -> list[str]:
    """`a, b,c` → [a, b, c]."""
    return [part.strip() for part in text.split(",") if part.strip()]


CHOICES = {name: get_args(get_type_hints(DataConfig)[name])[1:] for name in ("dates", "ties", "baskets", "incomplete")}
KINDS: dict[str, Any] = {"int": int, "float": float, "text": str, "path": Path, "words": split_commas}


def add_options(parser: Arguments, table: str) -> None:
    """Add an option a line: `name METAVAR | kind default | help`. Of `words` there may be several, with commas; `a/b/c` are the
    choices there are. The help says the default, unless it does already, or the default stands in brackets."""
    for line in table.strip().splitlines():
        names, kind, what = (cell.strip() for cell in line.split("|", 2))
        name, _, metavar = names.partition(" ")
        kind, _, default = kind.partition(" ")
        if kind == "flag":
            parser.add_argument(name, action="store_true", help=what)
            continue
        default_note = "" if not default or default[0] == "(" or "(default: " in what else f" (default: {default})"
        parser.add_argument(
            name, metavar=metavar or None, type=KINDS.get(kind, str), choices=kind.split("/") if "/" in kind else None,
            default=default.strip("()") if default or kind == "words" else None, help=what + default_note,
        )  # fmt: skip


def end_time(arguments: argparse.Namespace) -> float:
    """When `--minutes` are over, by the monotonic clock."""
    return time.monotonic() + (60 * arguments.minutes or math.inf)


def add_file_options(parser: Arguments) -> None:
    """What a person says of the columns, dates and titles of their own file."""
    add_options(parser, f"""
        --columns | words | your columns, by name or place: user=…,item=…,time=…,title=…,genres=…; \
time= where there is none and rows are in order
        --dates | {'/'.join(CHOICES['dates'])} () | what 03/04/2024 means, where no row of the file tells
        --titles FILE | text () | a file with titles or genres of the items
        --incomplete | {'/'.join(CHOICES['incomplete'])} () | leave out files of a folder or archive that are torn
    """)  # fmt: skip


def add_preprocessing_options(parser: Arguments) -> None:
    """How the events of a file become histories."""
    add_options(parser, f"""
        --ties | {'/'.join(CHOICES['ties'])} () | how events of one person and time are ordered (default: file)
        --baskets | {'/'.join(CHOICES['baskets'])} () | whether events at one time are a set (default: yes where most events are)
        --k-core | int 5 | fewest events of an item and a person
    """)  # fmt: skip


def data_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of `data` that `add_file_options` and `add_preprocessing_options` ask for."""
    settings = {name: getattr(arguments, name) for name in ("dates", "titles", "incomplete", "ties", "baskets", "k_core")}
    return settings | {"columns": parse_columns(arguments.columns)}


def parse_columns(pairs: list[str]) -> dict[str, str]:
    """[user=reader, item=book] → {user: reader, item: book}. Raises InputError for anything else."""
    columns = dict[str, str]()
    for text in pairs:
        ours, separator, columns[ours] = text.partition("=")
        if not separator or not (columns[ours] or ours == "time"):
            raise InputError(f"--columns needs pairs such as user=reader, not {text!r}")
    return columns


# --- from what is typed to what is meant -----------------------------------------------------------------------------


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
    torch.set_num_threads(SPARE.now())
    learned = run.last("start").get("data_hash", dataset.hash)
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
