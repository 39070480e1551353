"""Train a model into a run folder, or go on with the one that is there.

Give a file of your own or a named source; the settings then follow from the size of the data. Or start from a recipe (data,
model and training settings that go together) or from a config.json. Single settings change with --set. The folder then holds
config.json, model.safetensors (the best weights by validation NDCG@10), metrics.jsonl, items.csv, and resume.pt to go on from.
Ctrl-C ends the training early and tests its best weights. Below torchrun several processes share every batch.

The same command again goes on where a training was interrupted or stopped. One that has ended goes on with a larger budget
(--minutes, train.epochs, train.patience), as if it had had that from the start, bit for bit on a processor; its test is scored
again at the new end, and its log says that it was scored before. With --from a new run begins with the weights of another one,
of the same model; items that are new in the data start at the mean of the others. (LISA with form=frozen begins with the items of
any model.) Without --recipe or --config it has that run's settings.

  elastic train groceries --minutes 5
  elastic train my-clicks.csv --minutes 5
  elastic train my-ratings.csv --columns "user=reader,item=book,time=read at" --model sasrec
  elastic train --recipe ml-100k --model sasrec --out checkpoints/local-sasrec
  elastic train --recipe ml-100k --set model.k=16 --set train.seed=1 --minutes 5
  elastic train --config checkpoints/demo/ml-100k-elastic/config.json --device auto
  elastic train --from local-my-clicks-elastic --set train.learning_rate=1e-4 --out checkpoints/local-finer
"""

import os
import re
import shutil
import signal
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import typer

from elastic_core import files, models
from elastic_core.commands.options import (
    BasketsOption,
    ColumnsOption,
    DatesOption,
    IncompleteOption,
    KCoreOption,
    SetOption,
    TiesOption,
    TitlesOption,
    data_config,
    data_settings,
)
from elastic_core.commands.run_lookup import find_run, print_note
from elastic_core.core.batches import ALONE, SingleProcess
from elastic_core.core.histories import Dataset
from elastic_core.data.repeats import count_repeats, fitting_protocol
from elastic_core.data.source_catalog import source_names
from elastic_core.data.sources import load
from elastic_core.errors import Elsewhere, InputError
from elastic_core.machine import find_device, number_of_threads
from elastic_core.recipes import DEFAULT, RECIPES, recipe, settings_for
from elastic_core.run_config import DataConfig, RunConfig
from elastic_core.runs import MOST_CONFIG, WEIGHTS, Run
from elastic_core.runs.checkpoints import CHECKPOINTS
from elastic_core.runs.progress import Progress, stop_on_signals
from elastic_core.runs.training import settle_threads, train

MINUTES = 5.0  # of a training on data of one's own


def run_command(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A file or folder of your own, or a named source.")] = "",
    recipe_name: Annotated[str, typer.Option("--recipe", metavar="NAME", help=f"Or one of {', '.join(RECIPES)}.")] = "",
    config_file: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Or a config.json, for example that of another run.")
    ] = None,
    begin_name: Annotated[str, typer.Option("--from", metavar="RUN", help="Begin with the weights of this run.")] = "",
    model: Annotated[
        str,
        typer.Option(metavar="NAME", show_default=False, help=f"One of {', '.join(models.model_names())} (default: {DEFAULT})."),
    ] = "",
    changes: SetOption = None,
    columns: ColumnsOption = "",
    dates: DatesOption = None,
    titles: TitlesOption = "",
    incomplete: IncompleteOption = None,
    ties: TiesOption = None,
    baskets: BasketsOption = None,
    k_core: KCoreOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The run folder; by default checkpoints/local-SOURCE-MODEL.")
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="DEVICE", help="cpu, cuda or auto; by default what the settings say, cpu.", show_default=False)
    ] = "",
    minutes: Annotated[
        float | None,
        typer.Option(metavar="N", help=f"Stop after so many minutes of training; by default {MINUTES:g}, of a recipe its own."),
    ] = None,
    clock: Annotated[
        Literal["processor", "wall"],
        typer.Option(
            help="Of --minutes: what each thread of the processor works, which a busy machine does not stretch, or wall."
        ),
    ] = "processor",
    threads: Annotated[
        str, typer.Option(metavar="N", help="CPU threads, or auto: as the run had, OMP_NUM_THREADS, or as measured at the start.")
    ] = "auto",
) -> None:
    sources = [name for name, value in (("SOURCE", source), ("--recipe", recipe_name), ("--config", config_file)) if value]
    if len(sources) > 1:
        raise InputError(f"say what to train once: {sources[0]} or {sources[1]}")
    if not sources and not begin_name:
        raise InputError("say what to train: a file, a named source, --recipe, --config or --from (see: elastic train --help)")
    if model and (config_file or not sources):
        raise InputError("--model goes with SOURCE or --recipe; a configuration already names its model")
    settings = data_settings(columns, dates, titles, incomplete, ties, baskets, k_core)
    try:
        with _process_group() as ranks, stop_on_signals(signal.SIGINT, signal.SIGTERM) as stop:
            begin = ranks.run_on_each(lambda: find_run(begin_name) if begin_name else None)
            overrides = ranks.run_on_each(
                lambda: budget_settings(minutes if sources[:1] != ["SOURCE"] else minutes or MINUTES, clock, device)
            )
            if source:
                data_changes = [change for change in changes or () if change.startswith("data.")]
                data = ranks.run_on_each(lambda: data_config(source, settings, data_changes))
                dataset = load_same_data(data, ranks)
                sized_config = ranks.run_on_each(
                    lambda: settings_for(model or DEFAULT, dataset, MINUTES, 0, "cpu").override(*changes or ())
                )
                config = ranks.run_on_each(lambda: sized_config.replace_values(overrides))
            else:
                more = overrides | {f"data.{name}": value for name, value in settings.items()}
                config = ranks.run_on_each(lambda: start_config(recipe_name, config_file, begin, model, changes or [], more))
                dataset = load_same_data(config.data, ranks)
            folder = out or CHECKPOINTS / default_name(source, recipe_name, config_file, begin_name, config.model.name)
            if begin is not None and not ranks.rank and begin.last_event("start").get("data_hash") != dataset.hash:
                print_note(f"Note: {begin.name} learned from other data; where those hold this test's events, the test is none.")
            if not ranks.rank:
                warn_of_protocol(config, dataset)
            if ranks is ALONE and config.train.device == "cpu":
                if threads != "auto":
                    torch.set_num_threads(number_of_threads(threads))
                elif thread_count := settle_threads(config, dataset, Run(folder)):
                    print_note(f"{thread_count} threads were quickest.")
            is_new = not ranks.rank and not folder.exists()
            try:
                finished = train(config, dataset, folder, Progress(config.train), stop, ranks, begin)
            except InputError:
                if is_new and folder.exists() and not (folder / WEIGHTS).exists():
                    shutil.rmtree(folder, ignore_errors=True)  # nothing was learned: leave no half of a run behind
                raise
            if not ranks.rank:
                print(finished.path)
    except Elsewhere:
        raise typer.Exit(2) from None


