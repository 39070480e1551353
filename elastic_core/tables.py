"""Markdown tables of what the named runs measured on the test split, from the ranks they keep (nobody else's numbers).

`results_table` is for any of them, `claims` what may be said of one against others; the README's own tables are readme.py's.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from elastic_core.comparisons import average, comparable, compare_runs, footing
from elastic_core.core.evaluate import PROTOCOLS
from elastic_core.data import Dataset
from elastic_core.evaluation import verdict
from elastic_core.evaluation.compare import Comparison, holm
from elastic_core.memory import gaps
from elastic_core.reproduce import PlannedRun, System, run_of, run_status
from elastic_core.runs import Run
from elastic_core.runs.ranks import Report

METRICS = ("NDCG@10", "HR@10")
NO_RANKS = "keeps no ranks of its test"
Systems = dict[System, list[Run]]  # runs that differ only in their seed


def results_table(chosen: Iterable[PlannedRun], root: Path, protocol: str = "full") -> str:
    """Markdown, a section per data set, with 95% intervals over people; `protocol` may be `all` (NDCG@10 under each).

    With several seeds the mean is over people and seeds, the interval that of the people's averages, and the seeds' own spread
    (standard deviation) stands beside it.
    """
    found = finished(chosen, root)
    return "\n\n".join(_data_section(data, systems, protocol) for data, systems in found.items()) or "nothing is finished yet"


def finished(chosen: Iterable[PlannedRun], root: Path) -> dict[str, Systems]:
    """Finished runs by data and system. What was measured on other events, people or candidates than the first of its data stands
    apart, under a name that says so."""
    groups: dict[str, Systems] = {}
    first: dict[str, Run] = {}
    for row in chosen:
        run = run_of(row, root)
        if run is not None and run_status(row, run) == "finished":
            alike = comparable(run, first.setdefault(row.data, run))
            data = row.data if alike else f"{row.data} ({', '.join(map(str, footing(run)))})"
            groups.setdefault(data, {}).setdefault(row.system, []).append(run)
    return groups


def _data_section(data: str, systems: Systems, protocol: str) -> str:
    some = next(iter(systems.values()))[0]
    start, test = some.last("start"), some.last("test")
    if protocol == "all":
        measured = [(name, METRICS[0]) for name in PROTOCOLS]
        heads = [f"{name} {metric}" for name, metric in measured]
        what = "all protocols"
    else:
        measured, heads, what = [(protocol, metric) for metric in METRICS], list(METRICS), f"protocol {protocol}"
    heads = ["system", "seeds", *(f"{head} ± 95%" for head in heads), "spread of seeds", "parameters", "experts used", "device"]
    title = f"{start.get('data', data)}, data {start.get('data_hash', '?')}, test split, {what}, {test.get('users', 0):,} people"
    return f"{title}\n\n{markdown(heads, [_cells(system, runs, measured) for system, runs in systems.items()])}"


def _cells(system: System, runs: list[Run], measured: list[tuple[str, str]]) -> list[str]:
    tests, starts = [run.last("test") for run in runs], [run.last("start") for run in runs]
    used = [test["used"] for test in tests if "used" in test]
    devices = sorted({str(start.get("device", "?")) for start in starts})
    return [
        str(system),
        str(len(runs)),
        *means(runs, measured),
        spread(runs, *measured[0]),
        f"{starts[0].get('parameters', 0):,}",
        f"{statistics.fmean(used):.0%}" if used else "",
        ", ".join(devices),
    ]


def means(runs: list[Run], measured: Sequence[tuple[str, str]]) -> list[str]:
    """`0.1282 ± 0.0168` for each protocol and metric, or why not."""
    reports = reports_of(runs)
    if reports is None:
        return [NO_RANKS] + [""] * (len(measured) - 1)
    found = [average(reports, *what) for what in measured]
    return [f"{each.mean:.4f} ± {1.96 * each.error:.4f}" for each in found]


def spread(runs: list[Run], protocol: str, metric: str) -> str:
    each = [report.metrics[protocol][metric] for report in reports_of(runs) or []]
    return f"{statistics.stdev(each):.4f}" if len(each) > 1 else ""


def reports_of(runs: list[Run]) -> list[Report] | None:
    return [run.report() for run in runs] if all(run.has_report for run in runs) else None


def markdown(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *lines))


class Claim(NamedTuple):
    """One system against a peer: what was found, its p after Holm's adjustment (NaN where nothing may be claimed anyway), and who
    may be called better."""

    name: str
    runs: list[Run]
    found: Comparison | None  # None: one of them keeps no ranks
    adjusted: float
    who: Literal["A", "B", ""]

    @property
    def words(self) -> str:
        if self.found is None:
            return NO_RANKS
        return verdict.NO_CLAIM if self.found.seeds_counted else verdict.ONE_RUN


Asked = Callable[[Sequence[Run], Sequence[Run], str], Comparison | None]


def claims(runs: list[Run], peers: list[tuple[str, list[Run]]], protocol: str, compare: Asked = compare_runs) -> list[Claim]:
    """A system against each of its peers (names and runs) under one protocol, NDCG@10, adjusted for how many there are."""
    found = [compare(runs, of, protocol) if all(run.has_report for run in (*runs, *of)) else None for _, of in peers]
    counted = [i for i, each in enumerate(found) if each is not None and each.seeds_counted]
    adjusted = np.full(len(found), np.nan)
    adjusted[counted] = holm(np.array([each.p for each in found if each is not None and each.seeds_counted]))
    who = [verdict.better(each, p) if each is not None else "" for each, p in zip(found, adjusted, strict=True)]
    return [Claim(*pair, each, float(p), w) for pair, each, p, w in zip(peers, found, adjusted, who, strict=True)]


def remembered_by_systems(systems: Mapping[str, Sequence[Run]], world: Dataset) -> pd.DataFrame:
    """What systems remember of a planted world (`gaps.remembered_shares`), the mean over their seeds. Without those of which
    a run keeps no ranks, or was asked of other events, or not of everybody."""
    asked = {name: [run.report() for run in runs] for name, runs in systems.items() if all(run.has_report for run in runs)}
    values = {
        name: np.mean([report.values(gaps.PROTOCOL, gaps.METRIC) for report in reports], axis=0)
        for name, reports in asked.items()
        if all(gaps.covers(report, world) for report in reports)
    }
    return gaps.remembered_shares(values, world)
