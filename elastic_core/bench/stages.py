"""Where ELASTIC's time goes: every stage of a forward pass on its own, with the inputs that the pass would give it.

Stages are timed in turn with the whole pass, so that their sum can be held against it. In the causal form the running
sums are aggregation and reading at once (prefix_slots.py); they count as dispatch, and aggregation is what weighs the events.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from elastic_core.bench.latency import ITEMS, Setting, build
from elastic_core.bench.timing import Timing, interleaved
from elastic_core.data.batches import Batch
from elastic_core.layers.dispatcher import CausalDispatcher, TwoWayDispatcher
from elastic_core.layers.padding import masked
from elastic_core.layers.prefix_slots import read_prefixes
from elastic_core.layers.product_keys import top_pairs

STAGES = ("embedding", "query network", "product keys", "aggregation", "dispatch", "local convolution", "feed-forward", "scoring")
WHOLE = "whole pass"
Parts = list[tuple[str, Callable[[], Any]]]


def measure_stages(setting: Setting, device: torch.device, system: str, **harness: Any) -> dict[str, Timing]:
    """Seconds per batch of each stage, summed over layers, and of the whole pass up to the scores of all items."""
    torch.manual_seed(0)
    model = build(system, setting).to(device).eval()
    items = torch.randint(1, ITEMS + 1, (setting.batch, setting.length), device=device)
    with torch.inference_mode():
        parts = _parts(model, Batch(items, items, padded=False))
        jobs = {f"{i} {stage}": _inference(job) for i, (stage, job) in enumerate(parts)}
        timings = interleaved(jobs, device, **harness)
    found: dict[str, list[Timing]] = {}
    for label, timing in timings.items():
        found.setdefault(label.split(" ", 1)[1], []).append(timing)
    return {stage: _sum(timings) for stage, timings in found.items()}


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
        ("embedding", lambda: events(batch.items, batch.padded)),
        ("query network", lambda: memory.query_network(content, real)),
        ("product keys", lambda: memory.values(top_pairs(memory.keys(memory.norm(pooled)), memory.k)[0])),
    ]
    x, p = events(batch.items, batch.padded), memory(content, real).interests
    for i, layer in enumerate(model.layers):
        last = i == len(model.layers) - 1
        parts += _causal(layer, x, p, real, last) if isinstance(layer, CausalDispatcher) else _two_way(layer, x, p, real, last)
        x, p = layer(x, p, real, last=last)
    state = model.norm(x[:, -1])
    return [*parts, ("scoring", lambda: model.scorer()(state))]


def _rest(layer: Any, x: Tensor, h: Tensor, last: bool) -> Parts:
    rows = x[:, -1:] if last else x
    parts: Parts = [("feed-forward", lambda: layer.feed_forward(rows))]
    if layer.local is not None:
        parts.append(("local convolution", lambda: layer.local.last(h) if last else layer.local(h)))
    return parts


def _causal(layer: CausalDispatcher, x: Tensor, p: Tensor, real: Tensor | None, last: bool) -> Parts:
    def aggregate() -> tuple[Tensor, Tensor]:
        h = masked(layer.norm(x), real)
        return h, layer.weights(p, h, real)

    h, weights = aggregate()

    def dispatch() -> Tensor:
        if not last:
            return layer.dispatch(*read_prefixes(h, weights, *layer.slot_query(h, p)), p)
        return layer.dispatch(*layer.read(h[:, -1:], p, *layer.sums(weights, h)), p)

    return [("aggregation", aggregate), ("dispatch", dispatch), *_rest(layer, x, h, last)]


def _two_way(layer: TwoWayDispatcher, x: Tensor, p: Tensor, real: Tensor | None, last: bool) -> Parts:
    def aggregate() -> tuple[Tensor, Tensor]:
        h = masked(layer.norm(x), real)
        return h, layer.interest_feed_forward(p + layer._aggregate(p, h, real))

    h, read = aggregate()
    rows = h[:, -1:] if last else h
    dispatch: Parts = [("dispatch", lambda: layer._dispatch(rows, layer.interest_norm(read)))]
    return [("aggregation", aggregate), *dispatch, *_rest(layer, x, h, last)]
