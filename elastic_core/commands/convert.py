"""Bring run folders of an older version up to date, in place.

Settings and weights get the names that they have today, and settings that no longer exist are left out. The log, the ranks and
the numbers in the weights stay as they are. If this version cannot have such a run, its folder stays as it is and the command
says why.

  elastic convert local-my-clicks-elastic
  elastic convert checkpoints/local-mine
  elastic convert checkpoints/local-*
"""

from pathlib import Path
from typing import Annotated

import typer

from elastic_core.convert import convert_run
from elastic_core.runs import CONFIG, run_folder
from elastic_core.runs.checkpoints import CHECKPOINTS


def run_command(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run folders, or names of runs in checkpoints/.")],
) -> None:
    for name in runs:
        folder = Path(name) if (Path(name) / CONFIG).is_file() else run_folder(CHECKPOINTS, name)
        print(f"{folder}: {'converted' if convert_run(folder) else 'up to date'}")
