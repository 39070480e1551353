"""Histories with something changed: what a model reads of them, how it scores them, and what of them is shown."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Catalog, Dataset
from elastic_core.models import Recommender, as_retrieving_model
from elastic_core.services.edits import Edit, EditedUser, apply_edits
from elastic_core.services.person.names import item_table
from elastic_core.services.person.recommend import (
    UNSCALED,
    History,
    Scales,
    scale_experts,
    scale_factors,
    score_batch,
    stack_histories,
    user_history,
)

KEPT_EVENT, ADDED_EVENT, REMOVED_EVENT = "kept", "added", "removed"


class EditedHistory(NamedTuple):
    """A history and how much experts count in it. `numbers`: those of its events, as edits count them. `name`: the edit that
    led there."""

    history: History
    scales: Scales = UNSCALED
    numbers: np.ndarray = np.empty(0, dtype=np.int64)
    name: str = ""

    def remove_events(self, first: int, n_events: int, catalog: Catalog) -> "EditedHistory":
        """The same without so many events from index `first` on."""
        indices = np.arange(len(self.history.items))
        remaining = self.history.select_events(indices[(indices < first) | (indices >= first + n_events)])
        more = f" and {n_events - 1} more" if n_events > 1 else ""
        return EditedHistory(remaining, self.scales, name=f"without {catalog.title(int(self.history.items[first]))}{more}")

    def add_items(self, items: Sequence[int], catalog: Catalog) -> "EditedHistory":
        """The same with these items at its end."""
        longer = History(np.concatenate([self.history.items, items]), self.history.truth, basket=self.history.basket)
        more = f" and {len(items) - 1} more" if len(items) > 1 else ""
        return EditedHistory(longer, self.scales, name=f"with {catalog.title(int(items[0]))}{more} added")

    def scale_expert(self, expert: int, factor: float) -> "EditedHistory":
        """The same with one expert that counts more or less."""
        name = f"expert {expert} × {factor:g}" if factor else f"without expert {expert}"
        return EditedHistory(self.history, {**self.scales, expert: factor}, name=name)


def edit_user(dataset: Dataset, user: int, edits: Sequence[Edit], n_events: int | None = None) -> EditedHistory:
    """A person's history after edits. `n_events`: how much of it is read (`recommend.user_history`); added items stay."""
    history = user_history(dataset, user, n_events)
    edited_user = edit_items(dataset, user, edits, n_events)
    return EditedHistory(history.apply_edits(edited_user) if edits else history, edited_user.scales, edited_user.numbers)


def edit_items(dataset: Dataset, user: int, edits: Sequence[Edit], n_events: int | None = None) -> EditedUser:
    """Which events of a person are left after edits, and which were added."""
    edited_user = apply_edits(dataset.histories.user_items(user)[: dataset.readable_lengths()[user]], edits)
    return edited_user if n_events is None else edited_user.limit_events(n_events)


@torch.inference_mode()
def score_edited(model: Recommender, edited: Sequence[EditedHistory]) -> np.ndarray:
    """float32 [edited, n_items + 1], in one batch wherever as many experts are left to every history."""
    histories, scales = [each.history for each in edited], [each.scales for each in edited]
    batch = stack_histories(histories, model.length)
    if not any(scales):
        return score_batch(model, batch).numpy()
    n_active = (scale_factors(as_retrieving_model(model).retrieve(batch), scales) > 0).sum(1)
    scores = np.empty((len(edited), model.n_items + 1), dtype=np.float32)
    for count in n_active.unique():
        rows = torch.nonzero(n_active == count)[:, 0].tolist()
        edit = scale_experts(*(scales[row] for row in rows))
        scores[rows] = score_batch(model, stack_histories([histories[row] for row in rows], model.length), edit)
    return scores


def event_rows(dataset: Dataset, edited_user: EditedUser, last: int = 12, most: int = 36) -> pd.DataFrame:
    """The latest events, with those that were removed from among them: item, title, genres, number (as edits count events),
    index (in the edited history; -1: removed), state. More than `last` rows, up to `most`, where an edit farther back can be
    shown that way. Of somebody of whose own events none is left only the added ones."""
    numbers = np.arange(1, len(edited_user.events) + 1)
    is_left = np.isin(numbers, edited_user.numbers)
    if not len(edited_user.own_indices):
        numbers, is_left = numbers[is_left], is_left[is_left]
    state = np.select([~is_left, numbers > edited_user.n_own], [REMOVED_EVENT, ADDED_EVENT], KEPT_EVENT)
    edited = np.flatnonzero(state[-most:] != KEPT_EVENT)
    if len(edited):
        last = max(last, min(most, len(state)) - int(edited[0]))
    table = item_table(dataset.catalog, edited_user.events[numbers - 1][-last:])
    return table.assign(number=numbers[-last:], index=np.where(is_left, np.cumsum(is_left) - 1, -1)[-last:], state=state[-last:])
