"""Which systems were measured on which data: run folders and the ranks they keep, nothing else is opened.

Any run that is not named is another training seed of a named system, if nothing but its seed differs, or a system of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elastic_core.comparisons import essence, footing, needs_training
from elastic_core.data.source_catalog import PLANTED
from elastic_core.disk import Unreadable
from elastic_core.errors import InputError
from elastic_core.labels import data_called, system_order
from elastic_core.reproduce import PlannedRun, System, rows, run_status
from elastic_core.runs import Run
from elastic_core.tables import Systems

MADE_UP, FILMS = "made-up worlds", "real films"


@dataclass
class Group:
    """What was tested on one data set. `key` is what an address calls it, `title` people, `hash` what its events are."""

    key: str
    title: str
    hash: str
    systems: Systems = field(default_factory=dict)
    people: int = 0

    @property
    def kind(self) -> str:
        """What sort of data it is, where people are told: made up, real films, or by its name."""
        source = next(iter(self.systems.values()))[0].config.data.source
        return MADE_UP if source == PLANTED else FILMS if source.startswith("ml-") else self.title


def groups(runs: Sequence[Run]) -> tuple[list[Group], list[Unreadable]]:
    """Data sets with their systems in the order of the tables, the one with most systems first; and runs whose ranks cannot be
    read. Runs that keep no ranks are in neither."""
    found, faults = dict[tuple[object, ...], Group](), list[Unreadable]()
    known = {row.name: row for row in rows()}
    for run in sorted(runs, key=lambda run: (run.name not in known, run.name)):
        if not run.has_report:
            continue
        try:
            report, row = run.report(), known.get(run.name)
            row = row if row is not None and run_status(row, run) == "finished" else None
            group = found.setdefault(footing(run), Group("", "", report.data_hash))
            _place_run(group, run, row)
        except InputError as error:
            faults.append(Unreadable(run.path, str(error)))
            continue
        group.people = len(report.users)
        if not group.title:
            group.title = data_called(run)
            group.key = row.data if row is not None else report.data_hash
            if group.key in [other.key for other in found.values() if other is not group]:
                group.key = "-".join(map(str, footing(run)))  # the same name, other events, people or candidates
    for group in found.values():
        group.systems = dict(sorted(group.systems.items(), key=lambda each: system_order(each[0])))
    titles = [group.title for group in found.values()]
    for group in found.values():
        group.title += f" ({group.key})" if titles.count(group.title) > 1 else ""
    return sorted(found.values(), key=lambda group: (-len(group.systems), group.key)), faults


def _place_run(group: Group, run: Run, row: PlannedRun | None) -> None:
    """Beside the runs that differ from it in nothing but the seed, or by itself. A seed counts once."""
    if row is not None:
        group.systems.setdefault(row.system, []).append(run)
        return
    mine = essence(run)
    for others in group.systems.values():
        if essence(others[0]) == mine:
            if needs_training(run) and run.config.train.seed not in {other.config.train.seed for other in others}:
                others.append(run)
            return
    group.systems[System(run.config.model.name, own=run.name)] = [run]


def of_run(groups: Sequence[Group], path: Path) -> tuple[Group, System] | None:
    """Where a run stands: its data and its system."""
    for group in groups:
        for system, runs in group.systems.items():
            if any(run.path == path for run in runs):
                return group, system
    return None
