"""What the loss over a catalogue of millions costs: exact in stretches, and sampled, against plain cross-entropy (goal C12).

All of them learn the same states and item table from the same targets; measured is one loss with its gradients. Each has a
process of its own for memory: what its peak is above what was there before, scratch space of the operators included. Times come
from one process in which they take turns. `sampled` has two forms: `sampled` with the table's gradient as a sparse tensor of
rows, for an optimiser that takes one, and `sampled-dense` with one of the table's size, as Adam needs it.
"""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.bench.latency import Row, measured
from elastic_core.bench.timing import interleaved
from elastic_core.models import Scorer
from elastic_core.objectives.softmax import full_softmax, negative_proposal, sampled_softmax

ITEMS, TARGETS, NEGATIVES = 2_122_932, 256, 8_192  # XLong's catalogue
PLAIN, EXACT, SAMPLED, DENSE = "plain cross-entropy", "exact in stretches", "sampled", "sampled-dense"
LOSSES = (PLAIN, EXACT, SAMPLED, DENSE)
DIRECTION = "loss"


@dataclass(frozen=True, kw_only=True)
class Size:
    items: int = ITEMS
    targets: int = TARGETS
    width: int = 64
    negatives: int = NEGATIVES


def plain(states: Tensor, targets: Tensor, table: Tensor) -> Tensor:
    """All logits at once, as the two calls of torch make them."""
    return functional.cross_entropy(functional.linear(states, table[1:]), targets - 1, reduction="sum")


def jobs(size: Size) -> dict[str, Callable[[], None]]:
    """Every loss with its gradients, of the same states and table, which are made here."""
    torch.manual_seed(0)
    states = torch.randn(size.targets, size.width, requires_grad=True)
    table = torch.empty(size.items + 1, size.width).normal_(std=0.02).requires_grad_()
    targets = torch.randint(1, size.items + 1, (size.targets,))
    proposal = negative_proposal(torch.ones(size.items + 1))
    losses: dict[str, Callable[[], Tensor]] = {
        PLAIN: partial(plain, states, targets, table),
        EXACT: partial(full_softmax, states, targets, Scorer(table)),
        SAMPLED: partial(sampled_softmax, states, targets, Scorer(table), proposal, size.negatives, sparse=True),
        DENSE: partial(sampled_softmax, states, targets, Scorer(table), proposal, size.negatives),
    }

    def once(loss: str) -> None:
        losses[loss]().backward()
        states.grad = table.grad = None

    return {loss: partial(once, loss) for loss in LOSSES}


def measure_losses(size: Size, losses: Sequence[str] = LOSSES, **harness: Any) -> list[Row]:
    """A row a loss: `length` is the catalogue's size, `batch` the targets, `k` the negatives."""
    peaks = {loss: _peak(loss, size) for loss in losses}
    contestants = jobs(size)
    timings = interleaved({loss: contestants[loss] for loss in losses}, torch.device("cpu"), warmup=1, **harness)
    shape = {"length": size.items, "batch": size.targets, "width": size.width, "k": size.negatives, "side": 0, "heads": 0}
    return [
        measured(loss, "all", DIRECTION, {**shape, "layers": 0}, timings[loss], (peaks[loss], 0), torch.device("cpu"))
        for loss in losses
    ]


def c12(rows: Sequence[Row], by: str = "processor") -> dict[str, float]:
    """Goal C12 from measured rows of one setting: the exact loss's memory and time as shares of the plain one's, and how many
    times faster the sampled one is. Empty where one of them was not measured; of several measurements the last counts."""
    found = {row.system: row for row in rows if row.direction == DIRECTION}
    if not {PLAIN, EXACT, SAMPLED} <= set(found):
        return {}
    base = found[PLAIN]
    ratios = {"memory": found[EXACT].peak / base.peak, "time": getattr(found[EXACT], by) / getattr(base, by)}
    faster = {loss: getattr(base, by) / getattr(found[loss], by) for loss in (SAMPLED, DENSE) if loss in found}
    return ratios | faster


def _peak(loss: str, size: Size) -> int:
    """Bytes above what was there before, in a process of its own."""
    code = f"from elastic_core.bench import catalogue; catalogue.tell({loss!r}, catalogue.{size!r}, {torch.get_num_threads()})"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(told.stdout.splitlines()[-1])


def tell(loss: str, size: Size, threads: int) -> None:
    """In the process of its own (Linux). A small loss comes first: what is loaded at the first call is not the loss's."""
    torch.set_num_threads(threads)
    jobs(Size(items=20_000, targets=size.targets, width=size.width, negatives=min(size.negatives, 64)))[loss]()
    work = jobs(size)[loss]
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the highest mark so far is forgotten
    before = _resident("VmRSS")
    work()
    sys.stdout.write(f"{max(_resident('VmHWM') - before, 0)}\n")


def _resident(mark: str) -> int:
    """Bytes of this process in memory: VmRSS now, VmHWM at most."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    return 1024 * int(lines[mark].split()[0])
