"""What a catalogue of millions costs: its loss, and a whole step of training.

**The loss** (goal C12): exact in stretches, and sampled, against plain cross-entropy. All of them learn the same states and item
table from the same targets; measured is one loss with its gradients. Each has a process of its own for memory: what its peak is
above what was there before, scratch space of the operators included. Times come from one process in which they take turns.
`sampled` has two forms: `sampled` with the table's gradient as a sparse tensor of rows, for an optimiser that takes one, and
`sampled-dense` with one of the table's size, as Adam needs it.

**The step** (goal C14): ELASTIC on histories of items drawn evenly, so that hardly any row is looked up twice, with the sampled
softmax, AdamW and a running average; once with the item table as a parameter, once by rows (`model.item_bank`), and both in a
small catalogue as well. Memory is all that a training takes, in a process of its own: model, moments, average, two steps.
"""

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elastic_core import models, objectives
from elastic_core.bench.store import Row, figures, select_rows
from elastic_core.bench.timing import Contestant, Job, learning, measure_rows, told_apart
from elastic_core.core.config import TrainConfig
from elastic_core.core.histories import Histories
from elastic_core.core.objective import full_softmax
from elastic_core.data import Catalog, Dataset
from elastic_core.machine import CPU
from elastic_core.models import Scorer
from elastic_core.recipes import DEFAULT, model_settings, objective_settings
from elastic_core.scale.sampled_softmax import negative_proposal, sampled_softmax

ITEMS, TARGETS, NEGATIVES = 2_122_932, 256, 8_192  # XLong's catalogue
PLAIN, EXACT, SAMPLED, DENSE = "plain cross-entropy", "exact in stretches", "sampled", "sampled-dense"
LOSSES = (PLAIN, EXACT, SAMPLED, DENSE)
DIRECTION = "loss"
STEPS = {f"{DEFAULT} dense": "dense", f"{DEFAULT} by rows": "rows"}  # and how its item table is kept
STEP, SMALL = "step", 10_000  # what a step of the large catalogue is held against
SHAPE = {"k": 16, "side": 32, "heads": 1, "layers": 2}
TRAIN = TrainConfig(batch=32, optimizer="adamw", weight_decay=0.01, ema_decay=0.99)
READ, SPAN, WINDOWS, PEOPLE = 256, 100, 3, 160  # events that are read, targets of a row, rows of a person


@dataclass(frozen=True, kw_only=True)
class Size:
    items: int = ITEMS
    targets: int = TARGETS
    width: int = 64
    negatives: int = NEGATIVES


def jobs(size: Size) -> dict[str, Callable[[], None]]:
    """Every loss with its gradients, of the same states and table, which are made here."""
    torch.manual_seed(0)
    states = torch.randn(size.targets, size.width, requires_grad=True)
    table = torch.empty(size.items + 1, size.width).normal_(std=0.02).requires_grad_()
    targets = torch.randint(1, size.items + 1, (size.targets,))
    proposal = negative_proposal(torch.ones(size.items + 1))
    losses: dict[str, Callable[[], Tensor]] = {
        # all logits at once, as the two calls of torch make them
        PLAIN: lambda: functional.cross_entropy(functional.linear(states, table[1:]), targets - 1, reduction="sum"),
        EXACT: partial(full_softmax, states, targets, Scorer(table)),
        SAMPLED: partial(sampled_softmax, states, targets, Scorer(table), proposal, size.negatives, sparse=True),
        DENSE: partial(sampled_softmax, states, targets, Scorer(table), proposal, size.negatives),
    }

    def once(loss: str) -> None:
        losses[loss]().backward()
        states.grad = table.grad = None

    return {loss: partial(once, loss) for loss in LOSSES}


def measure_losses(size: Size, **harness: Any) -> list[Row]:
    """A row a loss: `length` is the catalogue's size, `batch` the targets, `k` the negatives."""
    told = {"rows": "all", "direction": DIRECTION, "length": size.items}
    told |= {"batch": size.targets, "width": size.width, "k": size.negatives}
    found = [Contestant(loss, told, job, also=partial(dict, peak=_peak(loss, size))) for loss, job in jobs(size).items()]
    return measure_rows("catalogue", found, CPU, warmup=1, **harness)


# --- the step --------------------------------------------------------------------------------------------------------


