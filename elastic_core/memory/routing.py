"""Is the memory alive? How a population's retrievals spread over the experts, with a chance baseline (Figure 4).

Load of an expert: in how many people's retrievals it is. Traffic: the same, weighted by gate.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy import ndarray

from elastic_core.core.batches import Batch, reading_batch
from elastic_core.core.contract import Recommender, Retrieved, as_retrieving_model, can_retrieve
from elastic_core.core.histories import Dataset, Split
from elastic_core.errors import InputError

MOST_EXPERTS = 65_536  # 256²: up to how many are looked at one by one (maps, surveys, neighbours)
MOST_LOADS = 60_000_000  # numbers that the random router's draws may take together
HOT, USUAL, COLD, DEAD = "hot", "usual", "cold", "dead"


@dataclass(frozen=True)
class RoutedUsers:
    """One row per person: `experts [U, k]`, `gates [U, k]`; per expert `load [K]` and `traffic [K]`; `spectrum [d]`."""

    experts: ndarray
    gates: ndarray
    load: ndarray
    traffic: ndarray
    spectrum: ndarray  # shares of variance along the principal axes of the query as the sub-keys see it
    raw_spectrum: ndarray  # the same before normalisation
    length_correlation: float  # |correlation| of the raw query's first axis with history length

    @property
    def used_share(self) -> float:
        """Share of experts that anybody retrieves."""
        return float((self.load > 0).mean())

    @property
    def entropy(self) -> float:
        """Entropy of the load, 1 = uniform."""
        share = self.load / max(self.load.sum(), 1)
        return float(-(share[share > 0] * np.log(share[share > 0])).sum() / np.log(len(share)))

    @property
    def gini(self) -> float:
        return gini_index(self.load)

    def random_router(self, draws: int = 200, seed: int = 0) -> tuple[ndarray, ndarray, float]:
        """A router that picks k distinct experts uniformly: 2.5% and 97.5% of the *sorted* load, and its mean used share.

        No more than people · k experts have a load, and no more are held; of more than 300,000 there are fewer draws."""
        n_users, k = self.experts.shape
        size = len(self.load)
        most = min(size, n_users * k)
        draws = int(np.clip(MOST_LOADS // most, 20, draws))
        loads = np.zeros((draws, most), np.int64)
        for row, experts in zip(loads, random_choices(n_users, k, size, draws, seed), strict=True):
            sorted_loads = np.sort(np.unique(experts, return_counts=True)[1])
            row[most - len(sorted_loads) :] = sorted_loads
        low, high = (np.pad(np.quantile(loads, share, axis=0), (size - most, 0)) for share in (0.025, 0.975))
        return low, high, float((loads > 0).sum() / (draws * size))

    def usage_summary(self) -> dict[str, float]:
        return {"used": round(self.used_share, 4), "entropy": round(self.entropy, 4), "gini": round(self.gini, 4)}


def gini_index(load: ndarray) -> float:
    """0 = everyone carries the same load, towards 1 = one expert carries all."""
    ordered = np.sort(load).astype(float)
    n, total = len(ordered), max(ordered.sum(), 1e-12)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * total))


@torch.inference_mode()
def route_users(
    model: Recommender, dataset: Dataset, split: Split = "valid", batch: int = 512, users: ndarray | None = None
) -> RoutedUsers:
    """What histories retrieve at `split` (first layer's retrieval): those of `users`, by default everybody's."""
    users, ends = np.arange(dataset.histories.n_users) if users is None else users, dataset.split_ends(split)
    parts = (users[at : at + batch] for at in range(0, len(users), batch))
    retrievals = [
        (each.experts, each.gates.float(), each.query.float(), each.raw.float())
        for each in retrieve_batches(model, (reading_batch(dataset, rows, ends[rows], model.length) for rows in parts))
    ]
    chosen, weights, queries, before = (torch.cat(each).cpu().numpy() for each in zip(*retrievals, strict=True))
    size = as_retrieving_model(model).n_experts
    lengths = np.minimum((ends - dataset.histories.offsets[:-1])[users], model.length)
    return RoutedUsers(
        experts=chosen,
        gates=weights,
        load=np.bincount(chosen.ravel(), minlength=size),
        traffic=np.bincount(chosen.ravel(), weights=weights.ravel(), minlength=size),
        spectrum=_variance_shares(queries),
        raw_spectrum=_variance_shares(before),
        length_correlation=_first_axis_correlation(before, lengths),
    )


def retrieve_batches(model: Recommender, batches: Iterable[Batch]) -> Iterator[Retrieved]:
    """What batches of histories retrieve, as they are served."""
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    for batch in batches:
        yield as_retrieving_model(model).retrieve(batch.to(device))
    model.train(was_training)


def too_many_experts(model: Recommender) -> str:
    """Why not every expert of this model is looked at, a sentence without its stop; nothing if it is."""
    if not can_retrieve(model) or model.n_experts <= MOST_EXPERTS:
        return ""
    return f"this memory has {model.n_experts:,} experts, and up to {MOST_EXPERTS:,} are looked at one by one"


def check_expert_count(model: Recommender) -> None:
    """Raises InputError with that sentence."""
    if reason := too_many_experts(model):
        raise InputError(reason)


def _variance_shares(x: ndarray) -> ndarray:
    values = np.linalg.svd(x - x.mean(0), compute_uv=False) ** 2
    return values / max(values.sum(), 1e-12)


def _first_axis_correlation(x: ndarray, lengths: ndarray) -> float:
    u, s, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    if lengths.std() == 0 or s[0] == 0:
        return 0.0
    return float(abs(np.corrcoef(u[:, 0], np.log(lengths))[0, 1]))


# --- the router that picks at random ----------------------------------------------------------------------------------


def random_choices(n_users: int, k: int, size: int, draws: int, seed: int) -> Iterator[ndarray]:
    """`[n_users, k]` different experts for each person, uniformly at random, `draws` times."""
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        if k * k > size:
            yield rng.random((n_users, size)).argpartition(k - 1, axis=1)[:, :k]
            continue
        chosen = rng.integers(size, size=(n_users, k))
        users_with_repeats = np.arange(n_users)
        while len(users_with_repeats):  # whoever got the same expert twice draws anew
            ordered = np.sort(chosen[users_with_repeats], axis=1)
            users_with_repeats = users_with_repeats[(ordered[:, 1:] == ordered[:, :-1]).any(1)]
            chosen[users_with_repeats] = rng.integers(size, size=(len(users_with_repeats), k))
        yield chosen


def random_load_limits(traffic: RoutedUsers) -> tuple[int, int]:
    """What the random router gives any one expert in 95% of cases (2.5% and 97.5% quantile)."""
    n_users, k = traffic.experts.shape
    return binomial_load_limits(n_users, k, len(traffic.load))


def binomial_load_limits(n_users: int, k: int, size: int) -> tuple[int, int]:
    """The same from the numbers: it picks k different experts for each person, so its load is binomial with share k / K."""
    from scipy.special import bdtr

    below = bdtr(np.arange(n_users + 1), n_users, min(k / size, 1.0))
    return int(np.searchsorted(below, 0.025)), int(np.searchsorted(below, 0.975))


def limits_of(values: Sequence[float] | ndarray) -> tuple[float, float]:
    """2.5% and 97.5% quantile."""
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def load_status(load: ndarray, limits: tuple[float, float]) -> ndarray:
    """How busy: above, within or below what the random router gives, or never used."""
    return np.select([load == 0, load > limits[1], load < limits[0]], [DEAD, HOT, COLD], USUAL)
