"""A list of ten against a whole basket: how much of what a household bought next is on it?

The ranks of a test (ranks.py) are of one item of the held-out basket. Here all of its items count.
"""

import numpy as np
import torch

from elastic_core.core.candidates import SEED, Candidates
from elastic_core.core.evaluate import ItemScorer, evaluation_mode, score_batches
from elastic_core.core.histories import Dataset, Split
from elastic_core.runs.ranks import Interval

CUTOFF = 10
BASKET_METRICS = ("basket NDCG@10", "basket NDCG@10 error", "basket recall@10", "basket recall@10 error")


def basket_scores(
    scorer: ItemScorer, dataset: Dataset, split: Split = "test", device: str | torch.device = "cpu", batch: int = 256
) -> dict[str, float]:
    """`BASKET_METRICS`, means over users and their standard errors; every item of the catalogue may be on the list.

    Recall is the share of the basket that is among the ten; NDCG discounts by place and is 1 for a list that begins with
    as many of the basket's items as fit."""
    users = dataset.users_with_target(split)
    discounts = 1 / np.log2(np.arange(CUTOFF) + 2)
    best = np.cumsum(discounts)  # of a list whose first 1, 2, … items are all in the basket
    gains, shares = np.empty(len(users)), np.empty(len(users))
    candidates = Candidates(dataset, split, SEED)
    cutoff = min(CUTOFF, dataset.catalog.n_items)
    with evaluation_mode(scorer) as judge:
        for chunk, scores, _ in score_batches(judge, scorer.length, dataset, candidates, users, batch, device):
            top = scores[:, 1:].topk(cutoff).indices.cpu().numpy() + 1
            for user, items_listed in zip(chunk, top, strict=True):
                basket = dataset.next_items(user, split)
                hits = np.isin(items_listed, basket)
                gains[user] = (hits * discounts[:cutoff]).sum() / best[min(len(basket), cutoff) - 1]
                shares[user] = hits.sum() / len(basket)
    ndcg, recall = Interval.from_values(gains), Interval.from_values(shares)
    return dict(zip(BASKET_METRICS, (ndcg.mean, ndcg.error, recall.mean, recall.error), strict=True))
