"""One history, link by link: which experts each event votes for, what each expert holds and contributes, and what a removal does.

All links are read off the model: `votes` are those that it counted, `event_share` and `suggestion_share` its own numbers. The
last three are not: each expert and each event is removed once, all in one batch, and the chance and the rank of every suggestion
are measured again. Where a model has no such link (no votes by event, no share of a suggestion), the field is None.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from elastic_core.errors import InputError
from elastic_core.models import Recommender, as_tracing_model
from elastic_core.services.person.attribution import attribute_items
from elastic_core.services.person.edited_history import EditedHistory, score_edited
from elastic_core.services.person.prediction import Prediction
from elastic_core.services.person.recommend import rank_scores, scale_experts

MOST_SHOWN = 12


class ModelTrace(NamedTuple):
    """S events are shown, k experts were retrieved (those that are not silenced are active), M items are suggested.

    Rows of silenced experts are 0 in `event_share` and `suggestion_share` and NaN in `without_expert`; so are events that are
    not read."""

    indices: Sequence[int | None]  # [S] of the shown events in the edited history, oldest first; None: it was removed
    experts: list[int]  # [k] best first
    votes: list[list[tuple[int, float]]] | None  # [S] every shown event's, best first: expert, part of the event's own votes
    vote_share: np.ndarray | None  # [k] every expert's part of all votes
    mean_vote_share: np.ndarray | None  # [k] and of everybody's votes
    event_share: np.ndarray | None  # [k, N] which part of what an expert holds, or reads, an event of the history is
    suggestion_share: np.ndarray | None  # [M, k] an expert's share of a suggestion's probability
    without_expert: np.ndarray  # [M, k] a suggestion's chance without an expert, over its chance
    without_event: np.ndarray  # [M, S] a suggestion's chance without an event, over its chance
    ranks_without_expert: np.ndarray  # [M, k] a suggestion's rank without an expert; 0 where that was not measured


@torch.inference_mode()
def trace_model(model: Recommender, prediction: Prediction, indices: Sequence[int | None]) -> ModelTrace:
    """The links of one prediction, for the events at `indices`."""
    items = prediction.recommendation.table["item"].tolist()
    measured = _measure_removals(model, prediction, items, indices)
    return ModelTrace(
        indices,
        prediction.experts,
        *_trace_votes(prediction, indices),
        *_trace_shares(model, prediction, items),
        *measured,
    )


def share_list(trace: ModelTrace, chances: np.ndarray) -> np.ndarray | None:
    """Every expert's part of the list, [k]: its shares of the suggestions, weighted by their `chances` [M]. Where experts are
    mixed, what the list loses without the expert, as a part of all such losses. None where neither is known."""
    weights = chances / max(float(chances.sum()), 1e-12)
    if trace.suggestion_share is not None:
        return weights @ trace.suggestion_share
    losses = weights @ np.nan_to_num(1 - trace.without_expert).clip(0)
    return losses / losses.sum() if losses.sum() > 0 else None


class ExpertEffect(NamedTuple):
    """What removing one expert does to the list: how many suggestions leave it, how many others change places, and the largest
    fall of one's chance, as a share of it."""

    expert: int
    n_lost: int
    n_moved: int
    fall: float


def largest_effect(experts: Sequence[int], ranks_without: np.ndarray, without: np.ndarray) -> ExpertEffect | None:
    """The expert whose removal changes the list most: the most suggestions lost, then the most moved, then the largest fall.

    `ranks_without`, `without` `[M, k]`: as a `ModelTrace` has them. None where no removal was measured."""
    now = np.arange(1, len(ranks_without) + 1)[:, None]
    lost = ranks_without > len(ranks_without)
    n_moved = ((ranks_without > 0) & (ranks_without != now) & ~lost).sum(0)
    falls = np.nan_to_num(1 - without).max(0, initial=0)
    counts = zip(experts, lost.sum(0).tolist(), n_moved.tolist(), falls.tolist(), strict=True)
    effects = [ExpertEffect(*each) for each, column in zip(counts, ranks_without.T, strict=True) if column.any()]
    return max(effects, key=lambda effect: effect[1:], default=None)


