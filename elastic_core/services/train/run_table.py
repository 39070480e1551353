"""Runs side by side, from their logs and the ranks of their tests: one row a run, one row an epoch."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from elastic_core import models
from elastic_core.core.config import ModelConfig
from elastic_core.errors import InputError
from elastic_core.results.statistics import wilson_interval
from elastic_core.run_config import RunConfig
from elastic_core.runs import Run
from elastic_core.services.person.inspect import ItemWords
from elastic_core.services.train import presets

COLUMNS = ("run", "model", "data", "NDCG@10", "people", "best valid", "epochs", "used experts", "parameters", "seconds", "ended")
CURVES = ("run", "epoch", "seconds", "loss", "NDCG@10", "used", "entropy")


def runs_table(runs: list[Run], row: Callable[[Run], dict[str, Any]] | None = None) -> pd.DataFrame:
    """`NDCG@10`: the held-out test item under the protocol that fits the data, mean over `people`. Unreadable runs are left out.

    `row` is `run_row`, or something that remembers what it said."""
    rows = []
    for run in runs:
        try:
            rows.append((row or run_row)(run))
        except (InputError, KeyError, TypeError):
            continue
    return pd.DataFrame(rows, columns=list(COLUMNS))


def training_curves(runs: list[Run]) -> pd.DataFrame:
    """Loss, validation NDCG@10 and use of the memory after each epoch; NaN where a model has no memory."""
    rows = [
        (run.name, row["epoch"], row["seconds"], row["loss"], row["valid"]["NDCG@10"], row.get("used"), row.get("entropy"))
        for run in runs
        for row in run.events("epoch")
    ]
    return pd.DataFrame(rows, columns=list(CURVES)).astype(dict.fromkeys(CURVES[2:], float))


def system_name(config: RunConfig) -> str:
    """The system's name as people know it."""
    return _system_name(config.model, tuple(models.model_names()))


@functools.lru_cache(maxsize=1024)
def _system_name(model: ModelConfig, known: tuple[str, ...]) -> str:
    for variant in reversed(presets.list_variants()):  # the special ones before the plain one
        if variant.model == model.name and all(getattr(model, n) == v for n, v in variant.settings.items()):
            return variant.label
    return model.name


def hit_line(test: Mapping[str, Any] | None, words: ItemWords, stay: bool = False) -> str | None:
    """For how many people of the test the ten hold what came next, with its interval; None for a run that was not tested.

    Do items met before `stay` in the running?"""
    rate = (test or {}).get("protocols", {}).get("full-seen" if stay else "full", {}).get("HR@10")
    if test is None or rate is None:
        return None
    n_users, interval = int(test.get("users", 0)), ""
    if n_users:
        low, high = wilson_interval(rate, n_users)
        interval = f" (95% interval {low:.0%} to {high:.0%})"
    return f"For {rate:.0%} of {n_users:,} people, the true next {words.singular} is among the ten{interval}."


def run_row(run: Run) -> dict[str, Any]:
    """A run's row. Raises InputError, KeyError or TypeError for a run that cannot be read."""
    start, test, end = run.last_event("start") or {}, run.last_event("test") or {}, run.last_event("end")
    epochs = run.events("epoch")
    last = epochs[-1] if epochs else {}
    logged = test.get("protocols", {}).get(run.protocol, {}).get("NDCG@10")  # of a run that was tested before ranks were kept
    return {
        "run": run.name,
        "model": system_name(run.config),
        "data": start.get("data", run.config.data.source),
        "NDCG@10": run.report().mean_interval(run.protocol, "NDCG@10").mean if run.has_report else logged,
        "people": test.get("users"),
        "best valid": max((row["valid"]["NDCG@10"] for row in epochs), default=None),
        "epochs": len(epochs),
        "used experts": test.get("used", last.get("used")),
        "parameters": start.get("parameters"),
        "seconds": end["seconds"] if end else last.get("seconds"),
        "ended": end["reason"] if end and test else "not finished",
    }
