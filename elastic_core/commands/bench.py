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

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from elastic_core.bench import bank, catalogue, events, goals, lisa, reading, serving, stages, training
from elastic_core.bench import threads as thread_bench
from elastic_core.bench.latency import (
    PASSES,
    ROWS,
    SYSTEMS,
    Setting,
    contestants,
    measure_latency,
    measure_operations,
    ratios,
    systems,
)
from elastic_core.bench.store import Row, read_rows, select_rows, write_rows
from elastic_core.bench.timing import Part, threads
from elastic_core.commands.arguments import CHECKPOINTS, deadline, find_run, options, say
from elastic_core.core.elastic import MemoryConfig
from elastic_core.errors import InputError
from elastic_core.machine import find_device, here

LOCAL, COMPILED = "local", "compiled"
ROUNDS, EVENTS = 15, 150  # one more event is a matter of microseconds
MODES = ("default", "reduce-overhead", "max-autotune")
PASSING = ("latency", "streaming", "catalogue", "lisa")  # what one table shows
LENGTHS = "64 128 256 512 1024 2048 4096".split()


def configure(parser: ArgumentParser) -> None:
    options(parser, f"""
        --lengths | words | history lengths N (default: {",".join(LENGTHS)})
        --people | words | time one more event of so many people, with kept states
        --systems | words {",".join(SYSTEMS)} | of {",".join(contestants())} (default: the first four)
        --passes | words {",".join(PASSES)} | of {",".join(PASSES)} (default: both)
        --width | int 64 | d
        --k | int 16 | retrieved experts
        --side | int 32 | √K
        --heads | int 1 | heads
        --dropout | float 0 | dropout, for forward+backward
        --tokens | int 16384 | events per batch
        --rounds | int | most rounds per setting (default: {ROUNDS}; with --people {EVENTS})
        --seconds | float 20 | about so long per setting, lengths and passes
        --together | flag | measure all lengths in turns, to compare them with each other
        --memory | float 6 | leave out eager attention above so many GB
        --device | text cpu | cpu, cuda or auto
        --threads | int 0 | CPU threads (default: as torch chooses)
        --name | text {LOCAL} | the file's name (default: local; the shipped rows are in latency)
        --minutes | float 0 | begin no new setting after so many minutes (default: no limit)
        --bank | flag | measure the memory of experts instead, on one thread unless --threads says other
        --lisa | flag | measure LISA's three claims instead, on one thread unless --threads says other
    """)  # fmt: skip
    parser.add_argument(
        "--training",
        nargs="?",
        const="full",
        choices=tuple(training.WORLDS),
        help="measure steps of training instead, of full rows or of MovieLens-1M, on one thread unless --threads says other",
    )
    options(parser, f"""
        --stages | flag | take whole passes apart, on one thread unless --threads says other
        --catalogue ITEMS | int | measure losses and steps over so many items instead
        --reading ROWS | int | measure reading a CSV of so many rows instead
        --serving RUN | text | measure a service of this run instead
        --threads-of RUN | text | measure its passes with 1, 2 and all threads instead
        --precision | float32/bfloat16 (float32) | bfloat16: under autocast
        --compile MODE | {"/".join(MODES)} () | compile all contestants first, by torch.compile: {", ".join(MODES)}; \
rows are kept in {COMPILED}
        --gpu | flag | measure what the goals ask of a GPU; rows are kept in gpu
        --again | flag | measure again what is there already
        --operations | flag | measure causal slots and causal attention alone, no models
        --goals | flag | measure nothing, print what was aimed at beside what was measured
    """)  # fmt: skip
    parser.add_argument("--list", "--show", dest="show", action="store_true", help="measure nothing, print what is there")


