"""Every run behind the result tables, as data: a name, what it varies, and the configuration. Resumable, one by one.

Numbers from the papers are never mixed in here: the tables show only what these runs measured.
"""

import dataclasses
import fnmatch
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from elastic_core.core.config import RunConfig
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.recipes import ALSO_CHOSEN, ALSO_TUNED, grid_point, recipe
from elastic_core.runs import Run
from elastic_core.runs.training import train

Status = Literal["finished", "interrupted", "missing", "other settings"]

BY_VOTES = ("model.query=votes", "model.interest_weight=0.3", "objective.retrieval=random")
REPEATS, OWN_OUTPUT = "repeats", "own-output"  # end a run's name, and in brackets its label's recipe: any model can be
MARKS = {REPEATS: "model.repeats=true", OWN_OUTPUT: "model.output=own"}  # with a repeat bias; scoring by another table
# What Table 3 of the paper takes away, PKM-ACT, and the gate and query norm that keep the memory alive. These runs are causal, so
# PKM-ACT's memories are all asked with the same events, not with each layer's input; only the two-way form asks as it prints.
VARIANTS: dict[str, tuple[str, ...]] = {
    "query-mean": ("model.query=mean",),
    "memory-none": ("model.memory=none",),
    "dispatch-none": ("model.dispatch=none",),
    "pkm-act": ("model.memory=per-layer",),
    "gate-none": ("model.gate=none", "model.balance_weight=0"),
    "norm-layer": ("model.query_norm=layer", "model.balance_weight=0"),
    "no-local": ("model.conv_width=0",),
    "votes": BY_VOTES,
}
TABLE_3 = ("query-mean", "memory-none", "dispatch-none", "pkm-act", "gate-none")  # where truth is known, too
# What interest slots are made of, one step taken back at a time.
SLOT_VARIANTS: dict[str, tuple[str, ...]] = {
    "memory-none": ("model.memory=none",),
    "query-mean": ("model.query=mean",),
}
# Controls: is ELASTIC ahead because of its memory or of the convolution beside it?
SASREC_VARIANTS: dict[str, tuple[str, ...]] = {"local": ("model.conv_width=16",)}
# Nobody watches a film twice: who is ahead where every model has a repeat bias? (model, variant)
TOLD = (
    ("sasrec", ""), ("elastic", ""), ("sasrec", "local"), ("hstu", ""), ("gru4rec", ""), ("lrurec", ""),
    ("elastic", "memory-none"), ("elastic-slots", ""),
)  # fmt: skip
# The other systems of the papers, all tuned alike (tuning.py), and what they come in: name → settings.
PEERS: dict[str, dict[str, tuple[str, ...]]] = {
    "fpmc": {},
    "gru4rec": {},
    "bert4rec": {},
    "linrec": {},
    "lrurec": {},
    "hstu": {"time": ("model.times=previous",)},
    "lisa": {"soft": ("model.form=soft", "model.words=16"), "mini": ("model.form=mini", "model.words=32")},
    "sma": {"ctreg": ("model.ctreg_weight=0.1",)},
    "din": {
        "recency": ("model.recency=true",),
        "sma": ("model.intensity=event",),
        "sma-ctreg": ("model.intensity=event", "model.ctreg_weight=0.1"),
    },
    "shan": {"sma": ("model.intensity=state",)},
    "linformer": {},
    "reformer": {},
    "sinkhorn": {},
    "routing": {},
    "clustered": {},
}
FIRST = ("fpmc", "gru4rec", "bert4rec", "linrec", "lrurec", "hstu", "lisa")  # beside ours and SASRec on every kind of data
LONG = ("elastic", "elastic-slots", "sasrec", "linrec", "lrurec", "gru4rec", "lisa", "hstu", "fpmc", "bert4rec")  # recall by gap
CONVERGED = (
    ("elastic", ""), ("elastic", "memory-none"), ("sasrec", ""), ("sasrec", "local"), ("elastic-slots", ""),
    ("hstu", ""), ("lrurec", ""),
)  # fmt: skip
SIDES, EXPERTS = (8, 16, 32, 64, 128, 256, 512), (4, 8, 16)  # Figure 5
SEEDS = (0, 1, 2)
OPENED = {"elastic": ("",), "elastic-slots": ("",)}  # by the app, of what was trained


@dataclass(frozen=True)
class PlannedRun:
    """One run. `label` is what it is called in a table; rows that share it differ only in the seed."""

    name: str
    data: str
    label: str
    config: RunConfig

    def folder(self, root: Path) -> Path:
        return root / self.name


@functools.cache
def rows() -> tuple[PlannedRun, ...]:
    """All of them, the quick ones first."""
    return (*_planted(), *_planted_long(), *_movielens_100k(), *_video_games(), *_movielens_1m())


