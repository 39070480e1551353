"""Rank every person's held-out item with any scorer, under one or more of four protocols, which say against which items:

full        every item, less those the person has seen before the target; a target that was seen before is missed
full-seen   every item (RecBole's full ranking of sequential models)
pop100, uniform100  100 others, drawn (candidates.py)

One forward pass per batch serves all protocols; of a large catalogue, a batch has fewer people.
What is found are ranks, one a person and protocol; every metric follows from them, so two reports can be compared in pairs
(results/compare.py) and a run keeps nothing but its ranks (runs/ranks.py).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from elastic_core.core.batches import Batch, reading_batch
from elastic_core.core.candidates import SEED, Candidates
from elastic_core.core.histories import Dataset, Split
from elastic_core.errors import InputError

# --- ranks and metrics -----------------------------------------------------------------------------------------------


CUTOFFS = (5, 10, 20)
KINDS = ("NDCG", "HR", "MRR")
NAMES = tuple(f"{kind}@{cutoff}" for kind in KINDS for cutoff in CUTOFFS)


@dataclass(frozen=True)
class Ranks:
    """Per user: candidates strictly above the target, and other candidates with the target's score (int [users])."""

    above: np.ndarray
    tied: np.ndarray

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        return cls(np.concatenate([p.above for p in parts]), np.concatenate([p.tied for p in parts]))

    def select_users(self, users: np.ndarray) -> Self:
        """Those of some users, in this order."""
        return type(self)(self.above[users], self.tied[users])

    @property
    def places(self) -> np.ndarray:
        """The place of the target, from 1, ties at their mean: float64 [users]."""
        return self.above + self.tied / 2 + 1


def rank_targets(scores: Tensor, targets: Tensor, candidates: Tensor) -> Ranks:
    """Where the target stands among the candidates.

    scores [B, n + 1] (column 0 is padding and never counts), targets int64 [B], candidates bool [B, n + 1]. A target that is
    no candidate is missed (`missed_rank`). A score of -inf is a legal last place.
    Raises InputError where a score other than padding's is NaN or +inf.
    """
    scores, candidates = scores[:, 1:], candidates[:, 1:]
    n_broken = int((~(scores.amax(1) < torch.inf)).sum())  # NaN wins every maximum
    if n_broken:
        raise InputError(f"the model gives NaN or +inf scores to {n_broken} of {len(scores)} users: it has diverged")
    column = (targets - 1).unsqueeze(1)
    own = scores.gather(1, column)  # [B, 1]
    above = ((scores > own) & candidates).sum(1, dtype=torch.int32)
    tied = ((scores == own) & candidates).sum(1, dtype=torch.int32) - 1
    is_missed = ~candidates.gather(1, column).squeeze(1)
    above, tied = above.masked_fill(is_missed, missed_rank(scores.shape[1])), tied.masked_fill(is_missed, 0)
    return Ranks(above.cpu().numpy(), tied.cpu().numpy())


def missed_rank(n_items: int) -> int:
    """How many items count as above a target that no list can hold: all, and in a small catalogue more than any cutoff."""
    return max(n_items, CUTOFFS[-1])


def expected_metrics(ranks: Ranks) -> dict[str, np.ndarray]:
    """Every metric in NAMES, per user (float64 [users]), in expectation over the order of ties."""
    return {name: expected_metric(ranks, name) for name in NAMES}


def expected_metric(ranks: Ranks, name: str) -> np.ndarray:
    """One of NAMES, likewise."""
    kind, _, text = name.partition("@")
    cutoff = int(text)
    gains = np.append(_rank_gains(kind, cutoff), 0.0)  # g(0) … g(K), 0 beyond
    cumulative = np.concatenate([[0.0], np.cumsum(gains[:-1])])  # G(0) … G(K), constant beyond
    first = np.minimum(ranks.above, cutoff)
    last = np.minimum(ranks.above + ranks.tied + 1, cutoff)
    mean = (cumulative[last] - cumulative[first]) / (ranks.tied + 1)
    return np.where(ranks.tied == 0, gains[first], mean)  # the difference of sums would cost a clear rank its last digits


def _rank_gains(kind: str, cutoff: int) -> np.ndarray:
    ranks = np.arange(cutoff, dtype=np.float64)
    if kind == "NDCG":
        return 1 / np.log2(ranks + 2)
    return 1 / (ranks + 1) if kind == "MRR" else np.ones(cutoff)


