"""Look at data before training on it: how many people, items and events, how long the histories are, what the licence says.

Give a named source or a file of your own with a user, an item and a time: delimited text of any kind, JSON, Excel,
Parquet or Arrow, plain or in gz or zip, one file or a folder of parts. What was understood is said first; where columns could
be several things, a question names them. Items and people with fewer than five events are left out (k-core), each person's
last event is kept for the test and the one before it for validation.

  elastic data groceries
  elastic data my-clicks.csv
  elastic data my-ratings.csv --columns "user=reader,item=book,time=read at" --k-core 3
  elastic data my-clicks.csv --columns user=visitor,item=page,time=    (no times: the rows are in order)
  elastic data clicks.txt --columns user=1,item=2,time=4 --titles products.csv    (no names: places count)
  elastic data --list                               the named sources
  elastic data --write-template my-ratings.csv
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from elastic_core.commands.options import (
    BasketsOption,
    ColumnsOption,
    DatesOption,
    IncompleteOption,
    JsonOption,
    KCoreOption,
    TiesOption,
    TitlesOption,
    data_settings,
)
from elastic_core.commands.run_lookup import print_note
from elastic_core.data import load
from elastic_core.data.source_catalog import GROCERIES, PLANTED, SOURCES
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig
from elastic_core.services.data.upload_store import TEMPLATE


def run_command(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A named source, a file or a folder.")] = "",
    list_sources: Annotated[bool, typer.Option("--list", help="Show the named sources.")] = False,
    columns: ColumnsOption = "",
    dates: DatesOption = None,
    titles: TitlesOption = "",
    incomplete: IncompleteOption = None,
    ties: TiesOption = None,
    baskets: BasketsOption = None,
    k_core: KCoreOption = None,
    write_template: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a small CSV in the expected layout and stop.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    if write_template:
        write_template_file(write_template)
    elif list_sources or not source:
        own = {GROCERIES: "A year of groceries", PLANTED: "Planted interests, made by a rule that is known"}
        for name, label in {**{name: each.label for name, each in SOURCES.items()}, **own}.items():
            print(f"{name:<20}{label}{', needs no download' if name in own else ''}")
    else:
        config = DataConfig(source=source, **data_settings(columns, dates, titles, incomplete, ties, baskets, k_core))
        facts = load(config, print_note).facts()
        print(json.dumps(dict(facts)) if as_json else "\n".join(f"{name:<17}{value}" for name, value in facts))


def write_template_file(path: Path) -> None:
    """A small table to fill in. Raises InputError where there is something already."""
    if path.exists():
        raise InputError(f"{path} exists already; it is left alone")
    try:
        path.write_text(TEMPLATE, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    print(f"{path} shows the layout: one event a line; title and genres may be left out. Put your own rows in place of these.")
