"""Time ELASTIC and SASRec side by side, over history lengths, and keep the rows in checkpoints/benchmarks/NAME.csv.

All contestants take turns in one process on the same batch (a fixed number of tokens, so a longer history means a smaller
batch); printed is the median over rounds with its quartiles, peak memory, and what the backward pass keeps. Rows that
are there already for this commit and machine are not measured again, so an interrupted bench goes on where it was.

With --people one more event is timed instead, of people whose states are kept: ELASTIC, and SASRec with its keys and values.
With --catalogue the loss over so many items, against plain cross-entropy, and steps of training with a dense item table and by
rows. With --bank what 256 to 4 million experts cost. With --training whole steps of training, in targets a second. With
--operations causal slots and causal attention alone. With --lisa what LISA claims of its own cost, the paper's figures beside
ours.

  python -m elastic_core bench                                 N = 64 … 4096, forward and forward + backward
  python -m elastic_core bench --lengths 64,256 --k 8 --passes forward
  python -m elastic_core bench --lengths 1024,65536 --systems elastic,elastic-two-way --passes forward --together --seconds 120
  python -m elastic_core bench --catalogue 2122932
  python -m elastic_core bench --bank
  python -m elastic_core bench --training                      one core, 64 rows of 200 events; --training ml-1m: MovieLens-1M
  python -m elastic_core bench --operations --lengths 1024,4096 --passes forward+backward
  python -m elastic_core bench --stages --lengths 1024         what every stage of a pass takes, moves and keeps; rows in profile
  python -m elastic_core bench --gpu                           what the goals ask of a GPU, some minutes
  python -m elastic_core bench --compile default --lengths 1024 --passes forward    by torch.compile; on CUDA reduce-overhead
  python -m elastic_core bench --people 1,64 --name streaming
  python -m elastic_core bench --lisa                          about two minutes of one core; --lisa --list prints the table
  python -m elastic_core bench --reading 66700000              a long file, beside pyarrow's own reading
  python -m elastic_core bench --serving ml-100k-elastic       requests a second of a service, alone and together; on Linux
  python -m elastic_core bench --list                          the table of what was measured
  python -m elastic_core bench --goals                         what was aimed at, and whether the shipped rows reach it
"""

import argparse
import dataclasses
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from elastic_core.bench import bank, catalogue, events, goals, lisa, profile, reading, serving, training
from elastic_core.bench import threads as thread_bench
from elastic_core.bench.latency import (
    OPS,
    PASSES,
    ROWS,
    SYSTEMS,
    Row,
    Setting,
    contestants,
    measure_operations,
    measure_together,
    ratios,
    systems,
)
from elastic_core.bench.store import read_kind, read_rows, write_kind, write_rows
from elastic_core.bench.timing import threads
from elastic_core.commands.finding import CHECKPOINTS, find_run, listed, say
from elastic_core.core.settings import MemoryConfig
from elastic_core.errors import InputError
from elastic_core.machine import commit, device_name, find_device

