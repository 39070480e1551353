"""Traffic over time: what a run's metrics and snapshots say by epoch."""

from contextlib import suppress

import numpy as np
import pandas as pd

from elastic_core.errors import InputError
from elastic_core.runs import Run, Snapshot
from elastic_core.services.person.user_lookup import evenly_spaced
from elastic_core.services.traffic.load import count_holders

EPOCHS = ["epoch", "used", "entropy", "gini", "ndcg"]
MOST_NUMBERS = 200_000  # loads of experts that a browser is given to play


def by_epoch(run: Run) -> pd.DataFrame:
    """`EPOCHS` on validation people, from the run's own metrics; empty where it recorded none."""
    rows = [{**event, "ndcg": event.get("valid", {}).get("NDCG@10")} for event in run.events("epoch")]
    return pd.DataFrame(rows, columns=EPOCHS).dropna(subset="entropy", ignore_index=True)


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


def epochs_to_play(run: Run) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The epochs that a run recorded: `EPOCHS`, and `half`, how many experts carry half of the traffic; and the load of every
    expert (columns) after each of them. Where the run kept copies of its experts, only epochs with a copy; else no loads."""
    frame, loads = by_epoch(run), load_by_epoch(run)
    if frame.empty or loads.empty:
        return frame.assign(half=np.nan), pd.DataFrame()
    epochs = loads.index.intersection(frame["epoch"])
    epochs = epochs[evenly_spaced(len(epochs), max(2, MOST_NUMBERS // loads.shape[1]))]
    half = [count_holders(load, 0.5) for load in loads.loc[epochs].to_numpy(float)]
    return frame.set_index("epoch").loc[epochs].rename_axis("epoch").reset_index().assign(half=half), loads.loc[epochs]
