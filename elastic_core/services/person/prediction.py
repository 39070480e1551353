"""One history, read by one model: what it retrieves, what it is recommended, and which expert stands behind that."""

from collections.abc import Sequence
from typing import NamedTuple

from elastic_core.core.contract import Retrieved
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.services.edits import Edit
from elastic_core.services.person.edited_history import edit_user
from elastic_core.services.person.recommend import (
    UNSCALED,
    History,
    Recommendation,
    Scales,
    rank_items,
    retrieve_experts,
    scale_experts,
)


class Prediction(NamedTuple):
    """What a model reads of a history, retrieves for it and recommends after it, perhaps with experts that count more or less."""

    history: History
    length: int  # how many events the model reads at most
    retrieved: Retrieved | None  # before experts were scaled, best first, a batch of one; None for models that do not retrieve
    recommendation: Recommendation
    scales: Scales = UNSCALED
    keep_seen: bool = False  # do items of the history stay in the running?

    @property
    def n_events(self) -> int:
        """How many events the history has."""
        return len(self.history.items)

    @property
    def n_read(self) -> int:
        """How many of them the model reads."""
        return min(self.n_events, self.length)

    @property
    def experts(self) -> list[int]:
        """The experts that were retrieved, best first."""
        return [] if self.retrieved is None else self.retrieved.experts[0].tolist()

    @property
    def active_experts(self) -> list[int]:
        """Those of them that were not silenced."""
        return [expert for expert in self.experts if self.scales.get(expert) != 0]

    def others_retrieved(self, before: "Prediction") -> str:
        """How many of the active experts were not retrieved before; empty for models that retrieve none."""
        active = self.active_experts
        new, count = len(set(active) - set(before.experts)), len(active)
        if not count:
            return ""
        remaining = "remaining " if count < len(self.experts) else ""  # than the silenced ones
        if not new:
            same = f"{remaining}expert is" if count == 1 else f"{count} {remaining}experts are"
            return f"The {same} the same as before."
        return f"Of the {count} {remaining}expert{'s' * (count > 1)}, {new} {'is new' if new == 1 else 'are new'}."


def predict_history(
    model: Recommender, dataset: Dataset, history: History, scales: Scales = UNSCALED, keep_seen: bool = False
) -> Prediction:
    """Read any history as a person's own would be. `scales`: the experts that count more or less, or not at all (0)."""
    retrieved, edit = (retrieve_experts(model, history), scale_experts(scales)) if model.retrieves else (None, None)
    recommendation = rank_items(model, dataset, history, edit=edit, keep_seen=keep_seen)
    return Prediction(history, model.length, retrieved, recommendation, scales, keep_seen)


def predict_user(
    model: Recommender,
    dataset: Dataset,
    user: int,
    edits: Sequence[Edit] = (),
    keep_seen: bool = False,
    n_events: int | None = None,
) -> Prediction:
    """A person after edits. `n_events`: how much of their history is read (`recommend.user_history`)."""
    edited = edit_user(dataset, user, edits, n_events)
    return predict_history(model, dataset, edited.history, edited.scales, keep_seen)
