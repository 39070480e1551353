"""Traffic over time: what a run's metrics and snapshots say by epoch."""

from contextlib import suppress

import numpy as np
import pandas as pd

from elastic_core.errors import InputError
from elastic_core.runs import Run, Snapshot
from elastic_core.services.person.user_lookup import evenly_spaced

EPOCHS = ["epoch", "used", "entropy", "gini"]


def by_epoch(run: Run) -> pd.DataFrame:
    """epoch, used, entropy, gini on validation people, from the run's own metrics; empty where it recorded none."""
    return pd.DataFrame(run.events("epoch"), columns=EPOCHS).dropna(subset="entropy", ignore_index=True)


def kept_snapshots(run: Run, most: int = 2**31) -> dict[int, Snapshot]:
    """By epoch what the run kept, at most so many, evenly over the training, the last included. Unreadable files are left out."""
    snapshots, files = dict[int, Snapshot](), run.snapshot_files()
    for epoch, path in (files[i] for i in evenly_spaced(len(files), most)):
        with suppress(InputError):
            snapshots[epoch] = run.read_snapshot(path)
    return snapshots


def load_by_epoch(run: Run) -> pd.DataFrame:
    """Return a row an epoch, a column an expert, from the run's snapshots that can be read; empty where it kept none."""
    return pd.DataFrame({epoch: snapshot.load for epoch, snapshot in kept_snapshots(run).items()}).T


def last_used(loads: pd.DataFrame) -> pd.Series:
    """The last epoch after which anybody retrieved each expert; 0 = never."""
    return loads.gt(0).mul(loads.index, axis=0).max()


def load_over_time(loads: pd.DataFrame) -> pd.DataFrame:
    """Load of experts (index, the busiest at the end first) by epoch (columns); of more than 256, every n-th of them."""
    order = np.argsort(-loads.iloc[-1].to_numpy(), kind="stable")
    return loads[order[evenly_spaced(len(order), 256)]].T
