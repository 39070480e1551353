"""The price of one more event: a kept state (streaming.py) against reading the history again (LISA's Figure 6 idea).

Every system has just read N events and gets one more; measured is the time until the state that scores the next item is
there. `elastic-stream` adds the event to its running sums; its refresh, due every `room` events, is timed apart. The others
read the last N events from the start. A SASRec that keeps its keys and values would not need to; it is not measured here.
"""

from typing import Any

import torch

from elastic_core.bench.latency import ITEMS, Setting, build
from elastic_core.bench.timing import Timing, interleaved
from elastic_core.data.batches import Batch
from elastic_core.errors import InputError
from elastic_core.models import Stream, open_stream

STREAM, REFRESH = "elastic-stream", "elastic-refresh"
READERS = ("elastic", "sasrec-fused", "sasrec-eager")
ROOM = 50
REPEATS = 5  # new events per timed round: one alone is too short for the clock


def measure_events(
    setting: Setting, device: torch.device, readers: tuple[str, ...] = READERS, **harness: Any
) -> dict[str, Timing]:
    """Seconds per new event for all people of the batch, and of a refresh."""
    torch.manual_seed(0)
    items = torch.randint(1, ITEMS + 1, (setting.batch, setting.length), device=device)
    batch = Batch(items, items, padded=False)
    roomy = Setting(**{**setting.__dict__, "length": setting.length + ROOM, "histories": setting.batch})
    stream = open_stream(build("elastic", roomy).to(device), ROOM)
    stream.refresh(items)
    jobs: dict[str, Any] = {STREAM: lambda: _events(stream, items), REFRESH: lambda: stream.refresh(items)}
    for name in readers:
        model = build(name, setting).to(device).eval()
        jobs[name] = lambda model=model: _read(model, batch)
    timings = interleaved(jobs, device, **harness)
    return timings | {STREAM: timings[STREAM].times(1 / REPEATS)}


def _events(stream: Stream, items: torch.Tensor) -> None:
    for i in range(REPEATS):
        if not stream.left:
            raise InputError("the stream is full; a refresh must come before")
        stream.step(items[:, -1 - i % items.shape[1]])


def _read(model: Any, batch: Batch) -> None:
    with torch.inference_mode():
        model.last_state(batch)
