"""What a finished training stands beside: the systems that only count, fitted to the same data and judged on the same users.

    checkpoints/<run>/beside.json   rows by system: mean NDCG@10 on the test with its interval over users, and the run minus it

Fitting and ranking takes seconds to minutes, so the background process does it once, at the end of a training, and keeps it
with the run. Chance is what a random order of the same candidates gets: the null of every number here.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from elastic_core import files, models
from elastic_core.core.config import ModelConfig
from elastic_core.core.evaluate import Ranks, expected_metrics, missed_rank
from elastic_core.data import Dataset
from elastic_core.data.repeats import ONLY_UNSEEN, WITH_SEEN
from elastic_core.errors import InputError
from elastic_core.results.compare import METRIC, compare_reports, needs_training
from elastic_core.runs import Run
from elastic_core.runs.ranks import evaluate

FILE, MOST_BYTES = "beside.json", 2**16


@dataclass(frozen=True)
class BaselineRow:
    """A system that needs no training, and the run minus it, paired over users. `fault`: why it could not be judged."""

    system: str
    mean: float = 0.0
    low: float = 0.0
    high: float = 0.0
    difference: float = 0.0
    d_low: float = 0.0
    d_high: float = 0.0
    fault: str = ""


@dataclass(frozen=True)
class BaselineComparison:
    """`protocol`: of all numbers. `chance`: NDCG@10 of a random order."""

    people: int
    chance: float
    rows: tuple[BaselineRow, ...]
    protocol: str = ONLY_UNSEEN

    @property
    def best(self) -> BaselineRow | None:
        """The strongest of them."""
        return max((row for row in self.rows if not row.fault), key=lambda row: row.mean, default=None)


def compare_with_baselines(
    run: Run, dataset: Dataset, protocol: str = ONLY_UNSEEN, report_name: Callable[[str], None] = lambda name: None
) -> BaselineComparison:
    """Fits and ranks every model that needs no training; `report_name` hears its name first.

    Raises InputError for a run without a test."""
    run_report, own_name = run.report(), run.config.model.name
    rows = []
    for name in models.model_names():
        config = ModelConfig.known[name]
        if models.model_class(name).objective or name == own_name:
            continue
        label = config.label or name
        report_name(label)
        try:
            model = models.build(config(), dataset.catalog)
            model.fit(dataset)
            baseline_report = evaluate(model, dataset, split="test", protocols=(protocol,), seed=run_report.seed)
            difference = compare_reports([run_report], [baseline_report], protocol, METRIC, trained=(needs_training(run), False))
            mean, _, low, high = baseline_report.mean_interval(protocol, METRIC)
            rows.append(BaselineRow(label, mean, low, high, difference.difference, difference.low, difference.high))
        except InputError as error:
            rows.append(BaselineRow(label, fault=str(error)))
    return BaselineComparison(len(run_report.users), random_ndcg(dataset, protocol), tuple(rows), protocol)


def write_comparison(run: Run, comparison: BaselineComparison) -> None:
    """Raises InputError where the disk does not take it."""
    files.write_text(run.path / FILE, json.dumps(asdict(comparison), indent=1))


def read_comparison(run: Run) -> BaselineComparison | None:
    """What was kept with the run; None where there is none, or it cannot be read as one."""
    try:
        plain = files.read_object(run.path / FILE, MOST_BYTES, run.path)
        rows = tuple(_read_row(row) for row in plain["rows"])
        protocol = WITH_SEEN if plain.get("protocol") == WITH_SEEN else ONLY_UNSEEN
        n_users, chance = plain["people"], plain["chance"]
        are_numbers = files.is_number(n_users) and files.is_number(chance)
        return BaselineComparison(int(n_users), float(chance), rows, protocol) if are_numbers else None
    except (InputError, KeyError, TypeError, ValueError, OverflowError):
        return None


def _read_row(plain: dict[str, Any]) -> BaselineRow:
    numbers = {name: plain[name] for name in ("mean", "low", "high", "difference", "d_low", "d_high")}
    if not all(map(files.is_number, numbers.values())):  # of a single user there is no interval: NaN, and nothing to claim
        raise InputError(f"{FILE} has a row without numbers")
    return BaselineRow(
        files.printable_text(str(plain["system"])), **numbers, fault=files.printable_text(str(plain.get("fault", "")), 300)
    )


def random_ndcg(dataset: Dataset, protocol: str = ONLY_UNSEEN) -> float:
    """NDCG@10 of a random order of everybody's candidates, exactly."""
    histories, columns = dataset.histories, dataset.catalog.n_items + 1
    n_others = np.full(histories.n_users, dataset.catalog.n_items - 1)
    owners = np.repeat(np.arange(histories.n_users), histories.lengths)
    readable = np.arange(len(owners)) < dataset.split_ends("test")[owners]
    seen = np.unique(owners[readable] * columns + histories.items[readable])  # each seen item of each user once
    target_seen = np.zeros(histories.n_users, dtype=bool)
    if protocol != WITH_SEEN:
        target_seen = np.isin(np.arange(histories.n_users) * columns + dataset.target_items("test"), seen)
        n_others -= np.bincount(seen // columns, minlength=histories.n_users)
    above = np.where(target_seen, missed_rank(dataset.catalog.n_items), 0)
    return float(expected_metrics(Ranks(above, np.where(target_seen, 0, n_others)))[METRIC].mean())
