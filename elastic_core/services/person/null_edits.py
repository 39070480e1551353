"""Would any other film have done the same? The last edit of a person beside the same edit elsewhere: its null.

That a list moves says little while nobody knows how far it moves when something else is touched. So every edit is done again
on up to `MOST` other events (with other items, or on every other expert), all of them scored in one batch, from the same state
before the edit.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.services.edits import Add, Edit, Remove, Scale
from elastic_core.services.person.edited_history import EditedHistory, edit_user, score_edited
from elastic_core.services.person.recommend import rank_scores, retrieve_experts

MOST = 64  # other events or items that an edit is tried on
TOP = 10
ENOUGH = 20  # others that a 95% range needs; with fewer the range is that of all


class NullEdits(NamedTuple):
    """`table`: done (what), places (by how many ranks it moved what came next to the front; missing where nobody knows what
    came next), furthest (by how many ranks the one of the ten moved that moved most), replaced (how many of the ten). The first
    row is the edit itself, the others are its null."""

    table: pd.DataFrame

    @property
    def n(self) -> int:
        """How many others."""
        return len(self.table) - 1

    @property
    def truth_known(self) -> bool:
        """Is it known what came next?"""
        return bool(self.table["places"].notna().all())

    def spread(self, column: str) -> tuple[float, str] | None:
        """Of the others, either way: the median, and their range (of 95% where they are many); None where none moved anything."""
        others = self.table[column].iloc[1:].abs()
        if not others.any():
            return None
        range_text, tails = ("95%: ", (0.025, 0.975)) if self.n >= ENOUGH else ("", (0.0, 1.0))
        low, high = np.quantile(others, tails, method="inverted_cdf")
        return float(np.median(others)), f"{range_text}{low:.0f} to {high:.0f}"

    def rows(self, did: str) -> list[tuple[str, str, str, str]]:
        """What is compared, the edit's number, the others' (`1 (95%: 0 to 9)`: median and range, either way; of all where they
        are few), and how many of them reach it; `did` is what people do with items."""
        names = {"furthest": "largest move within the new list (places)", "replaced": "replaced among the ten"}
        if self.truth_known:
            names = {"places": f"move of what they {did} next (places)"} | names
        rows = []
        for column, name in names.items():
            own, *others = self.table[column].abs()
            spread = self.spread(column)
            null = "none changed it" if spread is None else f"{spread[0]:g} ({spread[1]})"
            reached = int((np.array(others) >= own).sum())
            rows.append((name, f"{own:.0f}", null, f"{reached} of {self.n}" if own else "–"))
        return rows


def null_of_last_edit(
    model: Recommender,
    dataset: Dataset,
    user: int,
    edits: Sequence[Edit],
    keep_seen: bool = False,
    n_events: int | None = None,
) -> NullEdits | None:
    """The last of a person's edits beside the same edit elsewhere; None where it changes nothing, or there is nowhere else.

    `n_events`: see `recommend.user_history`."""
    *earlier, last = edits
    before = edit_user(dataset, user, earlier, n_events)
    if not len(before.history.items):
        return None
    if isinstance(last, Remove):
        if edit_user(dataset, user, edits, n_events).history.truth is None and before.history.truth is not None:
            return None  # another history altogether: there is no second one
        acts = _draw_removals(model, dataset, before, last)
    elif isinstance(last, Add):
        acts = _draw_additions(dataset, before, last.items)
    else:
        acts = _draw_scalings(model, before, last.expert, last.factor if isinstance(last, Scale) else 0.0)
    return compare_edits(model, before, acts[0], acts[1:], keep_seen) if len(acts) > 1 else None


def _draw_removals(model: Recommender, dataset: Dataset, before: EditedHistory, edit: Remove) -> list[EditedHistory]:
    """First without the events that are removed, which follow each other; then without as many others that are read."""
    removed_places = np.flatnonzero((before.numbers >= edit.first) & (before.numbers <= edit.last))
    count, width = len(before.history.items), len(removed_places)
    if not 0 < width < count:
        return []
    other_histories = [at for at in range(max(count - model.length, 0), count - width + 1) if at != removed_places[0]]
    indices = sorted(np.random.default_rng(0).permutation(other_histories)[:MOST].astype(int))
    return [before.remove_events(at, width, dataset.catalog) for at in [int(removed_places[0]), *indices]]


def _draw_additions(dataset: Dataset, before: EditedHistory, items: Sequence[int]) -> list[EditedHistory]:
    """First with these items at the end; then with as many others that the person has not seen."""
    unseen = np.setdiff1d(np.arange(1, dataset.catalog.n_items + 1), [*before.history.items, *items])
    items_drawn = np.random.default_rng(0).permutation(unseen)[: MOST * len(items)]
    other_histories = items_drawn[: len(items_drawn) // len(items) * len(items)].reshape(-1, len(items))
    return [before.add_items(each, dataset.catalog) for each in [items, *other_histories.tolist()]]


def _draw_scalings(model: Recommender, before: EditedHistory, expert: int, factor: float) -> list[EditedHistory]:
    """First with this expert scaled; then with each of the others that count for this history."""
    silenced = {other for other, scale in before.scales.items() if scale == 0}
    retrieved = retrieve_experts(model, before.history).experts[0].tolist()
    if factor == 1 or expert not in retrieved:
        return []
    other_histories = [other for other in retrieved if other not in silenced | {expert}]
    return [before.scale_expert(each, factor) for each in [expert, *other_histories]]


def compare_edits(
    model: Recommender,
    before: EditedHistory,
    act: EditedHistory,
    other_histories: Sequence[EditedHistory],
    keep_seen: bool = False,
) -> NullEdits:
    """What `act` and each of the `other_histories` changed of what was `before`, among all items with `keep_seen`."""
    first, *scores = score_edited(model, [before, act, *other_histories])
    top_before, ranks_before = rank_scores(first, before.history, keep_seen)
    rows, truth = [], before.history.truth
    for edited, row in zip([act, *other_histories], scores, strict=True):
        order, ranks = rank_scores(row, edited.history, keep_seen)
        ten = order[:TOP]
        moves = np.abs(ranks_before[ten] - ranks[ten])[ranks_before[ten] > 0]  # of what was a candidate before
        places = np.nan if truth is None else float(ranks_before[truth] - ranks[truth])
        rows.append((edited.name, places, moves.max(initial=0), len(np.setdiff1d(top_before[:TOP], ten))))
    return NullEdits(pd.DataFrame(rows, columns=["done", "places", "furthest", "replaced"]))
