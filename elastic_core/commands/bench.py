"""Measure speed and memory of systems side by side, and keep a row a measurement in a file of benchmark rows.

KIND is one of

  latency    a pass over a batch of histories, forward or forward + backward, with its peak memory (default)
  events     one new event of users whose states are kept, beside reading everything again
  training   a step of training as the recipe ml-1m-cpu does it, in targets a second
  memory     the most memory of a process that trains a system

All systems take turns in one process on the same batch, which holds about 16,384 events unless --batch says otherwise, so a
longer history means a smaller batch. Shown are the median over rounds with its quartiles, peak memory, and what the backward pass
keeps. What was measured before by this code on this machine is not measured again, so an interrupted bench goes on where it was.

  elastic bench --lengths 64,256 --k 8 --directions forward
  elastic bench --lengths 1024,65536 --systems elastic,elastic-two-way --interleave --seconds 120
  elastic bench --runs planted-long-elastic-slots --threads 1    a trained model over its own people, padded as they come
  elastic bench --compile default --lengths 1024 --directions forward    by torch.compile; on CUDA reduce-overhead
  elastic bench events --batch 1 --lengths 256,1024,4096 --threads 1
  elastic bench training --threads 1                  64 rows of 200 events; --world ml-1m: MovieLens-1M
  elastic bench training --systems elastic --set objective.span=200
  elastic bench memory --systems elastic --set model.n_subkeys=1024
  elastic bench --gpu                                 the shipped rows of a GPU, some minutes
  elastic bench --show --out checkpoints/benchmarks.csv    the rows that came with the project
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pandas as pd
import torch
import typer

from elastic_core import models
from elastic_core.bench import events, latency, training
from elastic_core.bench.harness import use_threads
from elastic_core.bench.latency import BOTH, CUDA_GRAPHS, FORWARD, ROWS, Setting, measure_latency, measure_run
from elastic_core.bench.rows import SAME_CODE, read_rows, write_rows
from elastic_core.commands.options import DeviceOption, JsonOption, SetOption, end_time, split_commas
from elastic_core.commands.run_lookup import load_run, print_note
from elastic_core.core.elastic import MemoryConfig
from elastic_core.errors import InputError
from elastic_core.machine import describe_machine, find_device
from elastic_core.runs.checkpoints import CHECKPOINTS

BATCH_EVENTS = 16_384
GPU_PASSES = ((1, ""), (256, CUDA_GRAPHS))  # batch, and how it is compiled
LENGTHS = ("64", "128", "256", "512", "1024", "2048", "4096")


class Step(NamedTuple):
    """What is measured at a time: in words, how, and the columns of the rows without which it is measured again."""

    words: str
    measure: Callable[[], pd.DataFrame]
    rows: list[dict[str, object]]


@dataclass
class Request:
    """What is to be measured. `gpu` narrows it to what the shipped rows of a GPU hold."""

    kind: str
    systems: list[str]
    lengths: list[str]
    directions: list[str]
    batch: int
    width: int
    k: int
    n_subkeys: int
    heads: int
    dropout: float
    world: str
    changes: list[str]
    threads: int
    precision: str
    compile: str
    gpu: bool
    rounds: int
    seconds: float
    interleave: bool
    max_memory: float
    runs: list[str]


def run_command(
    kind: Annotated[
        Literal["latency", "events", "training", "memory"], typer.Argument(metavar="KIND", help="What is measured.")
    ] = "latency",
    systems: Annotated[
        str,
        typer.Option(metavar="NAME,…", help=f"Of {', '.join(latency.all_systems())}; of training and memory, names of models."),
    ] = "",
    lengths: Annotated[str, typer.Option(metavar="N,…", help="History lengths N.")] = ",".join(LENGTHS),
    directions: Annotated[str, typer.Option(metavar="NAME,…", help="forward, forward+backward.")] = ",".join(latency.DIRECTIONS),
    batch: Annotated[int, typer.Option(metavar="N", help=f"Histories at a time; 0: {BATCH_EVENTS:,} events.")] = 0,
    width: Annotated[int, typer.Option(metavar="N", help="d.")] = 64,
    k: Annotated[int, typer.Option("--k", metavar="N", help="Retrieved experts.")] = 16,
    n_subkeys: Annotated[int, typer.Option(metavar="N", help="√K.")] = 32,
    heads: Annotated[int, typer.Option(metavar="N", help="Heads.")] = 1,
    dropout: Annotated[float, typer.Option(metavar="P", help="Dropout, for forward+backward.")] = 0.0,
    world: Annotated[str, typer.Option(help=f"Of training and memory: {', '.join(training.WORLDS)}.")] = "full",
    changes: SetOption = None,
    device: DeviceOption = "cpu",
    threads: Annotated[int, typer.Option(metavar="N", help="CPU threads; 0: as torch chooses.")] = 0,
    precision: Annotated[Literal["float32", "bfloat16"], typer.Option(help="bfloat16: under autocast.")] = "float32",
    compile_mode: Annotated[
        Literal["default", "reduce-overhead", "max-autotune"] | None, typer.Option("--compile", help="By torch.compile.")
    ] = None,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="One user, training steps and compiled passes on a GPU in bfloat16, N = 1,024.")
    ] = False,
    rounds: Annotated[int, typer.Option(metavar="N", help="Most rounds per setting.")] = 15,
    seconds: Annotated[float, typer.Option(metavar="N", help="About so long per setting.")] = 20.0,
    interleave: Annotated[
        bool, typer.Option("--interleave", help="Measure all lengths in turns, to compare them with each other.")
    ] = False,
    minutes: Annotated[float, typer.Option(metavar="N", help="Begin no new setting after so many; 0: no limit.")] = 0.0,
    max_memory: Annotated[
        float, typer.Option("--max-memory", metavar="GB", help="Leave out eager attention above so many GB.")
    ] = 6.0,
    runs: Annotated[
        str, typer.Option(metavar="NAME,…", help="Of latency: trained runs over their own people, beside SASRec of their size.")
    ] = "",
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The file of rows (default: local-benchmarks.csv beside the runs).", show_default=False
        ),
    ] = CHECKPOINTS / "local-benchmarks.csv",
    remeasure: Annotated[bool, typer.Option("--remeasure", help="Measure again what is there already.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Measure nothing, print what is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    if not show:
        request = Request(
            kind, split_commas(systems), split_commas(lengths), split_commas(directions), batch, width, k, n_subkeys, heads,
            dropout, world, changes or [], threads, precision, compile_mode or "", gpu, rounds, seconds, interleave, max_memory,
            split_commas(runs),
        )  # fmt: skip
        if not minutes >= 0:
            raise InputError("--minutes must be 0 or more")
        check_request(request)
        measured_on, until = find_device("cuda" if gpu else device), end_time(minutes)
        with use_threads(threads):
            for step in _plan_steps(request, measured_on):
                if not remeasure and _measured_before(read_rows(out), step.rows, measured_on):
                    continue
                if time.monotonic() > until:
                    print_note(f"{minutes:g} minutes are over; the same command goes on from here")
                    break
                print_note(step.words)
                write_rows(out, step.measure())
    rows = read_rows(out)
    print(rows.to_json(orient="records", lines=True) if as_json else rows_as_text(rows))


# --- what is measured -------------------------------------------------------------------------------------------------


def _plan_steps(request: Request, device: torch.device) -> Iterator[Step]:
    """Yield what is asked for, one step after the other."""
    if request.gpu:
        yield from _plan_gpu(request, device)
    elif request.runs:
        yield from _plan_runs(request, device)
    elif request.kind == "latency":
        settings = [_make_setting(request, n, direction) for direction in request.directions for n in _parse_lengths(request)]
        yield from _plan_latency(request, settings, device)
    elif request.kind == "events":
        yield from _plan_events(request, device)
    else:
        yield _plan_training(request, device)


def _plan_latency(request: Request, settings: list[Setting], device: torch.device) -> Iterator[Step]:
    """One step a setting, or with `--interleave` one a direction."""
    groups = [[setting] for setting in settings]
    if request.interleave:
        groups = [[setting for setting in settings if setting.direction == direction] for direction in request.directions]
    for group in groups:
        systems = _systems_that_fit(request, max(group, key=Setting.score_matrix_bytes))
        words = "\n".join(f"{setting.direction}, N = {setting.length}, {setting.batch} histories" for setting in group)
        rows = [{"system": system, "rows": which, **asdict(setting)} for setting in group for system in systems for which in ROWS]
        yield Step(words, partial(measure_latency, group, device, systems, **_harness_options(request)), rows)


def _plan_runs(request: Request, device: torch.device) -> Iterator[Step]:
    """One step a run: its model over its own people."""
    threads = torch.get_num_threads()
    for name in request.runs:
        _, dataset, model = load_run(name, str(device))
        torch.set_num_threads(threads)  # as asked for; a run that is opened takes what is free
        batch = request.batch or max(1, BATCH_EVENTS // model.length)
        measure = partial(measure_run, name, model, dataset, batch, device, **_harness_options(request))
        yield Step(f"{name}, {batch} of its people", measure, [])


def _plan_gpu(request: Request, device: torch.device) -> Iterator[Step]:
    """One user; training steps of 2^18 events; compiled passes over as many."""
    request.max_memory, request.interleave = 60.0, False
    one_user, compiled = (Setting(length=1_024, batch=batch, compiled=mode, dtype="bfloat16") for batch, mode in GPU_PASSES)
    settings = [one_user, replace(compiled, direction=BOTH, compiled=""), compiled]
    yield from _plan_latency(request, settings, device)


def _plan_events(request: Request, device: torch.device) -> Iterator[Step]:
    systems = [name for name in request.systems or latency.SYSTEMS if name in events.causal_systems()]
    for length in _parse_lengths(request):
        setting = _make_setting(request, length)
        rows = [{"system": system, **asdict(setting), "direction": "event"} for system in systems]
        measure = partial(events.measure_events, setting, device, systems, **_harness_options(request))
        yield Step(f"one new event after {length}, {setting.batch} users", measure, rows)


def _plan_training(request: Request, device: torch.device) -> Step:
    trainable = [name for name in models.model_names() if models.model_class(name).objective]
    systems = request.systems or list(training.SYSTEMS)
    if unknown := [name for name in systems if name not in trainable]:
        raise InputError(f"unknown model {unknown[0]!r}; known are {', '.join(trainable)}")
    configs = [training.training_config(system, request.world, request.changes) for system in systems]
    if request.kind == "memory":
        measure = partial(training.measure_memory, configs, request.world, device)
        return Step(f"memory of a training, world {request.world}", measure, [])
    measure = partial(training.measure_training, configs, request.world, device, rounds=request.rounds)
    return Step(f"steps of training, world {request.world}", measure, [])


def _make_setting(request: Request, length: int, direction: str = FORWARD) -> Setting:
    return Setting(
        length=length, batch=request.batch or max(1, BATCH_EVENTS // length), direction=direction, width=request.width,
        k=request.k, n_subkeys=request.n_subkeys, heads=request.heads, dropout=request.dropout,
        compiled=request.compile, dtype=request.precision,
    )  # fmt: skip


def _parse_lengths(request: Request) -> list[int]:
    return [int(length) for length in request.lengths]


def _harness_options(request: Request) -> dict[str, Any]:
    return {"rounds": request.rounds, "seconds": request.seconds}


def _systems_that_fit(request: Request, largest: Setting) -> tuple[str, ...]:
    """Return the systems without those that would hold too large a matrix of scores."""
    systems, forms = tuple(request.systems or latency.SYSTEMS), latency.model_forms()
    if largest.score_matrix_bytes() / 1e9 <= request.max_memory:
        return systems
    fitting = tuple(name for name in systems if forms[name][1].get("fused", True))
    if fitting != systems:
        gigabytes = largest.score_matrix_bytes() / 1e9
        print_note(f"N = {largest.length}: eager attention would need about {gigabytes:.0f} GB and is left out")
    return fitting


def check_request(request: Request) -> None:
    """Raises InputError for what cannot be measured."""
    of_passes = request.kind in ("latency", "events")
    for kind, names, allowed in (
        ("system", (of_passes and request.systems) or [], latency.all_systems()),
        ("direction", request.directions, latency.DIRECTIONS),
    ):
        if unknown := [name for name in names if name not in allowed]:
            raise InputError(f"unknown {kind} {unknown[0]!r}; known are {', '.join(allowed)}")
    if not all(text.isdigit() and int(text) >= 2 for text in request.lengths):
        raise InputError(f"--lengths must be whole numbers of at least 2, not {','.join(request.lengths)}")
    if request.rounds < 1 or min(request.threads, request.batch) < 0:
        raise InputError("--rounds must be at least 1, --threads and --batch at least 0")
    if request.runs and request.kind != "latency":
        raise InputError("--runs goes with latency")
    if request.world not in training.WORLDS:
        raise InputError(f"unknown world {request.world!r}; known are {', '.join(training.WORLDS)}")
    if not (request.max_memory >= 0 and request.seconds >= 0):
        raise InputError("--max-memory and --seconds must be 0 or more")
    MemoryConfig(**{name: getattr(request, name) for name in ("width", "k", "n_subkeys", "heads", "dropout")})


def _measured_before(rows: pd.DataFrame, expected: list[dict[str, object]], device: torch.device) -> bool:
    """Whether all expected rows were measured by this code on this machine."""
    now = describe_machine(device)
    same_code = rows[(rows[SAME_CODE] == [now[name] for name in SAME_CODE]).all(axis=1)]
    return bool(expected) and all((same_code[list(row)] == list(row.values())).all(axis=1).any() for row in expected)


# --- what is printed --------------------------------------------------------------------------------------------------

PRINTED_COLUMNS = "system direction rows length batch width k world objective span users processes think device threads".split()
METRICS = {
    "peak_bytes": ("peak MB", 1e6), "saved_bytes": ("saved MB", 1e6), "rate": ("targets/s", 1), "p95": ("p95 s", 1),
    "end_mb": ("MB", 1), "ratio": ("times as fast", 1),
}  # fmt: skip


def rows_as_text(rows: pd.DataFrame) -> str:
    """Return the rows of each kind: milliseconds with quartiles, megabytes, targets a second."""
    tables = []
    for bench, group in rows.groupby("bench", sort=False):
        columns = [name for name in PRINTED_COLUMNS if group[name].notna().any() and (group[name] != "").any()]
        table = group[columns].assign(ms=1e3 * group["seconds"])
        quartiles = 1e3 * group[["seconds_low", "seconds_high"]]
        if quartiles.notna().any(axis=None):
            table["quartiles"] = [f"{low:.3g} … {high:.3g}" for low, high in quartiles.itertuples(index=False)]
        table["processor ms"] = 1e3 * group["processor"]
        for column, (name, unit) in METRICS.items():
            if group[column].notna().any():
                table[name] = group[column].astype(float) / unit
        tables.append(f"{bench}\n{table.to_string(index=False, float_format='{:.4g}'.format, na_rep='')}")
    return "\n\n".join(tables) or "no rows yet"
