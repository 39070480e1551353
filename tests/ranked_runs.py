"""Finished runs of the plan whose ranks are drawn, so that who is better is known."""

import dataclasses
from pathlib import Path

import numpy as np

from elastic_core.core.candidates import PROTOCOLS
from elastic_core.core.evaluate import Ranks
from elastic_core.data import load
from elastic_core.results.reproduce import PlannedRun, planned_runs
from elastic_core.runs import CONFIG, Run
from elastic_core.runs.ranks import Report
from elastic_core.services.evidence import meaning

PLAN = {row.name: row for row in planned_runs()}


def write_ranked_run(root: Path, row: PlannedRun, good: float, seed: int) -> Run:
    """A finished run of a row whose users are ranked by chance: the larger `good`, the better."""
    run, data = Run(row.run_folder(root)), load(row.config.data)
    run.write_start(row.config, data)
    run.append_event({"event": "start", "data": data.label, "data_hash": data.hash, "parameters": 1})
    rng, users = np.random.default_rng(seed), data.histories.n_users
    ranks = {
        protocol: Ranks((rng.geometric(good, users) - 1).astype(np.int32), np.zeros(users, np.int32)) for protocol in PROTOCOLS
    }
    report = Report(ranks, np.arange(users), "test", data.hash, 0, 1.0, "c0ffee")
    run.save_report(report)
    run.append_event({"event": "test", "users": users, "protocols": report.metrics, "errors": report.errors})
    run.append_event({"event": "end", "reason": "made up", "seconds": 1.0})
    return run


def write_ranked_runs(root: Path, good: dict[str, float]) -> None:
    """A run of the plan for each name."""
    for seed, (name, value) in enumerate(good.items()):
        write_ranked_run(root, PLAN[name], value, seed)


def runs_below(root: Path) -> list[Run]:
    return [Run(path.parent) for path in root.glob(f"*/{CONFIG}")]


def meaning_row(run: Run, **values: float) -> meaning.MeaningRow:
    """What a memory answered, all of it 0.1 but for `values`."""
    usual = {field.name: 0.1 for field in dataclasses.fields(meaning.MeaningRow)}
    texts = {"run": run.name, "weights": meaning.weights_fingerprint(run), "commit": "abc", "users": 1_000, "events": 5_000}
    return meaning.MeaningRow(**{**usual, **texts, **values})
