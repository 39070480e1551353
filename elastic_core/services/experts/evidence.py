"""Is a genre over-represented around an expert, or is that chance? Ratios of means with intervals.

A genre here is what an item may be called: its genres and its decade (`data.item_features.trait_table`).
lift = mean share of the genre among the expert's people / mean share it is compared with. The interval is normal in
log(lift) with the standard error of a ratio estimator over people (Cochran 1977, §6.4); it is widened so that all G genres
of an expert hold together in 95% of cases (Bonferroni), because a label is the best of G looks.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd

from elastic_core.data import Dataset
from elastic_core.data.item_features import trait_table

FEWEST = 5  # people who must have met the genre at all before anything is claimed
RAREST = 0.005  # a genre below this share of what it is compared with is left out


class Label(NamedTuple):
    """The genres an expert stands for, the strongest first, with the evidence of the first."""

    genres: tuple[str, ...]
    lift: float
    low: float
    high: float
    n: int

    @property
    def is_weak(self) -> bool:
        """Say whether the interval includes 1 (or there are too few people to say)."""
        return not self.low > 1

    @property
    def text(self) -> str:
        return " · ".join(self.genres) or "no label"


@dataclass(frozen=True, eq=False)
class Evidence:
    """`shares` of each genre around an expert against `base`, over the people who retrieve it.

    experts [U, k]; shares [U, G] (a person's history) or [U, k, G] (what each of their experts reads of it);
    base [G] (one for all) or [U, G] (each person's own).
    """

    genres: tuple[str, ...]
    experts: np.ndarray
    shares: np.ndarray
    base: np.ndarray

    def genre_table(self, expert: int) -> pd.DataFrame:
        """Return genre, share, base, lift, low, high, n (people) of one expert, best lower bound first. Empty if too few
        people."""
        frame = pd.DataFrame(self._lifts(expert), columns=["share", "base", "lift", "low", "high"])
        frame.insert(0, "genre", np.array(self.genres, dtype=object))
        frame["n"] = (self.experts == expert).sum()
        return frame.dropna(subset=["low"]).sort_values("low", ascending=False, kind="stable", ignore_index=True)

    def select_users(self, users: np.ndarray) -> "Evidence":
        """Return the same of some people, bool [U], against what those people have."""
        base = self.base[users] if self.base.ndim == 2 else self.shares[users].mean(0)
        return Evidence(self.genres, self.experts[users], self.shares[users], base)

    @cached_property
    def _labels(self) -> dict[int, Label]:
        return {}

    def label(self, expert: int) -> Label:
        """Return up to two genres whose interval lies above 1; otherwise the best one, which is then weak. Pages ask again."""
        if expert not in self._labels:
            self._labels[expert] = self._label(expert)
        return self._labels[expert]

    def _label(self, expert: int) -> Label:
        lifts = self.genre_table(expert)
        if lifts.empty:
            return Label((), math.nan, math.nan, math.nan, int((self.experts == expert).sum()))
        best = lifts.iloc[0]
        names = tuple(lifts["genre"][lifts["low"] > 1][:2]) or (best["genre"],)
        return Label(names, float(best["lift"]), float(best["low"]), float(best["high"]), int(best["n"]))

    def count_labelled(self) -> int:
        """Count how many experts have a genre whose interval lies above 1."""
        return int((self.top_genres["low"] > 1).sum())

    @cached_property
    def top_genres(self) -> pd.DataFrame:
        """Return the best genre of every expert number that occurs: index expert; genre, lift, low, high."""
        rows = {}
        for expert in np.unique(self.experts).tolist():
            lifts = self._lifts(expert)
            if np.isfinite(lifts[:, 3]).any():
                best = int(np.nanargmax(lifts[:, 3]))
                rows[expert] = (self.genres[best], *lifts[best, 2:])
        return pd.DataFrame.from_dict(rows, orient="index", columns=["genre", "lift", "low", "high"])

    def _lifts(self, expert: int, z: float | None = None) -> np.ndarray:
        """Return share, base, lift, low, high of every genre, `[G, 5]`; NaN where nothing can be said. The interval reaches `z`
        standard errors either way; without it, as far as holds for all genres together."""
        users, ranks = np.nonzero(self.experts == expert)
        n = len(users)
        if n < FEWEST:
            return np.full((len(self.genres), 5), np.nan)
        shares = (self.shares[users] if self.shares.ndim == 2 else self.shares[users, ranks]).astype(float)
        base = np.broadcast_to(self.base if self.base.ndim == 1 else self.base[users], shares.shape).astype(float)
        share, against = shares.mean(0), base.mean(0)
        usable = (against >= RAREST) & ((shares > 0).sum(0) >= FEWEST)
        lift = np.where(usable, share / np.where(usable, against, 1), np.nan)
        error = (shares - lift * base).std(0, ddof=1) / np.sqrt(n) / np.where(usable, share, np.nan)
        reach = error * (NormalDist().inv_cdf(1 - 0.025 / len(self.genres)) if z is None else z)
        return np.stack([share, against, lift, lift * np.exp(-reach), lift * np.exp(reach)], axis=1)


@dataclass(frozen=True)
class ExpertName:
    """A genre that was chosen for an expert on half of the people, and what it was on the other half."""

    genre: str
    lift: float  # mean share around the expert / mean share it is compared with, over people of the other half
    low: float  # the same two standard errors lower
    n: int  # people of the other half who retrieve it

    @property
    def holds(self) -> bool:
        """Say whether it is more common among people that it was not chosen on."""
        return self.low > 1


class NameCheck(NamedTuple):
    """How often people whom no name was chosen on choose next what their experts are called. `dealt`, from `low` to `high` (95%):
    the same with the names dealt out among the named experts at random."""

    named: int  # experts whose name holds
    share: float
    dealt: float
    low: float
    high: float


def learning_half(n_users: int, seed: int = 0) -> np.ndarray:
    """Return the people on whom names are chosen, bool [n_users]; on the others they are tested."""
    return np.random.default_rng(seed).permutation(n_users) < n_users // 2


def name_experts(evidence: Evidence, seed: int = 0) -> dict[int, ExpertName]:
    """Return a name for every expert that has one: chosen on half of the people (the best lower bound, above 1 for all genres
    together), tested on the others."""
    first = learning_half(len(evidence.experts), seed)
    learned, tested = evidence.select_users(first), evidence.select_users(~first)
    tops = learned.top_genres[learned.top_genres["low"] > 1]
    names = {}
    for expert, genre in tops["genre"].items():
        _, _, lift, low, _ = tested._lifts(int(expert), z=2.0)[evidence.genres.index(genre)]
        names[int(expert)] = ExpertName(genre, float(lift), float(low), int((tested.experts == expert).sum()))
    return names


def count_fitting_names(names: Mapping[int, ExpertName], evidence: Evidence) -> np.ndarray:
    """Return how many different names fit the experts of every person, int64 [U]: of their own items, too, three in ten that the
    expert holds are of this genre, and twice as many as they have (where a model does not say what it holds, every name fits)."""
    fitting: list[set[str]] = [set() for _ in evidence.experts]
    for expert, name in names.items():
        users, ranks = np.nonzero(evidence.experts == expert) if name.holds else ((), ())
        genre = evidence.genres.index(name.genre)
        for user, rank in zip(users, ranks, strict=True):
            if evidence.shares.ndim == 2 or evidence.shares[user, rank, genre] >= max(0.3, 2 * evidence.base[user, genre]):
                fitting[user].add(name.genre)
    return np.array([len(each) for each in fitting])


def check_names(names: Mapping[int, ExpertName], dataset: Dataset, experts: np.ndarray, deals: int = 40) -> NameCheck | None:
    """Ask the held-out next items of the people on whom no name was chosen, who retrieve `experts` [U, k]; None where no name
    holds."""
    genres, holds = trait_table(dataset.catalog)
    genre_of = np.full(int(experts.max()) + 1, -1)
    for expert, name in names.items():
        if name.holds and expert < len(genre_of):
            genre_of[expert] = genres.index(name.genre)
    named = np.flatnonzero(genre_of >= 0)
    tested = np.flatnonzero(~learning_half(len(experts)) & (genre_of[experts] >= 0).any(1))
    if not len(tested):
        return None
    ends, histories = dataset.split_ends("test"), dataset.histories
    next_genres = np.stack([holds[histories.items[ends[user] : histories.offsets[user + 1]]].mean(0) for user in tested])

    def share(genre_of: np.ndarray) -> float:
        own = genre_of[experts[tested]]
        chosen = np.where(own >= 0, np.take_along_axis(next_genres, np.maximum(own, 0), 1), 0)
        return float((chosen.sum(1) / (own >= 0).sum(1)).mean())

    rng, dealt = np.random.default_rng(0), []
    for _ in range(deals):
        shuffled = genre_of.copy()
        shuffled[named] = rng.permutation(genre_of[named])
        dealt.append(share(shuffled))
    low, high = np.quantile(dealt, (0.025, 0.975))
    return NameCheck(len(named), share(genre_of), float(np.mean(dealt)), float(low), float(high))


def count_names(evidence: Evidence) -> int:
    """Count the experts whose name holds on the other half of the people."""
    return sum(name.holds for name in name_experts(evidence).values())


def count_names_by_chance(evidence: Evidence, times: int = 5) -> float:
    """Return the same with experts dealt out to people at random, each as often as before; the mean of some deals."""
    rng, experts = np.random.default_rng(0), evidence.experts
    return float(np.mean([count_names(replace(evidence, experts=experts[rng.permutation(len(experts))])) for _ in range(times)]))
