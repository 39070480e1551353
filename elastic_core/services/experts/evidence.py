"""Is a genre over-represented around an expert, or is that chance? Ratios of means with intervals.

A genre here is what an item may be called: its genres and its decade (`Catalog.trait_table`).
lift = mean share of the genre among the expert's people / mean share it is compared with. The interval is normal in
log(lift) with the standard error of a ratio estimator over people (Cochran 1977, §6.4); it is widened so that all G genres
of an expert hold together in 95% of cases (Bonferroni), because a label is the best of G looks.
"""

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
import pandas as pd

from elastic_core.core.batches import reading_batch
from elastic_core.data import Dataset
from elastic_core.memory.gauges import mean_shares
from elastic_core.memory.routing import Routing

BATCH = 512  # people whose genres are counted together
FEWEST = 5  # people who must have met the genre at all before anything is claimed
RAREST = 0.005  # a genre below this share of what it is compared with is left out


@dataclass(frozen=True)
class Label:
    """The genres an expert stands for, the strongest first, with the evidence of the first."""

    genres: tuple[str, ...]
    lift: float
    low: float
    high: float
    n: int

    @property
    def weak(self) -> bool:
        """The interval includes 1 (or there are too few people to say)."""
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

    def of(self, expert: int) -> pd.DataFrame:
        """genre, share, base, lift, low, high, n (people) of one expert, best lower bound first. Empty if too few people."""
        users, ranks = np.nonzero(self.experts == expert)
        return self._frame(*self._lifts(users, ranks), n=len(users))

    def label(self, expert: int) -> Label:
        """Up to two genres whose interval lies above 1; otherwise the best one, which is then weak."""
        users, ranks = np.nonzero(self.experts == expert)
        _, _, lift, low, high = self._lifts(users, ranks)
        said = np.flatnonzero(~np.isnan(low))
        if not len(said):
            return Label((), float("nan"), float("nan"), float("nan"), len(users))
        best = said[np.argsort(-low[said], kind="stable")]
        names = tuple(self.genres[i] for i in best[:2] if low[i] > 1) or (self.genres[int(best[0])],)
        first = best[0]
        return Label(names, float(lift[first]), float(low[first]), float(high[first]), len(users))

    def tops(self) -> pd.DataFrame:
        """The best genre of every expert number that occurs: index expert; genre, lift, low, high."""
        return self._tops

    def labelled(self) -> int:
        """How many experts have a genre whose interval lies above 1."""
        return int((self._tops["low"] > 1).sum())

    @cached_property
    def _tops(self) -> pd.DataFrame:
        order = np.argsort(self.experts.ravel(), kind="stable")
        used, starts = np.unique(self.experts.ravel()[order], return_index=True)
        rows = {}
        for expert, places in zip(used.tolist(), np.split(order, starts[1:]), strict=True):
            share, _, lift, low, high = self._lifts(*np.divmod(places, self.experts.shape[1]))
            if len(share) and np.isfinite(low).any():
                best = int(np.nanargmax(low))
                rows[expert] = (self.genres[best], lift[best], low[best], high[best])
        return pd.DataFrame.from_dict(rows, orient="index", columns=["genre", "lift", "low", "high"])

    def _lifts(self, users: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, ...]:
        """share, base, lift, low, high, each [G] with NaN where nothing can be said; empty arrays for too few people."""
        n = len(users)
        if n < FEWEST or not self.genres:
            return (np.zeros(0),) * 5
        shares = (self.shares[users] if self.shares.ndim == 2 else self.shares[users, ranks]).astype(float)
        base = np.broadcast_to(self.base if self.base.ndim == 1 else self.base[users], shares.shape).astype(float)
        share, against = shares.mean(0), base.mean(0)
        usable = (against >= RAREST) & ((shares > 0).sum(0) >= FEWEST)
        lift = np.where(usable, share / np.where(usable, against, 1), np.nan)
        error = (shares - lift * base).std(0, ddof=1) / np.sqrt(n) / np.where(usable, share, np.nan)
        reach = NormalDist().inv_cdf(1 - 0.025 / len(self.genres)) * error
        return share, against, lift, lift * np.exp(-reach), lift * np.exp(reach)

    def _frame(self, *columns: np.ndarray, n: int) -> pd.DataFrame:
        share, base, lift, low, high = columns
        genres = np.array(self.genres, dtype=object)[: len(share)]
        frame = pd.DataFrame({"genre": genres, "share": share, "base": base, "lift": lift, "low": low, "high": high, "n": n})
        return frame.dropna(subset=["low"]).sort_values("low", ascending=False, kind="stable", ignore_index=True)


def trait_shares(dataset: Dataset, items: np.ndarray) -> np.ndarray:
    """What part of histories `items [U, N]` (0 pads) has each genre and is of each decade, `[U, G]`."""
    return mean_shares(items, dataset.catalog.trait_table[1])


def of_histories(dataset: Dataset, traffic: Routing, length: int) -> Evidence | None:
    """Genres in the last `length` events of those who retrieve an expert, against everybody's; None for data without genres."""
    genres, ends = dataset.catalog.trait_table[0], dataset.ends("test")
    if not genres:
        return None
    parts = [np.arange(at, min(at + BATCH, len(ends))) for at in range(0, len(ends), BATCH)]
    shares = [trait_shares(dataset, reading_batch(dataset, users, ends[users], length).items.numpy()) for users in parts]
    known = np.concatenate(shares)
    return Evidence(genres, traffic.experts, known, known.mean(0))
