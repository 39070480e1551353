"""A list of ten against a whole basket: how much of what a household bought next is on it?

The ranks of a test (ranks.py) are of one item of the held-out basket. Here all of its items count.
"""

from collections.abc import Sequence

import numpy as np
import torch

from elastic_core.core.candidates import SEED, Candidates
from elastic_core.core.evaluate import Scorer, judging, scored
from elastic_core.core.histories import Dataset, Split
from elastic_core.runs.ranks import Interval

CUTOFF = 10
BASKET_METRICS = ("basket NDCG@10", "basket NDCG@10 error", "basket recall@10", "basket recall@10 error")


def basket_scores(
    scorer: Scorer, dataset: Dataset, split: Split = "test", device: str | torch.device = "cpu", batch: int = 256
) -> dict[str, float]:
    """`BASKET_METRICS`, means over users and their standard errors; every item of the catalogue may be on the list.

    Recall is the share of the basket that is among the ten; NDCG discounts by place and is 1 for a list that begins with
    as many of the basket's items as fit."""
    users = dataset.asked(split)
    owners, items = dataset.held_out(split)
    starts = np.searchsorted(owners, np.arange(len(users) + 1))
    discounts = 1 / np.log2(np.arange(CUTOFF) + 2)
    best = np.cumsum(discounts)  # of a list whose first 1, 2, … items are all in the basket
    gains, shares = np.empty(len(users)), np.empty(len(users))
    candidates = Candidates(dataset, split, SEED)
    cutoff = min(CUTOFF, dataset.catalog.n_items)
    with judging(scorer) as judge:
        for chunk, scores, _ in scored(judge, scorer.length, dataset, candidates, users, batch, device):
            top = scores[:, 1:].topk(cutoff).indices.cpu().numpy() + 1
            for user, listed in zip(chunk, top, strict=True):
                basket = items[starts[user] : starts[user + 1]]
                hits = np.isin(listed, basket)
                gains[user] = (hits * discounts[:cutoff]).sum() / best[min(len(basket), cutoff) - 1]
                shares[user] = hits.sum() / len(basket)
    return dict(zip(BASKET_METRICS, _mean_and_error([gains, shares]), strict=True))


def _mean_and_error(columns: Sequence[np.ndarray]) -> list[float]:
    intervals = [Interval.of(column) for column in columns]
    return [number for interval in intervals for number in (interval.mean, interval.error)]
