"""A trained run as a service over HTTP: lists after a history, and for users whose events are sent one by one.

  elastic serve ml-100k-elastic                         at http://localhost:8600, which says how to ask
  elastic serve checkpoints/local-mine --port 9000 --states people.sqlite
  elastic serve ml-100k-sasrec --address 0.0.0.0 --rate 100

What people did is kept in an SQLite file (default: RUN.people.sqlite in the folder one is in): it is on the disk before it is
acknowledged, so that nothing is lost however the service ends. People of the data that the run learned from are known by their
ids where the data are at hand. It knows no passwords: put it behind a proxy that does, or leave it on this machine.

One process works on one core; several answer on ports of their own, each with its own file and its own people, or with
`--states none` any. Needs `pip install "elastic-core[serve]"`.
"""

from pathlib import Path
from typing import Annotated

import typer

from elastic_core.commands.options import RunArgument
from elastic_core.commands.run_lookup import open_items, print_note
from elastic_core.data import Dataset
from elastic_core.data.source_catalog import is_available
from elastic_core.data.sources import load
from elastic_core.errors import InputError
from elastic_core.machine import prepare_to_serve
from elastic_core.recommendations import ItemRanker
from elastic_core.runs import Run, items
from elastic_core.serving.events import Events
from elastic_core.serving.service import ListService

IN_MEMORY = "none"


def run_command(
    run_name: RunArgument,
    port: Annotated[int, typer.Option(metavar="PORT", help="Where it listens.")] = 8600,
    address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="0.0.0.0 for others on the network; by default this machine alone.")
    ] = "127.0.0.1",
    states: Annotated[
        str, typer.Option(metavar="FILE", help=f"What people did, in SQLite; {IN_MEMORY} keeps it in memory alone.")
    ] = "",
    rate: Annotated[float, typer.Option(metavar="N", help="Requests a second of one address; 0: any.")] = 500,
    max_batch: Annotated[int, typer.Option(metavar="N", help="Answer at most so many waiting requests at once.")] = 64,
    without_data: Annotated[bool, typer.Option("--without-data", help="Do not read the data that the run learned from.")] = False,
    threads: Annotated[int, typer.Option(metavar="N", help="Threads of a tensor operation.")] = 1,
) -> None:
    try:
        import uvicorn

        from elastic_core.serving.app import Limits, create_app
    except ImportError as error:
        raise InputError(f'the service needs {error.name}: pip install "elastic-core[serve]"') from None
    if not 0 < port < 2**16 or not 1 <= max_batch <= 1_024 or not 0 <= rate < 1e9:
        raise InputError("--port lies in 1 to 65535, --max-batch in 1 to 1,024, and --rate is a number from 0 on")
    if not 1 <= threads <= 1_024:
        raise InputError("--threads must be a number from 1 on")
    prepare_to_serve(threads)
    served, catalog, model = open_items(run_name)
    counts = items.read_counts(served.path / items.FILE, served.path)
    dataset = None if without_data else load_data(served)
    ranker = ItemRanker(model, catalog, (lambda: dataset) if dataset else None, counts, served.keeps_seen)
    path = None if states == IN_MEMORY else Path(states or f"{served.name}.people.sqlite")
    service = ListService(ranker, Events(path, ListService.events_to_keep(ranker)), with_data=dataset is not None)
    app = create_app(service, served.name, Limits(rate=rate, batch=max_batch))
    where = "in memory alone" if path is None else f"in {path}"
    print_note(f"{served.name} at http://{address}:{port}; what people do is kept {where}. Ctrl-C ends it.")
    uvicorn.run(app, host=address, port=port, log_level="warning", access_log=False)


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
