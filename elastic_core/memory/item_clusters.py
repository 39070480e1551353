"""Clusters of items in the place of experts: what would a memory be worth that had learned nothing about people?

As many clusters as there are experts (k-means of the model's own item vectors, at unit length). A user gets the k clusters
that take more of their history than of everybody's, as votes retrieve experts.
"""

import numpy as np
import torch

from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Dataset
from elastic_core.memory.routing_metrics import mean_shares


def cluster_users(model: Recommender, dataset: Dataset, clusters: int, k: int, seed: int = 0) -> np.ndarray:
    """int64 [users, k]: the clusters of every user's readable history, best first."""
    from sklearn.cluster import KMeans  # a second to import

    vectors = model.events.items.weight[1 : dataset.catalog.n_items + 1].detach().float()
    unit = torch.nn.functional.normalize(vectors, dim=1).cpu().numpy()
    chosen = KMeans(min(clusters, len(unit)), n_init=1, random_state=seed).fit_predict(unit)
    belongs = np.zeros((dataset.catalog.n_items + 1, chosen.max() + 1), np.float32)
    belongs[np.arange(1, len(chosen) + 1), chosen] = 1
    starts, ends = dataset.histories.offsets[:-1], dataset.split_ends("test")
    shares = np.stack(
        [
            mean_shares(dataset.histories.items[None, max(start, end - model.length) : end], belongs)[0]
            for start, end in zip(starts, ends, strict=True)
        ]
    )
    return np.argsort(shares.mean(0) - shares, axis=1, kind="stable")[:, :k]