Judge = Callable[[Batch], Tensor]
MOST_SCORES = 25_600_000  # numbers in one batch's scores


class ItemScorer(Protocol):
    """Anything that can be judged: `score` gives [B, n_items + 1], of which column 0 (padding) is ignored.

    One with a method `prepare_scores()` is asked for it once, and what it returns gives the scores instead.
    """

    @property
    def length(self) -> int: ...

    def score(self, batch: Batch) -> Tensor: ...


def rank_users(
    scorer: ItemScorer,
    dataset: Dataset,
    split: Split,
    protocols: Sequence[str],
    users: np.ndarray | None = None,
    batch: int = 256,
    device: str | torch.device = "cpu",
    seed: int = SEED,
) -> dict[str, Ranks]:
    """Rank each person's target after the history that `split` lets a model read: by protocol, in the order of `users`.

    `users` are dense user numbers (None: everybody who is asked), `device` is where the scorer already lives, `seed` draws the
    sampled candidates. Raises InputError for unknown splits, protocols or people, and for scores that are NaN or +inf.
    """
    users = dataset.users_with_target(split) if users is None else users
    if not len(users) or not len(protocols) or batch < 1:
        raise InputError("an evaluation needs at least one user, one protocol and a batch of one")
    if users.min() < 0 or users.max() >= dataset.histories.n_users:
        raise InputError(f"users must lie in 0 … {dataset.histories.n_users - 1}")
    candidates = Candidates(dataset, split, seed)
    lengths = np.minimum(candidates.ends[users] - dataset.histories.offsets[users], scorer.length)
    order = lengths.argsort(kind="stable")  # people of like lengths together: little is spent on padding
    # There from the start: small arrays that stay between large ones that go would keep the allocator from using those again.
    ranks = {protocol: Ranks(*np.zeros((2, len(users)), dtype=np.int32)) for protocol in protocols}
    done = 0
    with evaluation_mode(scorer) as judge:
        for chunk, scores, targets in score_batches(judge, scorer.length, dataset, candidates, users[order], batch, device):
            rows = order[done : done + len(chunk)]
            for protocol in protocols:
                part = rank_targets(scores, targets, candidates.candidate_mask(protocol, chunk).to(device))
                ranks[protocol].above[rows], ranks[protocol].tied[rows] = part.above, part.tied
            done += len(chunk)
    return ranks


def mean_metrics(ranks: Ranks) -> dict[str, float]:
    """Every metric in NAMES, over people."""
    return {name: float(values.mean()) for name, values in expected_metrics(ranks).items()}


def draw_users(dataset: Dataset, count: int) -> np.ndarray | None:
    """So many people by chance, always the same ones; None, which means everybody, for 0 and where there are no more."""
    everybody = dataset.users_with_target("valid")
    return np.sort(np.random.default_rng(0).permutation(everybody)[:count]) if 0 < count < len(everybody) else None


def score_batches(
    judge: Judge,
    length: int,
    dataset: Dataset,
    candidates: Candidates,
    users: np.ndarray,
    batch: int = 256,
    device: str | torch.device = "cpu",
) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
    """Batches of people, their scores [B, n_items + 1] and targets int64 [B], to be read while `evaluation_mode`.

    `length` is how many events the model reads. Of a large catalogue, a batch has fewer people."""
    batch = max(1, min(batch, MOST_SCORES // (dataset.catalog.n_items + 1)))
    for start in range(0, len(users), batch):
        chunk = users[start : start + batch]
        scores = judge(reading_batch(dataset, chunk, candidates.ends[chunk], length).to(device))
        needed = (len(chunk), dataset.catalog.n_items + 1)
        if scores.shape != needed:
            shape = tuple(scores.shape)
            raise InputError(f"the model gives scores {shape} where the data needs {needed}: it is made for other data")
        yield chunk, scores, torch.from_numpy(candidates.targets[chunk].astype(np.int64)).to(device)


@contextmanager
def evaluation_mode(scorer: ItemScorer) -> Iterator[Judge]:
    """What gives the scores, prepared if it can be; no gradients, dropout off, the mode put back afterwards."""
    with _no_gradients(scorer):
        yield scorer.prepare_scores() if hasattr(scorer, "prepare_scores") else scorer.score


@contextmanager
def _no_gradients(scorer: ItemScorer) -> Iterator[None]:
    training = isinstance(scorer, nn.Module) and scorer.training
    if isinstance(scorer, nn.Module):
        scorer.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if isinstance(scorer, nn.Module):
            scorer.train(training)
