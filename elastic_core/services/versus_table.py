"""All runs on the same data side by side, from their own metrics files: accuracy with intervals, size, and cost."""

from pathlib import Path
from typing import Any

import pandas as pd

from elastic_core.bench.latency import Row
from elastic_core.bench.store import read_rows
from elastic_core.candidates import PROTOCOLS
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.metrics import NAMES
from elastic_core.runs import Run
from elastic_core.services.run_table import system
from elastic_core.services.versus import Judged, properties

Z = 1.96
QUANTITIES = {
    "NDCG@10": "NDCG@10",
    "HR@10": "HR@10",
    "MRR@10": "MRR@10",
    "parameters": "parameters",
    "epoch": "seconds per epoch of training",
    "training": "seconds of training",
    "scoring": "milliseconds per person to score, measured here",
    "benchmark": "milliseconds per history in the shipped benchmark",
    "coverage": "coverage: share of the catalogue in anybody’s ten",
    "popularity": "popularity: training events of a recommended item",
}
LISTS = ("coverage", "popularity", "scoring")  # known only for runs that were judged


def comparable(runs: list[Run], dataset: Dataset) -> list[Run]:
    """Runs that were tested on exactly this data, the one with the best NDCG@10 first."""
    found = [(run, _full(run)) for run in runs if _on(run, dataset)]
    return [run for run, _ in sorted(found, key=lambda pair: (-pair[1], pair[0].name))]


def _on(run: Run, dataset: Dataset) -> bool:
    try:
        start, test = run.last("start") or {}, run.last("test") or {}
        return bool(run.config) and start.get("data_hash") == dataset.hash and "full" in test.get("protocols", {})
    except InputError:
        return False


def _full(run: Run) -> float:
    return float((run.last("test") or {})["protocols"]["full"]["NDCG@10"])


def partner(runs: list[Run], chosen: Run) -> Run | None:
    """Whom to compare with first: the best run of another model."""
    others = [run for run in runs if run.name != chosen.name]
    return next((run for run in others if run.config.model.name != chosen.config.model.name), next(iter(others), None))


def metrics(runs: list[Run], metric: str) -> pd.DataFrame:
    """One row a run and protocol: mean, 95 % interval over people, people. Sampled protocols stand beside `full`, not instead."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        test = run.last("test") or {}
        for protocol in PROTOCOLS:
            mean = test.get("protocols", {}).get(protocol, {}).get(metric)
            if mean is None:
                continue
            error = test.get("errors", {}).get(protocol, {}).get(metric, float("nan"))
            rows.append(
                {
                    "run": run.name, "system": system(run.config), "protocol": protocol, "metric": metric, "mean": mean,
                    "low": mean - Z * error, "high": mean + Z * error, "people": test.get("users", 0),
                }
            )  # fmt: skip
    return pd.DataFrame(rows, columns=["run", "system", "protocol", "metric", "mean", "low", "high", "people"])


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """The same for reading: one row a run, one column a protocol, `0.0921 ± 0.0110`."""
    text = table["mean"].map("{:.4f}".format) + " ± " + ((table["high"] - table["mean"]).map("{:.4f}".format))
    cells = table.assign(text=text).pivot_table(
        index=["run", "system"], columns="protocol", values="text", aggfunc="first", sort=False
    )
    return cells.reindex(columns=[p for p in PROTOCOLS if p in cells.columns]).reset_index().rename_axis(columns=None)


def quantities(runs: list[Run], protocol: str, judged: dict[str, Judged], dataset: Dataset, latencies: list[Row]) -> pd.DataFrame:
    """One row a run, one column a quantity of `QUANTITIES`; NaN where it was not measured."""
    return pd.DataFrame([_quantities(run, protocol, judged.get(run.name), dataset, latencies) for run in runs])


def _quantities(run: Run, protocol: str, judged: Judged | None, dataset: Dataset, latencies: list[Row]) -> dict[str, Any]:
    start, test, end = run.last("start") or {}, run.last("test") or {}, run.last("end") or {}
    measured, errors = test["protocols"][protocol], test.get("errors", {}).get(protocol, {})
    epochs, nothing = len(run.events("epoch")), float("nan")
    row: dict[str, Any] = {"run": run.name, "system": system(run.config), "device": start.get("device", "")}
    for name in [key for key in QUANTITIES if key in NAMES]:
        row |= {name: measured[name], f"{name} ±": Z * errors.get(name, nothing)}
    lists = properties(judged, dataset) if judged else None
    return row | {
        "parameters": start.get("parameters", nothing),
        "epoch": end["seconds"] / epochs if epochs and "seconds" in end else nothing,
        "training": end.get("seconds", nothing),
        "scoring": 1e3 * judged.seconds / len(judged.places) if judged else nothing,
        "benchmark": benchmark(run, latencies),
        "coverage": lists.coverage if lists else nothing,
        "popularity": lists.popularity if lists else nothing,
    }


def benchmark(run: Run, latencies: list[Row]) -> float:
    """Milliseconds per history of this run's kind of model: last row, forward, at the measured length nearest to its own,
    and nearest to its k and √K where it has them. Not the run itself: random weights, another catalogue."""
    model = run.config.model
    kind = {"two-way": "elastic-two-way", "causal": "elastic"}.get(getattr(model, "form", ""), model.name)
    if model.name == "sasrec":
        kind = "sasrec-fused" if getattr(model, "fused", True) else "sasrec-eager"
    rows = [r for r in latencies if (r.system, r.rows, r.direction, r.width) == (kind, "last", "forward", model.width)]
    if not rows:
        return float("nan")
    k = getattr(model, "k", 0)
    near = min(rows, key=lambda r: (abs(r.length - model.length), abs(r.k - k), r.threads, r.date))
    return 1e3 * near.median / near.batch


def shipped_latencies(checkpoints: Path) -> list[Row]:
    """The benchmark rows that came with the project; none if they cannot be read."""
    try:
        return read_rows(checkpoints / "benchmarks" / "latency.csv")
    except InputError:
        return []
