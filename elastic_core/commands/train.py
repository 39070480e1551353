"""Train a model into a run folder, or go on with the one that is there.

Start from a recipe (data, model and training settings that go together) or from a config.json, and change single
settings with --set. The folder then holds config.json, model.safetensors (the best weights by validation NDCG@10),
metrics.jsonl, items.csv, and resume.pt to go on from. Ctrl-C ends the training early and tests its best weights.
Below torchrun several processes share every batch.

The same command again goes on where a training was interrupted or stopped. One that has ended goes on with a larger budget
(--minutes, train.epochs, train.patience), as if it had had that from the start, bit for bit on a processor; its test is scored
again at the new end, and its log says that it was scored before. With --from a new run begins with the weights of another one,
of the same model; items that are new in the data start where their genres and titles put them. Without --recipe or --config it
has that run's settings.

  python -m elastic_core train --recipe toy
  python -m elastic_core train --recipe ml-100k --model sasrec --out checkpoints/local-sasrec
  python -m elastic_core train --recipe ml-100k --set model.k=16 --set train.seed=1 --minutes 5
  python -m elastic_core train --recipe ml-100k --set data.source=my-ratings.csv --columns user=reader,item=book,time=read_at
  python -m elastic_core train --config checkpoints/demo/ml-100k-elastic/config.json --device auto
  python -m elastic_core train --from local-toy-elastic --set train.learning_rate=1e-4 --out checkpoints/local-finer
"""

import os
import shutil
import signal
from argparse import ArgumentParser, Namespace
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch

from elastic_core import files, models
from elastic_core.commands.arguments import CHECKPOINTS, add_file_options, add_options, find_run, parse_columns, print_note
from elastic_core.core.batches import ALONE, Alone
from elastic_core.core.histories import Dataset
from elastic_core.data.sources import load
from elastic_core.errors import Elsewhere, InputError
from elastic_core.machine import find_device, number_of_threads
from elastic_core.recipes import DEFAULT, RECIPES, recipe
from elastic_core.run_config import RunConfig
from elastic_core.runs import MOST_CONFIG, WEIGHTS, Run
from elastic_core.runs.progress import Progress, stop_on_signals
from elastic_core.runs.training import settle_threads, train


def configure(parser: ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group()
    add_options(source, f"""
        --recipe NAME | text | one of {", ".join(RECIPES)}
        --config FILE | path | a config.json, for example that of another run
    """)  # fmt: skip
    parser.add_argument("--from", metavar="RUN", dest="begin", help="begin with the weights of this run")
    add_options(parser, f"--model NAME | text | with --recipe: one of {', '.join(models.names())} (default: elastic)")
    parser.add_argument(
        "--set", metavar="SECTION.KEY=VALUE", action="append", default=[], help="change a setting (repeatable), as in model.k=16"
    )
    add_file_options(parser)
    add_options(parser, """
        --out DIR | path | the run folder (default: checkpoints/local-RECIPE-MODEL)
        --device | text | cpu, cuda or auto (default: what the recipe says, cpu)
        --minutes | float | stop after so many minutes of training (default: no limit)
        --threads | text auto | CPU threads, or auto: as the run had, or as measured at the start, OMP_NUM_THREADS if set
    """)  # fmt: skip


def run(arguments: Namespace) -> int:
    try:
        with _process_group() as ranks, stop_on_signals(signal.SIGINT, signal.SIGTERM) as stop:
            begin = ranks.together(lambda: find_run(arguments.begin) if arguments.begin else None)
            config = ranks.together(lambda: resolve_config(arguments, begin))
            out = arguments.out or default_folder(arguments, config)
            dataset = load_same_data(config, ranks)
            if begin is not None and not ranks.rank and begin.last("start").get("data_hash") != dataset.hash:
                print_note(f"Note: {begin.name} learned from other data; where those hold this test's events, the test is none.")
            if ranks is ALONE and config.train.device == "cpu":
                if arguments.threads != "auto":
                    torch.set_num_threads(number_of_threads(arguments.threads))
                elif chosen := settle_threads(config, dataset, Run(out)):
                    print_note(f"{chosen} threads were quickest.")
            fresh = not ranks.rank and not out.exists()
            try:
                finished = train(config, dataset, out, Progress(config.train), stop, ranks, begin)
            except InputError:
                if fresh and out.exists() and not (out / WEIGHTS).exists():
                    shutil.rmtree(out, ignore_errors=True)  # nothing was learned: leave no half of a run behind
                raise
            if not ranks.rank:
                print(finished.path)
    except Elsewhere:
        return 2
    return 0


def _process_group() -> AbstractContextManager[Alone]:
    """The processes that torchrun started, or this one alone."""
    if "RANK" not in os.environ:
        return nullcontext(ALONE)
    from elastic_core.scale.distributed import joined

    return joined()


def load_same_data(config: RunConfig, ranks: Alone) -> Dataset:
    """Rank 0 fetches what is not there, the others find it. Raises InputError if they find something else."""
    datasets: list[Dataset] = []

    def read() -> str:
        datasets.append(load(config.data, print_note if not ranks.rank else None))
        return datasets[0].hash

    def same() -> Dataset:
        if not datasets:
            read()
        if datasets[0].hash != data_hash:
            raise InputError(f"{datasets[0].label} is not the same to all processes of this training")
        return datasets[0]

    data_hash = ranks.first(read)
    return ranks.together(same)


def resolve_config(arguments: Namespace, begin: Run | None) -> RunConfig:
    """The configuration that the arguments ask for."""
    if arguments.model and not arguments.recipe:
        raise InputError("--model goes with --recipe; a configuration already names its model")
    if arguments.config:
        config = read_config(arguments.config)
    elif arguments.recipe:
        config = recipe(arguments.recipe, arguments.model or DEFAULT)
    elif begin is not None:
        config = begin.config
    else:
        raise InputError("say what to train: --recipe, --config or --from (see: python -m elastic_core train --help)")
    changes = {
        "train.minutes": arguments.minutes,
        "train.device": find_device(arguments.device) if arguments.device else None,
        "data.dates": arguments.dates or None,
        "data.titles": arguments.titles or None,
        "data.incomplete": arguments.incomplete or None,
    }
    config = config.override(*arguments.set, *(f"{name}={value}" for name, value in changes.items() if value is not None))
    return config.replaced({"data.columns": parse_columns(arguments.columns)}) if arguments.columns else config


def read_config(path: Path) -> RunConfig:
    """A config.json. Raises InputError naming the file and what is wrong with it."""
    try:
        plain = (
            files.parse_json(path.read_text(encoding="utf-8")) if path.stat().st_size <= MOST_CONFIG and path.is_file() else None
        )
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(plain, dict):
        raise InputError(f"{path} must be a file of at most {files.size_text(MOST_CONFIG)} that holds an object")
    try:
        return RunConfig.from_dict(plain)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def default_folder(arguments: Namespace, config: RunConfig) -> Path:
    if arguments.begin and not (arguments.recipe or arguments.config):
        return CHECKPOINTS / f"local-{Path(arguments.begin).name.removeprefix('local-')}-on"
    start = arguments.recipe or (
        arguments.config.stem if arguments.config.stem != "config" else arguments.config.resolve().parent.name
    )
    return CHECKPOINTS / f"local-{start.removeprefix('local-')}-{config.model.name}"
