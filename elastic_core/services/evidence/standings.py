"""All runs on the same data side by side: accuracy from the ranks they keep, with intervals; size and cost from their logs."""

import statistics
from collections.abc import Sequence
from contextlib import suppress

import pandas as pd

from elastic_core import models
from elastic_core.comparisons import footing, needs_training, system
from elastic_core.core.evaluate import NAMES, SEED
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.evaluation import verdict
from elastic_core.evaluation.compare import Comparison
from elastic_core.runs import Run
from elastic_core.services.evidence.versus import Lists, properties
from elastic_core.services.train import run_table

Z = 1.96
ACROSS = ("protocol", "metric", "n", "A", "B", "difference", "low", "high", "p", "seeds_counted", "who")
QUANTITIES = {
    "NDCG@10": "NDCG@10",
    "HR@10": "HR@10",
    "MRR@10": "MRR@10",
    "parameters": "parameters",
    "seconds per epoch": "seconds per epoch of training, by the clock of a machine that did other things too",
    "training seconds": "seconds of training, by the clock of a machine that did other things too",
    "scoring time": "milliseconds of the processor per person to score, measured here",
    "coverage": "coverage: share of the catalogue in anybody’s ten",
    "popularity": "popularity: training events of a recommended item",
}


def comparable(runs: list[Run], dataset: Dataset) -> list[Run]:
    """Runs that keep the ranks of a test on exactly this data and the usual candidates, the one with the best NDCG@10 first."""
    found = []
    for run in runs:
        with suppress(InputError):
            if run.config and run.has_report and footing(run) == (dataset.hash, SEED, dataset.histories.n_users):
                found.append((-run.report().interval("full", "NDCG@10").mean, run.name, run))
    return [run for _, _, run in sorted(found, key=lambda each: each[:2])]


def partner(runs: list[Run], chosen: Run) -> Run | None:
    """Whom to compare with first: another trained model of the same recipe, by its name; else another trained model, another
    model, any. Among equals the first of `runs`."""
    model = chosen.config.model.name

    def far(run: Run) -> tuple[bool, bool, bool]:
        other = run.config.model.name
        twin = run.name == chosen.name.replace(model, other)
        return other == model, not models.model_class(other).objective, not twin

    return min((run for run in runs if run.name != chosen.name), key=far, default=None)


def across(found: Sequence[Comparison]) -> pd.DataFrame:
    """One row a protocol: A, B, A - B with its 95% interval, p, people, whether training noise is counted, and who is better."""
    rows = [vars(c) | {"n": c.users, "A": c.mean_a, "B": c.mean_b, "who": verdict.better(c)} for c in found]
    return pd.DataFrame(rows, columns=list(ACROSS))


def seeds(runs: list[Run], run: Run, protocol: str, metric: str) -> str:
    """What other training seeds of the same configuration reached, in one sentence that goes on after its name."""
    if not needs_training(run):
        return "needs no training, so no seed moves it."
    values = [twin.report().interval(protocol, metric).mean for twin in system(run, runs)]
    if len(values) < 2:
        return "was trained once; another seed may land elsewhere."
    numbers = ", ".join(f"{value:.4f}" for value in values)
    return f"with {len(values)} training seeds: {numbers} (standard deviation {statistics.stdev(values):.4f})."


def quantities(runs: list[Run], protocol: str, listed: dict[str, Lists], dataset: Dataset) -> pd.DataFrame:
    """One row a run, one column a quantity of `QUANTITIES`; NaN where it was not measured."""
    rows = []
    for run in runs:
        start, seconds, epochs = run.last("start") or {}, (run.last("end") or {}).get("seconds"), len(run.events("epoch"))
        row = {"run": run.name, "system": run_table.system(run.config), "device": start.get("device", "")}
        for name in [key for key in QUANTITIES if key in NAMES]:
            found = run.report().interval(protocol, name)
            row |= {name: found.mean, f"{name} ±": Z * found.error}
        row |= {"parameters": start.get("parameters"), "training seconds": seconds}
        if epochs and seconds is not None:
            row["seconds per epoch"] = seconds / epochs
        if (lists := listed.get(run.name)) is not None:
            row |= properties(lists.items, dataset)._asdict() | {"scoring time": 1e3 * lists.seconds / len(lists.items)}
        rows.append(row)
    measured = [column for name in QUANTITIES for column in ([name, f"{name} ±"] if name in NAMES else [name])]
    return pd.DataFrame(rows, columns=["run", "system", "device", *measured]).astype(dict.fromkeys(measured, float))


def places_counted(counts: dict[str, int], a: str, b: str) -> pd.DataFrame:
    """who is higher, people."""
    names = {"a": a, "same": "the same place", "b": b}
    return pd.DataFrame({"higher with": list(names.values()), "people": [counts[key] for key in names]})


def named(table: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """A table of differences for reading, with the names of the two."""
    return table.assign(who=table["who"].replace({"A": a, "B": b})).rename(columns={"A": a, "B": b, "who": "better"})


def shown_places(table: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """`versus.places_table` for reading and files: people counted from 1, as everywhere on screen."""
    names = {"user": "person", "place_a": f"{a}: place", "place_b": f"{b}: place"}
    return table.assign(user=table["user"] + 1).rename(columns=names)


def people(table: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """`versus.extremes` for reading: people counted from 1, plain column names."""
    sides = table["side"].replace({"A": a, "B": b})
    shown = table.assign(user=table["user"] + 1, difference=table["difference"].round(3), side=sides)
    names = {
        "side": "better", "user": "person", "title": "came next", "place_a": f"{a}: place", "place_b": f"{b}: place",
        "events": "history", "popularity": "its training events",
    }  # fmt: skip
    return shown.rename(columns=names)


def list_properties(a: Lists, b: Lists, dataset: Dataset, names: tuple[str, str]) -> pd.DataFrame:
    """One row a property; both by their names, and what people really chose next."""
    found = [properties(a.items, dataset), properties(b.items, dataset), properties(dataset.targets("test")[:, None], dataset)]
    texts = {
        "coverage": "share of the catalogue in anybody’s list", "popularity": "training events of a listed item",
        "top_share": "share from the most popular tenth",
    }  # fmt: skip
    rows = [
        [text, *(f"{getattr(each, key):{'.0f' if key == 'popularity' else '.1%'}}" for each in found)]
        for key, text in texts.items()
    ]
    return pd.DataFrame(rows, columns=["property", *names, "really chosen"])
