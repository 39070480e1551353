"""What is really behind a planted world, and how well a model's experts recover it.

Recovery compares two labellings of the same events (or items): purity, and adjusted mutual information, which is 0 for
a random labelling and 1 for the same partition (Vinh, Epps and Bailey, JMLR 11, 2010; mean of the entropies as norm).
"""

from dataclasses import dataclass

import numpy as np
from numpy import ndarray

SUCCESSOR_SHARES = (0.6, 0.25, 0.15)  # an item's first, second and third successor within its interest
NOISE = -1


@dataclass(frozen=True, eq=False)
class Truth:
    """The planted interests, aligned with the dense ids and events of the Dataset that carries them."""

    interests: tuple[str, ...]
    item_interest: ndarray  # int32 [n_items + 1]; -1 for padding
    event_interest: ndarray  # int32 [events]; -1 for an event drawn from global popularity
    user_mixture: ndarray  # float32 [users, interests], in force at the user's last event; rows sum to 1
    successors: ndarray  # int32 [n_items + 1, 3], dense ids in order of probability; 0 where dropped by the k-core
    popularity: ndarray  # float64 [n_items + 1], relative
    determinism: float
    noise: float

    def oracle(self, items: ndarray, starts: ndarray, ends: ndarray, users: ndarray) -> ndarray:
        """float64 [B, n_items + 1]: the next item's distribution, given who the user is and what truly moved them.

        Reads the events starts[b]:ends[b] of the flat `items`. A ceiling for any model, not a rival: it knows the mixture in
        force and each event's interest. It is exact but for interests that left and came back, and dropped items.
        """
        scores = np.zeros((len(ends), len(self.item_interest)))
        popular = self.popularity / self.popularity.sum()
        member = self.item_interest[None, :] == np.arange(len(self.interests))[:, None]
        within = member * self.popularity
        within = within / np.maximum(within.sum(1, keepdims=True), 1e-300)
        for row, (start, end, user) in enumerate(zip(starts, ends, users, strict=True)):
            scores[row] = self.noise * popular
            for interest in np.flatnonzero(self.user_mixture[user]):
                share = (1 - self.noise) * float(self.user_mixture[user, interest])
                met = np.flatnonzero(self.event_interest[start:end] == interest)
                follow = self.determinism if len(met) else 0.0
                scores[row] += share * (1 - follow) * within[interest]
                if len(met):
                    np.add.at(scores[row], self.successors[items[start + met[-1]]], share * follow * np.array(SUCCESSOR_SHARES))
            scores[row, [0, int(items[end - 1])]] = 0  # padding, and the item just met: never twice in a row
        return scores


def recovery(found: ndarray, truth: ndarray) -> dict[str, float]:
    """Purity and adjusted mutual information (Vinh et al. 2010) of found labels (experts) against true ones, without noise."""
    from sklearn.metrics import adjusted_mutual_info_score  # a second to import, for worlds whose truth is known alone
    from sklearn.metrics.cluster import contingency_matrix

    kept = np.asarray(truth) != NOISE
    labels, true = np.asarray(found)[kept], np.asarray(truth)[kept]
    common = contingency_matrix(true, labels).max(0).sum() if len(true) else 0  # events of a label's commonest true one
    return {"purity": float(common / max(len(true), 1)), "ami": float(adjusted_mutual_info_score(true, labels))}
