"""What is the published Δt worth, which reads when the event to be predicted happens?

SMA as published takes t_{i+1} - t_i at event i, and HSTU's bias t_{i+1} - t_j: at the last event both read when the answer
happens. Here a model is given every event's time moved by one: where it would read t_i it reads t_{i+1}. Its own `previous`
interval then is the published Δt (but at the first event, which has none), and HSTU's bias knows as much as the published one.
Nothing else changes, so the difference to the same model with honest times is the leak.

What is learned from such times never becomes a run: the dataset says that it `peeks`, training refuses it, and this module keeps
numbers alone.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from elastic_core import models
from elastic_core.bench.store import Figure, Row, readable_rows
from elastic_core.core.histories import Dataset
from elastic_core.core.train import Keeper, Loop
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.machine import CPU, here
from elastic_core.recipes import recipe
from elastic_core.runs.ranks import Interval, evaluate

METRIC, BENCH, NEEDED = "NDCG@10", "leak", ("world", "times", "seed", "test")
HONEST, PEEKING = "honest", "as published"
# Which models, which settings: the systems whose published form reads the target's time, and the two readings of Δt.
SYSTEMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "SMA": ("sma", ()),
    "SMA + CTReg": ("sma", ("model.ctreg_weight=0.1",)),
    "SMA, after events": ("sma", ("model.intensity=event",)),
    "SMA, after events + CTReg": ("sma", ("model.intensity=event", "model.ctreg_weight=0.1")),
    "HSTU with time": ("hstu", ("model.times=previous",)),
}
LEAKS = ("SMA", "SMA + CTReg", "HSTU with time")  # published with the target's time; the others refuse or do not read it
WORLDS = {"times tell": 1.0, "times tell nothing": 0.0}


def peeking(dataset: Dataset) -> Dataset:
    """Every event's time is the next event's, of the same person; the last one's is its own. Raises InputError without times."""
    if not dataset.has_times:
        raise InputError(f"{dataset.label} has no times that could tell anything")
    times, last = dataset.histories.times.copy(), dataset.histories.offsets[1:] - 1
    times[:-1] = dataset.histories.times[1:]
    times[last] = dataset.histories.times[last]
    histories = replace(dataset.histories, times=times)
    return replace(dataset, histories=histories, label=f"{dataset.label} (peeking)", peeks=True)


def leak_trainings(seeds: int) -> Iterator[tuple[str, str, str, int]]:
    """Yield world, system, times, seed of every row."""
    for seed, world, system, times in product(range(seeds), WORLDS, SYSTEMS, (HONEST, PEEKING)):
        if times == HONEST or system in LEAKS:
            yield world, system, times, seed


def measure_leak(world: str, system: str, times: str, seed: int, tell: Callable[[str], None]) -> Row:
    """Train the toy recipe in memory, on a small planted world whose times do, or do not, tell what comes next; keep the best
    epoch by validation, judge it once on test: NDCG@10 (full ranking) with its 95% interval."""

    class Told(Keeper):
        def epoch(self, row: dict[str, Any], judged: models.Recommender) -> None:
            tell(f"{world}, {system}, {times}: epoch {row['epoch']}, valid {row['valid'][METRIC]:.4f}")

    model, more = SYSTEMS[system]
    config = recipe("toy", model).override(f"data.planted.tempo={WORLDS[world]}", f"train.seed={seed}", *more)
    loop = Loop(config, load(config.data, tell), keeper := Told(), CPU)
    if times == PEEKING:
        loop.dataset = peeking(loop.dataset)  # which it would refuse
    loop.learn(loop.fresh_learner(), None)
    loop.model.load_state_dict(keeper.kept)
    found = Interval.of(evaluate(loop.model.eval(), loop.dataset, split="test", protocols=("full",)).values("full", METRIC))
    figures = {
        "test": Figure(round(found.mean, 6), round(found.low, 6), round(found.high, 6)),
        "valid": Figure(round(loop.best, 6)),
        "epochs": Figure(loop.epoch),
    }
    setting = {"world": world, "times": times, "seed": seed}
    return Row(bench=BENCH, system=system, setting=setting, figures=figures, where={"rounds": 1, **here(CPU)})


def read_leaks(file: Path) -> list[Row]:
    """Return the rows that are there; none of a file that is missing or of another form."""
    return [row for row in readable_rows(file, BENCH) if all(hasattr(row, name) for name in NEEDED)]


def leak_cells(rows: Iterable[Row], never: str) -> list[tuple[str, str, int, str, str, str]]:
    """Return world, system and seed, then in words: NDCG@10 on test with half its interval with honest times and with published
    ones (`never` where it was not published so), and the leak."""
    found: dict[tuple[str, str, int], dict[str, Figure]] = {}
    for row in rows:
        found.setdefault((row.world, row.system, row.seed), {})[row.times] = row.figures["test"]
    cells = []
    for what, both in found.items():
        honest, published = (
            f"{both[times].value:.4f} ± {round(both[times].high - both[times].value, 6):.4f}" if times in both else instead
            for times, instead in ((HONEST, "–"), (PEEKING, never))
        )
        worth = f"{both[PEEKING].value - both[HONEST].value:+.4f}" if len(both) == 2 else "–"
        cells.append((*what, honest, published, worth))
    return cells