def select(pattern: str) -> list[PlannedRun]:
    """Rows whose name fits a shell pattern or contains it. Raises InputError if none does."""
    chosen = [row for row in rows() if fnmatch.fnmatch(row.name, pattern) or pattern in row.name]
    if not chosen:
        raise InputError(f"no run fits {pattern!r}; reproduce --list shows them all")
    return chosen


def _planted() -> Iterator[PlannedRun]:
    for model in ("popularity", "cooccurrence", "sasrec", "elastic", "elastic-slots"):
        yield _row("planted", model)
    for seed in SEEDS:
        yield _row("planted", "elastic-slots", "memory-none", seed)
    for seed in SEEDS[1:]:
        for model in ("sasrec", "elastic", "elastic-slots"):
            yield _row("planted", model, seed=seed)
    for model in ("popularity", "cooccurrence"):
        yield _row("planted-64", model)
    for seed in SEEDS:
        for model, variant in (("elastic-slots", ""), ("elastic-slots", "memory-none"), ("sasrec", ""), ("elastic", "")):
            yield _row("planted-64", model, variant, seed)
    for seed in SEEDS:  # who else finds what slots find?
        for model in FIRST:
            yield _row("planted-64", model, seed=seed)
    yield from _sizes("planted")
    for variant in TABLE_3:
        yield _row("planted", "elastic", variant)
    yield _row("planted-64", "sasrec", mark=REPEATS)
    for variant in SLOT_VARIANTS:
        if variant != "memory-none":
            yield _row("planted-64", "elastic-slots", variant)


def _planted_long() -> Iterator[PlannedRun]:
    yield _row("planted-long", "popularity")
    for seed in SEEDS:
        for model in LONG:
            yield _row("planted-long", model, seed=seed)


def _movielens_100k() -> Iterator[PlannedRun]:
    for model in ("popularity", "cooccurrence"):
        yield _row("ml-100k", model)
    for seed in SEEDS:
        for model in ("sasrec", "elastic", "elastic-slots"):
            yield _row("ml-100k", model, seed=seed)
    for seed in SEEDS:
        yield _row("ml-100k", "elastic-slots", "memory-none", seed)
        yield _row("ml-100k", "sasrec", "local", seed)
    for seed in SEEDS:
        for model, variant in TOLD:
            yield _row("ml-100k", model, variant, seed, mark=REPEATS)
        yield _row("ml-100k", "elastic", "votes", seed)
    for variant in VARIANTS:
        if variant != "votes":
            yield _row("ml-100k", "elastic", variant)
    for seed in SEEDS:  # validation's choice in the grid differs from ELASTIC's own recipe in this alone (tests/test_tuning.py)
        yield _row("ml-100k", "elastic", "grid", seed, extra=("model.conv_width=8",))
    for (model, point), seed in itertools.product(ALSO_CHOSEN.items(), SEEDS):
        base, name = ALSO_TUNED[model][0], f"ml-100k-{model}-grid" + (f"-seed{seed}" if seed else "")
        config = grid_point(model, point).override(f"train.seed={seed}")
        yield PlannedRun(name, "ml-100k", f"{base} ({model.removeprefix(base)[1:]}-grid)", config)
    yield from _sizes("ml-100k")
    for seed in SEEDS:
        for model, variants in PEERS.items():
            for variant in ("", *variants):
                yield _row("ml-100k", model, variant, seed)


def _video_games() -> Iterator[PlannedRun]:
    for model in ("popularity", "cooccurrence"):
        yield _row("video-games", model)
    for seed in SEEDS:
        for model, variant in (
            ("sasrec", ""), ("sasrec", "local"), ("elastic", ""), ("elastic", "memory-none"), ("elastic-slots", ""),
            ("elastic-slots", "memory-none"),
        ):  # fmt: skip
            yield _row("video-games", model, variant, seed)
        for model in FIRST:
            yield _row("video-games", model, seed=seed)
    for model in ("sasrec", "elastic"):
        yield _row("video-games", model, mark=OWN_OUTPUT)


