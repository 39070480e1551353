"""Where a pass spends its time and what it keeps, stage by stage, on the pass itself: what a stage does forward and, in training,
backward, which bytes its operators move and which it keeps for the way back.

Methods of the model's parts are marked (`MARKS`); the time goes to the innermost mark, so that stages add up to the pass. On the
way back the time belongs to the stage that made the node of the graph; between nodes torch adds up the gradients of what was read
twice and those of weights, `SUMS`. In turns with it the same pass runs without marks, `WHOLE`: what these cost shows in the
difference. In the causal form one operation aggregates and dispatches (prefix_slots.py); it counts as dispatch.
"""

import bisect
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from elastic_core.bench.latency import FORWARD, ROWS, Setting, build_system, drawn_items, timed
from elastic_core.bench.store import Row
from elastic_core.bench.timing import PartClock, in_turns, moved_by, row_of, saved_by
from elastic_core.core.batches import Batch
from elastic_core.core.dispatch import Dispatcher
from elastic_core.core.elastic import CausalDispatcher, InterestMemory, TwoWayDispatcher
from elastic_core.core.layers import EventEmbedding
from elastic_core.core.sasrec import Block
from elastic_core.machine import keep_memory
from elastic_core.models import Recommender

STAGES = (
    "embedding", "query network", "product keys", "positions", "norms", "folding", "aggregation", "dispatch", "attention",
    "local convolution", "residual", "feed-forward", "scoring",
)  # fmt: skip
WHOLE, REST, LOSS, SUMS = "whole pass", "the rest", "loss", "sums of gradients"
_LOCAL = {"local.forward": "local convolution", "local.last": "local convolution"}
MARKS: tuple[tuple[type, dict[str, str]], ...] = (
    (Recommender, {"score": "scoring", "last_state": REST, "forward": REST, "norm.forward": "norms"}),
    (EventEmbedding, {"content": "embedding", "place": "positions"}),
    (InterestMemory, {"forward": "product keys", "query_network.forward": "query network"}),
    (Dispatcher, {"norm.forward": "norms", "finish": "residual", "feed_forward.forward": "feed-forward", **_LOCAL}),
    (TwoWayDispatcher, {"forward": "residual", "aggregate": "aggregation", "carry": "aggregation", "dispatch": "dispatch"}),
    (CausalDispatcher, {"forward": "dispatch", "fold": "folding"}),
    (Block, {"forward": "residual", "norm.forward": "norms", "attention.forward": "attention", "attention.last": "attention"}),
    (Block, {"feed_forward.forward": "feed-forward", **_LOCAL}),
)  # the attributes of a part, and the stage that they are


def measure_stages(setting: Setting, device: torch.device, system: str, rows: str, **harness: Any) -> list[Row]:
    """Return a row a stage, over all layers, and one of the whole pass: forward, up to the scores of all items; with the way
    back, up to the states of the `last` or of `all` rows and their gradients, without dropout. For about `seconds`, or so many
    rounds.

    `back` is the time on the way back; of the whole pass it is in its own. `moved` are bytes that operators read and write, there
    and back, `kept` those that a stage is the first to keep for the way back."""
    items = drawn_items(setting, device)
    model = build_system(system, setting).to(device)
    run, clocks = _prepare_pass(model, Batch(items, items, padded=False), rows, setting.direction != FORWARD), list[_Clock]()

    def marked() -> None:
        clocks.append(_Clock(device))
        run(clocks[-1])

    def counted(count: Callable[..., Any], *more: Any) -> Counter[str]:
        clock = _Clock(device)
        with count(lambda: clock.part, *more) as found:
            run(clock)
        return Counter({**found, WHOLE: sum(found.values())})

    whole, _ = in_turns([lambda: run(None), marked], device, **harness)
    moved, kept, clocks = counted(moved_by), counted(saved_by, model.parameters()), clocks[-len(whole) :]
    names, found = {name for clock in clocks for name, _ in clock.taken} | {WHOLE}, list[Row]()
    for name in sorted(names, key=(WHOLE, *STAGES, REST, LOSS, SUMS).index):
        there, back = (np.array([clock.taken[name, way] for clock in clocks]) for way in (False, True))
        if name == WHOLE:
            there, back = whole, 0 * whole
        clock, processor = np.median(back, axis=0).round(7).tolist()
        more = {"back": processor, "back, clock": clock, "moved": moved[name], "kept": kept[name]}
        found.append(row_of("stages", system, {"rows": rows, **setting.told, "stage": name}, there, more, device))
    return found


def measure_profile(setting: Setting, device: torch.device, systems: Sequence[str], **harness: Any) -> list[Row]:
    """Return the stages of every system: forward with the last row only, in training with the last and with all."""
    if device.type == "cpu":
        keep_memory()
    kinds = ROWS[:1] if setting.direction == FORWARD else ROWS
    return [row for system in systems for rows in kinds for row in measure_stages(setting, device, system, rows, **harness)]


