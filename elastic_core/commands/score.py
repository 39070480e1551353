"""Rank the lists of another library under the protocols of this one, and set them beside a run.

The file is CSV or Parquet with the columns user, item and rank (1 is best), ids as the data have them. Everybody's last event is
the test, and the list must have been made before it. Differences to a run are paired over people.

  python -m elastic_core score lists.csv --data ml-100k
  python -m elastic_core score lists.csv --data ml-100k --against ml-100k-elastic,ml-100k-elastic-seed1
  python -m elastic_core score top.parquet --data my-clicks.csv --columns user=visitor,item=page,time=at --json

What cannot be compared: sampled protocols, as lists tell nothing of drawn items, and cutoffs beyond the length of the lists. Nor
does a file show whether the other library learned from the events that are held out here, or how its luck in training varies.
"""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pandas as pd

from elastic_core.commands.arguments import (
    add_file_options,
    add_options,
    add_preprocessing_options,
    data_settings,
    find_run,
    print_note,
)
from elastic_core.commands.compare import comparison_text
from elastic_core.data import load
from elastic_core.data.repeats import fitting_protocol
from elastic_core.errors import InputError
from elastic_core.results.compare import compare_reports
from elastic_core.results.foreign_lists import PROTOCOLS, known_cutoffs, rank_lists, read_lists
from elastic_core.run_config import DataConfig
from elastic_core.runs.ranks import Report

KINDS = ("NDCG", "HR", "MRR")


def configure(parser: ArgumentParser) -> None:
    add_options(parser, """
        lists FILE | path | user, item and rank, as CSV or Parquet
        --data SOURCE | text | a named source or a file of events, as the lists' ids have it
        --against RUN | words | a run, or several seeds of one separated by commas
        --json | flag | one JSON row per protocol and metric instead of the table
    """)  # fmt: skip
    add_file_options(parser)
    add_preprocessing_options(parser)


def run(arguments: Namespace) -> int:
    runs = [find_run(name) for name in arguments.against or ()]
    if not runs and not arguments.data:
        raise InputError("say of which data the lists are: --data, or a run of the same data with --against")
    config = DataConfig(source=arguments.data, **data_settings(arguments)) if arguments.data else runs[0].config.data
    data = load(config, print_note)
    lists = read_lists(read_table(arguments.lists), data)
    for note in lists.notes:
        print_note(f"Note: {note}.")
    report = rank_lists(lists, data)
    for protocol in sorted(PROTOCOLS, key=lambda each: each != fitting_protocol(data)):
        print_protocol(report, protocol, known_cutoffs(lists, data, protocol), arguments.json)
        if runs and not arguments.json:
            comparison = compare_reports([report], [each.report() for each in runs], protocol, trained=(True, True))
            print(comparison_text(comparison, arguments.lists.name, ", ".join(arguments.against)) + "\n")
    if not arguments.json:
        print_note("The file does not show what the other library learned from; events from the test on must not be among it.")
    return 0


def read_table(path: Path) -> pd.DataFrame:
    """Raises InputError for what is no table."""
    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, dtype=str)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{path} is no table of user, item and rank ({error})") from None


def print_protocol(report: Report, protocol: str, cutoffs: list[int], as_json: bool) -> None:
    metrics = [f"{kind}@{cutoff}" for kind in KINDS for cutoff in cutoffs]
    if not metrics:
        print_note(f"Under {protocol} the lists are too short for any metric.")
    for metric in metrics:
        mean, error, low, high = report.interval(protocol, metric)
        if as_json:
            print(json.dumps({"protocol": protocol, "metric": metric, "mean": mean, "low": low, "high": high}))
        else:
            print(f"{protocol:<10} {metric:<8} {mean:.4f} ± {1.96 * error:.4f}")
