"""One person's experts turned by hand: what their list answers, what the same turn of other experts does, what it costs people.

`scales` are those of a list of edits (services/edits.py): by which factor an expert counts more or less, 0 for a silenced one.
For a person who does not retrieve an expert its factor means nothing.

The null is the same turn of other experts: the same factors dealt at random to the person's own. What moves under it as much is
the turning, not the expert.
"""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.core.contract import Edit
from elastic_core.data import Dataset
from elastic_core.data.item_features import trait_table
from elastic_core.memory.routing import RoutedUsers
from elastic_core.models import Recommender, SeenItems, as_retrieving_model
from elastic_core.services.experts import ablation
from elastic_core.services.experts.ablation import EvaluationContext
from elastic_core.services.person.edited_history import EditedHistory
from elastic_core.services.person.recommend import (
    History,
    ListChange,
    Scales,
    candidate_mask,
    compare_lists,
    rank_items,
    retrieve_experts,
    scale_experts,
    scale_factors,
    scale_ranks,
)
from elastic_core.services.person.user_lookup import sample_indices

DRAWS = 40  # random turns beside a person's
SAMPLE = 400  # people at most whom a turn is tried on
STEP = 64  # people between two words of progress


class TurnedList(NamedTuple):
    """`table`, a row for each of the person's experts that is turned: expert, factor, genre (empty: it stands for none); the
    share of that genre among the ten, `before` and `after`, and after the random turns (`null`, their median; 95% from `low` to
    `high`); and the same of the whole chance of what comes next (`chance_before` …)."""

    change: ListChange
    table: pd.DataFrame
    null_new: np.ndarray  # [m] how many of the ten each of m random turns brought in


def turn_list(
    model: Recommender, dataset: Dataset, edited: EditedHistory, genres: np.ndarray | None, keep_seen: bool = False
) -> TurnedList:
    """The list of a history before and after its experts are scaled. `genres [K]`: of every expert (`knobs.expert_genres`)."""
    history, retrieved = edited.history, retrieve_experts(model, edited.history)
    own = retrieved.experts[0].tolist()
    factors = scale_factors(retrieved, [edited.scales])[0].numpy().astype(float)
    edits: tuple[Edit | None, Edit | None] = (None, scale_experts(edited.scales))
    before, after = (rank_items(model, dataset, history, edit=edit, keep_seen=keep_seen) for edit in edits)

    null = deal_factors(factors, DRAWS, seed=0)
    scores = torch.cat([
        score_factors(model, history, np.ones((1, len(own))), keep_seen),
        score_factors(model, history, np.stack([factors, *null]), keep_seen),
    ])  # fmt: skip
    tops, chances = scores.topk(min(ablation.TOP, model.n_items)).indices.numpy(), scores.softmax(1).numpy()
    names, holds = trait_table(dataset.catalog)
    rows = []
    for rank, expert in enumerate(own):
        if factors[rank] == 1:
            continue
        genre = None if genres is None or genres[expert] < 0 else int(genres[expert])
        row: dict[str, Any] = {"expert": expert, "factor": factors[rank], "genre": "" if genre is None else names[genre]}
        of_genre = np.full(len(holds), np.nan) if genre is None else holds[:, genre]
        for part, shares in (("", of_genre[tops].mean(1)), ("chance_", chances @ of_genre)):
            row[f"{part}before"], row[f"{part}after"] = map(float, shares[:2])
            row[f"{part}null"], row[f"{part}low"], row[f"{part}high"] = median_and_range(shares[2:])
        rows.append(row)
    null_new = (~(tops[2:, :, None] == tops[0]).any(2)).sum(1)
    return TurnedList(compare_lists(before, after), pd.DataFrame(rows), null_new)


def deal_factors(factors: np.ndarray, draws: int, seed: int) -> list[np.ndarray]:
    """Up to `draws` different orders of the factors `[k]`, not their own; fewer where there are fewer."""
    rng, dealt_factors = np.random.default_rng(seed), dict[tuple[float, ...], np.ndarray]()
    for _ in range(5 * draws + 20 if len(set(factors)) > 1 else 0):
        order = rng.permutation(factors)
        if (order != factors).any():
            dealt_factors[tuple(order)] = order
        if len(dealt_factors) == draws:
            break
    return list(dealt_factors.values())


