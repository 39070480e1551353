"""Runs against runs, from the ranks they keep: no model is opened and no data read. The only place that decides who may be called
better.

Runs that differ in nothing but their seed are one *system*; its seeds show how much training alone moves a result. A may be
called better than B only where the interval, with the noise of training in it, leaves out 0, and where the question was one of
several asked together its p still lies below `LEVEL` after Holm's adjustment for them all. A system that was trained once may be
ahead by luck of its seed, so for it there are numbers and no claim.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from elastic_core.core.evaluate import NAMES
from elastic_core.errors import InputError
from elastic_core.models import model_class
from elastic_core.results.statistics import LEVEL, NoiseParts, adjust_by_holm, paired_difference
from elastic_core.runs import Run
from elastic_core.runs.ranks import Interval, Report

METRIC = "NDCG@10"
ONE_RUN = "one run: training noise not counted"
ONCE_SENTENCE = "Trained once, so it may be luck"
NO_CLAIM = "no difference can be claimed"
NO_RANKS = "keeps no ranks of its test"
SMALLEST_P = 0.0001
Winner = Literal["A", "B", ""]


# --- systems: runs that differ only in their seed ---------------------------------------------------------------------


def needs_training(run: Run) -> bool:
    """Whether a seed can move the run's result; a system that is only fitted has one result."""
    return bool(model_class(run.config.model.name).objective)


def setup_key(run: Run) -> str:
    """What was trained, on what and how, as text: equal for runs that differ only in their seed."""
    return f"{run.setup} {(run.last_event('start') or {}).get('data_hash')}"


def evaluation_key(run: Run) -> tuple[object, ...]:
    """What all numbers of one table must share: the events and, of a run that keeps ranks, the draw of candidates and how many
    users there are. Raises InputError for ranks that cannot be read."""
    if not run.has_report:
        return (run.last_event("start").get("data_hash"),)
    report = run.report()
    return report.data_hash, report.seed, len(report.users)


def are_comparable(a: Run, b: Run) -> bool:
    """Whether their numbers may stand in one table: as far as both say."""
    return all(value_a == value_b for value_a, value_b in zip(evaluation_key(a), evaluation_key(b), strict=False))


def with_its_seeds(run: Run, candidates: Iterable[Run]) -> list[Run]:
    """The run, and those of its other seeds among `candidates` that keep ranks: one run a seed, in the order of the seeds."""
    if not needs_training(run):
        return [run]
    setup, by_seed = setup_key(run), {run.config.train.seed: run}
    for other in candidates:
        if not other.has_report or other.path == run.path or not _is_readable(other):
            continue
        if setup_key(other) == setup and _not_known_apart(run, other):
            by_seed.setdefault(other.config.train.seed, other)
    return [by_seed[seed] for seed in sorted(by_seed)]


def _not_known_apart(a: Run, b: Run) -> bool:
    try:
        return are_comparable(a, b)
    except InputError:
        return True  # whoever asks for its ranks hears why they cannot be read


def _is_readable(run: Run) -> bool:
    try:
        return bool(run.config)
    except InputError:
        return False


def average_over_seeds(reports: Sequence[Report], protocol: str, metric: str) -> Interval:
    """A system's mean over its seeds, with the standard error over users of each user's average."""
    return Interval.from_values(np.stack([report.user_values(protocol, metric) for report in reports]).mean(0))


# --- comparisons ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """A minus B on one metric. `means_a`, `means_b` are the means of the single training seeds."""

    protocol: str
    metric: str
    mean_a: float
    mean_b: float
    difference: float
    low: float
    high: float
    p: float
    users: int
    means_a: tuple[float, ...]
    means_b: tuple[float, ...]
    seeds_counted: bool


def compare_runs(a: Run | Sequence[Run], b: Run | Sequence[Run], protocol: str = "full", metric: str = METRIC) -> Comparison:
    """The system with the run or runs `a` minus the one with the run or runs `b`, on their stored ranks.

    Raises InputError if a run keeps none, if the runs of a side differ in more than their seed or repeat one, for an unknown
    metric, and if the sides were not measured on the same data, people and candidates.
    """
    if metric not in NAMES:
        raise InputError(f"unknown metric {metric!r}; known are {', '.join(NAMES)}")
    a, b = ([side] if isinstance(side, Run) else side for side in (a, b))
    for side in (a, b):
        _check_one_system(side)
    trained = (any(map(needs_training, a)), any(map(needs_training, b)))
    return compare_reports([run.report() for run in a], [run.report() for run in b], protocol, metric, trained)


def compare_reports(
    a: Sequence[Report],
    b: Sequence[Report],
    protocol: str = "full",
    metric: str = METRIC,
    trained: tuple[bool, bool] = (True, True),
) -> Comparison:
    """The training seeds of two systems; they need not be equally many. `trained`: does a seed move A, does one move B?

    Raises InputError if there are none, or they were not measured on the same data, split, people and candidates.
    """
    if not a or not b:
        raise InputError("a comparison needs at least one report on either side")
    for other in (*a[1:], *b):
        _check_same_evaluation(a[0], other)
    values_a = np.stack([report.user_values(protocol, metric) for report in a])  # [seeds, users]
    values_b = np.stack([report.user_values(protocol, metric) for report in b])
    return Comparison(
        protocol=protocol,
        metric=metric,
        mean_a=float(values_a.mean()),
        mean_b=float(values_b.mean()),
        users=values_a.shape[1],
        means_a=tuple(values_a.mean(1).tolist()),
        means_b=tuple(values_b.mean(1).tolist()),
        **paired_difference(values_a, values_b, trained)._asdict(),
    )


