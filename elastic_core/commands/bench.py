"""Measure speed and memory of systems side by side, and keep a row a measurement in a file of benchmark rows.

KIND is one of

  latency    a pass over a batch of histories, forward or forward + backward, with its peak memory (default)
  events     one new event of users whose states are kept, beside reading everything again
  training   a step of training as the recipe ml-1m-cpu does it, in targets a second
  memory     the most memory of a process that trains a system

All systems take turns in one process on the same batch, which holds about 16,384 events unless --batch says otherwise, so a
longer history means a smaller batch. Shown are the median over rounds with its quartiles, peak memory, and what the backward pass
keeps. What was measured before by this code on this machine is not measured again, so an interrupted bench goes on where it was.

  python -m elastic_core bench --lengths 64,256 --k 8 --directions forward
  python -m elastic_core bench --lengths 1024,65536 --systems elastic,elastic-two-way --interleave --seconds 120
  python -m elastic_core bench --compile default --lengths 1024 --directions forward    by torch.compile; on CUDA reduce-overhead
  python -m elastic_core bench events --batch 1 --lengths 256,1024,4096 --threads 1
  python -m elastic_core bench training --threads 1                  64 rows of 200 events; --world ml-1m: MovieLens-1M
  python -m elastic_core bench training --systems elastic --set objective.span=200
  python -m elastic_core bench memory --systems elastic --set model.n_subkeys=1024
  python -m elastic_core bench --gpu                                 the shipped rows of a GPU, some minutes
  python -m elastic_core bench --show --out checkpoints/benchmarks.csv    the rows that came with the project
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch

from elastic_core import models
from elastic_core.bench import events, latency, training
from elastic_core.bench.harness import use_threads
from elastic_core.bench.latency import BOTH, CUDA_GRAPHS, FORWARD, ROWS, Setting, measure_latency
from elastic_core.bench.rows import SAME_CODE, read_rows, write_rows
from elastic_core.commands.arguments import CHECKPOINTS, end_time, print_note, split_commas
from elastic_core.core.elastic import MemoryConfig
from elastic_core.errors import InputError
from elastic_core.machine import describe_machine, find_device

KINDS = ("latency", "events", "training", "memory")
COMPILE_MODES = ("default", CUDA_GRAPHS, "max-autotune")
BATCH_EVENTS = 16_384
GPU_PASSES = ((1, ""), (256, CUDA_GRAPHS))  # batch, and how it is compiled
LENGTHS = ("64", "128", "256", "512", "1024", "2048", "4096")


class Step(NamedTuple):
    """What is measured at a time: in words, how, and the columns of the rows without which it is measured again."""

    words: str
    measure: Callable[[], pd.DataFrame]
    rows: list[dict[str, object]]


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("kind", nargs="?", choices=KINDS, default="latency", metavar="KIND", help=f"{', '.join(KINDS)} (default: latency)")
    add("--systems", type=split_commas, help=f"of {', '.join(latency.all_systems())}; of training and memory, names of models")
    add("--lengths", type=split_commas, help="history lengths N (default: 64,128,256,512,1024,2048,4096)")
    add("--directions", type=split_commas, default=list(latency.DIRECTIONS), help="forward, forward+backward (default: both)")
    add("--batch", type=int, default=0, help=f"histories at a time (default: {BATCH_EVENTS:,} events)")
    add("--width", type=int, default=64, help="d (default: 64)")
    add("--k", type=int, default=16, help="retrieved experts (default: 16)")
    add("--n-subkeys", type=int, default=32, help="√K (default: 32)")
    add("--heads", type=int, default=1, help="heads (default: 1)")
    add("--dropout", type=float, default=0.0, help="dropout, for forward+backward (default: 0)")
    add("--world", choices=tuple(training.WORLDS), default="full", help="of training and memory (default: full)")
    add("--set", dest="changes", action="append", default=[], metavar="NAME=VALUE", help="of training and memory: a setting")
    add("--device", default="cpu", help="cpu, cuda or auto (default: cpu)")
    add("--threads", type=int, default=0, help="CPU threads (default: as torch chooses)")
    add("--precision", choices=("float32", "bfloat16"), default="float32", help="bfloat16: under autocast")
    add("--compile", choices=COMPILE_MODES, default="", metavar="MODE", help=f"by torch.compile: {', '.join(COMPILE_MODES)}")
    add("--gpu", action="store_true", help="one user, training steps and compiled passes on a GPU in bfloat16, N = 1,024")
    add("--rounds", type=int, default=15, help="most rounds per setting (default: 15)")
    add("--seconds", type=float, default=20.0, help="about so long per setting (default: 20)")
    add("--interleave", action="store_true", help="measure all lengths in turns, to compare them with each other")
    add("--minutes", type=float, default=0.0, help="begin no new setting after so many minutes (default: no limit)")
    add("--max-memory", type=float, default=6.0, metavar="GB", help="leave out eager attention above so many GB (default: 6)")
    add("--out", type=Path, default=CHECKPOINTS / "local-benchmarks.csv", help="the file of rows")
    add("--remeasure", action="store_true", help="measure again what is there already")
    add("--show", action="store_true", help="measure nothing, print what is there")


def run(arguments: Namespace) -> int:
    if not arguments.show:
        _check_arguments(arguments)
        device, until = find_device("cuda" if arguments.gpu else arguments.device), end_time(arguments)
        with use_threads(arguments.threads):
            for step in _plan_steps(arguments, device):
                if not arguments.remeasure and _measured_before(read_rows(arguments.out), step.rows, device):
                    continue
                if time.monotonic() > until:
                    print_note(f"{arguments.minutes:g} minutes are over; the same command goes on from here")
                    break
                print_note(step.words)
                write_rows(arguments.out, step.measure())
    print(rows_as_text(read_rows(arguments.out)))
    return 0


# --- what is measured -------------------------------------------------------------------------------------------------


def _plan_steps(arguments: Namespace, device: torch.device) -> Iterator[Step]:
    """Yield what the arguments ask for, one step after the other."""
    if arguments.gpu:
        yield from _plan_gpu(arguments, device)
    elif arguments.kind == "latency":
        settings = [
            _make_setting(arguments, n, direction) for direction in arguments.directions for n in _parse_lengths(arguments)
        ]
        yield from _plan_latency(arguments, settings, device)
    elif arguments.kind == "events":
        yield from _plan_events(arguments, device)
    else:
        yield _plan_training(arguments, device)


def _plan_latency(arguments: Namespace, settings: list[Setting], device: torch.device) -> Iterator[Step]:
    """One step a setting, or with `--interleave` one a direction."""
    groups = [[setting] for setting in settings]
    if arguments.interleave:
        groups = [[setting for setting in settings if setting.direction == direction] for direction in arguments.directions]
    for group in groups:
        systems = _systems_that_fit(arguments, max(group, key=Setting.score_matrix_bytes))
        words = "\n".join(f"{setting.direction}, N = {setting.length}, {setting.batch} histories" for setting in group)
        rows = [{"system": system, "rows": which, **asdict(setting)} for setting in group for system in systems for which in ROWS]
        yield Step(words, partial(measure_latency, group, device, systems, **_harness_options(arguments)), rows)


def _plan_gpu(arguments: Namespace, device: torch.device) -> Iterator[Step]:
    """One user; training steps of 2^18 events; compiled passes over as many."""
    arguments.max_memory, arguments.interleave = 60.0, False
    one_user, compiled = (Setting(length=1_024, batch=batch, compiled=mode, dtype="bfloat16") for batch, mode in GPU_PASSES)
    settings = [one_user, replace(compiled, direction=BOTH, compiled=""), compiled]
    yield from _plan_latency(arguments, settings, device)


def _plan_events(arguments: Namespace, device: torch.device) -> Iterator[Step]:
    systems = [name for name in arguments.systems or latency.SYSTEMS if name in events.causal_systems()]
    for length in _parse_lengths(arguments):
        setting = _make_setting(arguments, length)
        rows = [{"system": system, **asdict(setting), "direction": "event"} for system in systems]
        measure = partial(events.measure_events, setting, device, systems, **_harness_options(arguments))
        yield Step(f"one new event after {length}, {setting.batch} users", measure, rows)


def _plan_training(arguments: Namespace, device: torch.device) -> Step:
    trainable = [name for name in models.names() if models.model_class(name).objective]
    systems = arguments.systems or list(training.SYSTEMS)
    if unknown := [name for name in systems if name not in trainable]:
        raise InputError(f"unknown model {unknown[0]!r}; known are {', '.join(trainable)}")
    configs = [training.training_config(system, arguments.world, arguments.changes) for system in systems]
    if arguments.kind == "memory":
        measure = partial(training.measure_memory, configs, arguments.world, device)
        return Step(f"memory of a training, world {arguments.world}", measure, [])
    measure = partial(training.measure_training, configs, arguments.world, device, rounds=arguments.rounds)
    return Step(f"steps of training, world {arguments.world}", measure, [])


def _make_setting(arguments: Namespace, length: int, direction: str = FORWARD) -> Setting:
    return Setting(
        length=length, batch=arguments.batch or max(1, BATCH_EVENTS // length), direction=direction, width=arguments.width,
        k=arguments.k, n_subkeys=arguments.n_subkeys, heads=arguments.heads, dropout=arguments.dropout,
        compiled=arguments.compile, dtype=arguments.precision,
    )  # fmt: skip


def _parse_lengths(arguments: Namespace) -> list[int]:
    return [int(length) for length in arguments.lengths or LENGTHS]


def _harness_options(arguments: Namespace) -> dict[str, Any]:
    return {"rounds": arguments.rounds, "seconds": arguments.seconds}


def _systems_that_fit(arguments: Namespace, largest: Setting) -> tuple[str, ...]:
    """Return the systems without those that would hold too large a matrix of scores."""
    chosen, forms = tuple(arguments.systems or latency.SYSTEMS), latency.model_forms()
    if largest.score_matrix_bytes() / 1e9 <= arguments.max_memory:
        return chosen
    fitting = tuple(name for name in chosen if forms[name][1].get("fused", True))
    if fitting != chosen:
        needed = largest.score_matrix_bytes() / 1e9
        print_note(f"N = {largest.length}: eager attention would need about {needed:.0f} GB and is left out")
    return fitting


def _check_arguments(arguments: Namespace) -> None:
    """Raises InputError for what cannot be measured."""
    of_passes = arguments.kind in ("latency", "events")
    for what, names, allowed in (
        ("system", (of_passes and arguments.systems) or [], latency.all_systems()),
        ("direction", arguments.directions, latency.DIRECTIONS),
    ):
        if unknown := [name for name in names if name not in allowed]:
            raise InputError(f"unknown {what} {unknown[0]!r}; known are {', '.join(allowed)}")
    if not all(text.isdigit() and int(text) >= 2 for text in arguments.lengths or []):
        raise InputError(f"--lengths must be whole numbers of at least 2, not {','.join(arguments.lengths)}")
    if arguments.rounds < 1 or min(arguments.threads, arguments.batch) < 0:
        raise InputError("--rounds must be at least 1, --threads and --batch at least 0")
    if not (arguments.minutes >= 0 and arguments.max_memory >= 0 and arguments.seconds >= 0):
        raise InputError("--minutes, --max-memory and --seconds must be 0 or more")
    MemoryConfig(**{name: getattr(arguments, name) for name in ("width", "k", "n_subkeys", "heads", "dropout")})


def _measured_before(rows: pd.DataFrame, expected: list[dict[str, object]], device: torch.device) -> bool:
    """Whether all expected rows were measured by this code on this machine."""
    now = describe_machine(device)
    same_code = rows[(rows[SAME_CODE] == [now[name] for name in SAME_CODE]).all(axis=1)]
    return bool(expected) and all((same_code[list(row)] == list(row.values())).all(axis=1).any() for row in expected)


# --- what is printed --------------------------------------------------------------------------------------------------

PRINTED = "system direction rows length batch width k world objective span users processes think device threads".split()
METRICS = {
    "peak_bytes": ("peak MB", 1e6), "saved_bytes": ("saved MB", 1e6), "rate": ("targets/s", 1), "p95": ("p95 s", 1),
    "end_mb": ("MB", 1),
}  # fmt: skip


def rows_as_text(rows: pd.DataFrame) -> str:
    """Return the rows of each kind: milliseconds with quartiles, megabytes, targets a second."""
    tables = []
    for bench, group in rows.groupby("bench", sort=False):
        columns = [name for name in PRINTED if group[name].notna().any() and (group[name] != "").any()]
        table = group[columns].assign(ms=1e3 * group["seconds"])
        ends = 1e3 * group[["seconds_low", "seconds_high"]]
        if ends.notna().any(axis=None):
            table["quartiles"] = [f"{low:.3g} … {high:.3g}" for low, high in ends.itertuples(index=False)]
        table["processor ms"] = 1e3 * group["processor"]
        for column, (name, unit) in METRICS.items():
            if group[column].notna().any():
                table[name] = group[column].astype(float) / unit
        tables.append(f"{bench}\n{table.to_string(index=False, float_format='{:.4g}'.format, na_rep='')}")
    return "\n\n".join(tables) or "no rows yet"