def run(arguments: Namespace) -> int:
    if arguments.rounds is None:
        arguments.rounds = EVENTS if arguments.people else ROUNDS
    arguments.harness = {"rounds": arguments.rounds, "seconds": arguments.seconds}
    if arguments.goals:
        folder = CHECKPOINTS / "benchmarks"
        if not folder.is_dir():
            raise InputError(f"there are no measurements here: {folder}/ comes with the checkout, so go there first")
        print(goals.goals_table(folder, "latency" if arguments.name == LOCAL else arguments.name))
        return 0
    benches: Any = (
        (arguments.bank, "bank", _of_bank, bank.bank_table),
        (arguments.lisa, "lisa", _of_lisa, lisa.as_markdown),
        (arguments.reading, "reading", _of_reading, reading.reading_table),
        (arguments.serving, "serving", _of_serving, serving.serving_table),
        (arguments.threads_of, "threads", _of_threads, thread_bench.threads_table),
        (arguments.training, "training", _of_training, training.training_table),
        (arguments.stages, "stages", _of_stages, stages.stages_table),
        (arguments.gpu, "gpu", _of_gpu, latency_table),
        (arguments.catalogue is not None, LOCAL, _of_catalogue, latency_table),
        (arguments.people, LOCAL, _of_people, latency_table),
        (True, COMPILED if arguments.compile else LOCAL, _of_passes, latency_table),
    )
    bench, parts, table = next(each[1:] for each in benches if each[0])
    file = {"stages": "profile"}.get(bench, bench) if arguments.name == LOCAL else arguments.name
    path, at = CHECKPOINTS / "benchmarks" / f"{file}.csv", deadline(arguments)
    rows = read_rows(path)
    alone = bench in ("bank", "lisa", "training", "stages")  # on one thread, unless another number is asked for
    with threads(max(arguments.threads, 0) or int(alone)):
        for words, measure, wanted in () if arguments.show else parts(arguments):
            if not arguments.again and _all_there(rows, wanted, arguments.device):
                continue
            if time.monotonic() > at:
                say(f"{arguments.minutes:g} minutes are over; the same command goes on from here")
                break
            if words:
                say(words)
            for row in measure():
                rows.append(row)
                write_rows(path, rows)
    print(table(read_rows(path, *(PASSING if table is latency_table else (bench,)))))
    return 0


def _all_there(rows: list[Row], wanted: Sequence[dict[str, Any]], device: str) -> bool:
    """Whether all that is wanted was measured by this code on this machine."""
    now = here(find_device(device))
    place = {name: now[name] for name in ("device", "threads", "torch", "commit")}
    return bool(wanted) and all(select_rows(rows, **{**one, **place}) for one in wanted)


def _device(arguments: Namespace) -> torch.device:
    if min(arguments.rounds, arguments.threads + 1) < 1:
        raise InputError("--rounds must be at least 1 and --threads at least 0")
    return find_device(arguments.device)


def _of_bank(arguments: Namespace) -> Iterator[Part]:
    device = _device(arguments)
    for part in bank.PARTS:
        yield f"memory of experts: {part}", partial(bank.measure_bank, part, device, rounds=arguments.rounds), ()


def _of_lisa(arguments: Namespace) -> Iterable[Part]:
    return lisa.parts(_device(arguments), min(arguments.rounds, 5))


def _of_reading(arguments: Namespace) -> Iterator[Part]:
    yield "", partial(reading.measure_reading, arguments.reading), ()


def _of_serving(arguments: Namespace) -> Iterator[Part]:
    served, seconds = find_run(arguments.serving), min(arguments.seconds, 60.0)
    yield "", partial(serving.measure_crowds, served.path, served.config.data, seconds, say), ()


def _of_threads(arguments: Namespace) -> Iterator[Part]:
    yield "", partial(thread_bench.measure_threads, find_run(arguments.threads_of).model(), min(arguments.seconds, 60.0)), ()


def _of_training(arguments: Namespace) -> Iterator[Part]:
    _device(arguments)
    steps = partial(training.measure_training, arguments.training, rounds=arguments.rounds)
    yield f"steps of training, {arguments.training}", steps, ()


