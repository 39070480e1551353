"""What was measured on what, and who may be called better, for every screen that says so: from the ranks that runs keep.

Every comparison is kept by itself, so that one more run asks only for its own."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from elastic_core import files
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.results import baselines, claims, personal_gain, table
from elastic_core.results.claims import Question, Verdict
from elastic_core.results.compare import Comparison, compare_runs
from elastic_core.results.reproduce import System
from elastic_core.results.systems import DataSet, data_sets
from elastic_core.runs import Run
from elastic_core.services.evidence import ownership
from pages.components import cache
from pages.components.cache import cached_data, cached_resource, path_key, run_key


def measured_data(root: Path) -> tuple[list[DataSet], list[files.UnreadableFolder]]:
    """Data sets with what was measured on them, and runs whose ranks cannot be read."""
    return _data_sets(cache.ranked_runs(root))


@cached_resource(8)
def _data_sets(runs: list[Run]) -> tuple[list[DataSet], list[files.UnreadableFolder]]:
    return data_sets(runs)


def cached_leaderboard(data_set: DataSet, protocol: str) -> pd.DataFrame:
    return _compute_leaderboard(*_runs_and_cards(data_set), protocol, data_set)


@cached_data(32, "Holding every system against the baseline …")
def _compute_leaderboard(runs: list[Run], cards: list[Path], protocol: str, _data_set: DataSet) -> pd.DataFrame:
    return table.leaderboard(_data_set, protocol, compare_systems)


def cached_differences(data_set: DataSet, ours: System, protocol: str) -> pd.DataFrame:
    return _compute_differences(*_runs_and_cards(data_set), ours, protocol, data_set)


@cached_data(64, "Comparing with every other system …")
def _compute_differences(runs: list[Run], cards: list[Path], ours: System, protocol: str, _data_set: DataSet) -> pd.DataFrame:
    return table.difference_table(_data_set, ours, protocol, compare_systems)


def _runs_and_cards(data_set: DataSet) -> tuple[list[Run], list[Path]]:
    """What tells a data set from others: its runs, and the baselines scored beside them, which come after the ranks."""
    runs = [run for runs in data_set.systems.values() for run in runs]
    return runs, [run.path / baselines.FILE for run in runs]


def answer_questions(measured: Sequence[DataSet]) -> Iterator[Verdict]:
    """The claims that paired differences answer, each when it is known."""
    known = str(
        [(*map(run_key, runs), *map(path_key, cards)) for runs, cards in map(_runs_and_cards, measured)]
    )  # once for all questions
    for question in claims.QUESTIONS:
        yield _answer_question(question, known, measured)


@cached_resource(32)
def _answer_question(question: Question, known: str, _measured: Sequence[DataSet]) -> Verdict:
    return claims.answer_question(question, _measured, cached_differences)


def compare_systems(a: Sequence[Run], b: Sequence[Run], protocol: str) -> Comparison | None:
    """The system of the runs `a` minus that of the runs `b`; None where the two were not measured on the same users and
    candidates."""
    return _compare_run_lists(list(a), list(b), protocol)


@cached_data(1024)
def _compare_run_lists(a: list[Run], b: list[Run], protocol: str) -> Comparison | None:
    with suppress(InputError):
        return compare_runs(a, b, protocol)
    return None


def measure_personal_gains(measured: Sequence[DataSet], root: Path) -> pd.DataFrame:
    """Personal minus shared experts, a row a pair of systems (results/personal_gain.py)."""
    return _compute_gains(_all_runs(measured), root / personal_gain.FILE, measured)


@cached_data(4, "Comparing personal with shared experts …")
def _compute_gains(runs: list[Run], file: Path, _measured: Sequence[DataSet]) -> pd.DataFrame:
    return personal_gain.personal_gains(_measured, personal_gain.read_interest_counts(file.parent), compare_systems)


def measure_ownership(measured: Sequence[DataSet], root: Path) -> pd.DataFrame:
    """How often a first suggestion belongs to one expert, a row a system (services/evidence/ownership.py)."""
    return _compute_ownership(_all_runs(measured), root / ownership.FILE, measured)


@cached_data(4, "Comparing settings …")
def _compute_ownership(runs: list[Run], file: Path, _measured: Sequence[DataSet]) -> pd.DataFrame:
    return ownership.ownership_table(_measured, ownership.read_ownership(file.parent), compare_systems)


def _all_runs(measured: Sequence[DataSet]) -> list[Run]:
    return [run for data_set in measured for runs in data_set.systems.values() for run in runs]


def compare_by_protocol(a: Sequence[Run], b: Sequence[Run]) -> list[Comparison]:
    """The same under every protocol that both were ranked under."""
    return [each for protocol in PROTOCOLS if (each := compare_systems(a, b, protocol)) is not None]


@cached_data(16)
def random_ndcg(data: Dataset, protocol: str) -> float | None:
    """NDCG@10 of a random order of everybody's candidates, where it is known exactly."""
    return baselines.random_ndcg(data, protocol) if protocol in (baselines.ONLY_UNSEEN, baselines.WITH_SEEN) else None
