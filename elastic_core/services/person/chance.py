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
from elastic_core.models import Recommender, memory_of
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

    def rows(self, did: str) -> list[tuple[str, str, str, str]]:
        """What is compared, the act's number, the others' (`1 (95%: 0 to 9)`: median and range, either way; of all where they are
        few), and how many of them reach it; `did` is what people do with items."""
        names = {"furthest": "largest move in the list (places)", "replaced": "replaced among the ten"}
        if self.known:
            names = {"places": f"places that what they {did} next moved"} | names
        rows = []
        for column, name in names.items():
            mine, *rest = self.table[column].abs()
            within, tails = ("95%", (0.025, 0.975)) if self.n >= ENOUGH else ("all", (0.0, 1.0))
            low, high = np.quantile(rest, tails, method="inverted_cdf")
            others = f"{np.median(rest):g} ({within}: {low:.0f} to {high:.0f})" if any(rest) else "none changed it"
            reached = int((np.array(rest) >= mine).sum())
            rows.append((name, f"{mine:.0f}", others, f"{reached} of {self.n}" if mine else "–"))
        return rows


def of_edits(
    model: Recommender, dataset: Dataset, user: int, edits: Sequence[recommend.Change], stay: bool = False
) -> Chance | None:
    """The last of a person's edits beside the same on their other events or experts. None where there is no other."""
    *earlier, last = edits
    silenced, whole = frozenset(recommend.experts_silenced(earlier)), recommend.reading(dataset, user)
    left = recommend.places_left(len(whole.items), earlier)
    before = Version(whole.only(left), silenced)
    if last is None or last < 0:
        place = left[-1] if last is None else -last - 1
        if place not in left:
            return None
        at = left.index(place)
        return compare_acts(model, before, removal(dataset, before, at), removals(model, dataset, before, [at]), stay)
    found = recommend.retrieved(model, before.read).experts[0].tolist()
    act, *others = (
        Version(before.read, silenced | {expert}, f"without expert {expert}")
        for expert in [last, *(other for other in found if other not in silenced | {last})]
    )
    return compare_acts(model, before, act, others, stay)


def removals(model: Recommender, dataset: Dataset, before: Version, spared: Collection[int]) -> list[Version]:
    """The same history without one of its events that the model reads, for up to `MOST` of them drawn at random."""
    count = len(before.read.items)
    places = [at for at in range(max(count - model.length, 0), count) if at not in spared]
    drawn = sorted(np.random.default_rng(0).permutation(places)[:MOST].astype(int))
    return [removal(dataset, before, at) for at in drawn if count > 1]


def removal(dataset: Dataset, before: Version, at: int) -> Version:
    """The same without the event at this place."""
    title = dataset.catalog.title(int(before.read.items[at]))
    return Version(before.read.without(at), before.silenced, f"without {title}")


def compare_acts(
    model: Recommender, before: Version, act: Version, others: Sequence[Version], stay: bool = False
) -> Chance | None:
    """What `act` and each of the `others` changed of what was `before`; None without others. With `stay`, what the history
    holds is ranked, too."""
    if not others:
        return None
    first, *values = scores(model, [before, act, *others])
    had, was = recommend.ranked(first, before.read, stay)
    rows, truth = [], before.read.truth
    for version, row in zip([act, *others], values, strict=True):
        order, ranks = recommend.ranked(row, version.read, stay)
        ten = order[:TOP]
        moves = np.abs(was[ten] - ranks[ten])[was[ten] > 0]  # of what was in the running before
        places = np.nan if truth is None else float(was[truth] - ranks[truth])
        rows.append((version.name, places, moves.max(initial=0), len(np.setdiff1d(had[:TOP], ten))))
    return Chance(pd.DataFrame(rows, columns=["done", "places", "furthest", "replaced"]))


@torch.inference_mode()
def scores(model: Recommender, versions: Sequence[Version]) -> np.ndarray:
    """float32 [versions, n_items + 1], in one batch wherever as many experts are left to every history."""
    reads, silenced = [version.read for version in versions], [version.silenced for version in versions]
    batch = recommend.packed(reads, model.length)
    if not any(silenced):
        return recommend.scored(model, batch).numpy()
    left = recommend.heard(memory_of(model).retrieve(batch), silenced).sum(1)
    values = np.empty((len(versions), model.n_items + 1), dtype=np.float32)
    for count in left.unique():
        rows = torch.nonzero(left == count)[:, 0].tolist()
        edit = recommend.silence(*(silenced[row] for row in rows))
        values[rows] = recommend.scored(model, recommend.packed([reads[row] for row in rows], model.length), edit)
    return values
