"""Which events of a history speak for an item? Each is taken away once, and what happens to the item is measured.

Attention is shown beside it, never instead of it: where a model looks is not what would change its mind. The removed item does
not come back into the ranking, so that only the reading changes, not the company.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.services.person.attention import attention_weights
from elastic_core.services.person.edited_history import EditedHistory, score_edited
from elastic_core.services.person.names import item_table
from elastic_core.services.person.recommend import UNSCALED, History, Scales, candidate_mask, rank_scores, user_history

LAST = 50


class Agreement(NamedTuple):
    """Rank correlation (Spearman) of attention with the size of the effect, over `n` events; 95% interval (Bonett-Wright)."""

    correlation: float
    n: int
    low: float
    high: float


class Influence(NamedTuple):
    """`table`: position (from 1), item, title, change (of the target's log-chance that having the event makes), times (the
    same as a factor), places (ranks gained by having it), attention (NaN where none is known); oldest first."""

    table: pd.DataFrame
    target: int
    rank: int
    running: int
    agreement: Agreement | None

    @property
    def is_zero(self) -> bool:
        """No removal changed anything (popularity)."""
        return bool(self.table["change"].abs().max() < 1e-6)

    def strongest(self, most: int) -> pd.DataFrame:
        """The rows with the largest changes, either way."""
        return self.table.sort_values("change", key=abs, ascending=False, kind="stable").head(most)

    @property
    def sentence(self) -> str:
        """What the comparison with attention found."""
        agreement = self.agreement
        if agreement is None:
            return "This model shows no attention to compare with."
        more_text = (
            "usually matters more" if agreement.low > 0 else "matters less" if agreement.high < 0 else "may not matter more"
        )
        correlation = f"{agreement.correlation:+.2f}"
        return f"What gets more attention {more_text} (correlation {correlation}). Attention alone does not explain a suggestion."


def influence_of_user(model: Recommender, dataset: Dataset, user: int, keep_seen: bool = False) -> Influence:
    """On what came next."""
    return measure_influence(model, dataset, user_history(dataset, user), keep_seen=keep_seen)


@torch.inference_mode()
def measure_influence(
    model: Recommender, dataset: Dataset, history: History, scales: Scales = UNSCALED, keep_seen: bool = False
) -> Influence:
    """Remove each of the `LAST` last events once, in one batch, and see where the truth of the history stands then, among items
    that the history does not hold or (`keep_seen`) among all. `scales`: experts that count more or less.

    Raises InputError for an unknown truth and for histories of fewer than two events.
    """
    target, count = history.truth or 0, len(history.items)
    dataset.catalog.title(target)  # raises where there is none
    if count < 2:
        raise InputError("an event can be taken away only where another one stays: at least two are needed")
    removed = np.arange(max(count - LAST, 0), count)
    shorter = [history, *map(history.remove_event, removed.tolist())]
    scores = torch.from_numpy(score_edited(model, [EditedHistory(each, scales) for each in shorter])).double()
    first, *ranks = (int(rank_scores(row, history, keep_seen)[1][target]) for row in scores.numpy())
    candidates = candidate_mask(scores.shape[1], history, keep_seen)
    logs = scores.masked_fill(~torch.from_numpy(candidates), -torch.inf).log_softmax(1)[:, target].numpy()
    change, weights = logs[0] - logs[1:], attention_weights(model, history)
    table = item_table(dataset.catalog, history.items[removed]).drop(columns="genres")
    table.insert(0, "position", removed + 1)
    table = table.assign(
        change=change, times=np.exp(np.clip(change, -50, 50)), places=np.array(ranks) - first,
        attention=np.nan if weights is None else weights[removed],
    )  # fmt: skip
    agreement = rank_agreement(table["attention"].to_numpy(), np.abs(change))
    return Influence(table, target, first, int(candidates.sum()), agreement)


def rank_agreement(first: np.ndarray, second: np.ndarray) -> Agreement | None:
    """Spearman's rank correlation of two columns where both are known; None for fewer than five or where one is constant."""
    known = np.isfinite(first) & np.isfinite(second)
    n = int(known.sum())
    if n < 5 or not np.ptp(first[known]) or not np.ptp(second[known]):
        return None
    correlation = float(pd.DataFrame({"first": first[known], "second": second[known]}).corr("spearman").iloc[0, 1])
    middle = math.atanh(min(max(correlation, -0.999999), 0.999999))
    half = 1.96 * math.sqrt((1 + correlation**2 / 2) / (n - 3))
    return Agreement(correlation, n, math.tanh(middle - half), math.tanh(middle + half))
