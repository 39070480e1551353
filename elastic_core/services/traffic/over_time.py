"""Traffic over time and over settings: what a run's metrics and snapshots say by epoch, and Figure 5 from finished runs."""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from elastic_core.core.elastic import MemoryConfig
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.runs import Run, Snapshot
from elastic_core.services.person.people import spaced

SIDES, HEADS = (8, 16, 32, 64, 128, 256, 512), (4, 8, 16)  # what the paper's Figure 5 spans on ML-1M
PAPER = "In the paper, 55.76% of the keys are used at 512 × 512 (ML-1M, measured in its own way). It gives no other number."
EPOCHS = ["epoch", "used", "entropy", "gini"]
SETTINGS = ["run", "√K", "k", "seed", "NDCG@10", "error", "used", "people"]


def by_epoch(run: Run) -> pd.DataFrame:
    """epoch, used, entropy, gini on validation people, from the run's own metrics; empty where it recorded none."""
    return pd.DataFrame(run.events("epoch"), columns=EPOCHS).dropna(subset="entropy", ignore_index=True)


def kept_snapshots(run: Run, most: int = 2**31) -> dict[int, Snapshot]:
    """By epoch what the run kept, at most so many, evenly over the training, the last included. Unreadable files are left out."""
    found, files = dict[int, Snapshot](), run.snapshots()
    for epoch, path in (files[i] for i in spaced(len(files), most)):
        with suppress(InputError):
            found[epoch] = run.snapshot(path)
    return found


def load_by_epoch(run: Run) -> pd.DataFrame:
    """Return a row an epoch, a column an expert, from the run's snapshots that can be read; empty where it kept none."""
    return pd.DataFrame({epoch: snapshot.load for epoch, snapshot in kept_snapshots(run).items()}).T


def last_used(loads: pd.DataFrame) -> pd.Series:
    """The last epoch after which anybody retrieved each expert; 0 = never."""
    return loads.gt(0).mul(loads.index, axis=0).max()


def heat(loads: pd.DataFrame) -> pd.DataFrame:
    """Load of experts (index, the busiest at the end first) by epoch (columns); of more than 256, every n-th of them."""
    order = np.argsort(-loads.iloc[-1].to_numpy(), kind="stable")
    return loads[order[spaced(len(order), 256)]].T


class Sensitivity(NamedTuple):
    """`table`: finished runs that differ from the chosen one in √K, k and seed alone. `sentence`: what cannot be shown."""

    table: pd.DataFrame
    sentence: str
    side: int
    k: int


def sensitivity(run: Run, dataset: Dataset, runs: list[Run]) -> Sensitivity:
    """Figure 5: NDCG@10 (test, all unseen items) and use of the memory against √K and k."""
    side, k = (int(getattr(run.config.model, name, 0)) for name in ("side", "k"))
    sized = {other: row for other in runs if (row := _size_row(dataset, other))}
    alike = [row for other, row in sized.items() if _rest(run) == _rest(other)]
    table = pd.DataFrame(alike, columns=SETTINGS).sort_values(["√K", "k", "seed"], ignore_index=True)
    there = (("√K", SIDES, table.loc[table["k"] == k, "√K"]), ("k", HEADS, table.loc[table["√K"] == side, "k"]))
    missing = {name: ", ".join(str(value) for value in wanted if value not in set(found)) for name, wanted, found in there}
    absent = " and ".join(f"{name} = {values}" for name, values in missing.items() if values)
    said = f"No finished run here for {absent}." if absent else "Every setting of the paper’s figure has a run."
    if different := len(sized) - len(alike):
        said += f" Not shown: {different} that differ in other settings, too."
    return Sensitivity(table, said, side, k)


def _size_row(dataset: Dataset, other: Run) -> dict[str, Any] | None:
    """A finished run with a memory on the same data, or nothing."""
    try:
        model, test, start = other.config.model, other.last("test"), other.last("start") or {}
        same = start.get("data_hash") == dataset.hash
    except InputError:
        return None
    if not same or test is None or not other.finished or not isinstance(model, MemoryConfig) or model.memory == "none":
        return None
    best = (other.last("end") or {}).get("best_epoch")
    used = next((row.get("used") for row in other.events("epoch") if row["epoch"] == best), None)
    measured, errors = (test.get(name, {}).get("full", {}).get("NDCG@10") for name in ("protocols", "errors"))
    return {
        "run": other.name, "√K": model.side, "k": model.k, "seed": other.config.train.seed, "NDCG@10": measured,
        "used": test.get("used", used), "error": errors, "people": test.get("users"),
    }  # fmt: skip


def _rest(run: Run) -> dict[str, Any]:
    """The configuration without what Figure 5 varies, the seed, and what cannot change a result."""
    plain = run.config.to_dict()
    for section, names in (("model", ("side", "k")), ("train", ("seed", "device", "snapshots", "minutes"))):
        for name in names:
            plain[section].pop(name, None)
    return plain
