"""A trained run as a service over HTTP: lists after a history, and for people who are followed event by event.

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

from elastic_core.commands.arguments import open_items, options, say
from elastic_core.data.sources import here, load
from elastic_core.errors import InputError
from elastic_core.lists import Lister
from elastic_core.machine import SPARE, number_of_threads
from elastic_core.runs import items
from elastic_core.serving.answers import Answers
from elastic_core.serving.events import Events

NONE = "none"


def configure(parser: argparse.ArgumentParser) -> None:
    options(parser, f"""
        run_name RUN | text | a run folder, or its name below checkpoints/
        --port | int (8600) | default: 8600
        --address | text 127.0.0.1 | 0.0.0.0 for others on the network (default: this machine alone)
        --states FILE | text | what people did, in SQLite; {NONE} keeps it in memory alone
        --every N | int 8 | read a person anew every N events
        --rate | float 500 | requests a second of one address; 0: any
        --together | int 64 | answer at most so many waiting requests at once
        --without-data | flag | do not read the data that the run learned from
        --threads | text auto | of a tensor operation (default: 1 for few requests, for many the cores that are free)
    """)  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    try:
        import uvicorn

        from elastic_core.serving.app import Limits, create_app
    except ImportError as error:
        raise InputError(f'the service needs {error.name}: pip install "elastic-core[serve]"') from None
    if not 0 < arguments.port < 2**16 or not 1 <= arguments.together <= 1_024 or not 0 <= arguments.rate < 1e9:
        raise InputError("--port lies in 1 to 65535, --together in 1 to 1,024, and --rate is a number from 0 on")
    told = None if arguments.threads == "auto" else number_of_threads(arguments.threads)
    found, catalog, model = open_items(arguments.run_name)
    torch.set_num_threads(told or 1)
    counts = items.counts(found.path / items.FILE, found.path)
    data = not arguments.without_data and here(found.config.data)
    lister = Lister(model, catalog, (lambda: load(found.config.data)) if data else None, counts)
    if data:
        try:
            say(f"{len(lister.numbers):,} people of {lister.dataset.label} are known by their ids.")
        except InputError as error:
            data = False
            say(f"Without the data: {error}.")
            lister = Lister(model, catalog, None, counts)
    path = Path(f"{found.name}.people.sqlite" if arguments.states is None else arguments.states)
    events = Events(None if arguments.states == NONE else path, Answers.keep(lister, arguments.every))
    answers = Answers(lister, events, arguments.every, with_data=data, spare=None if told else SPARE)
    app = create_app(answers, found.name, Limits(rate=arguments.rate, together=arguments.together))
    where = "in memory alone" if arguments.states == NONE else f"in {path}"
    say(f"{found.name} at http://{arguments.address}:{arguments.port}; what people do is kept {where}. Ctrl-C ends it.")
    uvicorn.run(app, host=arguments.address, port=arguments.port, log_level="warning", access_log=False)
    return 0