def noise_of_comparison(a: Sequence[Run], b: Sequence[Run], protocol: str = "full", metric: str = METRIC) -> NoiseParts:
    """Where the noise of a comparison comes from. Raises InputError as `compare_runs` and `NoiseParts.from_seeds` do."""
    compare_runs(a, b, protocol, metric)
    values_a, values_b = (np.stack([run.report().user_values(protocol, metric) for run in side]) for side in (a, b))
    return NoiseParts.from_seeds(values_a, values_b)


def _check_one_system(side: Sequence[Run]) -> None:
    seeds = [run.config.train.seed for run in side]
    names = ", ".join(run.name for run in side)
    if len({setup_key(run) for run in side}) > 1:
        raise InputError(f"{names} differ in more than their seed, so they are not one system")
    if len(set(seeds)) < len(seeds):
        raise InputError(f"{names} repeat a seed, which would count one training twice")


def _check_same_evaluation(a: Report, b: Report) -> None:
    for metric_name, one, other in (
        ("data", a.data_hash, b.data_hash),
        ("split", a.split, b.split),
        ("candidate seed", a.seed, b.seed),
    ):
        if one != other:
            raise InputError(f"reports on a different {metric_name} cannot be compared: {one} and {other}")
    if not np.array_equal(a.users, b.users):
        raise InputError(f"reports on different people cannot be compared: {len(a.users)} and {len(b.users)} users")


# --- claims -----------------------------------------------------------------------------------------------------------


class Measured(Protocol):
    """A difference with its interval and p: `Comparison`, `Contrast` and the rows of tables have them."""

    @property
    def difference(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def p(self) -> float: ...
    @property
    def seeds_counted(self) -> bool: ...


def find_winner(measured: Measured, adjusted_p: float | None = None) -> Winner:
    """Who may be called better, if anybody. An interval of NaN claims nothing.

    `adjusted_p`: its p after the adjustment for all that was asked together; None for a question that was asked alone."""
    if not measured.seeds_counted or (adjusted_p is not None and not adjusted_p < LEVEL):
        return ""
    return side_of_zero(measured.low, measured.high)


def side_of_zero(low: float, high: float) -> Winner:
    """On which side of 0 an interval lies, if it leaves it out. No claim yet: that is `find_winner`."""
    return "A" if low > 0 else "B" if high < 0 else ""


class Claim(NamedTuple):
    """A comparison that was one of several, its p after Holm's adjustment (NaN where nothing may be claimed anyway), and who may
    be called better."""

    comparison: Comparison | None  # None: one of the two keeps no ranks
    adjusted_p: float
    winner: Winner

    def claim_text(self, a: str, b: str) -> str:
        """`SASRec is better`, or why nothing is claimed."""
        if self.winner:
            return f"{a if self.winner == 'A' else b} is better"
        if self.comparison is None:
            return NO_RANKS
        return NO_CLAIM if self.comparison.seeds_counted else ONE_RUN


def make_claims(comparisons: Sequence[Comparison | None]) -> list[Claim]:
    """What may be claimed of comparisons that belong together, adjusted for as many as count the noise of training."""
    counted = [at for at, each in enumerate(comparisons) if each is not None and each.seeds_counted]
    adjusted = np.full(len(comparisons), math.nan)
    adjusted[counted] = adjust_by_holm(np.array([comparisons[at].p for at in counted]))  # type: ignore[union-attr]
    return [
        Claim(each, float(p), find_winner(each, p) if each is not None else "")
        for each, p in zip(comparisons, adjusted, strict=True)
    ]


CompareRuns = Callable[[Sequence[Run], Sequence[Run], str], Comparison | None]


def compare_if_ranked(a: Sequence[Run], b: Sequence[Run], protocol: str) -> Comparison | None:
    """`compare_runs`, or None where a run keeps no ranks."""
    return compare_runs(a, b, protocol) if all(run.has_report for run in (*a, *b)) else None


# --- in words ---------------------------------------------------------------------------------------------------------


def claim_sentence(comparison: Comparison, a: str, b: str) -> str:
    """What may be claimed about systems called `a` and `b`, asked alone, in one sentence."""
    winner = find_winner(comparison)
    if not winner:
        unknown = f"on these {comparison.users:,} people {NO_CLAIM}."
        return unknown[0].upper() + unknown[1:] if comparison.seeds_counted else f"{ONCE_SENTENCE}: {unknown}"
    return f"{a if winner == 'A' else b} is better than {b if winner == 'A' else a} on these {comparison.users:,} people."


def numbers_text(measured: Measured) -> str:
    """`+0.0192 (95% +0.0103 to +0.0286, p = 0.0002)`, and that training noise is not in it where it is not."""
    note = "" if measured.seeds_counted else f"; {ONE_RUN}"
    sign = "" if measured.p < SMALLEST_P else "= "
    return f"{measured.difference:+.4f} (95% {measured.low:+.4f} to {measured.high:+.4f}, p {sign}{p_text(measured.p)}{note})"


def p_text(p: float) -> str:
    """A p in four places; where it has more zeros, `< 0.0001`: no model of the noise is so exact."""
    return f"< {SMALLEST_P}" if p < SMALLEST_P else f"{p:.4f}"
