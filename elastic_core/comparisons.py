"""Runs against runs, from the ranks they keep: no model is opened and no data read.

Runs that differ in nothing but their seed are one *system*; its seeds show how much training alone moves a result.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from elastic_core.core.evaluate import NAMES
from elastic_core.errors import InputError
from elastic_core.evaluation.compare import Comparison, compare_many
from elastic_core.evaluation.power import Noise, noise
from elastic_core.models import model_class
from elastic_core.runs import Run
from elastic_core.runs.ranks import Interval, Report


def needs_training(run: Run) -> bool:
    """Whether a seed can move the run's result; a system that is only fitted has one result."""
    return bool(model_class(run.config.model.name).objective)


def essence(run: Run) -> str:
    """What was trained, on what and how, as text: equal for runs that differ only in their seed."""
    return f"{run.setup} {(run.last('start') or {}).get('data_hash')}"


def footing(run: Run) -> tuple[object, ...]:
    """What all numbers of one table must share: the events and, of a run that keeps ranks, the draw of candidates and how many
    people there are. Raises InputError for ranks that cannot be read."""
    if not run.has_report:
        return (run.last("start").get("data_hash"),)
    report = run.report()
    return report.data_hash, report.seed, len(report.users)


def comparable(a: Run, b: Run) -> bool:
    """Whether their numbers may stand in one table: as far as both say."""
    return all(mine == theirs for mine, theirs in zip(footing(a), footing(b), strict=False))


def system(run: Run, among: Iterable[Run]) -> list[Run]:
    """The run, and those of its other seeds `among` these that keep ranks: one run a seed, in the order of the seeds."""
    if not needs_training(run):
        return [run]
    mine, found = essence(run), {run.config.train.seed: run}
    for other in among:
        if (
            other.has_report
            and other.path != run.path
            and _readable(other)
            and essence(other) == mine
            and _comparable(run, other)
        ):
            found.setdefault(other.config.train.seed, other)
    return [found[seed] for seed in sorted(found)]


def systems(a: Run, b: Run, among: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """All seeds of A and all of B; two seeds of one system are compared as single runs."""
    if a.path == b.path or essence(a) == essence(b):
        return [a], [b]
    return system(a, among), system(b, among)


def compare_runs(a: Sequence[Run], b: Sequence[Run], protocol: str = "full", metric: str = "NDCG@10") -> Comparison:
    """The system with the runs `a` minus the one with the runs `b`, on their stored ranks.

    Raises InputError if a run keeps none, if the runs of a side differ in more than their seed or repeat one, for an unknown
    metric, and if the sides were not measured on the same data, people and candidates.
    """
    if metric not in NAMES:
        raise InputError(f"unknown metric {metric!r}; known are {', '.join(NAMES)}")
    for side in (a, b):
        check_seeds(side)
    trained = (any(map(needs_training, a)), any(map(needs_training, b)))
    return compare_many([r.report() for r in a], [r.report() for r in b], protocol, metric, trained=trained)


def power_of(a: Sequence[Run], b: Sequence[Run], protocol: str = "full", metric: str = "NDCG@10") -> Noise:
    """Where the noise of this comparison comes from. Raises InputError as `compare_runs` and `noise` do."""
    compare_runs(a, b, protocol, metric)
    left, right = (np.stack([run.report().values(protocol, metric) for run in side]) for side in (a, b))
    return noise(left, right)


def check_seeds(side: Sequence[Run]) -> None:
    """Raises InputError if these runs are not different seeds of one system."""
    seeds = [run.config.train.seed for run in side]
    names = ", ".join(run.name for run in side)
    if len({essence(run) for run in side}) > 1:
        raise InputError(f"{names} differ in more than their seed, so they are not one system")
    if len(set(seeds)) < len(seeds):
        raise InputError(f"{names} repeat a seed, which would count one training twice")


def average(reports: Sequence[Report], protocol: str, metric: str) -> Interval:
    """A system's mean over its seeds, with the standard error over people of each person's average."""
    values = np.stack([report.values(protocol, metric) for report in reports]).mean(0)
    return Interval.of(values)


def _comparable(a: Run, b: Run) -> bool:
    try:
        return comparable(a, b)
    except InputError:
        return True  # whoever asks for its ranks hears why they cannot be read


def _readable(run: Run) -> bool:
    try:
        return bool(run.config)
    except InputError:
        return False
