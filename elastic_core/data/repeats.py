"""How often people choose again what they have seen, which decides whether seen items stay among the candidates."""

from typing import NamedTuple

import numpy as np

from elastic_core.core.histories import Dataset

OFTEN = 0.1  # of the people: from there on a list without seen items would be wrong by design


class Repeats(NamedTuple):
    """Of how many people the next item was one they had seen before."""

    again: int
    people: int

    @property
    def share(self) -> float:
        return self.again / max(self.people, 1)

    @property
    def stay(self) -> bool:
        """Whether seen items stay among the candidates, unless somebody says otherwise."""
        return self.share >= OFTEN


def count_repeats(dataset: Dataset) -> Repeats:
    """Of everybody, in the test."""
    histories = dataset.histories
    users = np.repeat(np.arange(histories.n_users), histories.lengths)
    before = np.arange(len(users)) < dataset.ends("test")[users]
    met = before & (histories.items == dataset.targets("test")[users])
    return Repeats(len(np.unique(users[met])), histories.n_users)
