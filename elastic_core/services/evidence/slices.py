"""For whom is A ahead of B? The paired difference among groups of people, each with its interval and its n.

Every group is one more look at the same data, so p values are adjusted together (Holm 1979): among m groups without
any difference, the chance that even one adjusted p falls below 0.05 is at most 5%.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from elastic_core.data import Dataset
from elastic_core.evaluation import verdict
from elastic_core.evaluation.compare import contrast, holm
from elastic_core.runs.ranks import Report
from elastic_core.text import minus

COLD = 10  # a target with fewer training events than this is cold
FEWEST = 10  # people a genre needs to be shown
GENRES = 12


class Group(NamedTuple):
    """People who have something in common. Groups of one family hold everybody once, unless it `overlaps`."""

    family: str
    name: str
    users: np.ndarray


FAMILIES = ("history length", "popularity of the next item", "cold or warm", "genre of the next item")
OVERLAPS = "genre of the next item"  # an item has several genres


def groups(dataset: Dataset) -> list[Group]:
    """All groups that this data has."""
    targets, counts = dataset.targets("test"), dataset.counts()
    lengths = dataset.readable()
    cold = counts[targets] < COLD
    named = {f"cold: under {COLD} training events": cold, f"warm: {COLD} or more": ~cold}
    found = _quarters(FAMILIES[0], lengths, "events") + _quarters(FAMILIES[1], counts[targets], "training events")
    found += [Group(FAMILIES[2], name, np.flatnonzero(mask)) for name, mask in named.items() if mask.any()]
    own = [dataset.catalog.genres[int(item)] for item in targets] if dataset.catalog.genres else []
    frequent = Counter(genre for genres in own for genre in genres).most_common(GENRES)
    return found + [
        Group(OVERLAPS, genre, np.flatnonzero([genre in genres for genres in own])) for genre, n in frequent if n >= FEWEST
    ]


def _quarters(family: str, values: np.ndarray, unit: str) -> list[Group]:
    """Four groups of about the same size; equal values stay together, so there may be fewer."""
    edges = np.unique(np.quantile(values, [0.25, 0.5, 0.75], method="higher"))
    which = np.searchsorted(edges, values, side="right")
    found = []
    for part in np.unique(which):
        users = np.flatnonzero(which == part)
        low, high = values[users].min(), values[users].max()
        found.append(Group(family, f"{low:,} {unit}" if low == high else f"{low:,} to {high:,} {unit}", users))
    return found


def forest(
    a: Sequence[Report],
    b: Sequence[Report],
    dataset: Dataset,
    protocol: str,
    metric: str,
    trained: tuple[bool, bool] = (True, True),
) -> pd.DataFrame:
    """One row a group: family, group, n, A, B, difference, its 95% interval, p, whether training noise is in them
    (`seeds_counted`), p adjusted for all rows, and who may be called better then. `a`, `b`: the training seeds of two systems;
    `trained` as in compare_many."""
    left, right = (np.stack([report.values(protocol, metric) for report in side]) for side in (a, b))  # [seeds, users]
    rows = []
    for group in groups(dataset):
        mine, theirs = left[:, group.users], right[:, group.users]
        found = contrast(mine, theirs, trained=trained)
        said = {"family": group.family, "group": group.name, "n": len(group.users), "A": mine.mean(), "B": theirs.mean()}
        rows.append(said | found._asdict())
    table = pd.DataFrame(rows)
    adjusted = holm(table["p"].to_numpy())
    who = [verdict.better(row, p) for row, p in zip(table.itertuples(), adjusted, strict=True)]
    return table.assign(**{"adjusted p": adjusted, "who": who})


def remaining(table: pd.DataFrame) -> str:
    """What is left after the adjustment, in one sentence."""
    start = f"{len(table)} groups of the same people"
    if not table["seeds_counted"].all():
        return f"{start}: hints, no claims ({verdict.ONE_RUN})."
    left = table[table["who"] != ""]
    if left.empty:
        return f"{start}. Adjusted for so many questions (Holm), no group differs."
    names = minus("; ".join(f"{row.group} ({row.difference:+.3f})" for row in left.itertuples()))
    return f"{start}. Adjusted for so many questions (Holm), these differ: {names}."