LOCAL, COMPILED = "local", "compiled"
ROUNDS, EVENTS = 15, 150  # one more event is a matter of microseconds
MODES = ("default", "reduce-overhead", "max-autotune")
LENGTHS = ("64", "128", "256", "512", "1024", "2048", "4096")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lengths", type=listed, help=f"history lengths N (default: {','.join(LENGTHS)})")
    parser.add_argument("--people", type=listed, default=[], help="time one more event of so many people, with kept states")
    parser.add_argument(
        "--systems", type=listed, default=list(SYSTEMS), help=f"of {','.join(contestants())} (default: the first four)"
    )
    parser.add_argument("--passes", type=listed, default=list(PASSES), help=f"of {','.join(PASSES)} (default: both)")
    parser.add_argument("--width", type=int, default=64, help="d (default: 64)")
    parser.add_argument("--k", type=int, default=16, help="retrieved experts (default: 16)")
    parser.add_argument("--side", type=int, default=32, help="√K (default: 32)")
    parser.add_argument("--heads", type=int, default=1, help="heads (default: 1)")
    parser.add_argument("--dropout", type=float, default=0.0, help="dropout, for forward+backward (default: 0)")
    parser.add_argument("--tokens", type=int, default=16_384, help="events per batch (default: 16384)")
    parser.add_argument("--rounds", type=int, help=f"most rounds per setting (default: {ROUNDS}; with --people {EVENTS})")
    parser.add_argument("--seconds", type=float, default=20.0, help="about so long per setting, lengths and passes (default: 20)")
    parser.add_argument("--together", action="store_true", help="measure all lengths in turns, to compare them with each other")
    parser.add_argument("--memory", type=float, default=6.0, help="leave out eager attention above so many GB (default: 6)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or auto (default: cpu)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: as torch chooses)")
    parser.add_argument("--name", default=LOCAL, help="the file's name (default: local; the shipped rows are in latency)")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="begin no new setting after so many minutes (default: no limit)"
    )
    parser.add_argument(
        "--bank", action="store_true", help="measure the memory of experts instead, on one thread unless --threads says other"
    )
    parser.add_argument(
        "--lisa", action="store_true", help="measure LISA's three claims instead, on one thread unless --threads says other"
    )
    parser.add_argument(
        "--training", nargs="?", const="full", choices=tuple(training.WORLDS),
        help="measure steps of training instead, of full rows or of MovieLens-1M, on one thread unless --threads says other",
    )  # fmt: skip
    parser.add_argument(
        "--stages", action="store_true", help="take whole passes apart, on one thread unless --threads says other"
    )
    parser.add_argument("--catalogue", type=int, metavar="ITEMS", help="measure losses and steps over so many items instead")
    parser.add_argument("--reading", type=int, metavar="ROWS", help="measure reading a CSV of so many rows instead")
    parser.add_argument("--serving", metavar="RUN", help="measure a service of this run instead")
    parser.add_argument("--threads-of", metavar="RUN", help="measure its passes with 1, 2 and all threads instead")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="bfloat16: under autocast")
    parser.add_argument(
        "--compile", choices=MODES, metavar="MODE", default="",
        help=f"compile all contestants first, by torch.compile: {', '.join(MODES)}; rows are kept in {COMPILED}",
    )  # fmt: skip
    parser.add_argument("--gpu", action="store_true", help="measure what the goals ask of a GPU; rows are kept in gpu")
    parser.add_argument("--again", action="store_true", help="measure again what is there already")
    parser.add_argument("--operations", action="store_true", help="measure causal slots and causal attention alone, no models")
    parser.add_argument("--goals", action="store_true", help="measure nothing, print what was aimed at beside what was measured")
    parser.add_argument("--list", "--show", dest="show", action="store_true", help="measure nothing, print what is there")


def run(arguments: argparse.Namespace) -> int:
    if arguments.rounds is None:
        arguments.rounds = EVENTS if arguments.people else ROUNDS
    if arguments.bank:
        return _run_bank(arguments)
    if arguments.lisa:
        return _run_lisa(arguments)
    if arguments.reading:
        return _run_kind(arguments, "reading", reading, reading.ReadingRow, lambda: reading.measure(arguments.reading))
    if arguments.serving:
        served, seconds = find_run(arguments.serving), min(arguments.seconds, 60.0)
        crowds = partial(serving.measure_crowds, served.path, served.config.data, seconds, say)
        return _run_kind(arguments, "serving", serving, serving.ServingRow, crowds)
    if arguments.threads_of:
        passes = partial(thread_bench.measure, find_run(arguments.threads_of).model(), min(arguments.seconds, 60.0))
        return _run_kind(arguments, "threads", thread_bench, thread_bench.ThreadsRow, passes)
    if arguments.training:
        return _run_training(arguments)
    if arguments.stages:
        return _run_stages(arguments)
    if arguments.gpu:
        return _run_gpu(arguments)
    name = COMPILED if arguments.compile and arguments.name == LOCAL else arguments.name
    path = CHECKPOINTS / "benchmarks" / f"{name}.csv"
    if arguments.goals:
        if not path.parent.is_dir():
            raise InputError(f"there are no measurements here: {path.parent}/ comes with the checkout, so go there first")
        print(goals.as_table(path.parent, [dataclasses.replace(goal, file=_file(goal, arguments.name)) for goal in goals.GOALS]))
        return 0
    if not arguments.show:
        given, arguments.lengths = arguments.lengths, arguments.lengths or list(LENGTHS)
        settings = _settings(arguments)
        with threads(arguments.threads):
            if arguments.catalogue is not None:
                _measure_catalogue(arguments, path)
            elif arguments.people:
                _measure_people(arguments, (*events.LENGTHS, events.LONG) if given is None else [int(n) for n in given], path)
            else:
                _measure_all(arguments, settings, path)
    print(as_table(read_rows(path)))
    return 0


