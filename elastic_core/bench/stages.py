"""Where ELASTIC's time goes: every stage of a forward pass on its own, with the inputs that the pass would give it.

Stages are timed in turn with the whole pass, so that their sum can be held against it, and their bytes are counted: nothing that
goes over all events is left out. Each stage calls what the pass itself calls. In the causal form one operation aggregates and
dispatches (prefix_slots.py); it counts as dispatch.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elastic_core.bench.latency import ITEMS, Setting, build
from elastic_core.bench.timing import Timing, interleaved, moved_bytes
from elastic_core.data.batches import Batch
from elastic_core.layers import prefix_slots
from elastic_core.layers.dispatcher import CausalDispatcher, TwoWayDispatcher
from elastic_core.layers.padding import masked
from elastic_core.layers.products import add

STAGES = (
    "embedding", "query network", "product keys", "positions", "norms", "folding", "aggregation", "dispatch",
    "local convolution", "residual", "feed-forward", "scoring",
)  # fmt: skip
WHOLE = "whole pass"
Parts = list[tuple[str, Callable[[], Any]]]


class Stage(NamedTuple):
    """One stage, over all layers: seconds per batch, and the bytes that its operators read and write."""

    timing: Timing
    moved: int


def measure_stages(setting: Setting, device: torch.device, system: str, **harness: Any) -> dict[str, Stage]:
    """Each stage, summed over layers, and the whole pass up to the scores of all items."""
    torch.manual_seed(0)
    model = build(system, setting).to(device).eval()
    items = torch.randint(1, ITEMS + 1, (setting.batch, setting.length), device=device)
    with torch.no_grad():
        parts = _parts(model, Batch(items, items, padded=False))
        jobs = {f"{i} {stage}": _inference(job) for i, (stage, job) in enumerate(parts)}
        timings = interleaved(jobs, device, **harness)
        found: dict[str, list[Timing]] = {}
        moved: dict[str, int] = {}
        for timing, (stage, job) in zip(timings.values(), parts, strict=True):
            found.setdefault(stage, []).append(timing)
            moved[stage] = moved.get(stage, 0) + moved_bytes(job)
    return {stage: Stage(_sum(timings), moved[stage]) for stage, timings in found.items()}


def _inference(job: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        with torch.inference_mode():
            job()

    return run


def _sum(parts: list[Timing]) -> Timing:
    """Medians of a stage's layers add up; so do the quartiles, which makes the spread an upper bound."""
    median, low, high, processor = (sum(t[i] for t in parts) for i in range(4))
    return Timing(median, low, high, processor, parts[0].rounds)


def _parts(model: Any, batch: Batch) -> Parts:
    """The pass of `last_state` taken apart; what each part needs is computed here, outside the clock."""
    events, memory, real = model.events, model.memories[0], batch.real if batch.padded else None
    content = events.content(batch.items)
    pooled = memory.query_network(content, real)
    parts: Parts = [
        (WHOLE, lambda: model.score(batch)),
        ("embedding", lambda: events.content(batch.items)),
        ("query network", lambda: memory.query_network(content, real)),
        ("product keys", lambda: memory.search(pooled)),
        ("positions", lambda: events.place(content, real)),
    ]
    x, p = events.place(content, real), memory(content, real).interests
    for i, layer in enumerate(model.layers):
        last = i == len(model.layers) - 1
        parts += _layer(layer, x, p, real, last)
        x, p = layer(x, p, real, last=last)
    state = model.norm(x[:, -1])
    return [*parts, ("norms", lambda: model.norm(x[:, -1])), ("scoring", lambda: model.scorer()(state))]


def _layer(layer: Any, x: Tensor, p: Tensor, real: Tensor | None, last: bool) -> Parts:
    h = masked(layer.norm(x), real)
    parts: Parts = [("norms", lambda: masked(layer.norm(x), real))]
    split = _causal if isinstance(layer, CausalDispatcher) else _two_way
    more, given = split(layer, h, p, real, last)
    rows = x[:, -1:] if last else x
    local = None if layer.local is None else layer.local.last(h) if last else layer.local(h)
    if local is not None:
        parts.append(("local convolution", lambda: layer.local.last(h) if last else layer.local(h)))
    after = add(given.clone() if local is None else given + local, rows)

    def residual() -> Tensor:
        return add(given if local is None else add(given, local), rows)

    return [*parts, *more, ("residual", residual), ("feed-forward", lambda: layer.feed_forward(after))]


def _causal(layer: CausalDispatcher, h: Tensor, p: Tensor, real: Tensor | None, last: bool) -> tuple[Parts, Tensor]:
    maps = layer.fold(p)
    form = prefix_slots.last if last else prefix_slots.prefixes
    return [("folding", lambda: layer.fold(p)), ("dispatch", lambda: form(h, maps, real))], form(h, maps, real)


def _two_way(layer: TwoWayDispatcher, h: Tensor, p: Tensor, real: Tensor | None, last: bool) -> tuple[Parts, Tensor]:
    rows, weights_and_read = h[:, -1:] if last else h, layer.aggregate(p, h, real)
    carried = layer.carry(p, *weights_and_read)
    parts: Parts = [
        ("aggregation", lambda: layer.carry(p, *layer.aggregate(p, h, real))),
        ("dispatch", lambda: layer.dispatch(rows, carried)),
    ]
    return parts, layer.dispatch(rows, carried)