def by_pass(rows: Iterable[Row]) -> list[list[Row]]:
    """The stages of one measurement together."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        shape = {name: value for name, value in row.setting.items() if name != "stage"}
        found.setdefault((row.system, *shape.items(), row.place), []).append(row)
    return list(found.values())


def both_ways(row: Row) -> float:
    """Seconds of the processor, there and back."""
    return float(row.processor + getattr(row, "back", 0))


def stages_table(rows: Sequence[Row]) -> str:
    """Of every pass its stages, the largest first: milliseconds of the processor there and back, their share, megabytes."""
    lines = []
    for stages in by_pass(rows):
        first, together = stages[0], sum(both_ways(row) for row in stages if row.stage != WHOLE)
        lines.append(
            f"{first.system}, {first.rows} rows, {first.direction}, N = {first.length:,}, {first.batch} histories, "
            f"k = {first.k}, {first.device}, {first.threads} thread(s), {first.commit}"
        )
        lines.append(f"  {'stage':<20}{'forward':>9}{'back':>9}{'share':>8}{'moved MB':>10}{'kept MB':>9}")
        for row in sorted(stages, key=lambda row: (row.stage != WHOLE, -both_ways(row))):
            back, kept = (getattr(row, name, 0) for name in ("back", "kept"))
            share = "" if row.stage == WHOLE else f"{both_ways(row) / max(together, 1e-12):.1%}"
            lines.append(
                f"  {row.stage:<20}{row.processor * 1e3:>9.2f}{back * 1e3:>9.2f}{share:>8}"
                f"{row.moved / 1e6:>10.1f}{kept / 1e6:>9.1f}"
            )
    return "\n".join([*lines, "milliseconds of the processor a batch; bytes moved there and back"])


class _Clock(PartClock):
    """Remembers which part made which nodes of the graph."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, WHOLE)
        self.turns = list[tuple[int, str]]()  # from which number of the graph's nodes on a stage made them

    def turn(self, part: str) -> str:
        if not self.back:
            self.turns.append((torch._C._autograd._get_sequence_nr(), part))
        return super().turn(part)

    def hooks(self, node: Any) -> Iterable[Any]:
        """Let the stage that made this node of the graph take its turn on the way back, from now on."""
        place = bisect.bisect_right(self.turns, node._sequence_nr(), key=lambda turn: turn[0])
        stage = self.turns[place - 1][1]
        return node.register_prehook(lambda _: self.turn(stage) and None), node.register_hook(lambda *_: self.turn(SUMS) and None)


def _prepare_pass(model: Recommender, batch: Batch, rows: str, training: bool) -> Callable[[_Clock | None], None]:
    """Return a pass through a model, as it is or with everybody's turns taken down by a clock: in training up to the gradients of
    these `rows`, otherwise up to the scores."""
    model.train(training)
    work = timed(model, rows) if training else torch.inference_mode()(lambda batch: model.score(batch))  # marked later

    def run(clock: _Clock | None) -> None:
        model.zero_grad(set_to_none=True)
        with _marks(model, clock) if clock else contextlib.nullcontext():
            found = work(batch)
        if clock:
            clock.turn(LOSS if training else WHOLE)
        if not training:
            return
        loss, hooks = found.square().mean(), list[Any]()
        if clock:
            clock.turn(WHOLE)  # what follows is nobody's
            hooks = [hook for node in _nodes(loss.grad_fn) for hook in clock.hooks(node)]
            clock.back = True
            clock.turn(SUMS)
        loss.backward()
        if clock:
            clock.turn(WHOLE)
        for hook in hooks:
            hook.remove()

    return run


@contextlib.contextmanager
def _marks(model: nn.Module, clock: _Clock) -> Iterator[None]:
    """Inside, everything in `MARKS` takes its turn when it is called."""
    marked = list[tuple[Any, str]]()
    for part in model.modules():
        for path, stage in ((path, stage) for kind, names in MARKS if isinstance(part, kind) for path, stage in names.items()):
            *above, name = path.split(".")
            owner = part if not above else getattr(part, above[0], None)
            if owner is not None and (owner, name) not in marked:
                setattr(owner, name, clock.timed(stage, getattr(owner, name)))
                marked.append((owner, name))
    try:
        yield
    finally:
        for owner, name in marked:
            delattr(owner, name)


def _nodes(last: Any) -> Iterator[Any]:
    """Every node of a graph that does something with a gradient of activations."""
    known, ahead = {last}, [last]
    while ahead:
        node = ahead.pop()
        if node.name() != "torch::autograd::AccumulateGrad":
            yield node
        following = {after for after, _ in node.next_functions if after is not None} - known
        known |= following
        ahead += following