@torch.inference_mode()
def strongest_expert(model: Recommender, prediction: Prediction) -> int | None:
    """The active expert without which the list changes most; None without experts. All screens and answers mean this one."""
    items = prediction.recommendation.table["item"].tolist()
    without, _, ranks = _measure_removals(model, prediction, items, [])
    effect = largest_effect(prediction.experts, ranks, without)
    return effect.expert if effect is not None else next(iter(prediction.active_experts), None)


def _trace_votes(
    prediction: Prediction, indices: Sequence[int | None]
) -> tuple[list[list[tuple[int, float]]] | None, np.ndarray | None, np.ndarray | None]:
    """`votes`, `vote_share` and `mean_vote_share`."""
    retrieved, n_read = prediction.retrieved, prediction.n_read
    if retrieved is None or retrieved.ballots is None:
        return None, None, None
    experts, votes = (each[0, -n_read:] for each in retrieved.ballots[:2])  # [n_read, m]
    shares = votes / votes.sum(1, keepdim=True).clamp_min(1e-12)
    rows = [list(zip(*pair, strict=True)) for pair in zip(experts.tolist(), shares.tolist(), strict=True)]
    unread = prediction.n_events - n_read
    by_event = [[] if index is None or index < unread else rows[index - unread] for index in indices]
    every, mean_vote_share = retrieved.votes, retrieved.ballots.mean_vote_share
    vote_share = None if every is None else every[0, prediction.experts].numpy()
    return by_event, vote_share, None if mean_vote_share is None else mean_vote_share[prediction.experts].numpy()


def _trace_shares(
    model: Recommender, prediction: Prediction, items: Sequence[int]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """`event_share` and `suggestion_share`."""
    experts, n_read = prediction.experts, prediction.n_read
    if not experts:
        return None, None
    event_share = np.zeros((len(experts), prediction.n_events), dtype=np.float32)
    attribution = attribute_items(model, prediction.history, items, scale_experts(prediction.scales))
    if attribution is not None:
        rows = [experts.index(expert) for expert in attribution.experts[0].tolist()]
        suggestion_share = np.zeros((len(items), len(experts)), dtype=np.float32)
        suggestion_share[:, rows] = attribution.parts[0, :, : len(rows)].numpy()
        event_share[rows, -n_read:] = attribution.held[0, :, -n_read:].numpy()
        return event_share, suggestion_share
    try:  # how the experts of the first layer read the events, where the model says so
        trace = as_tracing_model(model).trace_reading(prediction.history.batch(model.length))
    except InputError:
        return None, None
    active = np.isin(experts, prediction.active_experts)
    event_share[:, -n_read:] = np.where(active[:, None], trace.reading[0][0].mean(0)[:, -n_read:].numpy(), 0)
    return event_share, None


def _measure_removals(
    model: Recommender, prediction: Prediction, items: Sequence[int], indices: Sequence[int | None]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`without_expert`, `without_event` and `ranks_without_expert`."""
    history, scales, experts = prediction.history, prediction.scales, prediction.experts
    unread = prediction.n_events - prediction.n_read
    active = prediction.active_experts if len(prediction.active_experts) > 1 else []
    read = [index for index in indices if index is not None and index >= unread] if prediction.n_events > 1 else []
    edited = [EditedHistory(history, scales)]
    edited += [EditedHistory(history, {**scales, expert: 0.0}) for expert in active]
    edited += [EditedHistory(history.remove_event(index), scales) for index in read]
    scores = torch.from_numpy(score_edited(model, edited)).double()
    scores[:, torch.from_numpy(prediction.recommendation.ranks == 0)] = -torch.inf
    logs = scores.log_softmax(1)[:, items]
    ratios = (logs[1:] - logs[:1]).exp().T.numpy()
    without_expert, without_event = (np.full((len(items), count), np.nan) for count in (len(experts), len(indices)))
    without_expert[:, [experts.index(expert) for expert in active]] = ratios[:, : len(active)]
    without_event[:, [indices.index(index) for index in read]] = ratios[:, len(active) :]
    ranks_without_expert = np.zeros((len(items), len(experts)), dtype=np.int64)
    if active:
        rows = scores[1 : len(active) + 1].numpy()
        ranks = [rank_scores(row, history, prediction.keep_seen)[1][items] for row in rows]
        ranks_without_expert[:, [experts.index(expert) for expert in active]] = np.stack(ranks, 1)
    return without_expert, without_event, ranks_without_expert
