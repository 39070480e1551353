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
from pathlib import Path
from typing import Any, NamedTuple

from elastic_core import models
from elastic_core.bench.store import Figure, Row, readable_rows
from elastic_core.core.histories import Dataset
from elastic_core.core.train import Keeper, Loop
from elastic_core.errors import InputError
from elastic_core.machine import CPU, here
from elastic_core.recipes import recipe
from elastic_core.run_config import RunConfig
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


def leak_config(world: str, system: str, seed: int = 0) -> RunConfig:
    """The toy recipe on a small planted world whose times do, or do not, tell what comes next."""
    model, more = SYSTEMS[system]
    return recipe("toy", model).override(f"data.planted.tempo={WORLDS[world]}", f"train.seed={seed}", *more)


def leak_trainings(seeds: tuple[int, ...] = (0,)) -> Iterator[tuple[str, str, str, int]]:
    """World, system, times, seed of every row."""
    for seed in seeds:
        for world in WORLDS:
            for system in SYSTEMS:
                yield world, system, HONEST, seed
                if system in LEAKS:
                    yield world, system, PEEKING, seed


class _Told(Keeper):
    """Keeps the best weights in memory, and says how an epoch went."""

    def __init__(self, words: str, tell: Callable[[str], None]) -> None:
        self.words, self.tell_of = words, tell

    def epoch(self, row: dict[str, Any], judged: models.Recommender) -> None:
        self.tell_of(f"{self.words}: epoch {row['epoch']}, valid {row['valid'][METRIC]:.4f}")


def measure_leak(world: str, system: str, times: str, seed: int, dataset: Dataset, tell: Callable[[str], None]) -> Row:
    """Train in memory, keep the best epoch by validation, judge it once on test: NDCG@10 (full ranking) with its 95% interval."""
    keeper = _Told(f"{world}, {system}, {times}", tell)
    loop = Loop(leak_config(world, system, seed), dataset, keeper, CPU)
    if times == PEEKING:
        loop.dataset = peeking(dataset)  # which it would refuse
    loop.learn(loop.fresh_learner(), None)
    loop.model.load_state_dict(keeper.kept)
    found = Interval.of(evaluate(loop.model.eval(), loop.dataset, split="test", protocols=("full",)).values("full", METRIC))
    test = Figure(round(found.mean, 6), round(found.low, 6), round(found.high, 6))
    setting, figures = {"world": world, "times": times, "seed": seed}, {"test": test, "valid": Figure(round(loop.best, 6))}
    where = {"rounds": 1, **here(CPU)}
    return Row(bench=BENCH, system=system, setting=setting, figures=figures | {"epochs": Figure(loop.epoch)}, where=where)


class Pair(NamedTuple):
    """NDCG@10 on test and half its interval with honest times and with published ones; None where it was not trained so."""

    world: str
    system: str
    seed: int
    honest: tuple[float, float] | None
    published: tuple[float, float] | None


def read_leaks(file: Path) -> list[Row]:
    """Return the rows that are there; none of a file that is missing or of another form."""
    return [row for row in readable_rows(file, BENCH) if all(hasattr(row, name) for name in NEEDED)]


def pairs(rows: Iterable[Row]) -> Iterator[Pair]:
    """What stands beside each other: the same world, system and seed."""
    found: dict[tuple[str, str, int], dict[str, tuple[float, float]]] = {}
    for row in rows:
        test = row.figures["test"]
        found.setdefault((row.world, row.system, row.seed), {})[row.times] = (test.value, round(test.high - test.value, 6))
    for (world, system, seed), both in found.items():
        yield Pair(world, system, seed, both.get(HONEST), both.get(PEEKING))


def leak_cells(pair: Pair, never: str) -> tuple[str, str, str]:
    """Honest, as published (`never` where it was not published so) and the leak, in words."""
    honest, published = ("" if found is None else "{:.4f} ± {:.4f}".format(*found) for found in pair[-2:])
    worth = f"{pair.published[0] - pair.honest[0]:+.4f}" if pair.honest and pair.published else "–"
    return honest or "–", published or never, worth
