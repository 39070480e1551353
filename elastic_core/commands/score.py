"""Rank the lists of another library under the protocols of this one, and set them beside a run.

The file is CSV or Parquet with the columns user, item and rank (1 is best), ids as the data have them. Everybody's last event is
the test, and the list must have been made before it. Differences to a run are paired over people.

  elastic score lists.csv --data groceries
  elastic score lists.csv --data ml-100k --against ml-100k-elastic,ml-100k-elastic-seed1
  elastic score top.parquet --data my-clicks.csv --columns user=visitor,item=page,time=at --json

What cannot be compared: sampled protocols, as lists tell nothing of drawn items, and cutoffs beyond the length of the lists. Nor
does a file show whether the other library learned from the events that are held out here, or how its luck in training varies.
"""

import json
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from elastic_core.commands.compare import comparison_text
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
    split_commas,
)
from elastic_core.commands.run_lookup import find_run, print_note
from elastic_core.data import load
from elastic_core.data.repeats import fitting_protocol
from elastic_core.errors import InputError
from elastic_core.results.compare import compare_reports
from elastic_core.results.foreign_lists import PROTOCOLS, known_cutoffs, rank_lists, read_lists
from elastic_core.run_config import DataConfig
from elastic_core.runs.ranks import Report

KINDS = ("NDCG", "HR", "MRR")


def run_command(
    lists_file: Annotated[Path, typer.Argument(metavar="FILE", help="User, item and rank, as CSV or Parquet.")],
    source: Annotated[
        str, typer.Option("--data", metavar="SOURCE", help="A named source or a file of events, with the lists' ids.")
    ] = "",
    against: Annotated[str, typer.Option(metavar="RUN", help="A run, or several seeds of one separated by commas.")] = "",
    columns: ColumnsOption = "",
    dates: DatesOption = None,
    titles: TitlesOption = "",
    incomplete: IncompleteOption = None,
    ties: TiesOption = None,
    baskets: BasketsOption = None,
    k_core: KCoreOption = None,
    as_json: JsonOption = False,
) -> None:
    runs = [find_run(name) for name in split_commas(against)]
    if not runs and not source:
        raise InputError("say of which data the lists are: --data, or a run of the same data with --against")
    settings = data_settings(columns, dates, titles, incomplete, ties, baskets, k_core)
    data = load(DataConfig(source=source, **settings) if source else runs[0].config.data, print_note)
    lists = read_lists(read_table(lists_file), data)
    for note in lists.notes:
        print_note(f"Note: {note}.")
    report = rank_lists(lists, data)
    for protocol in sorted(PROTOCOLS, key=lambda each: each != fitting_protocol(data)):
        print_protocol(report, protocol, known_cutoffs(lists, data, protocol), as_json)
        if runs and not as_json:
            comparison = compare_reports([report], [each.report() for each in runs], protocol, trained=(True, True))
            print(comparison_text(comparison, lists_file.name, against) + "\n")
    if not as_json:
        print_note("The file does not show what the other library learned from; events from the test on must not be among it.")


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
        mean, error, low, high = report.mean_interval(protocol, metric)
        if as_json:
            print(json.dumps({"protocol": protocol, "metric": metric, "mean": mean, "low": low, "high": high}))
        else:
            print(f"{protocol:<10} {metric:<8} {mean:.4f} ± {1.96 * error:.4f}")