def _run_bank(arguments: argparse.Namespace) -> int:
    name = arguments.name if arguments.name != LOCAL else "bank"
    path, device = CHECKPOINTS / "benchmarks" / f"{name}.csv", find_device(arguments.device)
    if min(arguments.rounds, arguments.threads + 1) < 1:
        raise InputError("--rounds must be at least 1 and --threads at least 0")
    rows = read_kind(path, bank.BankRow)
    if not arguments.show:
        with threads(arguments.threads or 1):
            for part in bank.PARTS:
                say(f"memory of experts: {part}")
                rows += bank.measure(part, device, rounds=arguments.rounds)
                write_kind(path, rows, bank.BankRow)
    print(bank.as_table(read_kind(path, bank.BankRow)))
    return 0


def _run_kind(arguments: argparse.Namespace, name: str, part: Any, kind: type[Any], measure: Callable[[], Iterable[Any]]) -> int:
    path = CHECKPOINTS / "benchmarks" / f"{arguments.name if arguments.name != LOCAL else name}.csv"
    rows = read_kind(path, kind)
    if not arguments.show:
        for row in measure():
            rows.append(row)
            write_kind(path, rows, kind)
    print(part.as_table(read_kind(path, kind)))
    return 0


def _run_lisa(arguments: argparse.Namespace) -> int:
    name = arguments.name if arguments.name != LOCAL else "lisa"
    path, device, began = CHECKPOINTS / "benchmarks" / f"{name}.csv", find_device(arguments.device), time.monotonic()
    if min(arguments.rounds, arguments.threads + 1) < 1:
        raise InputError("--rounds must be at least 1 and --threads at least 0")
    rows = read_rows(path)
    with threads(arguments.threads or 1):
        for what, wanted, measure_part in () if arguments.show else lisa.parts(device, min(arguments.rounds, 5)):
            if not arguments.again and not lisa.missing(rows, wanted, device):
                continue
            if arguments.minutes and time.monotonic() - began > 60 * arguments.minutes:
                say(f"{arguments.minutes:g} minutes are over; the same command goes on from here")
                break
            say(what)
            rows += measure_part()
            write_rows(path, rows)
    print(lisa.as_markdown(read_rows(path)))
    return 0


def _run_training(arguments: argparse.Namespace) -> int:
    if min(arguments.rounds, arguments.threads + 1) < 1:
        raise InputError("--rounds must be at least 1 and --threads at least 0")

    def rows() -> Iterable[training.TrainingRow]:
        with threads(arguments.threads or 1):
            say(f"steps of training, {arguments.training}")
            return training.measure_training(arguments.training, rounds=arguments.rounds)

    return _run_kind(arguments, "training", training, training.TrainingRow, rows)


def _run_stages(arguments: argparse.Namespace) -> int:
    path = CHECKPOINTS / "benchmarks" / f"{'profile' if arguments.name == LOCAL else arguments.name}.csv"
    rows = read_kind(path, profile.StageRow)
    if not arguments.show:
        arguments.lengths = arguments.lengths or ["1024"]
        if arguments.compile or arguments.precision != "float32":
            raise InputError("--stages takes passes apart as they are: leave out --compile and --precision")
        device = find_device(arguments.device)
        with threads(arguments.threads or 1):
            for setting in _settings(arguments):
                say(f"stages, {setting.direction}, N = {setting.length}, {setting.batch} histories")
                found = profile.measure_profile((setting,), device, arguments.systems, arguments.rounds, arguments.seconds)
                rows += found
                write_kind(path, rows, profile.StageRow)
    print(profile.as_table(read_kind(path, profile.StageRow)))
    return 0


def _run_gpu(arguments: argparse.Namespace) -> int:
    """One person; 2^18 events a batch, in training, and compiled; the operations alone."""
    arguments.device, arguments.precision, arguments.lengths = "cuda", "bfloat16", ["1024"]
    find_device(arguments.device)  # raises InputError where there is none
    path = CHECKPOINTS / "benchmarks" / ("gpu.csv" if arguments.name == LOCAL else f"{arguments.name}.csv")
    for tokens, passes, compiled in ((1_024, "forward", ""), (2**18, "forward+backward", ""), (2**18, "forward", MODES[1])):
        arguments.tokens, arguments.passes, arguments.compile, arguments.memory = tokens, [passes], compiled, 60.0
        _measure_all(arguments, _settings(arguments), path)
    arguments.operations, arguments.precision, arguments.compile = True, "float32", ""
    arguments.passes = list(PASSES)
    _measure_all(arguments, _settings(arguments), path)
    print(as_table(read_rows(path)))
    return 0


