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

from elastic_core.commands.arguments import flag, option, root_option
from elastic_core.report import write_report


def configure(parser: argparse.ArgumentParser) -> None:
    option(parser, "--out", Path("report"), "the folder to write into")
    root_option(parser)
    flag(parser, "--pictures", "every figure as PNG and SVG, too")


def run(arguments: argparse.Namespace) -> int:
    files = write_report(arguments.root, arguments.out, arguments.pictures)
    print(f"{len(files)} files in {arguments.out}/; begin with report.md")
    return 0
