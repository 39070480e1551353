"""Train every run of the result tables and print them. Finished runs are skipped, interrupted ones go on where they were.

A run is trained in a folder of its name below checkpoints/, and added to the tables there (runs.csv, epochs.csv, ranks/) when it
is finished. One whose weights did not come along is trained again when --only gives its whole name. --add takes in folders that
were trained elsewhere. On a CPU each run has one thread, as the shipped ones had. With --minutes the current run is left at an
epoch border when time is up, and the same command goes on from there. The ml-1m rows are made for a GPU (--device auto takes one
where there is one); the floors and the ml-1m-cpu rows, 20 minutes of a core each, are not.

  python -m elastic_core reproduce --list
  python -m elastic_core reproduce --only planted
  python -m elastic_core reproduce --only "ml-100k-*" --minutes 30
  python -m elastic_core reproduce --only ml-1m-elastic --device auto
  python -m elastic_core reproduce --add elsewhere/ml-1m-elastic
  python -m elastic_core reproduce --table --protocol pop100
  python -m elastic_core reproduce --readme
  python -m elastic_core reproduce --grid gru4rec,lrurec --minutes 20

With --grid every model gets the same few tries on MovieLens-100K. What validation said lies in checkpoints/tuning.csv, the runs
beside it in tuning-… folders, which git ignores.
"""

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from elastic_core.commands.arguments import CHECKPOINTS, add_options, end_time, print_note
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.machine import find_device, one_thread_each
from elastic_core.recipes import GRID, grid_point
from elastic_core.results.grid import FILE, read_outcomes, train_grid
from elastic_core.results.markdown import rewrite_documents, run_tables
from elastic_core.results.reproduce import PlannedRun, add_run, has_weights, planned_status, select_runs, train_planned
from elastic_core.results.store import stored_runs
from elastic_core.runs.progress import Progress


def configure(parser: ArgumentParser) -> None:
    add_options(parser, f"""
        --only PATTERN | text * | runs whose name fits or contains this (default: all)
        --minutes | float 0 | stop after so many minutes (default: no limit)
        --device | text auto | cpu, cuda or auto
        --protocol | text full | of the table: all, {", ".join(PROTOCOLS)}
        --root | path {CHECKPOINTS} | where the runs lie (default: checkpoints)
    """)  # fmt: skip
    add_options(parser.add_mutually_exclusive_group(), """
        --list | flag | train nothing, show where every run stands
        --table | flag | train nothing, print the table of what is finished
        --readme | flag | train nothing, write the tables of README.md and RESULTS.md anew
        --grid MODEL,… | words | train these models at every point of one small grid, and keep what validation said
    """)  # fmt: skip
    parser.add_argument(
        "--add", nargs="+", type=Path, metavar="FOLDER", help="train nothing, add these finished runs to the tables"
    )


def run(arguments: Namespace) -> int:
    if arguments.protocol not in ("all", *PROTOCOLS):
        raise InputError(f"unknown protocol {arguments.protocol!r}; known are all, {', '.join(PROTOCOLS)}")
    if not arguments.minutes >= 0:
        raise InputError(f"--minutes must be 0 or more, not {arguments.minutes:g}")
    if arguments.grid:
        return _train_grids(arguments)
    chosen = select_runs(arguments.only)
    if arguments.list:
        print("\n".join(f"{planned_status(row, arguments.root):<16}{row.name}" for row in chosen))
        return 0
    if arguments.add:
        print("\n".join(f"added: {add_run(folder, arguments.root).name}" for folder in arguments.add))
        return 0
    if arguments.readme:
        print("\n".join(f"written: {path}" for path in rewrite_documents(arguments.root)))
        return 0
    if not arguments.table:
        _train_rows(chosen, arguments)
    print(run_tables(chosen, arguments.root, arguments.protocol))
    return 0


def _train_rows(chosen: list[PlannedRun], arguments: Namespace) -> None:
    at, device, loaded = end_time(arguments), str(find_device(arguments.device)), dict[str, Dataset]()
    if device == "cpu":
        one_thread_each()
    for row in chosen:
        folder, stored = row.folder(arguments.root), stored_runs(arguments.root)
        weights_missing = row.name == arguments.only and not has_weights(row, arguments.root)
        stand = planned_status(row, arguments.root)
        if stand == "other settings" or (row.name in stored and not weights_missing):
            print_note(f"{row.name}: {stand}, left alone")
            continue
        if time.monotonic() >= at:
            print_note("time is up; the same command goes on from here")
            return
        if row.data not in loaded:
            loaded = {row.data: load(row.config.data, print_note)}  # one at a time in memory
        print_note(f"{row.name}: {'going on' if folder.exists() else 'starting'}")
        if not train_planned(row, loaded[row.data], arguments.root, device, at, Progress(row.config.train)):
            print_note(f"{row.name}: time is up, goes on next time")
            return
        if row.name not in stored:
            add_run(folder, arguments.root)


def _train_grids(arguments: Namespace) -> int:
    """Trains models at every point of the grid and prints what is kept of them."""
    for model in arguments.grid:
        for point in GRID:
            grid_point(model, point)  # an unknown model is said before anything is trained
    at, device = end_time(arguments), str(find_device(arguments.device))
    dataset = load(grid_point(arguments.grid[0], next(iter(GRID))).data, print_note)
    for model in arguments.grid:
        print_note(f"{model}: {', '.join(GRID)}")
        progress = Progress(grid_point(model, next(iter(GRID))).train)
        if not train_grid(model, dataset, arguments.root, device, at, progress):
            print_note("time is up; the same command goes on from here")
            break
    outcomes = read_outcomes(arguments.root / FILE)
    for row in outcomes[outcomes["model"].isin(arguments.grid)].itertuples():
        print(f"{row.model:<28}{row.point:<16}valid {row.valid:.4f}  epoch {row.best_epoch:>3} of {row.epochs}")
    return 0
