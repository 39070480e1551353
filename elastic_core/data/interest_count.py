"""How many interests do these histories show? Groups of items that users choose together, more than by chance.

Correspondence analysis: of the user × item matrix x (1 where the user has the item), with its margins taken off,

    s = singular values of  x_ui / √(r_u c_i),   r_u, c_i: how many items the user, users the item has

G groups without anything in common make G singular values near 1; the first is 1 always. Parallel analysis (Horn 1965) says which
of the others are more than noise: those above the largest of the same matrix with its items dealt anew, so that every user has as
many and every item is as popular. In made-up worlds that is the number of interests to within one in 18 of 20
(tests/data/test_interest_count.py). Real people's interests overlap and come in all sizes; small ones that few users share are
missed, and groups that have nothing to do with taste (a city, a season) count.
"""

from typing import NamedTuple

import numpy as np
from numpy import ndarray
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from elastic_core.data import Dataset

MAX_COUNTED = 400


class InterestCount(NamedTuple):
    """`singular_values` without the first, in falling order; `chance`: the largest of the same without any interests."""

    interests: int
    singular_values: ndarray
    chance: float


def count_interests(dataset: Dataset, seed: int = 0) -> InterestCount:
    """At most `MAX_COUNTED` + 1; some seconds for a million events."""
    histories = dataset.histories
    users = np.repeat(np.arange(histories.n_users, dtype=np.int64), histories.lengths)
    pairs = np.unique(users * (dataset.catalog.n_items + 1) + histories.items)
    users, items = np.divmod(pairs, dataset.catalog.n_items + 1)
    rng = np.random.default_rng(seed)
    values = _singular_values(users, items, MAX_COUNTED)
    chance = max(_singular_values(users, rng.permutation(items), 1)[0] for _ in range(2))
    return InterestCount(1 + int((values > chance).sum()), values, float(chance))


def _singular_values(users: ndarray, items: ndarray, most: int) -> ndarray:
    """The largest after the first, in falling order."""
    _, columns = np.unique(items, return_inverse=True)
    matrix = csr_array((np.ones(len(users)), (users, columns)))
    matrix.data[:] = 1.0  # a pair that was dealt twice counts once
    scaled = matrix.multiply(1 / np.sqrt(matrix.sum(1))[:, None]).multiply(1 / np.sqrt(matrix.sum(0))[None, :])
    values = svds(csr_array(scaled), k=min(most + 1, min(matrix.shape) - 1), return_singular_vectors=False, random_state=0)
    return np.sort(values)[::-1][1:]