@torch.inference_mode()
def score_factors(model: Recommender, history: History, factors: np.ndarray, keep_seen: bool = False) -> torch.Tensor:
    """One history's scores of all items under m turns at once, `factors [m, k]` with as many zeros in every row; -inf for what is
    no candidate: float [m, n_items + 1]."""
    batch = history.batch(model.length).select_rows(torch.zeros(len(factors), dtype=torch.long))
    scores = model.scorer()(
        as_retrieving_model(model).last_state(batch, _turn_edit(factors)), SeenItems.from_batch(batch)
    ).float()
    return scores.masked_fill(torch.from_numpy(~candidate_mask(model.n_items + 1, history, keep_seen)), -torch.inf)


def _turn_edit(factors: np.ndarray) -> Edit:
    """Scale the ranks of every row."""
    return ablation.edit_first_layer(lambda retrieved: scale_ranks(retrieved, torch.from_numpy(factors)))


def median_and_range(values: np.ndarray) -> list[float]:
    """Median, 2.5% and 97.5% quantile; unknown of nothing."""
    return np.quantile(values, (0.5, 0.025, 0.975)).tolist() if len(values) else [np.nan] * 3


# --- everybody whom a turn touches ----------------------------------------------------------------------------------------


def everybodys_factors(traffic: RoutedUsers, scales: Scales) -> np.ndarray:
    """By which factor every expert counts that people retrieve, float [U, k]; one always counts, the best."""
    factors = np.ones(traffic.experts.shape)
    for expert, factor in scales.items():
        factors[traffic.experts == expert] = factor
    factors[(factors == 0).all(1), 0] = 1.0
    return factors


def users_touched(factors: np.ndarray) -> np.ndarray:
    """For whom a turn changes anything."""
    return np.flatnonzero((factors != 1).any(1))


def turn_cost(context: EvaluationContext, scales: Scales, report_progress: Callable[[float], None]) -> pd.DataFrame:
    """What a turn does to NDCG@10 of what people did choose, two rows (`ablation.effect_row`): for up to `SAMPLE` of those whom
    it touches, drawn at random, and for the same people when other experts are turned alike. `report_progress` hears the share
    that is done."""
    factors = everybodys_factors(context.traffic, scales)
    touched_users = users_touched(factors)
    users = touched_users[sample_indices(len(touched_users), SAMPLE, seed=0)]
    before = ablation.rank_edited(context, users)
    dealt_factors = {int(user): order for user in users for order in deal_factors(factors[user], 1, seed=int(user))}
    null_users, null_factors = np.array(list(dealt_factors), dtype=np.int64), factors.copy()
    null_factors[null_users] = np.array(list(dealt_factors.values())).reshape(-1, factors.shape[1])
    rows = [
        _effect_row("this turn", context, before, users, factors, lambda share: report_progress(0.5 * share)),
        _effect_row(
            "the same turn of other experts",
            context,
            before,
            null_users,
            null_factors,
            lambda share: report_progress(0.5 + 0.5 * share),
        ),
    ]
    return pd.DataFrame(rows).assign(touched=len(touched_users))


def _effect_row(
    name: str,
    context: EvaluationContext,
    before: pd.DataFrame,
    users: np.ndarray,
    factors: np.ndarray,
    report_progress: Callable[[float], None],
) -> dict[Hashable, Any]:
    """What the factors `[U, k]` of all people do to these users."""
    after, done = [], 0
    silenced = (factors[users] == 0).sum(1)
    for count in np.unique(silenced):  # a batch has as many experts left in every row
        alike = users[silenced == count]
        for at in range(0, len(alike), STEP):
            after.append(
                ablation.rank_edited(context, alike[at : at + STEP], lambda batch_users: _turn_edit(factors[batch_users]))
            )
            done += len(after[-1])
            report_progress(done / len(users))
    ranks_after = pd.concat(after).loc[users] if after else before.loc[users]
    return ablation.effect_row(name, ablation.compare_ranks(before.loc[users], ranks_after))
