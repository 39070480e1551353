"""The price of one more event: a kept state (`open_stream`) against reading the history again (LISA's Figure 6 idea).

Every system has just read N events and gets one more; measured is the time until the state that scores the next item is
there. `…-stream` adds the event to running sums; its refresh, `…-refresh`, due every `room` events, is timed apart. The others
read the last N events from the start. A SASRec that keeps its keys and values would not need to; it is not measured here.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from elastic_core.bench.latency import ITEMS, SYSTEMS, Setting, build, timed
from elastic_core.bench.timing import Timing, interleaved
from elastic_core.data.batches import Batch
from elastic_core.errors import InputError
from elastic_core.models import Stream, can_stream, open_stream

STREAM, REFRESH = "-stream", "-refresh"  # behind the name of a system that streams
ROOM = 50
REPEATS = 5  # new events per timed round: one alone is too short for the clock


def readers() -> tuple[str, ...]:
    """The compared systems that read a history from left to right: those that one more event makes sense for."""
    return tuple(name for name in SYSTEMS if build(name, Setting(length=2, width=2, k=1, side=2, layers=1)).causal)


def measure_events(
    setting: Setting, device: torch.device, systems: tuple[str, ...] | None = None, **harness: Any
) -> dict[str, Timing]:
    """Seconds per new event for all people of the batch, and of a refresh."""
    torch.manual_seed(0)
    items = torch.randint(1, ITEMS + 1, (setting.batch, setting.length), device=device)
    batch = Batch(items, items, padded=False)
    roomy = Setting(**{**setting.__dict__, "length": setting.length + ROOM, "histories": setting.batch})
    jobs: dict[str, Any] = {}
    for name in readers() if systems is None else systems:
        jobs[name] = partial(_read, timed(build(name, setting).to(device).eval(), "last"), batch)
    for name in readers():
        if can_stream(model := build(name, roomy).to(device)):
            stream = open_stream(model, ROOM)
            stream.refresh(items)
            jobs[name + STREAM], jobs[name + REFRESH] = partial(_events, stream, items), partial(stream.refresh, items)
    timings = interleaved(jobs, device, **harness)
    return {name: timing.times(1 / REPEATS) if name.endswith(STREAM) else timing for name, timing in timings.items()}


def _events(stream: Stream, items: torch.Tensor) -> None:
    for i in range(REPEATS):
        if not stream.left:
            raise InputError("the stream is full; a refresh must come before")
        stream.step(items[:, -1 - i % items.shape[1]])


def _read(states: Callable[[Batch], torch.Tensor], batch: Batch) -> None:
    with torch.inference_mode():
        states(batch)
