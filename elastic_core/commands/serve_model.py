"""A trained run as a service over HTTP: lists after a history, and for users whose events are sent one by one.

  python -m elastic_core serve-model ml-100k-elastic                         at http://localhost:8600, which says how to ask
  python -m elastic_core serve-model checkpoints/local-mine --port 9000 --states people.sqlite
  python -m elastic_core serve-model ml-100k-sasrec --address 0.0.0.0 --rate 100

What people did is kept in an SQLite file (default: RUN.people.sqlite in the folder one is in): it is on the disk before it is
acknowledged, so that nothing is lost however the service ends. People of the data that the run learned from are known by their
ids where the data are at hand. It knows no passwords: put it behind a proxy that does, or leave it on this machine.

One process works on one core; several answer on ports of their own, each with its own file and its own people, or with
`--states none` any. Needs `pip install "elastic-core[serve]"`.
"""

import argparse
from pathlib import Path

import torch

from elastic_core.commands.arguments import add_options, open_items, print_note
from elastic_core.data import Dataset
from elastic_core.data.source_catalog import is_available
from elastic_core.data.sources import load
from elastic_core.errors import InputError
from elastic_core.recommendations import ItemRanker
from elastic_core.runs import Run, items
from elastic_core.serving.events import Events
from elastic_core.serving.service import ListService

IN_MEMORY = "none"


def configure(parser: argparse.ArgumentParser) -> None:
    add_options(parser, f"""
        run_name RUN | text | a run folder, or its name below checkpoints/
        --port | int (8600) | default: 8600
        --address | text 127.0.0.1 | 0.0.0.0 for others on the network (default: this machine alone)
        --states FILE | text | what people did, in SQLite; {IN_MEMORY} keeps it in memory alone
        --rate | float 500 | requests a second of one address; 0: any
        --max-batch | int 64 | answer at most so many waiting requests at once
        --without-data | flag | do not read the data that the run learned from
        --threads | int 1 | of a tensor operation
    """)  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    try:
        import uvicorn

        from elastic_core.serving.app import Limits, create_app
    except ImportError as error:
        raise InputError(f'the service needs {error.name}: pip install "elastic-core[serve]"') from None
    if not 0 < arguments.port < 2**16 or not 1 <= arguments.max_batch <= 1_024 or not 0 <= arguments.rate < 1e9:
        raise InputError("--port lies in 1 to 65535, --max-batch in 1 to 1,024, and --rate is a number from 0 on")
    if not 1 <= arguments.threads <= 1_024:
        raise InputError("--threads must be a number from 1 on")
    torch.set_num_threads(arguments.threads)
    served, catalog, model = open_items(arguments.run_name)
    counts = items.read_counts(served.path / items.FILE, served.path)
    dataset = None if arguments.without_data else load_data(served)
    ranker = ItemRanker(model, catalog, (lambda: dataset) if dataset else None, counts, served.keeps_seen)
    path = None if arguments.states == IN_MEMORY else Path(arguments.states or f"{served.name}.people.sqlite")
    service = ListService(ranker, Events(path, ListService.events_to_keep(ranker)), with_data=dataset is not None)
    app = create_app(service, served.name, Limits(rate=arguments.rate, batch=arguments.max_batch))
    where = "in memory alone" if path is None else f"in {path}"
    print_note(f"{served.name} at http://{arguments.address}:{arguments.port}; what people do is kept {where}. Ctrl-C ends it.")
    uvicorn.run(app, host=arguments.address, port=arguments.port, log_level="warning", access_log=False)
    return 0


def load_data(served: Run) -> Dataset | None:
    """The data that the run learned from, where they are at hand and hold the same items; says so."""
    if not is_available(served.config.data):
        return None
    try:
        dataset = load(served.config.data)
        served.check_data(dataset)
    except InputError as error:
        print_note(f"Without the data: {error}.")
        return None
    print_note(f"{dataset.histories.n_users:,} people of {dataset.label} are known by their ids.")
    return dataset
