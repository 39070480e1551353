"""Would any other film have done the same? One act on a person's history beside the same act on others of theirs.

That a list moves says little while nobody knows how far it moves when something else is touched. So every act is done again
on up to `MOST` other events (or on every other expert), all of them scored in one batch, from the same state before the act.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.models import Met, Recommender, memory_of
from elastic_core.services.person import recommend

MOST = 64  # other events that an act is tried on
TOP = 10
ENOUGH = 20  # others that a 95% range needs; with fewer the range is that of all


class Version(NamedTuple):
    """A history and the experts that are silenced in it; `name` says what was done to get there."""

    read: recommend.Reading
    silenced: frozenset[int] = frozenset()
    name: str = ""


class Chance(NamedTuple):
    """`table`: done (what), places (by how many ranks it moved what came next to the front; missing where nobody knows what
    came next), furthest (by how many ranks the one of the ten moved that moved most), replaced (how many of the ten). The first
    row is the act itself, the others are its null."""

    table: pd.DataFrame

    @property
    def n(self) -> int:
        """How many others."""
        return len(self.table) - 1

    @property
    def known(self) -> bool:
        """Is it known what came next?"""
        return bool(self.table["places"].notna().all())

    def as_far(self, column: str) -> int:
        """How many of the others moved as much or more."""
        values = self.table[column].abs()
        return int((values.iloc[1:] >= values.iloc[0]).sum())

    def others(self, column: str) -> str:
        """`1 (95%: 0 to 9)`: the median of what the others did, either way, and its range; that of all where they are few."""
        values = self.table[column].iloc[1:].abs()
        if not values.any():
            return "none changed it"
        tails = (0.025, 0.975) if self.n >= ENOUGH else (0.0, 1.0)
        low, high = (np.quantile(values, tail, method="inverted_cdf") for tail in tails)
        return f"{values.median():g} ({'95%' if self.n >= ENOUGH else 'all'}: {low:.0f} to {high:.0f})"

    def rows(self, did: str) -> list[tuple[str, str, str, str]]:
        """What is compared, the act's number, the others', and how many of them reach it; `did` is what people do with items."""
        names = {
            "places": f"places that what they {did} next moved",
            "furthest": "largest move in the list (places)",
            "replaced": "replaced among the ten",
        }
        shown = {column: name for column, name in names.items() if self.known or column != "places"}
        moved = {column: abs(self.table[column].iloc[0]) for column in shown}
        return [
            (name, f"{moved[column]:.0f}", self.others(column), f"{self.as_far(column)} of {self.n}" if moved[column] else "–")
            for column, name in shown.items()
        ]


def of_edits(
    model: Recommender, dataset: Dataset, user: int, edits: Sequence[recommend.Change], stay: bool = False
) -> Chance | None:
    """The last of a person's edits beside the same on their other events or experts. None where there is no other."""
    *earlier, last = edits
    silenced, whole = frozenset(recommend.experts_silenced(earlier)), recommend.reading(dataset, user)
    left = recommend.places_left(len(whole.items), earlier)
    read = whole.only(left)
    before = Version(read, silenced)
    if last is None or last < 0:
        place = left[-1] if last is None else -last - 1
        if place not in left:
            return None
        at = left.index(place)
        act = Version(read.without(at), silenced, f"without {dataset.catalog.title(int(read.items[at]))}")
        return compare_acts(model, before, act, removals(model, dataset, before, [at]), stay)
    rest = [expert for expert in recommend.retrieved(model, read).experts[0].tolist() if expert not in silenced | {last}]
    others = [Version(read, silenced | {expert}, f"without expert {expert}") for expert in rest]
    return compare_acts(model, before, Version(read, silenced | {last}, f"without expert {last}"), others, stay)


def removals(model: Recommender, dataset: Dataset, before: Version, spared: Collection[int]) -> list[Version]:
    """The same history without one of its events that the model reads, for up to `MOST` of them drawn at random."""
    read, count = before.read, len(before.read.items)
    places = [at for at in range(max(count - model.length, 0), count) if at not in spared]
    drawn = sorted(np.random.default_rng(0).permutation(places)[:MOST].tolist()) if places else []
    return [
        Version(read.without(at), before.silenced, f"without {dataset.catalog.title(int(read.items[at]))}")
        for at in drawn
        if count > 1
    ]


def compare_acts(
    model: Recommender, before: Version, act: Version, others: Sequence[Version], stay: bool = False
) -> Chance | None:
    """What `act` and each of the `others` changed of what was `before`; None without others. With `stay`, what the history
    holds is ranked, too."""
    if not others:
        return None
    versions = [before, act, *others]
    values, ranks, tens = scores(model, versions), [], list[list[int]]()
    for row, (read, *_) in zip(values, versions, strict=True):  # ranked as by `recommend.answer`
        free = recommend.running(len(row), read, stay)
        row[~free] = -np.inf
        ranks.append(recommend.rank_of_target(row, free, read.truth) if read.truth else 0)
        least = np.partition(row, -TOP)[-TOP] if len(row) > TOP else -np.inf
        near = np.flatnonzero((row >= least) & np.isfinite(row))
        tens.append(near[np.argsort(-row[near], kind="stable")][:TOP].tolist())
    was = recommend.order_of(values[0])[1]  # where every item stood before; 0: not in the running
    rows = []
    for version, rank, ten in zip(versions[1:], ranks[1:], tens[1:], strict=True):
        furthest = max((abs(int(was[item]) - place) for place, item in enumerate(ten, 1) if was[item]), default=0)
        places = float(ranks[0] - rank) if version.read.truth else np.nan
        rows.append((version.name, places, furthest, len(set(tens[0]) - set(ten))))
    return Chance(pd.DataFrame(rows, columns=["done", "places", "furthest", "replaced"]))


@torch.inference_mode()
def scores(model: Recommender, versions: Sequence[Version]) -> np.ndarray:
    """float32 [versions, n_items + 1], in one batch wherever as many experts are left to every history."""
    batch = recommend.packed([version.read for version in versions], model.length)
    edit = recommend.silence(*(version.silenced for version in versions))
    if edit is None:
        return model.score(batch).float().numpy().copy()
    try:
        states = memory_of(model).last_state(batch, edit)
    except recommend.Uneven as uneven:
        done = {
            row: values
            for rows in uneven.groups
            for row, values in zip(rows, scores(model, [versions[row] for row in rows]), strict=True)
        }
        return np.stack([done[row] for row in range(len(versions))])
    return model.scorer()(states, Met.by(batch)).float().numpy().copy()
