"""Is the memory used evenly, and is what looks uneven more than chance? Load, marginals, Lorenz curve, health, null model.

Load of an expert: how many people retrieve it, or the sum of their gates (scaled so that both add up to people · k). The
null model is a router that picks k different experts for each person at random and gives them that person's own gates.
Health: share used, KL to uniform, Gini, and how many experts hold 50/90/99% of the traffic (Lample et al., 2019).
"""

from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.memory.routing import RoutedUsers, binomial_load_limits, gini_index, limits_of, load_status, random_choices
from elastic_core.memory.user_experts import expert_grid
from elastic_core.services.person.inspect import common_genres
from elastic_core.services.person.user_lookup import genre_share

Measure = Literal["people", "gate"]
EVERYBODY, SHORT, LONG, FANS = "Everybody", "The quarter with the shortest histories", "The quarter with the longest", "Fans of "


class Traffic(NamedTuple):
    """What a group of people retrieves: `experts [U, k]`, what each choice weighs, and the number of experts in the memory."""

    experts: np.ndarray
    weights: np.ndarray  # the measure: ones, or gates
    gates: np.ndarray
    size: int

    @property
    def n_users(self) -> int:
        return len(self.experts)

    @property
    def n_subkeys(self) -> int:
        return round(self.size**0.5)

    @property
    def equal_load(self) -> float:
        """The load of every expert if all carried the same."""
        return float(self.weights.sum() / self.size)

    @property
    def load(self) -> np.ndarray:
        return _count_retrievals(self.experts, self.weights, self.size)


def length_groups(dataset: Dataset) -> list[str]:
    """Groups of people that can be looked at on their own."""
    return [EVERYBODY, SHORT, LONG, *(FANS + genre for genre in common_genres(dataset, top=18))]


