"""Bring run folders of an older version up to date, in place.

Settings and weights get the names that they have today, and settings that no longer exist are left out. The log, the ranks and
the numbers in the weights stay as they are. If this version cannot have such a run, its folder stays as it is and the command
says why.

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
