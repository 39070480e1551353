"""Bring run folders of an older version up to date, in place: settings that have another name now, or are none any more.

Weights, log and ranks stay as they are. A run whose settings this version cannot have stays as it is, and is named. Runs that
mean the same today open without it.

  python -m elastic_core convert local-mine
  python -m elastic_core convert checkpoints/local-mine
  python -m elastic_core convert checkpoints/local-*
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from elastic_core.commands.arguments import CHECKPOINTS
from elastic_core.convert import convert_run
from elastic_core.runs import CONFIG, run_folder


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or names of runs in checkpoints/")


def run(arguments: Namespace) -> int:
    for name in arguments.runs:
        folder = Path(name) if (Path(name) / CONFIG).is_file() else run_folder(CHECKPOINTS, name)
        print(f"{folder}: {'converted' if convert_run(folder) else 'up to date'}")
    return 0
