"""The price of one more event: what is kept of people (`open_stream`) against reading the history again, and each other.

`measure_events` (LISA's Figure 6 idea): every system has just read N events and gets one more; measured is the time until the
state that scores the next item is there. `…-stream` adds the event to what it keeps; its refresh, `…-refresh`, due every `room`
events, is timed apart. The others read the last N events from the start.

`measure_steps`: kept states alone, for so many people at a time: ELASTIC's, whose size is constant, and a SASRec that keeps its
keys and values, the honest peer. Both steps are written with the same care (models/elastic.py, models/sasrec.py). Catalogue
scores are in neither. The histories are one person's, as often as there are people: a step's time does not depend on them.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from elastic_core.bench.latency import ITEMS, SYSTEMS, Setting, build_system, drawn_items, smallest, systems, timed
from elastic_core.bench.store import Row, figures
from elastic_core.bench.timing import Contestant, measure_rows
from elastic_core.core.batches import Batch
from elastic_core.following.stream import Stream, open_stream
from elastic_core.models import can_stream

STREAM, REFRESH = "-stream", "-refresh"  # behind the name of a system that streams
ROOM = 50
REPEATS = 5  # new events per timed round: one alone is too short for the clock
EVENT, STEP = "event", "step"  # direction and rows of a `Row` of a kept state; `saved` is then what is kept of all people
LONG = 65_536  # events read before; so many only where what is kept does not grow
LENGTHS = (256, 1_024, 4_096, LONG)


def readers() -> tuple[str, ...]:
    """The compared systems that read a history from left to right: those that one more event makes sense for."""
    return tuple(name for name in SYSTEMS if smallest(name).causal)


def followers() -> tuple[str, ...]:
    """Those of them that keep something and go on from it, each model once: its forms keep the same."""
    found: dict[str, str] = {}
    for name in readers():
        if can_stream(smallest(name)):
            found.setdefault(systems()[name][0], name)
    return tuple(found.values())


def measure_events(setting: Setting, device: torch.device, systems: tuple[str, ...], **harness: Any) -> list[Row]:
    """A row a reader, a step of what is kept and its refresh: one new event for all people of the batch."""
    items = drawn_items(setting, device)
    batch, told = Batch(items, items, padded=False), {"rows": "last", **setting.told, "direction": EVENT}
    roomy = replace(setting, length=setting.length + ROOM, histories=setting.batch)
    found = []
    for name in systems:
        reads = timed(build_system(name, setting).to(device).eval(), "last")
        found.append(Contestant(name, told, torch.inference_mode()(partial(reads, batch))))
    for name in followers():
        stream = open_stream(build_system(name, roomy).to(device), ROOM)
        stream.refresh(items)
        found.append(Contestant(name + STREAM, told, partial(steps, stream, items[:, -1], REPEATS), REPEATS))
        found.append(Contestant(name + REFRESH, told, partial(stream.refresh, items)))
    return measure_rows("events", found, device, **harness)


def measure_steps(people: int, device: torch.device, lengths: Iterable[int], shape: Setting, **harness: Any) -> list[Row]:
    """A row for each follower and each number of events read before, all interleaved; times are of one event of all people."""
    torch.manual_seed(0)
    repeats, found = max(REPEATS, 100 // people), []
    for system in followers():
        for length in lengths:
            setting = replace(shape, length=length, histories=people)
            model = build_system(system, replace(setting, length=length + ROOM)).to(device)
            stream, one = open_stream(model, ROOM), open_stream(model, ROOM)
            if stream.grows and length >= LONG:
                continue
            one.refresh(torch.randint(1, ITEMS + 1, (1, length), device=device))
            stream.merge(one.at([0] * people))
            told = {"rows": STEP, **setting.told, "direction": EVENT}
            found.append(after_events(system, told, stream, people, repeats, device))
    return measure_rows("streaming", found, device, **harness)


def after_events(
    system: str, told: dict[str, Any], stream: Stream, people: int, repeats: int, device: torch.device
) -> Contestant:
    """So many events of so many people; `saved` are the bytes kept of all of them."""
    items, kept = torch.randint(1, ITEMS + 1, (people,), device=device), 4 * people * stream.numbers()
    return Contestant(system, told, partial(steps, stream, items, repeats), repeats, partial(dict, saved=kept))


def streaming_goals(rows: Iterable[Row]) -> dict[str, float]:
    """What C10 and C11 are judged by, from rows measured together, by processor time. What was not measured is left out.

    C10, 64 people: how many times longer SASRec's step takes after 1,024 and 4,096 events (≥ 5, ≥ 20), and ELASTIC's step after
    65,536 events over that after 256 (≤ 1.05). C11, one person: microseconds of ELASTIC's step after 1,024 events (≤ 150), and
    how many times longer SASRec's takes (≥ 1).
    """
    return figures(rows, """
        C10 SASRec / ELASTIC, T = 1024   | processor    | system=sasrec-fused; batch=64; length=1024 | system=elastic
        C10 SASRec / ELASTIC, T = 4096   | processor    | system=sasrec-fused; batch=64; length=4096 | system=elastic
        C10 ELASTIC, T = 65536 / T = 256 | processor    | system=elastic; batch=64; length=65536     | length=256
        C11 microseconds                 | microseconds | system=elastic; batch=1; length=1024
        C11 SASRec / ELASTIC, T = 1024   | processor    | system=sasrec-fused; batch=1; length=1024  | system=elastic
    """, direction=EVENT, rows=STEP)  # fmt: skip


def steps(stream: Stream, items: torch.Tensor, repeats: int) -> None:
    """So many events; where they run out of room the window is taken as if just read: every step then costs what one after
    `length` to `length + ROOM` events does."""
    for _ in range(repeats):
        if not stream.left:
            stream.restore(stream.stored(), torch.zeros_like(stream.used))
        stream.step(items)
