"""Write every result table and figure from the run folders alone; nothing is trained and no model is opened.

report.md                           all of it on one page
<protocol>.csv                      what every system reached: interval, seeds, parameters, seconds, device
<data>-<protocol>-differences.csv   each ELASTIC minus the others, p adjusted for their number, what may be claimed
<data>-<protocol>.html              the same drawn; needs no network
<data>-<protocol>.png and .svg      the same as pictures, with --pictures (pip install -e ".[pictures]", and a Chromium)

  python -m elastic_core report
  python -m elastic_core report --out results --root checkpoints --pictures
"""

import argparse
from pathlib import Path

from elastic_core.commands.finding import CHECKPOINTS
from elastic_core.report import write_report


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("report"), help="the folder to write into (default: report)")
    parser.add_argument("--root", type=Path, default=CHECKPOINTS, help="where the runs lie (default: checkpoints)")
    parser.add_argument("--pictures", action="store_true", help="every figure as PNG and SVG, too")


def run(arguments: argparse.Namespace) -> int:
    files = write_report(arguments.root, arguments.out, arguments.pictures)
    print(f"{len(files)} files in {arguments.out}/; begin with report.md")
    return 0
