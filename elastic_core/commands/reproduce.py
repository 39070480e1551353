"""Train every run of the result tables and print them. Finished runs are skipped, interrupted ones go on where they were.

A run is trained in a folder of its name below checkpoints/, and added to the tables there (runs.csv, epochs.csv, ranks/) when it
is finished. One whose weights did not come along is trained again when --only gives its whole name. --add takes in folders that
were trained elsewhere. On a CPU each run has one thread, as the shipped ones had. With --minutes the current run is left at an
epoch border when time is up, and the same command goes on from there. The ml-1m rows are made for a GPU (--device auto takes one
where there is one). A core takes 20 minutes for a row of ml-1m-cpu, half an hour to three hours for one of ml-1m-converged.

  elastic reproduce --list
  elastic reproduce --only planted
  elastic reproduce --only "ml-100k-*" --minutes 30
  elastic reproduce --only ml-1m-elastic --device auto
  elastic reproduce --add elsewhere/ml-1m-elastic
  elastic reproduce --table --protocol pop100
  elastic reproduce --readme
  elastic reproduce --grid gru4rec,lrurec --minutes 20

With --grid every model gets the same few tries on MovieLens-100K. What validation said lies in checkpoints/tuning.csv, the runs
beside it in tuning-… folders, which git ignores.
"""

import time
from pathlib import Path
from typing import Annotated

import torch
import typer

from elastic_core.commands.options import DeviceOption, end_time, split_commas
from elastic_core.commands.run_lookup import print_note
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.machine import find_device
from elastic_core.recipes import GRID, grid_point
from elastic_core.results.grid import FILE, VALID, read_outcomes, train_grid
from elastic_core.results.markdown import rewrite_documents, run_tables
from elastic_core.results.personal_gain import write_interest_counts
from elastic_core.results.reproduce import PlannedRun, add_run, has_weights, planned_status, select_runs, train_planned
from elastic_core.results.store import stored_runs
from elastic_core.runs.checkpoints import CHECKPOINTS
from elastic_core.runs.progress import Progress


def run_command(
    only: Annotated[str, typer.Option(metavar="PATTERN", help="Runs whose name fits or contains this.")] = "*",
    minutes: Annotated[float, typer.Option(metavar="N", help="Stop after so many minutes; 0: no limit.")] = 0,
    device: DeviceOption = "auto",
    protocol: Annotated[str, typer.Option(help=f"Of the table: all, {', '.join(PROTOCOLS)}.")] = "full",
    root: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the runs lie (default: checkpoints).", show_default=False)
    ] = CHECKPOINTS,
    list_runs: Annotated[bool, typer.Option("--list", help="Train nothing, show where every run stands.")] = False,
    table: Annotated[bool, typer.Option("--table", help="Train nothing, print the table of what is finished.")] = False,
    readme: Annotated[
        bool, typer.Option("--readme", help="Train nothing, write the tables of README.md and RESULTS.md anew.")
    ] = False,
    interests: Annotated[
        bool, typer.Option("--interests", help="Train nothing, count the interests of all data that are here.")
    ] = False,
    grid: Annotated[
        str,
        typer.Option(
            metavar="MODEL,…", help="Train these models at every point of one small grid, and keep what validation said."
        ),
    ] = "",
    add: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Train nothing, add this finished run to the tables. May be given again."),
    ] = None,
) -> None:
    if protocol not in ("all", *PROTOCOLS):
        raise InputError(f"unknown protocol {protocol!r}; known are all, {', '.join(PROTOCOLS)}")
    if not minutes >= 0:
        raise InputError(f"--minutes must be 0 or more, not {minutes:g}")
    if list_runs + table + readme + interests + bool(grid) + bool(add) > 1:
        raise InputError("--list, --table, --readme, --interests, --grid and --add each go alone")
    if grid:
        train_grids(split_commas(grid), root, device, end_time(minutes))
        return
    if interests:
        print(f"written: {write_interest_counts(root, print_note)}")
        return
    chosen = select_runs(only)
    if list_runs:
        print("\n".join(f"{planned_status(row, root):<16}{row.name}" for row in chosen))
    elif add:
        print("\n".join(f"added: {add_run(folder, root).name}" for folder in add))
    elif readme:
        print("\n".join(f"written: {path}" for path in rewrite_documents(root)))
    else:
        if not table:
            train_rows(chosen, only, root, str(find_device(device)), end_time(minutes))
        print(run_tables(chosen, root, protocol))


def train_rows(chosen: list[PlannedRun], pattern: str, root: Path, device: str, at: float) -> None:
    """Train what is not finished, until the time `at`."""
    loaded = dict[str, Dataset]()
    if device == "cpu":
        torch.set_num_threads(1)
    for row in chosen:
        folder, stored = row.run_folder(root), stored_runs(root)
        weights_missing = row.name == pattern and not has_weights(row, root)
        stand = planned_status(row, root)
        if stand == "other settings" or (row.name in stored and not weights_missing):
            print_note(f"{row.name}: {stand}, left alone")
            continue
        if time.monotonic() >= at:
            print_note("time is up; the same command goes on from here")
            return
        if row.data not in loaded:
            loaded = {row.data: load(row.config.data, print_note)}  # one at a time in memory
        print_note(f"{row.name}: {'going on' if folder.exists() else 'starting'}")
        if not train_planned(row, loaded[row.data], root, device, at, Progress(row.config.train)):
            print_note(f"{row.name}: time is up, goes on next time")
            return
        if row.name not in stored:
            add_run(folder, root)


def train_grids(names: list[str], root: Path, device_name: str, at: float) -> None:
    """Train models at every point of the grid and print what is kept of them."""
    for model in names:
        for point in GRID:
            grid_point(model, point)  # an unknown model is said before anything is trained
    device = str(find_device(device_name))
    dataset = load(grid_point(names[0], next(iter(GRID))).data, print_note)
    for model in names:
        print_note(f"{model}: {', '.join(GRID)}")
        progress = Progress(grid_point(model, next(iter(GRID))).train)
        if not train_grid(model, dataset, root, device, at, progress):
            print_note("time is up; the same command goes on from here")
            break
    outcomes = read_outcomes(root / FILE)
    for row in outcomes[outcomes["model"].isin(names)].rename(columns={VALID: "valid"}).itertuples():
        print(f"{row.model:<28}{row.point:<16}valid {row.valid:.4f}  epoch {row.best_epoch:>3} of {row.epochs}")