def _of_stages(arguments: Namespace) -> Iterator[Part]:
    if arguments.compile or arguments.precision != "float32":
        raise InputError("--stages takes passes apart as they are: leave out --compile and --precision")
    device = find_device(arguments.device)
    for setting in _settings(arguments, ["1024"]):
        work = partial(stages.measure_profile, setting, device, arguments.systems, **arguments.harness)
        yield f"stages, {setting.direction}, N = {setting.length}, {setting.batch} histories", work, ()


def _of_gpu(arguments: Namespace) -> Iterator[Part]:
    """One person; 2^18 events a batch, in training, and compiled; the operations alone."""
    arguments.device, arguments.precision, arguments.lengths = "cuda", "bfloat16", ["1024"]
    find_device(arguments.device)  # raises InputError where there is none
    for tokens, passes, compiled in ((1_024, "forward", ""), (2**18, "forward+backward", ""), (2**18, "forward", MODES[1])):
        arguments.tokens, arguments.passes, arguments.compile, arguments.memory = tokens, [passes], compiled, 60.0
        yield from _of_passes(arguments)
    arguments.operations, arguments.precision, arguments.compile = True, "float32", ""
    arguments.passes = list(PASSES)
    yield from _of_passes(arguments)


def _of_catalogue(arguments: Namespace) -> Iterator[Part]:
    _settings(arguments, [])  # refuses sizes that no model has
    items = arguments.catalogue
    if items < 10_000 or arguments.rounds < 1:
        raise InputError("--catalogue must be at least 10,000 items (a smaller one needs no stretches), and --rounds at least 1")
    if find_device(arguments.device).type != "cpu":
        raise InputError(f"losses over a catalogue are measured on the processor; leave out --device {arguments.device}")
    size = catalogue.Size(items=items, width=arguments.width)
    for words, work, named in (
        (f"losses of {catalogue.TARGETS} targets over {items:,} items", catalogue.measure_losses, catalogue.LOSSES),
        (f"steps of training over {items:,} and {catalogue.SMALL:,} items", catalogue.measure_steps, catalogue.STEPS),
    ):
        wanted = [{"system": name, "length": items} for name in named]
        yield words, partial(work, size, rounds=arguments.rounds, seconds=240.0), wanted


def _of_people(arguments: Namespace) -> Iterator[Part]:
    """All lengths of a number of people interleaved; what is there already is measured again with them."""
    _settings(arguments, [])
    if not all(text.isdigit() and int(text) >= 1 for text in arguments.people):
        raise InputError(f"--people must be whole numbers of at least 1, not {','.join(arguments.people)}")
    device, lengths = find_device(arguments.device), [int(n) for n in arguments.lengths or events.LENGTHS]
    shape = Setting(length=2, width=arguments.width, k=arguments.k, side=arguments.side)
    for people in map(int, arguments.people):
        work = partial(events.measure_steps, people, device, lengths, shape, **arguments.harness)
        yield f"one more event, {people} people", work, ()


def _of_passes(arguments: Namespace) -> Iterator[Part]:
    """All contestants of a setting, as they are compared with each other, unless every one of them is there already."""
    settings, device = _settings(arguments, LENGTHS), find_device(arguments.device)
    groups = [[setting] for setting in settings]
    if arguments.together:
        groups = [[setting for setting in settings if setting.direction == direction] for direction in arguments.passes]
    for group in groups:
        words = "\n".join(f"{setting.direction}, N = {setting.length}, {setting.batch} histories" for setting in group)
        if arguments.operations:
            yield words, partial(measure_operations, group[0], device, **arguments.harness), ()
            continue
        largest = max(group, key=Setting.scores_bytes)
        needed, chosen = largest.scores_bytes() / 1e9, tuple(arguments.systems)
        fused = tuple(name for name in chosen if systems()[name][1].get("fused", True))
        if needed > arguments.memory and fused != chosen:
            say(f"N = {largest.length}: eager attention would need about {needed:.0f} GB and is left out")
            chosen = fused
        wanted = [{"system": name, "rows": which, **setting.told} for name in chosen for which in ROWS for setting in group]
        yield words, partial(measure_latency, group, device, chosen, **arguments.harness), wanted