def _measure_catalogue(arguments: argparse.Namespace, path: Path) -> None:
    if arguments.catalogue < 10_000 or arguments.rounds < 1:
        raise InputError("--catalogue must be at least 10,000 items (a smaller one needs no stretches), and --rounds at least 1")
    device, rows = find_device(arguments.device), read_rows(path)
    if device.type != "cpu":
        raise InputError(f"losses over a catalogue are measured on the processor; leave out --device {arguments.device}")
    here = (device_name(device), torch.get_num_threads(), torch.__version__, commit(), arguments.catalogue)
    there = {r.system for r in rows if (r.device, r.threads, r.torch, r.commit, r.length) == here}
    size = catalogue.Size(items=arguments.catalogue, width=arguments.width)
    harness = {"rounds": arguments.rounds, "seconds": 240.0}
    if arguments.again or not set(catalogue.LOSSES) <= there:
        say(f"losses of {catalogue.TARGETS} targets over {arguments.catalogue:,} items")
        rows += catalogue.measure_losses(size, **harness)
        write_rows(path, rows)
    if arguments.again or not set(catalogue.STEPS) <= there:
        say(f"steps of training over {arguments.catalogue:,} and {catalogue.SMALL:,} items")
        rows += catalogue.measure_steps(size, **harness)
        write_rows(path, rows)


def _file(goal: goals.Goal, name: str) -> str:
    """Rows of the latency bench are looked for where `--name` says; `local`, where nothing was said, means the shipped ones."""
    return name if goal.file == "latency" and name != "local" else goal.file


def _settings(arguments: argparse.Namespace) -> list[Setting]:
    for what, given, known in (("system", arguments.systems, contestants()), ("pass", arguments.passes, PASSES)):
        for name in given:
            if name not in known:
                raise InputError(f"unknown {what} {name!r}; known are {', '.join(known)}")
    if not all(text.isdigit() and int(text) >= 2 for text in arguments.lengths):
        raise InputError(f"--lengths must be whole numbers of at least 2, not {','.join(arguments.lengths)}")
    if min(arguments.tokens, arguments.rounds) < 1 or arguments.threads < 0:
        raise InputError("--tokens and --rounds must be at least 1, --threads at least 0")
    if arguments.together and arguments.operations:
        raise InputError("--together is of models: leave out --operations")
    if not (arguments.minutes >= 0 and arguments.memory >= 0 and arguments.seconds >= 0):
        raise InputError("--minutes, --memory and --seconds must be 0 or more")
    shape = {name: getattr(arguments, name) for name in ("width", "k", "side", "heads", "dropout")}
    MemoryConfig(**shape)  # raises InputError, for what is measured without a model too
    return [
        Setting(
            length=int(n), direction=d, tokens=arguments.tokens, compiled=arguments.compile, dtype=arguments.precision, **shape
        )
        for d in arguments.passes
        for n in arguments.lengths
    ]


def _measure_all(arguments: argparse.Namespace, settings: list[Setting], path: Path) -> None:
    device, rows, began = find_device(arguments.device), read_rows(path), time.monotonic()
    groups = [[setting] for setting in settings]
    if arguments.together:
        groups = [[setting for setting in settings if setting.direction == direction] for direction in arguments.passes]
    for group in groups:
        systems = OPS if arguments.operations else _systems(arguments, group, device, rows)
        if not systems:
            continue
        if arguments.minutes and time.monotonic() - began > 60 * arguments.minutes:
            say(f"{arguments.minutes:g} minutes are over; the same command goes on from here")
            return
        for setting in group:
            say(f"{setting.direction}, N = {setting.length}, {setting.batch} histories")
        harness = {"rounds": arguments.rounds, "seconds": arguments.seconds}
        if arguments.operations:
            rows += [row for setting in group for row in measure_operations(setting, device, **harness)]
        else:
            rows += measure_together(group, device, systems, **harness)
        write_rows(path, rows)


def _measure_people(arguments: argparse.Namespace, lengths: Iterable[int], path: Path) -> None:
    """All lengths of a number of people interleaved; what is there already is measured again with them."""
    if not all(text.isdigit() and int(text) >= 1 for text in arguments.people):
        raise InputError(f"--people must be whole numbers of at least 1, not {','.join(arguments.people)}")
    device, rows = find_device(arguments.device), read_rows(path)
    shape = Setting(length=2, width=arguments.width, k=arguments.k, side=arguments.side)
    for people in map(int, arguments.people):
        say(f"one more event, {people} people")
        rows += events.measure_steps(people, device, lengths, shape, rounds=arguments.rounds, seconds=arguments.seconds)
        write_rows(path, rows)


