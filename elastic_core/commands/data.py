"""Look at data before training on it: how many people, items and events, how long the histories are, what the licence says.

Give a named source or a file of your own with a user, an item and a time: delimited text of any kind, JSON, Excel,
Parquet or Arrow, plain or in gz or zip, one file or a folder of parts. What was understood is said first; where columns could
be several things, a question names them. Items and people with fewer than five events are left out (k-core), each person's
last event is kept for the test and the one before it for validation.

  python -m elastic_core data --list                the named sources
  python -m elastic_core data ml-100k
  python -m elastic_core data my-ratings.csv --columns user=reader,item=book,time=read_at --k-core 3
  python -m elastic_core data my-clicks.csv --columns user=visitor,item=page,time=    (no times: the rows are in order)
  python -m elastic_core data clicks.txt --columns user=1,item=2,time=4 --titles products.csv    (no names: places count)
  python -m elastic_core data --write-template my-ratings.csv
"""

import argparse
from pathlib import Path

from elastic_core.commands.arguments import add_file_options, add_options, add_preprocessing_options, data_settings, print_note
from elastic_core.data import load
from elastic_core.data.source_catalog import GROCERIES, PLANTED, SOURCES
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig
from elastic_core.services.data.upload_store import TEMPLATE


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", nargs="?", help="a named source, a file or a folder")
    add_options(parser, "--list | flag | show the named sources")
    add_file_options(parser)
    add_preprocessing_options(parser)
    add_options(parser, "--write-template FILE | path | write a small CSV in the expected layout and stop")


def run(arguments: argparse.Namespace) -> int:
    if arguments.write_template:
        return _write_template(arguments.write_template)
    if arguments.list or not arguments.source:
        print("\n".join([f"{name:<20}{source.label}" for name, source in SOURCES.items()]))
        print(f"{GROCERIES:<20}A year of groceries: comes along, needs no download")
        print(f"{PLANTED:<20}Planted interests: made by a rule that is known, needs no download")
        return 0
    config = DataConfig(source=arguments.source, **data_settings(arguments))
    print("\n".join(f"{name:<17}{value}" for name, value in load(config, print_note).facts()))
    return 0


def _write_template(path: Path) -> int:
    if path.exists():
        raise InputError(f"{path} exists already; it is left alone")
    try:
        path.write_text(TEMPLATE, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    print(f"{path} shows the layout: one event a line; title and genres may be left out. Put your own rows in place of these.")
    return 0
