"""What is it worth to read the time of the event that is to be predicted, as SMA and HSTU were published?

Trains each system with honest times and with peeking ones, on a small planted world whose times tell what comes next and on one
whose times tell nothing, where the leak must be worth nothing. In memory alone: no run folder is written, and training refuses
such times. Rows grow in checkpoints/benchmarks/leak.csv; those that are there are not measured again. About a minute each.

  python -m elastic_core leak
  python -m elastic_core leak --minutes 10
  python -m elastic_core leak --list
"""

import argparse
import time

from elastic_core.bench import leak
from elastic_core.bench.store import select_rows, write_rows
from elastic_core.commands.arguments import CHECKPOINTS, deadline, options, say

FILE = CHECKPOINTS / "benchmarks" / "leak.csv"


def configure(parser: argparse.ArgumentParser) -> None:
    options(parser, """
        --minutes | float 0 | begin no other after so many minutes (default: no limit)
        --seeds | int 1 | trainings of each
        --list | flag | train nothing, print what is there
    """)  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    at, rows = deadline(arguments), leak.read_leaks(FILE)
    for world, system, times, seed in () if arguments.list else leak.leak_trainings(arguments.seeds):
        if select_rows(rows, world=world, system=system, times=times, seed=seed):
            continue
        if time.monotonic() > at:
            say(f"{arguments.minutes:g} minutes are over; the same command goes on from here")
            break
        rows.append(leak.measure_leak(world, system, times, seed, say))
        write_rows(FILE, rows)
    print(f"{'world':<20}{'system':<28}{'seed':>5}{'honest':>18}{'as published':>18}{'leak':>9}")
    for world, system, seed, honest, published, worth in leak.leak_cells(rows, "not so"):
        print(f"{world:<20}{system:<28}{seed:>5}{honest:>18}{published:>18}{worth:>9}")
    return 0
