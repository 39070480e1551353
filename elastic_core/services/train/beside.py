"""What a finished training stands beside: the systems that only count, fitted to the same data and judged on the same people.

    checkpoints/<run>/beside.json   rows by system: mean NDCG@10 on the test with its interval over people, and the run minus it

Fitting and ranking takes seconds to minutes, so the background process does it once, at the end of a training, and keeps it
with the run. Chance is what a random order of the same candidates gets: the null of every number here.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from elastic_core import disk, models
from elastic_core.comparisons import needs_training
from elastic_core.core.config import ModelConfig
from elastic_core.core.evaluate import Ranks, expected
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.evaluation.compare import compare_many
from elastic_core.runs import Run
from elastic_core.runs.ranks import evaluate
from elastic_core.services.person import inspect

FILE, MOST_BYTES, MOST_ROWS = "beside.json", 2**16, 20
PROTOCOL, SEEN, METRIC = "full", "full-seen", "NDCG@10"


@dataclass(frozen=True)
class BesideRow:
    """A system that needs no training, and the run minus it, in pairs over people. `fault`: why it could not be judged."""

    system: str
    mean: float = 0.0
    low: float = 0.0
    high: float = 0.0
    difference: float = 0.0
    d_low: float = 0.0
    d_high: float = 0.0
    fault: str = ""


@dataclass(frozen=True)
class Beside:
    """`protocol`: of all numbers; where people choose again what they have met, that stays among the candidates."""

    people: int
    chance: float
    rows: tuple[BesideRow, ...]
    protocol: str = PROTOCOL

    @property
    def best(self) -> BesideRow | None:
        """The strongest of them."""
        return max((row for row in self.rows if not row.fault), key=lambda row: row.mean, default=None)


def judge(run: Run, dataset: Dataset, tell: Callable[[str], None] = lambda name: None) -> Beside:
    """Fits and ranks; `tell` hears each system's name first. Raises InputError for a run without a test."""
    mine, own, protocol = run.report(), run.config.model.name, fitting(dataset)
    rows = []
    for name in models.names():
        kind = ModelConfig.known[name]
        if models.model_class(name).objective or name == own:
            continue
        tell(kind.label or name)
        try:
            model = models.build(kind(), dataset.catalog)
            model.fit(dataset)
            theirs = evaluate(model, dataset, split="test", protocols=(protocol,), seed=mine.seed)
            found = compare_many([mine], [theirs], protocol, METRIC, trained=(needs_training(run), False))
            mean, _, low, high = theirs.interval(protocol, METRIC)
            rows.append(BesideRow(kind.label or name, mean, low, high, found.difference, found.low, found.high))
        except InputError as error:
            rows.append(BesideRow(kind.label or name, fault=str(error)))
    return Beside(len(mine.users), random_ndcg(dataset, protocol), tuple(rows), protocol)


def fitting(dataset: Dataset) -> str:
    """The protocol in which these data are judged: repeats decide, as on every screen."""
    return SEEN if inspect.repeats(dataset).stay else PROTOCOL


def keep_beside(run: Run, found: Beside) -> None:
    """Raises InputError where the disk does not take it."""
    disk.write_text(run.path / FILE, json.dumps(asdict(found), indent=1))


def kept(run: Run) -> Beside | None:
    """What was kept with the run; None where there is none, or it is none that `keep_beside` wrote."""
    try:
        plain = disk.read_object(run.path / FILE, MOST_BYTES, run.path)
        rows, people, chance = (plain.get(name) for name in ("rows", "people", "chance"))
        if not isinstance(rows, list) or len(rows) > MOST_ROWS or not disk.is_number(people) or not disk.is_number(chance):
            return None
        protocol = SEEN if plain.get("protocol") == SEEN else PROTOCOL
        return Beside(int(people), float(chance), tuple(map(_system_row, rows)), protocol)
    except InputError:
        return None


def random_ndcg(dataset: Dataset, protocol: str = PROTOCOL) -> float:
    """NDCG@10 of a random order of everybody's candidates, exactly."""
    histories, columns = dataset.histories, dataset.catalog.n_items + 1
    others = np.full(histories.n_users, dataset.catalog.n_items - 1)
    owners = np.repeat(np.arange(histories.n_users), histories.lengths)
    read = np.arange(len(owners)) < dataset.ends("test")[owners]
    seen = np.unique(owners[read] * columns + histories.items[read])
    met = np.isin(np.arange(histories.n_users) * columns + dataset.targets("test"), seen)
    if protocol != SEEN:
        others = dataset.catalog.n_items - np.bincount(seen // columns, minlength=histories.n_users) - ~met
    return float(expected(Ranks(np.zeros_like(others), others))[METRIC].mean())


def _system_row(plain: Any) -> BesideRow:
    if not isinstance(plain, dict) or not isinstance(plain.get("system"), str) or not isinstance(plain.get("fault", ""), str):
        raise InputError(f"{FILE} has a row of no system")
    numbers = {name: plain.get(name) for name in ("mean", "low", "high", "difference", "d_low", "d_high")}
    if not all(map(disk.is_number, numbers.values())):  # of a single person there is no interval: NaN, and nothing to claim
        raise InputError(f"{FILE} has a row without numbers")
    return BesideRow(disk.shown(plain["system"]), **numbers, fault=disk.shown(plain.get("fault", ""), 300))  # type: ignore[arg-type]