def _systems(arguments: argparse.Namespace, group: list[Setting], device: torch.device, rows: list[Row]) -> tuple[str, ...]:
    """All contestants, as they are compared with each other, unless every one of them is there already at all these settings."""
    chosen = tuple(arguments.systems)
    written_out = [name for name in chosen if not systems()[name][1].get("fused", True)]
    largest = max(group, key=Setting.scores_bytes)
    if written_out and largest.scores_bytes() > arguments.memory * 1e9:
        needed = largest.scores_bytes() / 1e9
        say(f"N = {largest.length}: eager attention would need about {needed:.0f} GB and is left out")
        chosen = tuple(name for name in chosen if name not in written_out)
    here = (device_name(device), torch.get_num_threads(), torch.__version__, commit())
    names = ("direction", "length", "width", "k", "side", "batch", "heads", "dropout", "compiled", "dtype")
    there = {
        (row.system, row.rows, *(getattr(row, name) for name in names))
        for row in rows
        if (row.device, row.threads, row.torch, row.commit) == here
    }
    shapes = [[getattr(setting, name) for name in names] for setting in group]
    missing = {(name, which, *shape) for name in chosen for which in ROWS for shape in shapes} - there
    return chosen if missing or arguments.again else ()


def as_table(rows: list[Row]) -> str:
    """Milliseconds and megabytes per system, then how many times slower the peers are than ELASTIC."""
    lines = [
        f"{'pass':<17}{'N':>6} {'d':>4} {'k':>3}  {'system':<17}{'rows':<5}{'ms':>9}{'quartiles':>20}{'peak MB':>9}{'kept MB':>9}"
    ]
    for row in rows:
        spread = f"{row.low * 1e3:.2f} … {row.high * 1e3:.2f}"
        lines.append(
            f"{row.direction:<17}{row.length:>6} {row.width:>4} {row.k:>3}  {row.system:<17}{row.rows:<5}"
            f"{row.median * 1e3:>9.2f}{spread:>20}{row.peak / 1e6:>9.1f}{row.saved / 1e6:>9.1f}"
        )
    lines.append("\ntimes slower than ELASTIC (last row): E = SASRec eager, S = SASRec fused, S1 = SASRec fused, last row only")
    busy = any(row.load > row.threads + 0.5 for row in rows if row.device.startswith("cpu"))
    if busy:
        lines.append("(by processor time: the machine was busy with other things while measuring)")
    for found in ratios(rows, "processor" if busy else "median"):
        peers = "".join(f"{name} {found[name]:>7.2f}   " for name in ("E", "S", "S1") if name in found)
        lines.append(
            f"{found['direction']:<17}{found['length']:>6} {found['width']:>4} {found['k']:>3}  {found['system']:<17}{peers}"
        )
    lines += [f"{name:<40}{value:>10.2f}" for name, value in events.streaming_goals(rows).items()]
    return "\n".join([*lines, *_losses(rows)])


def _losses(rows: list[Row]) -> list[str]:
    """Of every catalogue that losses were measured over: shares of the plain one's memory and time, and times faster."""
    lines = []
    for items, targets in sorted({(row.length, row.batch) for row in rows if row.direction == catalogue.DIRECTION}):
        found = catalogue.c12(
            [row for row in rows if (row.direction, row.length, row.batch) == (catalogue.DIRECTION, items, targets)]
        )
        if found:
            lines.append(f"\n{targets} targets over {items:,} items, against {catalogue.PLAIN}, by processor time:")
            shares, faster = ("memory", "time"), [name for name in found if name not in ("memory", "time")]
            lines.append("exact in stretches: " + ", ".join(f"{found[name]:.2f} of its {name}" for name in shares))
            lines.extend(f"{name}: {found[name]:.0f} times faster" for name in faster)
    if steps := catalogue.c14(rows):
        lines.append("\na step of training, its item table by rows, by processor time:")
        lines.append(f"{steps['over a small catalogue']:.2f} times one in a small catalogue; with a dense table it takes")
        lines.append(f"{steps['dense']:.1f} times as long and {steps['dense, memory']:.1f} times the memory")
    return lines
