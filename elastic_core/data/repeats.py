"""How often people choose again what they have seen, which decides whether seen items stay among the candidates, and in lists."""

from typing import NamedTuple

import numpy as np

from elastic_core.core.histories import Dataset, Split

OFTEN = 0.1  # of the people: from there on a list without seen items would be wrong by design, and numbers are those with them
ONLY_UNSEEN, WITH_SEEN = "full", "full-seen"  # the protocols of all unseen items, and of all items


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


def count_repeats(dataset: Dataset, split: Split = "test") -> Repeats:
    """Of everybody who has a target in this split."""
    histories, target_users = dataset.histories, dataset.users_with_target(split)
    users = np.repeat(np.arange(histories.n_users), histories.lengths)
    before = np.arange(len(users)) < dataset.split_ends(split)[users]
    again = users[before & (histories.items == dataset.target_items(split)[users])]
    return Repeats(int(np.isin(target_users, again).sum()), len(target_users))


def fitting_protocol(dataset: Dataset) -> str:
    """The protocol that fits these data: all items where baskets are held out, or validation's targets are often seen ones."""
    return WITH_SEEN if dataset.in_baskets or count_repeats(dataset, "valid").stay else ONLY_UNSEEN