def _movielens_1m() -> Iterator[PlannedRun]:
    for model in ("popularity", "cooccurrence"):
        yield _row("ml-1m", model)
    for seed in SEEDS:
        for model, variant in (
            ("elastic", ""), ("elastic", "memory-none"), ("elastic", "votes"), ("sasrec", ""),
            ("sasrec", "local"), ("elastic-slots", ""),
        ):  # fmt: skip
            yield _row("ml-1m-cpu", model, variant, seed)
    for seed in SEEDS:
        for model in FIRST:
            yield _row("ml-1m-cpu", model, seed=seed)
    for model in ("sasrec", "elastic"):
        yield _row("ml-1m-cpu", model, mark=REPEATS)
    for seed in SEEDS:
        for model, variant in (("sasrec", ""), ("sasrec", "local"), ("elastic", "")):
            yield _row("ml-1m-cpu", model, variant, seed, mark=OWN_OUTPUT)
    for seed in SEEDS[:2]:  # does the memory pay once nothing is left to learn?
        for model, variant in CONVERGED:
            yield _row("ml-1m-converged", model, variant, seed, mark=OWN_OUTPUT)
    for seed in SEEDS:
        for model in ("sasrec", "elastic"):
            yield _row("ml-1m", model, seed=seed)
    for variant in VARIANTS:
        yield _row("ml-1m", "elastic", variant)
    yield _row("ml-1m", "elastic", mark=REPEATS)
    yield from _sizes("ml-1m")


def _sizes(data: str) -> Iterator[PlannedRun]:
    """Figure 5: other numbers of experts, and of those that are retrieved."""
    base = recipe(data).to_dict()["model"]
    for name, values in (("side", SIDES), ("k", EXPERTS)):
        for value in values:
            if value != base[name]:
                yield _row(data, "elastic", f"{name}-{value}", extra=(f"model.{name}={value}",))


def _row(data: str, model: str, variant: str = "", seed: int = 0, extra: tuple[str, ...] = (), mark: str = "") -> PlannedRun:
    label = f"{model} ({variant})" if variant else model
    parts = filter(None, [data, model, variant, mark, f"seed{seed}" if seed else ""])
    known = {"elastic-slots": SLOT_VARIANTS, "sasrec": SASREC_VARIANTS, **PEERS}.get(model, VARIANTS)
    config, settings = recipe(data, model), (*known.get(variant, ()), *extra, f"train.seed={seed}")
    if mark:
        label, settings = f"{label} ({mark})", (*settings, MARKS[mark])
    if config.train.minutes:
        label += f" ({config.train.minutes:g} minutes{' of processor' if config.train.clock == 'processor' else ''})"
    if model in OPENED and variant in OPENED[model] and not (mark or seed):  # the app shows how its memory grew
        settings += ("train.snapshots=true",)
    world = data if config.data.source == "planted" else config.data.source
    return PlannedRun("-".join(parts), world, label, config.override(*settings))


# --- running ---------------------------------------------------------------------------------------------------------


class _OutOfTime(Exception):
    """Raised between epochs: the run stays as it was saved and goes on next time."""


class Deadline:
    """Watches a run's events and stops it at an epoch border if the next epoch would not fit. `at` is monotonic time."""

    def __init__(self, at: float, on_event: Callable[[dict[str, Any]], None]) -> None:
        self.at, self.on_event = at, on_event
        self.border, self.longest = time.monotonic(), 0.0

    def __call__(self, event: dict[str, Any]) -> None:
        self.on_event(event)
        now = time.monotonic()
        if event["event"] == "epoch":
            self.longest, self.border = max(self.longest, now - self.border), now
        elif event["event"] == "step" and (now > self.at or (event["done"] == 1 and now + self.longest > self.at)):
            raise _OutOfTime


def status(row: PlannedRun, root: Path) -> Status:
    """Where a row stands. Device and snapshots may differ from the recipe's, and a time budget it does not have."""
    run = Run(row.folder(root))
    if not (run.path / "config.json").exists():
        return "missing"
    timed = row.config.train.minutes > 0
    if _essence(run.config, timed) != _essence(row.config, timed):
        return "other settings"
    return "finished" if run.finished else "interrupted"


def reproduce(
    row: PlannedRun,
    dataset: Dataset,
    root: Path,
    device: str,
    at: float = math.inf,
    on_event: Callable[[dict[str, Any]], None] | None = None,
) -> bool:
    """Trains one row, or goes on with it, until `at` (monotonic time). True if it is finished now."""
    stand = status(row, root)
    if stand == "other settings":
        raise InputError(f"{row.folder(root)} holds a run with other settings than the recipe has now; move it away first")
    folder = row.folder(root)
    if row.config.train.minutes:  # a budget of time means something on one kind of device only
        device = row.config.train.device
    config = (row.config if stand == "missing" else Run(folder).config).override(f"train.device={device}")
    try:
        train(config, dataset, folder, Deadline(at, on_event or (lambda event: None)))
    except _OutOfTime:
        return False
    return True


def _essence(config: RunConfig, timed: bool) -> RunConfig:
    budget = config.train.minutes if timed else 0.0
    return dataclasses.replace(config, train=dataclasses.replace(config.train, device="cpu", minutes=budget, snapshots=False))
