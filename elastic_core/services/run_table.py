"""Runs side by side, from their metrics files alone: one row a run, one row an epoch."""

from typing import Any

import pandas as pd

from elastic_core.config import RunConfig
from elastic_core.errors import InputError
from elastic_core.runs import Run
from elastic_core.services import presets

COLUMNS = ("run", "model", "data", "NDCG@10", "people", "best valid", "epochs", "used experts", "parameters", "seconds", "ended")
CURVES = ("run", "epoch", "seconds", "loss", "NDCG@10", "used", "entropy")


def runs_table(runs: list[Run]) -> pd.DataFrame:
    """`NDCG@10`: the held-out test item against all unseen items, mean over `people`. Unreadable runs are left out."""
    rows = []
    for run in runs:
        try:
            rows.append(_row(run))
        except (InputError, KeyError, TypeError):
            continue
    return pd.DataFrame(rows, columns=list(COLUMNS))


def curves(runs: list[Run]) -> pd.DataFrame:
    """Loss, validation NDCG@10 and use of the memory after each epoch; NaN where a model has no memory."""
    rows = [
        (run.name, row["epoch"], row["seconds"], row["loss"], row["valid"]["NDCG@10"], row.get("used"), row.get("entropy"))
        for run in runs
        for row in run.events("epoch")
    ]
    return pd.DataFrame(rows, columns=list(CURVES)).astype(dict.fromkeys(CURVES[2:], float))


def metrics_csv(runs: list[Run]) -> str:
    """The curves as text for a download."""
    return curves(runs).to_csv(index=False)


def system(config: RunConfig) -> str:
    """The system's name as people know it."""
    for variant in reversed(presets.variants()):  # the special ones before the plain one
        same = all(getattr(config.model, name) == value for name, value in variant.settings.items())
        if variant.model == config.model.name and same:
            return variant.label
    return config.model.name


def _row(run: Run) -> dict[str, Any]:
    start, test, end = run.last("start") or {}, run.last("test") or {}, run.last("end")
    epochs = run.events("epoch")
    last = epochs[-1] if epochs else {}
    return {
        "run": run.name,
        "model": system(run.config),
        "data": start.get("data", run.config.data.source),
        "NDCG@10": test.get("protocols", {}).get("full", {}).get("NDCG@10"),
        "people": test.get("users"),
        "best valid": max((row["valid"]["NDCG@10"] for row in epochs), default=None),
        "epochs": len(epochs),
        "used experts": test.get("used", last.get("used")),
        "parameters": start.get("parameters"),
        "seconds": end["seconds"] if end else last.get("seconds"),
        "ended": end["reason"] if end and test else "not finished",
    }
