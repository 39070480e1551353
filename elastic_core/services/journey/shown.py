"""What of a journey is put on a page: what fits a ribbon or a figure."""

import csv
import io
from collections.abc import Sequence

import numpy as np
import pandas as pd

from elastic_core.data import Dataset
from elastic_core.services.journey.versions import Tree
from elastic_core.services.person.inspect import split_year

KEPT, ADDED, MOVED, REMOVED = "kept", "added", "moved", "removed"
GAP = 3  # removed events shown at one place; more are only counted


def ribbon_rows(dataset: Dataset, tree: Tree, last: int = 12, most: int = 36) -> pd.DataFrame:
    """The latest events of the current version with what was removed from among them: place (from 1, 0 = removed), item,
    title, genres, state. More than `last`, up to `most`, where an earlier edit can be shown that way."""
    here, catalog = tree.here, dataset.catalog
    added, moved = here.added, here.moved
    gone = [] if here.own else sorted(set(range(len(tree.original))) - set(here.origins))
    rows: list[tuple[int, int, str]] = []
    for at, (item, origin) in enumerate(zip(here.items, here.origins, strict=True)):
        if at not in moved and at not in added:
            passed = [o for o in gone if o < origin]
            rows += _removed(tree, passed)
            gone = gone[len(passed) :]
        rows.append((at + 1, item, KEPT if here.own else ADDED if at in added else MOVED if at in moved else KEPT))
    rows += _removed(tree, gone)
    edited = [at for at, row in enumerate(rows) if row[2] != KEPT and len(rows) - at <= most]
    shown = rows[-max(last, len(rows) - edited[0] if edited else 0) :]
    table = pd.DataFrame(shown, columns=["place", "item", "state"])
    table["title"] = [catalog.title(item) for item in table["item"]]
    table["genres"] = [catalog.genres[item] if catalog.genres else () for item in table["item"]]
    return table


def _removed(tree: Tree, origins: list[int]) -> list[tuple[int, int, str]]:
    return [(0, tree.original[origin], REMOVED) for origin in origins[-GAP:]]


def busiest(experts: pd.DataFrame, moment: int, most: int = 18) -> tuple[pd.DataFrame, int]:
    """Of experts retrieved along time, the rows of those retrieved at (or last before) `moment` and of those with the most
    weight in all, at most `most` experts; and how many there were."""
    totals = experts.groupby("expert")["gate"].sum().sort_values(ascending=False, kind="stable")
    until = experts[experts["event"] <= max(moment, experts["event"].min())]
    now = until[until["event"] == until["event"].max()]["expert"].tolist()
    shown = list(dict.fromkeys([*now, *totals.index]))[:most]
    return experts[experts["expert"].isin(shown)].reset_index(drop=True), len(totals)


def span_titles(dataset: Dataset, items: np.ndarray, cells: pd.DataFrame) -> list[str]:
    """A name for each span of events, in order: the event's title, or the first and the last one's."""
    spans, names = cells.drop_duplicates("first")[["first", "last"]], []
    for first, last in spans.itertuples(index=False):
        ends = [split_year(dataset.catalog.title(int(items[at - 1])))[0] for at in dict.fromkeys((first, last))]
        where = f"event {first}" if first == last else f"events {first} to {last}"
        names.append(f"{where}, {' … '.join(ends)}")
    return names


def strongest(table: pd.DataFrame, most: int | None) -> pd.DataFrame:
    """The `most` influential rows, the largest change (either way) first; all in time order, the latest first, for None."""
    if most is None:
        return table.iloc[::-1].reset_index(drop=True)
    return table.iloc[(-table["change"].abs()).argsort(kind="stable")[:most]].reset_index(drop=True)


def choices(tree: Tree) -> list[str]:
    """What the current version can be compared with by name, the original first."""
    return ["the original", *(f"version {number}" for number in range(1, len(tree.versions) + 1))]


def raw_ids(dataset: Dataset, items: Sequence[int] | np.ndarray) -> str:
    """A history for a command line: one line of CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([dataset.catalog.ids[item] for item in items])
    return out.getvalue()
