"""What was measured on what, and who may be called better: for every screen that says so, from the ranks that runs keep.

Every comparison is kept by itself, so that one more run asks only for its own."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from elastic_core import disk
from elastic_core.comparisons import compare_runs
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.evaluation.compare import Comparison
from elastic_core.reproduce import System
from elastic_core.runs import Run
from elastic_core.services.evidence import judging, systems, verdicts
from elastic_core.services.evidence.systems import Group
from elastic_core.services.evidence.verdicts import Pair, Verdict
from elastic_core.services.train import beside
from pages.kit import cache
from pages.kit.kept import copied, kept, stamped


def groups(root: Path) -> tuple[list[Group], list[disk.Unreadable]]:
    """Data sets with what was measured on them, and runs whose ranks cannot be read."""
    return _groups(cache.scored(root))


@kept(8)
def _groups(runs: list[Run]) -> tuple[list[Group], list[disk.Unreadable]]:
    return systems.groups(runs)


def standings(group: Group, protocol: str) -> pd.DataFrame:
    return _standings(*_told(group), protocol, group)


@copied(32, "Holding every system against the baseline …")
def _standings(runs: list[Run], cards: str, protocol: str, _group: Group) -> pd.DataFrame:
    return judging.standings(_group, protocol, compare)


def fitting(group: Group) -> str:
    """The protocol in which these data are judged."""
    return _fitting(*_told(group), group)


@copied(32)
def _fitting(runs: list[Run], cards: str, _group: Group) -> str:
    return judging.fitting(_group)


def _told(group: Group) -> tuple[list[Run], str]:
    """What tells a group from others: its runs, and their result cards, which come after the ranks."""
    runs = [run for runs in group.systems.values() for run in runs]
    return runs, str([disk.stamp(run.path / beside.FILE) for run in runs])


def differences(group: Group, ours: System, protocol: str) -> pd.DataFrame:
    return _differences(*_told(group), ours, protocol, group)


@copied(64, "Comparing with every other system …")
def _differences(runs: list[Run], cards: str, ours: System, protocol: str, _group: Group) -> pd.DataFrame:
    return judging.system_differences(_group, ours, protocol, compare)


def claims(groups: Sequence[Group]) -> Iterator[Verdict]:
    """The claims that paired differences answer, each when it is known."""
    known = "".join(f"{stamped(runs)}{cards}" for runs, cards in map(_told, groups))  # looked at once for all of them
    for pair in verdicts.PAIRS:
        yield _claim(pair, known, groups)


@kept(32)
def _claim(pair: Pair, known: str, _groups: Sequence[Group]) -> Verdict:
    return verdicts.compared(pair, _groups, differences)


def compared(a: Sequence[Run], b: Sequence[Run], protocol: str, metric: str = "NDCG@10") -> Comparison:
    """The system of the runs `a` minus that of `b`, with interval and p. Raises InputError if they cannot be compared."""
    found = _compared(list(a), list(b), protocol, metric)
    if isinstance(found, str):
        raise InputError(found)
    return found


def compare(a: Sequence[Run], b: Sequence[Run], protocol: str) -> Comparison | None:
    """None where the two were not measured on the same people and candidates."""
    with suppress(InputError):
        return compared(a, b, protocol)
    return None


@copied(1024)
def _compared(a: list[Run], b: list[Run], protocol: str, metric: str) -> Comparison | str:
    try:
        return compare_runs(a, b, protocol, metric)
    except InputError as problem:
        return str(problem)


@copied(16)
def chance(data: Dataset, protocol: str) -> float | None:
    """NDCG@10 of a random order of everybody's candidates, where it is known exactly."""
    return beside.random_ndcg(data, protocol) if protocol in (beside.PROTOCOL, beside.SEEN) else None
