"""One new event after a long history: read all again, or go on from what is kept.

Three kinds of rows, each of one new event of every user of the batch:

    elastic            the whole history is read again
    elastic-stream     one step of what is kept (`elastic_core/core/stream.py`), ROOM events before it has to be refreshed
    elastic-refresh    a refresh: the history is read, and what is kept of it begins anew
"""

from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from elastic_core.bench.harness import Contestant, measure_contestants
from elastic_core.bench.latency import SYSTEMS, Setting, build_system, draw_histories, model_forms, smallest_model, timed_pass
from elastic_core.core.batches import Batch
from elastic_core.core.stream import Stream, open_stream
from elastic_core.models import can_stream

STREAM, REFRESH = "-stream", "-refresh"  # behind the name of a system
ROOM = 50  # new events between two refreshes
REPEATS = 5  # new events per timed round: one alone is too short for the clock


def causal_systems() -> tuple[str, ...]:
    """Return the compared systems that read a history from left to right: those that one more event makes sense for."""
    return tuple(system for system in SYSTEMS if smallest_model(system).causal)


def streaming_systems() -> tuple[str, ...]:
    """Return those of them that go on from what they keep, each model once: its forms keep the same."""
    by_model: dict[str, str] = {}
    for system in causal_systems():
        if can_stream(smallest_model(system)):
            by_model.setdefault(model_forms()[system][0], system)
    return tuple(by_model.values())


def measure_events(setting: Setting, device: torch.device, systems: Iterable[str], **harness: Any) -> pd.DataFrame:
    """Time one new event after `setting.length` others: a row for each system, and two for each that keeps a state."""
    items = draw_histories(setting, device)
    batch, described = Batch(items, items, padded=False), {"rows": "last", **asdict(setting), "direction": "event"}
    roomy = replace(setting, length=setting.length + ROOM)
    names, contestants = list(systems), list[Contestant]()
    for system in names:
        read_all = timed_pass(build_system(system, setting).to(device).eval(), "last")
        contestants.append(Contestant(system, described, torch.inference_mode()(partial(read_all, batch))))
    for system in streaming_systems():
        if system in names:
            stream = open_stream(build_system(system, roomy).to(device), ROOM)
            stream.refresh(items)
            step = partial(take_steps, stream, items[:, -1], REPEATS)
            contestants.append(Contestant(system + STREAM, {**described, "saved_bytes": state_bytes(stream)}, step, REPEATS))
            contestants.append(Contestant(system + REFRESH, described, partial(stream.refresh, items)))
    return measure_contestants("events", contestants, device, **harness)


def state_bytes(stream: Stream) -> int:
    """Return the bytes that are kept of all users between two events, in float32."""
    return 4 * stream.n_users * stream.count_numbers()


def take_steps(stream: Stream, items: Tensor, repeats: int) -> None:
    """Take so many events. Where they run out of room, the window is taken as if it had just been read: every step then costs
    what one after `length` to `length + ROOM` events does."""
    for _ in range(repeats):
        if not stream.events_left:
            stream.restore_state(stream.stored_state(), torch.zeros_like(stream.used))
        stream.step(items)
