"""Train models at every point of one small grid on MovieLens-100K and keep what validation said; nobody gets more tries.

Outcomes lie in checkpoints/tuning.csv, the runs beside it in tuning-… folders, which git ignores. Resumable, as `reproduce` is.

  python -m elastic_core tune gru4rec lrurec
  python -m elastic_core tune gru4rec --minutes 20
  python -m elastic_core tune gru4rec lrurec --points plain-0.2
  python -m elastic_core tune --list
"""

from argparse import ArgumentParser, Namespace

from elastic_core.commands.arguments import CHECKPOINTS, deadline, options, say
from elastic_core.commands.progress import Progress
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.machine import find_device
from elastic_core.recipes import ALSO_TUNED, GRID, grid_point
from elastic_core.tuning import TABLE, outcomes, tune


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("models", nargs="*", help=f"their names, or {', '.join(ALSO_TUNED)}")
    options(parser, f"""
        --points | words {",".join(GRID)} | of the grid, separated by commas (default: all)
        --minutes | float 0 | stop after so many minutes (default: no limit)
        --device | text auto | cpu, cuda or auto
        --root | path {CHECKPOINTS} | where runs and table lie (default: checkpoints)
        --list | flag | train nothing, show what is kept
    """)  # fmt: skip


def run(arguments: Namespace) -> int:
    if arguments.minutes < 0:
        raise InputError(f"--minutes must not be negative, not {arguments.minutes:g}")
    for name in arguments.models:
        for point in arguments.points:
            grid_point(name, point)
    if not arguments.list:
        if not arguments.models or not arguments.points:
            raise InputError("name the models to tune, or ask for --list")
        at, device = deadline(arguments), str(find_device(arguments.device))
        dataset = load(grid_point(arguments.models[0], arguments.points[0]).data, say)
        for name in arguments.models:
            say(f"{name}: {', '.join(arguments.points)}")
            progress = Progress(grid_point(name, arguments.points[0]).train.epochs)
            if not tune(name, dataset, arguments.root, device, at, progress, points=arguments.points):
                say("time is up; the same command goes on from here")
                break
    for found in outcomes(arguments.root / TABLE):
        if found.model in arguments.models or not arguments.models:
            print(f"{found.model:<28}{found.point:<16}valid {found.valid:.4f}  epoch {found.best_epoch:>3} of {found.epochs}")
    return 0
