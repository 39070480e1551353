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

from elastic_core.commands.arguments import CHECKPOINTS, options
from elastic_core.report import write_report


def configure(parser: argparse.ArgumentParser) -> None:
    options(parser, f"""
        --out | path report | the folder to write into
        --root | path {CHECKPOINTS} | where the runs lie (default: checkpoints)
        --pictures | flag | every figure as PNG and SVG, too
    """)  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    files = write_report(arguments.root, arguments.out, arguments.pictures)
    print(f"{len(files)} files in {arguments.out}/; begin with report.md")
    return 0