def evenly(items: int) -> Dataset:
    """Histories over a catalogue of which every item is as likely, all of the same length."""
    rng, each = np.random.default_rng(0), WINDOWS * SPAN + 3  # one event to begin with, two held out
    histories = Histories(
        rng.integers(1, items + 1, PEOPLE * each).astype(np.int32),
        np.tile(np.arange(each) * 3_600, PEOPLE),
        np.arange(PEOPLE + 1) * each,
        np.arange(PEOPLE).astype(str).astype(object),
    )
    return Dataset(name="even", label="even", catalog=Catalog.numbered(items), histories=histories, licence="")


def step(system: str, size: Size, world: Dataset) -> Job:
    """One step of training after the other; what they learn on is made here."""
    torch.manual_seed(0)
    settings = model_settings(DEFAULT, **SHAPE, length=READ, width=size.width, dropout=0.0, item_bank=STEPS[system])
    taught = objective_settings(DEFAULT, span=SPAN, loss="sampled", negatives=size.negatives)
    return learning(models.build(settings, world.catalog), objectives.build(taught, world, READ), TRAIN, CPU)


def measure_steps(size: Size, **harness: Any) -> list[Row]:
    """A row for each of `STEPS` in the large and in the small catalogue: `length` is the catalogue's size, `batch` the rows of a
    step (of `SPAN` targets each); `k` is the negatives."""
    told = {"rows": "all", "direction": STEP, "batch": TRAIN.batch, "width": size.width, **SHAPE, "k": size.negatives}
    found = []
    for items in dict.fromkeys((size.items, min(SMALL, size.items))):
        each, world = replace(size, items=items), evenly(items)
        for system in STEPS:
            peak = partial(dict, peak=_peak(system, each))  # type: ignore[var-annotated]
            found.append(Contestant(system, told | {"length": items}, step(system, each, world), also=peak))
    return measure_rows("catalogue", found, CPU, warmup=1, **harness)


# --- what was aimed at, and memory -----------------------------------------------------------------------------------


def c14(rows: Sequence[Row]) -> dict[str, float]:
    """Goal C14 from measured rows: a step by rows in the largest catalogue over one that keeps its table dense in the smallest,
    and how many times longer, and how much more memory, a dense one takes in the largest. Empty where one was not measured."""
    lengths = sorted({row.length for row in select_rows(rows, direction=STEP)})
    if len(lengths) < 2:
        return {}
    (dense, ours), large = STEPS, f"length={lengths[-1]}"
    found = figures(rows, f"""
        over a small catalogue | processor | system={ours}; {large}  | system={dense}; length={lengths[0]}
        dense                  | processor | system={dense}; {large} | system={ours}
        dense, memory          | peak      | system={dense}; {large} | system={ours}
    """, direction=STEP)  # fmt: skip
    return found if len(found) == 3 else {}


def c12(rows: Sequence[Row]) -> dict[str, float]:
    """Goal C12 from measured rows of one setting: the exact loss's memory and time as shares of the plain one's, and how many
    times faster the sampled one is. Empty where one of them was not measured."""
    found = figures(rows, f"""
        memory    | peak      | system={EXACT} | system={PLAIN}
        time      | processor | system={EXACT} | system={PLAIN}
        {SAMPLED} | processor | system={PLAIN} | system={SAMPLED}
        {DENSE}   | processor | system={PLAIN} | system={DENSE}
    """, direction=DIRECTION)  # fmt: skip
    return found if {"memory", "time", SAMPLED} <= set(found) else {}


def _peak(name: str, size: Size) -> int:
    """Bytes above what was there before, in a process of its own: of a loss, or of a step."""
    return int(told_apart("catalogue", f"tell({name!r}, catalogue.{size!r}, {torch.get_num_threads()})"))


def tell(name: str, size: Size, threads: int) -> None:
    """In the process of its own (Linux): of a loss, or of a training, its model included. A small one comes first: what is loaded
    at the first call is not the loss's."""
    torch.set_num_threads(threads)
    small = replace(size, items=20_000, negatives=min(size.negatives, 64))
    if name not in STEPS:
        jobs(small)[name]()
        return _write_peak(jobs(size)[name])
    step(name, small, evenly(small.items))()
    world = evenly(size.items)

    def train() -> None:
        once = step(name, size, world)
        once()
        once()

    _write_peak(train)


def _write_peak(work: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the highest mark so far is forgotten
    before = _resident("VmRSS")
    work()
    sys.stdout.write(f"{max(_resident('VmHWM') - before, 0)}\n")


def _resident(mark: str) -> int:
    """Bytes of this process in memory: VmRSS now, VmHWM at most."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    return 1024 * int(lines[mark].split()[0])
