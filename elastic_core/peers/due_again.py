"""Due again: how likely is it that somebody chooses an item of theirs again, now?

A shop's plainest rule: who buys cat food every nine days, and last bought it eight days ago, is about to. Boosted trees
(scikit-learn) learn it from moments of training histories: for every item that a person had chosen before the moment, was it
chosen again then? They read how often and how lately, how long ago in days, and this against the person's own interval and the
item's usual one (as Anderson et al. 2014, *The Dynamics of Repeat Consumption*, find them to decide). An item that is new to the
person has the share of moments in which it was somebody's first.

The time of the moment is read, as a list is made when somebody comes: in a test the time of the event that is asked for, else the
last time in the data. Without times, events stand for days.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from elastic_core.data import Dataset
from elastic_core.models import Batch, Catalog, Length, ModelConfig, Recommender, Variant, register
from elastic_core.peers.frequency import DECAY

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier

DAY = 86_400.0
MOMENTS, MOST_USERS = 4, 1_000  # the last of a training history, of so many users at most
TREES, LEAVES, LEARNING_RATE = 60, 15, 0.15
NEW = 1e-6  # least probability of an item that the person never chose


@dataclass(frozen=True, kw_only=True)
class DueAgainConfig(ModelConfig, name="due-again", label="Due again"):
    length: Length = 4_096


@register(DueAgainConfig)
class DueAgain(Recommender):
    """Scores are probabilities, of known items by boosted trees."""

    variants = (Variant("Due again", {}, "How long ago, against how often: boosted trees. For shops where people come back."),)
    first_share: Tensor  # [n_items + 1] share of moments in which an item was somebody's first
    interval: Tensor  # [n_items + 1] days between two choices of an item by one person, the median; 0 where nobody repeated it
    again_share: Tensor  # [n_items + 1] share of its people who chose it twice

    def __init__(self, config: DueAgainConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        for name in ("first_share", "interval", "again_share"):
            self.register_buffer(name, torch.zeros(self.n_items + 1), persistent=False)
        self.last_day = 0.0  # of the data
        self.trees: HistGradientBoostingClassifier | None = None

    def fit(self, dataset: Dataset) -> None:
        """Counts over all training events, and trees on `MOMENTS` of at most `MOST_USERS` users."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        histories, ends = dataset.histories, dataset.split_ends("train")
        days = self._days(histories.times) if dataset.has_times else np.arange(len(histories.items), dtype=float)
        self.last_day = float(days.max(initial=0)) if dataset.has_times else 0.0
        spans = [slice(start, end) for start, end in zip(histories.offsets[:-1], ends, strict=True) if end > start]
        self._count(histories.items, days, spans)
        chosen = np.random.default_rng(0).permutation(len(spans))[:MOST_USERS]
        features, answers = [], []
        for span in (spans[user] for user in np.sort(chosen)):
            items, at = histories.items[span], days[span]
            starts = [*(np.flatnonzero(np.diff(at) > 0) + 1), len(items)]
            for start, end in list(pairwise(starts))[-MOMENTS:]:
                known, described = self._describe(items[:start], at[:start], at[start])
                features.append(described)
                answers.append(np.isin(known, items[start:end]))
        answered = np.concatenate(answers) if answers else np.empty(0, bool)
        self.trees = None
        if 0 < answered.sum() < len(answered):
            trees = HistGradientBoostingClassifier(
                max_iter=TREES, max_leaf_nodes=LEAVES, learning_rate=LEARNING_RATE, early_stopping=False, random_state=0
            )
            self.trees = trees.fit(np.concatenate(features), answered)

    def score(self, batch: Batch) -> Tensor:
        device = batch.items.device
        scores = self.first_share.clamp(min=NEW).repeat(len(batch.items), 1).cpu().numpy()
        rows = batch.items[:, -self.length :].cpu().numpy()
        times = None if batch.times is None else batch.times[:, -self.length :].cpu().numpy()
        now = None if batch.prediction_times is None else batch.prediction_times.cpu().numpy()
        described, places = [], []
        for row, padded in enumerate(rows):
            items = padded[padded > 0]
            if not len(items):
                continue
            days = np.arange(len(items), dtype=float) if times is None else self._days(times[row, -len(items) :])
            moment = len(items) if times is None else max(days[-1], self.last_day if now is None else now[row] / DAY)
            known, features = self._describe(items, days, moment)
            described.append(features)
            places.append((np.full(len(known), row), known))
        if described:
            at = tuple(np.concatenate(part) for part in zip(*places, strict=True))
            scores[at] = NEW + self._probability(np.concatenate(described))
        return torch.from_numpy(scores).to(device)

    def _probability(self, features: ndarray) -> ndarray:
        """float32 [rows]; by the decayed count alone where no trees could be grown."""
        if self.trees is None:
            return features[:, 0] / (1 + features[:, 0])
        return self.trees.predict_proba(features)[:, 1].astype(np.float32)

    def _describe(self, items: ndarray, days: ndarray, moment: float) -> tuple[ndarray, ndarray]:
        """The different items of a history, whose oldest event is first, and what the trees read of each: float32 [items, 11]."""
        known, place, counts = np.unique(items, return_inverse=True, return_counts=True)
        visits = np.cumsum(np.diff(days, prepend=days[0] - 1) > 0)
        last, first, last_visit = np.full((3, len(known)), -np.inf)
        first = -first
        np.maximum.at(last, place, days)
        np.minimum.at(first, place, days)
        np.maximum.at(last_visit, place, visits)
        decayed = np.bincount(place, DECAY ** np.arange(len(items) - 1, -1, -1))
        since = moment - last
        with np.errstate(divide="ignore", invalid="ignore"):  # of what was chosen once there is no interval
            own = (last - first) / (counts - 1)
            usual = self.interval.cpu().numpy()[known]
            columns = (
                decayed, counts, counts / visits[-1], visits[-1] + 1 - last_visit, self.first_share.cpu().numpy()[known],
                self.again_share.cpu().numpy()[known], since, own, since / own, since / usual,
                np.full(len(known), moment - days[-1]),
            )  # fmt: skip
        features = np.stack(columns, 1).astype(np.float32)
        return known, np.where(np.isfinite(features), features, np.nan)

    def _count(self, items: ndarray, days: ndarray, spans: list[slice]) -> None:
        """Fills the buffers."""
        columns = self.n_items + 1
        owner = np.repeat(np.arange(len(spans)), [span.stop - span.start for span in spans])
        at = np.concatenate([np.arange(span.start, span.stop) for span in spans]) if spans else np.empty(0, np.int64)
        key, day = owner * columns + items[at].astype(np.int64), days[at]
        order = np.argsort(key, kind="stable")
        key, day = key[order], day[order]
        is_first = np.diff(key, prepend=-1) != 0
        moments = 1 + int((np.diff(days[at], prepend=-np.inf) != 0).sum())
        firsts = np.bincount(key[is_first] % columns, minlength=columns)
        repeated = np.unique(key[~is_first])
        self.first_share.copy_(torch.from_numpy(firsts / moments))
        self.again_share.copy_(torch.from_numpy(np.bincount(repeated % columns, minlength=columns) / np.maximum(firsts, 1)))
        gaps, item = np.diff(day, prepend=0.0)[~is_first], (key % columns)[~is_first]
        gaps, item = gaps[gaps > 0], item[gaps > 0]
        by_item = np.lexsort((gaps, item))
        gaps, item = gaps[by_item], item[by_item]
        if len(item):
            starts = np.flatnonzero(np.diff(item, prepend=-1))
            middle = starts + np.diff(np.append(starts, len(item))) // 2
            self.interval[torch.from_numpy(item[starts].astype(np.int64))] = torch.from_numpy(gaps[middle]).float()

    @staticmethod
    def _days(times: ndarray) -> ndarray:
        return np.asarray(times, dtype=np.float64) / DAY