def warn_of_protocol(config: RunConfig, dataset: Dataset) -> None:
    """On data of somebody's own: whether validation would leave out what people choose, or the other way round."""
    chosen, fitting = config.train.valid_protocol, fitting_protocol(dataset)
    if chosen != fitting and config.data.source not in source_names():
        share = count_repeats(dataset, "valid").share
        print_note(
            f"Validation ranks by {chosen}, and {share:.0%} of people choose again what they have seen: "
            f"--set train.valid_protocol={fitting} fits these data."
        )


def _process_group() -> AbstractContextManager[SingleProcess]:
    """The processes that torchrun started, or this one alone."""
    if "RANK" not in os.environ:
        return nullcontext(ALONE)
    from elastic_core.scale.distributed import join_processes

    return join_processes()


def load_same_data(config: DataConfig, ranks: SingleProcess) -> Dataset:
    """Rank 0 fetches what is not there, the others find it. Raises InputError if they find something else."""
    datasets: list[Dataset] = []

    def read_data() -> str:
        datasets.append(load(config, print_note if not ranks.rank else None))
        return datasets[0].hash

    def check_same_data() -> Dataset:
        if not datasets:
            read_data()
        if datasets[0].hash != data_hash:
            raise InputError(f"{datasets[0].label} is not the same to all processes of this training")
        return datasets[0]

    data_hash = ranks.run_on_first(read_data)
    return ranks.run_on_each(check_same_data)


def budget_settings(minutes: float | None, clock: str, device: str) -> dict[str, Any]:
    """The settings of `train` that --minutes, --clock and --device change."""
    settings: dict[str, Any] = {"train.minutes": minutes, "train.device": str(find_device(device)) if device else None}
    if minutes is not None:
        settings["train.clock"] = clock
    return {name: value for name, value in settings.items() if value is not None}


def start_config(
    recipe_name: str, config_file: Path | None, start_run: Run | None, model: str, changes: list[str], values: dict[str, Any]
) -> RunConfig:
    """The configuration of a recipe, a file, or the run to begin with, with these changes."""
    if config_file:
        config = read_config(config_file)
    elif recipe_name or start_run is None:
        config = recipe(recipe_name, model or DEFAULT)
    else:
        config = start_run.config
    return config.override(*changes).replace_values(values)


def read_config(path: Path) -> RunConfig:
    """A config.json. Raises InputError naming the file and what is wrong with it."""
    try:
        settings = (
            files.parse_json(path.read_text(encoding="utf-8")) if path.stat().st_size <= MOST_CONFIG and path.is_file() else None
        )
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(settings, dict):
        raise InputError(f"{path} must be a file of at most {files.size_text(MOST_CONFIG)} that holds an object")
    try:
        return RunConfig.from_dict(settings)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def default_name(source: str, recipe_name: str, config_file: Path | None, begin_name: str, model: str) -> str:
    """What a run folder is called, by what its settings come from: local-my-clicks-elastic."""
    if begin_name and not (source or recipe_name or config_file):
        return f"local-{Path(begin_name).name.removeprefix('local-')}-on"
    start = recipe_name
    if source:
        start = re.sub(r"[^\w.-]+", "-", Path(source).name.split(".")[0]).strip("-") or "data"
    elif config_file:
        start = config_file.stem if config_file.stem != "config" else config_file.resolve().parent.name
    return f"local-{start.removeprefix('local-')}-{model}"
