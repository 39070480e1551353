"""What is really behind a planted world, and how well a model's experts recover it.

Recovery compares two labellings of the same events (or items): purity, and adjusted mutual information, which is 0 for
a random labelling and 1 for the same partition (Vinh, Epps and Bailey, JMLR 11, 2010; mean of the entropies as norm).
"""

import math
from dataclasses import dataclass

import numpy as np

SUCCESSOR_SHARES = (0.6, 0.25, 0.15)  # an item's first, second and third successor within its interest
NOISE = -1


@dataclass(frozen=True, eq=False)
class Truth:
    """The planted interests, aligned with the dense ids and events of the Dataset that carries them."""

    interests: tuple[str, ...]
    item_interest: np.ndarray  # int32 [n_items + 1]; -1 for padding
    event_interest: np.ndarray  # int32 [events]; -1 for an event drawn from global popularity
    user_mixture: np.ndarray  # float32 [users, interests], in force at the user's last event; rows sum to 1
    successors: np.ndarray  # int32 [n_items + 1, 3], dense ids in order of probability; 0 where dropped by the k-core
    popularity: np.ndarray  # float64 [n_items + 1], relative
    determinism: float
    noise: float

    def oracle(self, items: np.ndarray, starts: np.ndarray, ends: np.ndarray, users: np.ndarray) -> np.ndarray:
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


def contingency(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """int64 [labels found, labels true]: how often each pair of labels meets. Any integer labels will do."""
    _, rows = np.unique(found, return_inverse=True)
    _, columns = np.unique(truth, return_inverse=True)
    width = int(columns.max()) + 1 if len(columns) else 0
    height = int(rows.max()) + 1 if len(rows) else 0
    return np.bincount(rows * width + columns, minlength=height * width).reshape(height, width)


def purity(table: np.ndarray) -> float:
    """Share of events whose found label's commonest true label is theirs; `table` is a contingency table."""
    return float(table.max(axis=1).sum() / table.sum()) if table.sum() else 0.0


def adjusted_mutual_information(table: np.ndarray) -> float:
    """(MI - E[MI]) / (mean entropy - E[MI]) of a contingency table of whole counts."""
    table = table[table.sum(1) > 0][:, table.sum(0) > 0].astype(np.int64)
    rows, columns = table.sum(1), table.sum(0)
    if min(table.shape) == 0 or table.shape == (1, 1):
        return 1.0
    if 1 in table.shape:
        return 0.0
    if np.count_nonzero(table) == table.shape[0] == table.shape[1]:
        return 1.0  # the same partition; the quotient may be 0 / 0 when every label is met once
    total = int(table.sum())
    i, j = np.nonzero(table)
    joint = table[i, j] / total
    mutual = float((joint * (np.log(joint) - np.log(rows[i] / total) - np.log(columns[j] / total))).sum())
    expected = _expected_mutual(rows, columns, total)
    room = (_entropy(rows, total) + _entropy(columns, total)) / 2 - expected
    return (mutual - expected) / max(room, float(np.finfo(np.float64).eps))


def recovery(found: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Purity and adjusted mutual information of found labels (experts) against true ones; noise (-1) is left out."""
    kept = np.asarray(truth) != NOISE
    table = contingency(np.asarray(found)[kept], np.asarray(truth)[kept])
    return {"purity": purity(table), "ami": adjusted_mutual_information(table), "events": float(kept.sum())}


def _entropy(counts: np.ndarray, total: int) -> float:
    share = counts[counts > 0] / total
    return float(-(share * np.log(share)).sum())


def _expected_mutual(rows: np.ndarray, columns: np.ndarray, total: int) -> float:
    """Vinh et al., eq. 24a: mutual information averaged over all tables with these margins (hypergeometric)."""
    # log n! for every n that can occur. Equal margins give equal terms, so each pair of sizes is summed once.
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, total + 1)))])
    row_sizes, row_times = np.unique(rows, return_counts=True)
    column_sizes, column_times = np.unique(columns, return_counts=True)
    expected = 0.0
    for a, times_a in zip(row_sizes.tolist(), row_times.tolist(), strict=True):
        for b, times_b in zip(column_sizes.tolist(), column_times.tolist(), strict=True):
            n = np.arange(max(1, a + b - total), min(a, b) + 1)
            log_chance = (
                log_factorial[a] + log_factorial[b] + log_factorial[total - a] + log_factorial[total - b] - log_factorial[total]
            ) - (log_factorial[n] + log_factorial[a - n] + log_factorial[b - n] + log_factorial[total - a - b + n])
            gain = n / total * (np.log(n) + math.log(total) - math.log(a) - math.log(b))
            expected += times_a * times_b * float((gain * np.exp(log_chance)).sum())
    return expected