def group_table(dataset: Dataset, name: str, split: Split) -> np.ndarray:
    """bool [users]. Fans of a genre: the quarter in whose readable history it has the largest share. Ties by number."""
    histories, lengths = dataset.histories, dataset.readable_lengths(split)
    if name == EVERYBODY:
        return np.ones(histories.n_users, dtype=bool)
    if name.startswith(FANS):
        rank = -genre_share(dataset, name.removeprefix(FANS), split)
    else:
        rank = lengths if name == SHORT else -lengths
    return np.isin(np.arange(histories.n_users), np.argsort(rank, kind="stable")[: max(histories.n_users // 4, 1)])


def select_traffic(routing: RoutedUsers, users: np.ndarray, measure: Measure) -> Traffic:
    """The choices of `people` (bool [users]). Gates are scaled to mean 1, so that both measures have the same total."""
    experts, gates = routing.experts[users], routing.gates[users].astype(float)
    gates = gates / gates.mean()
    return Traffic(experts, gates if measure == "gate" else np.ones_like(gates), gates, len(routing.load))


def load_divergence(load: np.ndarray) -> float:
    """Kullback-Leibler divergence of the load from uniform, in nats: 0 = even, log K = one expert carries all."""
    share = load[load > 0] / load.sum()
    return max(float((share * np.log(share * len(load))).sum()), 0.0)


def count_holders(load: np.ndarray, share: float) -> int:
    """The smallest number of experts that together carry this share of the traffic."""
    ordered = np.sort(load)[::-1].cumsum()
    return int(np.searchsorted(ordered, share * ordered[-1] * (1 - 1e-12))) + 1


def by_marginals(load: np.ndarray) -> float:
    """Share of the variance of the load that row load times column load accounts for (squared correlation)."""
    n_subkeys = round(len(load) ** 0.5)
    grid = load.reshape(n_subkeys, n_subkeys)
    fitted = np.outer(grid.sum(1), grid.sum(0)).ravel()
    return float(np.corrcoef(load, fitted)[0, 1] ** 2) if load.std() > 0 and fitted.std() > 0 else 0.0


def health_of(now: Traffic) -> dict[str, float]:
    """How evenly this traffic is spread; KL is always given both ways, the rest by its own measure."""
    load = now.load
    return {
        "used": float((load > 0).mean()),
        "gini": gini_index(load),
        "kl": load_divergence(np.bincount(now.experts.ravel(), minlength=now.size)),
        "kl_weighted": load_divergence(_count_retrievals(now.experts, now.gates, now.size)),
        "half": count_holders(load, 0.5),
        "ninety": count_holders(load, 0.9),
        "ninety_nine": count_holders(load, 0.99),
        "marginals": by_marginals(load),
    }


class UsageReport(NamedTuple):
    """What a group of people retrieves beside a router that picks at random: 2.5% and 97.5% limits over `draws` simulations."""

    now: Traffic
    experts: pd.DataFrame  # expert, row, column, load, share, times (of the even load), state: dead, cold, usual or hot
    sides: pd.DataFrame  # of every row and column of sub-keys: half (row, column), key, load, dead (experts in it), state
    each: tuple[float, float]  # limits of the load of any one expert
    line: tuple[float, float]  # … of any one row or column
    ordered: np.ndarray  # [2, K] … of the load in order, the hottest first
    top: np.ndarray  # [K] mean share of the traffic that the hottest 1, 2, … hold
    health: pd.DataFrame  # a row each of `health_of`: here, low, mean, high
    draws: int


def compare_with_random_router(now: Traffic, draws: int = 200) -> UsageReport:
    """Simulate the random router. Fewer draws for very large memories, so that it stays quick."""
    draws = int(np.clip(20_000_000 // max(now.size, now.experts.size * 4), 20, draws))
    ordered, lines, rows, loads = [], [], [], []
    for experts in random_choices(now.n_users, now.experts.shape[1], now.size, draws, seed=0):
        null = now._replace(experts=experts)
        load = null.load
        ordered.append(np.sort(load)[::-1].astype(np.float32))
        lines.append(_sum_lines(load.reshape(now.n_subkeys, now.n_subkeys)))
        loads.append(load[:: max(now.size // 4096, 1)])
        rows.append(health_of(null))
    frame, mean, load = pd.DataFrame(rows), np.mean(ordered, axis=0, dtype=float), now.load
    exact = binomial_load_limits(now.n_users, now.experts.shape[1], now.size)
    each, line = exact if (now.weights == 1).all() else limits_of(np.stack(loads)), limits_of(np.stack(lines))
    state, cells = load_status(load, each), load.reshape(now.n_subkeys, now.n_subkeys)
    halves, keys, line_loads = (
        np.repeat(["row", "column"], now.n_subkeys),
        np.tile(np.arange(now.n_subkeys), 2),
        _sum_lines(cells),
    )
    sides = pd.DataFrame(
        {"half": halves, "key": keys, "load": line_loads, "dead": _sum_lines(cells == 0), "state": load_status(line_loads, line)}
    )
    return UsageReport(
        now=now,
        experts=expert_grid(now.n_subkeys).assign(load=load, share=load / load.sum(), times=load / now.equal_load, state=state),
        sides=sides,
        each=each,
        line=line,
        ordered=np.quantile(ordered, (0.025, 0.975), axis=0),
        top=mean.cumsum() / now.weights.sum(),
        health=pd.DataFrame(
            {"here": health_of(now), "low": frame.quantile(0.025), "mean": frame.mean(), "high": frame.quantile(0.975)}
        ),
        draws=draws,
    )


def _sum_lines(cells: np.ndarray) -> np.ndarray:
    """Sum over every row and every column."""
    return np.concatenate([cells.sum(1), cells.sum(0)])


def load_by_batch(now: Traffic, top: int = 7, count: int = 12) -> pd.DataFrame:
    """Figure 4, right: batch (people in the data's order), people, expert, its share of the batch; the `top` busiest experts."""
    busiest, parts = np.argsort(-now.load, kind="stable")[:top], []
    for number, part in enumerate(np.array_split(np.arange(now.n_users), min(count, now.n_users)), start=1):
        load = _count_retrievals(now.experts[part], now.weights[part], now.size)
        share = load[busiest] / load.sum()
        parts.append(pd.DataFrame({"batch": number, "people": len(part), "expert": busiest, "share": share}))
    return pd.concat(parts, ignore_index=True)


def _count_retrievals(experts: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    return np.bincount(experts.ravel(), weights=weights.ravel(), minlength=size)
