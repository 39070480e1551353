"""What of a journey is put on a page: what fits a ribbon or a figure."""

import csv
import io
from collections.abc import Sequence

import numpy as np
import pandas as pd

from elastic_core.data import Dataset
from elastic_core.services.journey.versions import Tree
from elastic_core.services.person.names import item_table, split_year

KEPT, ADDED, MOVED, REMOVED = "kept", "added", "moved", "removed"
GAP = 3  # removed events shown at one place; more are only counted


def ribbon_rows(dataset: Dataset, tree: Tree, last: int = 12, most: int = 36) -> pd.DataFrame:
    """The latest events of the current version with what was removed from among them: item, title, genres, place (from 1, 0 =
    removed), state. More than `last`, up to `most`, where an earlier edit can be shown that way."""
    here, count = tree.here, len(tree.here.items)
    added, moved, gone = here.added, here.moved, sorted(set(range(len(tree.original))) - set(here.origins))
    state = [ADDED if at in added else MOVED if at in moved else KEPT for at in range(count)]
    if here.own:
        state, gone = [KEPT] * count, []
    kept = [at for at in range(count) if state[at] == KEPT]
    stood = np.searchsorted([here.origins[at] for at in kept], gone)  # before which of these it was
    rows = pd.DataFrame({
        "at": [*range(count), *(np.append(kept, count)[stood] - 0.5)], "place": [*range(1, count + 1), *[0] * len(gone)],
        "item": [*here.items, *(tree.original[origin] for origin in gone)], "state": [*state, *[REMOVED] * len(gone)],
    }).groupby("at").tail(GAP).sort_values("at", kind="stable")  # fmt: skip
    edited = np.append(rows["state"][-most:] != KEPT, True)
    rows = rows[-max(last, len(edited) - 1 - int(edited.argmax())) :]
    return item_table(dataset.catalog, rows["item"].tolist()).assign(place=rows["place"].tolist(), state=rows["state"].tolist())


def busiest(experts: pd.DataFrame, moment: int, most: int = 18) -> tuple[pd.DataFrame, int]:
    """Of experts retrieved along time, the rows of those retrieved at (or last before) `moment` and of those with the most
    weight in all, at most `most` experts; and how many there were."""
    totals = experts.groupby("expert")["gate"].sum().sort_values(ascending=False, kind="stable")
    latest = experts["event"][experts["event"] <= moment].max()
    now = experts["expert"][experts["event"] == latest]
    shown = pd.unique(np.array([*now, *totals.index]))[:most]
    return experts[experts["expert"].isin(shown)].reset_index(drop=True), len(totals)


def span_titles(dataset: Dataset, items: np.ndarray, cells: pd.DataFrame) -> list[str]:
    """A name for each span of events, in order: the event's title, or the first and the last one's."""
    names = []
    for first, last in cells[["first", "last"]].drop_duplicates().itertuples(index=False):
        begins, ends = (split_year(title)[0] for title in dataset.catalog.called(items[[first - 1, last - 1]]))
        names.append(f"event {first}, {begins}" if first == last else f"events {first} to {last}, {begins} … {ends}")
    return names


def raw_ids(dataset: Dataset, items: Sequence[int] | np.ndarray) -> str:
    """A history for a command line: one line of CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([dataset.catalog.ids[item] for item in items])
    return out.getvalue()