def _settings(arguments: Namespace, usual: Sequence[str]) -> list[Setting]:
    """Passes over the lengths that were asked for, or the `usual` ones. Raises InputError for what cannot be measured."""
    lengths = arguments.lengths or usual
    for what, given, known in (("system", arguments.systems, contestants()), ("pass", arguments.passes, PASSES)):
        if wrong := [name for name in given if name not in known]:
            raise InputError(f"unknown {what} {wrong[0]!r}; known are {', '.join(known)}")
    if not all(text.isdigit() and int(text) >= 2 for text in lengths):
        raise InputError(f"--lengths must be whole numbers of at least 2, not {','.join(lengths)}")
    if min(arguments.tokens, arguments.rounds) < 1 or arguments.threads < 0:
        raise InputError("--tokens and --rounds must be at least 1, --threads at least 0")
    if arguments.together and arguments.operations:
        raise InputError("--together is of models: leave out --operations")
    if not (arguments.minutes >= 0 and arguments.memory >= 0 and arguments.seconds >= 0):
        raise InputError("--minutes, --memory and --seconds must be 0 or more")
    shape = {name: getattr(arguments, name) for name in ("width", "k", "side", "heads", "dropout")}
    MemoryConfig(**shape)  # raises InputError, for what is measured without a model too
    more = {"tokens": arguments.tokens, "compiled": arguments.compile, "dtype": arguments.precision, **shape}
    return [Setting(length=int(n), direction=direction, **more) for direction in arguments.passes for n in lengths]


def latency_table(rows: list[Row]) -> str:
    """Milliseconds and megabytes per system, then how many times slower the peers are than ELASTIC."""
    lines = [
        f"{'pass':<17}{'N':>6} {'d':>4} {'k':>3}  {'system':<17}{'rows':<5}{'ms':>9}{'quartiles':>20}{'peak MB':>9}{'kept MB':>9}"
    ]
    for row in rows:
        peak, saved = (getattr(row, name, 0) / 1e6 for name in ("peak", "saved"))
        lines.append(
            f"{row.direction:<17}{row.length:>6} {row.width:>4} {row.k:>3}  {row.system:<17}{row.rows:<5}"
            f"{row.seconds * 1e3:>9.2f}{row.spread('seconds'):>20}{peak:>9.1f}{saved:>9.1f}"
        )
    lines.append("\ntimes slower than ELASTIC (last row): E = SASRec eager, S = SASRec fused, S1 = SASRec fused, last row only")
    busy = any(row.load > row.threads + 0.5 for row in rows if row.device.startswith("cpu"))
    if busy:
        lines.append("(by processor time: the machine was busy with other things while measuring)")
    for found in ratios(rows, "processor" if busy else "seconds"):
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
        if found := catalogue.c12(select_rows(rows, direction=catalogue.DIRECTION, length=items, batch=targets)):
            lines.append(f"\n{targets} targets over {items:,} items, against {catalogue.PLAIN}, by processor time:")
            lines.append(f"exact in stretches: {found.pop('memory'):.2f} of its memory, {found.pop('time'):.2f} of its time")
            lines.extend(f"{name}: {times:.0f} times faster" for name, times in found.items())
    if steps := catalogue.c14(rows):
        lines.append("\na step of training, its item table by rows, by processor time:")
        lines.append(f"{steps['over a small catalogue']:.2f} times one in a small catalogue; with a dense table it takes")
        lines.append(f"{steps['dense']:.1f} times as long and {steps['dense, memory']:.1f} times the memory")
    return lines
