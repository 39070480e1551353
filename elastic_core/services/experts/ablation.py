"""What happens to everybody who retrieves an expert when it is taken away, or replaced by another?

Always in a copy of what was retrieved (`edit`), never in the model. The other experts keep their gates; a replacement takes
over the gate of the expert it replaces. In runs that retrieve before every layer, only the first retrieval is changed.
Judged under the protocol `full`: the true next item against all items the person had not met. d = after - before.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from elastic_core.core.contract import Edit, Retrieved
from elastic_core.core.evaluate import Candidates, Ranks, expected, rank
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.evaluation.compare import over_people, sign_flips
from elastic_core.evaluation.verdict import sign
from elastic_core.memory.routing import Routing
from elastic_core.models import Recommender, memory_of
from elastic_core.services.person.people import some_of
from elastic_core.services.person.recommend import batches

METRIC, PROTOCOL, TOP = "NDCG@10", "full", 10
ALIKE, GROUP = 5, 20  # so many of the experts next in load, of a group of so many, are what an expert is compared with …
FEW = 40  # … each on so many of its people at most


def drop(ranks: np.ndarray) -> Edit:
    """Takes one rank out of each row's retrieval: `ranks` int [B], counted from 0."""

    def edit(found: Retrieved) -> Retrieved:
        k = found.experts.shape[1]
        if k < 2:
            raise InputError("with k = 1 a history is read through one expert: without it there is nothing left to read through")
        places = torch.arange(k - 1).expand(len(ranks), -1)
        return found.keep(places + (places >= torch.from_numpy(ranks)[:, None]))  # 0 … k-1 without `ranks`, row by row

    return first(edit)


def replace(ranks: np.ndarray, expert: int, value: Tensor) -> Edit:
    """Puts `expert` (its vector `value [d]`) where each row's `ranks` stands, with that one's gate."""

    def edit(found: Retrieved) -> Retrieved:
        rows, where = torch.arange(len(ranks)), torch.from_numpy(ranks)
        interests, experts = found.interests.clone(), found.experts.clone()
        interests[rows, where] = value * found.gates[rows, where].unsqueeze(-1)
        experts[rows, where] = expert
        return found._replace(interests=interests, experts=experts)

    return first(edit)


def first(edit: Edit) -> Edit:
    """Only the first retrieval of a pass: an expert's number means something else in a later layer's memory."""
    waiting = [edit]
    return lambda found: waiting.pop()(found) if waiting else found


class Judged(NamedTuple):
    """Per person: rank of the true next item (from 1, ties at their middle), NDCG@10, and the ten likeliest unmet items."""

    rank: np.ndarray
    gain: np.ndarray
    top: np.ndarray  # int64 [U, 10]

    def of(self, rows: np.ndarray) -> "Judged":
        return Judged(self.rank[rows], self.gain[rows], self.top[rows])


class Effect(NamedTuple):
    """A change to the retrieval of `users`, judged on their true next item."""

    what: str
    users: np.ndarray
    before: Judged
    after: Judged

    @property
    def replaced(self) -> np.ndarray:
        """How many of the ten suggestions are others, per person."""
        stay = (self.after.top[:, :, None] == self.before.top[:, None, :]).any(2)
        return (~stay).sum(1)

    def row(self) -> dict[str, Any]:
        """change, n, median ranks, d rank (median, mean), NDCG@10 before and after, its d with interval and p, and how many
        of the ten suggestions are others (mean)."""
        before, after = (pd.DataFrame({"rank": side.rank, "ndcg": side.gain}) for side in (self.before, self.after))
        d_rank, gained = after["rank"] - before["rank"], self.after.gain - self.before.gain
        low, high = interval(gained)
        return {
            "change": self.what, "n": len(gained),
            "rank_before": before["rank"].median(), "rank_after": after["rank"].median(),
            "d_rank_median": d_rank.median(), "d_rank_mean": d_rank.mean(),
            "ndcg_before": before["ndcg"].mean(), "ndcg_after": after["ndcg"].mean(),
            "d_ndcg": pd.Series(gained).mean(), "low": low, "high": high, "p": sign_flips(gained) if len(gained) else np.nan,
            "replaced": pd.Series(self.replaced).mean(),
        }  # fmt: skip


def interval(differences: np.ndarray) -> tuple[float, float]:
    """95% paired over people; unknown for fewer than two."""
    return over_people(differences) if len(differences) > 1 else (float("nan"), float("nan"))


def verdict(row: Mapping[Hashable, Any]) -> str:
    """An `Effect.row` in a word. `worse` or `better` without it: where interval and sign-flip test agree. Else `unclear`, `same`
    (for everybody) or `few` (one person)."""
    if np.isnan(row["low"]):
        return "few"
    if row["low"] == row["high"] == 0:
        return "same"
    side = sign(row["low"], row["high"])
    if row["p"] >= 0.05 or not side:
        return "unclear"
    return "worse" if side == "B" else "better"


def apart(effects: pd.DataFrame) -> tuple[int, int, float]:
    """Of `remove_each`'s rows: intervals below 0, above 0, and how many of both 95% intervals leave out 0 by chance, at most."""
    return int((effects["high"] < 0).sum()), int((effects["low"] > 0).sum()), 0.05 * len(effects)


Make = Callable[[np.ndarray], Edit]  # from rows (positions among the users) to the edit of that batch


@torch.inference_mode()
def judged(model: Recommender, dataset: Dataset, users: np.ndarray, make: Make | None = None) -> Judged:
    """Where everybody's true next item stands, with an edit or without."""
    candidates, parts, tops = Candidates(dataset, "test", 0), [], []
    for rows, batch in batches(model, dataset, users):
        states = model.last_state(batch, edit=make(rows)) if make else model.last_state(batch)  # type: ignore[call-arg]
        targets = torch.from_numpy(candidates.targets[users[rows]].astype(np.int64))
        scores, unmet = model.scorer()(states).float(), candidates.mask(PROTOCOL, users[rows])
        parts.append(rank(scores, targets, unmet))
        tops.append(scores.masked_fill(~unmet, -torch.inf).topk(min(TOP, scores.shape[1])).indices.numpy())
    if not parts:
        return Judged(np.zeros(0), np.zeros(0), np.zeros((0, TOP), np.int64))
    ranks = Ranks.join(parts)
    return Judged(ranks.places, expected(ranks)[METRIC], np.concatenate(tops))


def retrieving(traffic: Routing, expert: int, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Who retrieves an expert, and at which rank (from 0). `most`: no more than so many of them, drawn at random."""
    if not 0 <= expert < len(traffic.load):
        raise InputError(f"there is no expert {expert}: there are 0 to {len(traffic.load) - 1}")
    users, ranks = np.nonzero(traffic.experts == expert)
    some = some_of(len(users), len(users) if most is None else most, seed=expert)
    return users[some], ranks[some]


def alike(traffic: Routing, expert: int) -> list[int]:
    """Other experts about as busy as this one, drawn at random: of the group of 20 that the used ones form in order of load.
    A group has the same ones drawn for all who are in it, so that what was measured of them serves again."""
    used = np.flatnonzero(traffic.load)
    order = used[np.argsort(traffic.load[used], kind="stable")]
    place = int(np.flatnonzero(order == expert)[0]) if expert in used else 0
    last = max(len(order) // GROUP - 1, 0)
    group = min(place // GROUP, last)
    members = order[group * GROUP : None if group == last else (group + 1) * GROUP]
    drawn = np.random.default_rng(group).permutation(members)[: ALIKE + 1]
    return [int(other) for other in drawn if other != expert][:ALIKE]


def together(parts: Iterable[Judged]) -> Judged:
    """Of all their people."""
    return Judged(*map(np.concatenate, zip(*parts, strict=True)))


def pooled(what: str, effects: Sequence[Effect]) -> Effect:
    """Several effects as one: its n counts a person once for each of them."""
    _, users, before, after = zip(*effects, strict=True)
    return Effect(what, np.concatenate(users), together(before), together(after))


def effect_of(
    what: str, model: Recommender, dataset: Dataset, users: np.ndarray, make: Make, before: Judged | None = None
) -> Effect:
    """`before`, here and below: the same people, already judged without an edit."""
    return Effect(what, users, before or judged(model, dataset, users), judged(model, dataset, users, make))


def remove(
    model: Recommender, dataset: Dataset, traffic: Routing, expert: int, before: Judged | None = None, most: int | None = None
) -> Effect:
    """Without the expert."""
    users, ranks = retrieving(traffic, expert, most)
    return effect_of(f"without expert {expert}", model, dataset, users, lambda rows: drop(ranks[rows]), before)


def swap(
    model: Recommender, dataset: Dataset, traffic: Routing, expert: int, other: int,
    before: Judged | None = None, most: int | None = None,
) -> Effect:  # fmt: skip
    """With `other` in its place, for those who do not retrieve that one anyway."""
    retrieving(traffic, other)
    users, ranks = retrieving(traffic, expert, most)
    free = np.flatnonzero(~(traffic.experts[users] == other).any(1))
    value = memory_of(model).experts_at(torch.tensor(other))
    make = lambda rows: replace(ranks[free[rows]], other, value)  # noqa: E731
    return effect_of(f"expert {other} in its place", model, dataset, users[free], make, before and before.of(free))


def effects(model: Recommender, dataset: Dataset, traffic: Routing, expert: int, other: int) -> pd.DataFrame:
    """The changes side by side, one row each (`Effect.row`): without the expert, without another of the same people's, without
    others about as busy (each from its own people), with `other` in its place, with others as busy as that one in its place."""
    (users, ranks), few = retrieving(traffic, expert), retrieving(traffic, expert, FEW)[0]
    before, k = judged(model, dataset, users), traffic.experts.shape[1]
    others = (ranks + np.random.default_rng(expert).integers(1, max(k, 2), len(ranks))) % k
    another = "without another of their experts, drawn at random"  # the yardstick: for each of the same people
    known = before.of(np.searchsorted(users, few))
    instead = [each for each in alike(traffic, other) if each != expert]
    swapped = [swap(model, dataset, traffic, expert, each, known, FEW) for each in instead]
    rows = [
        remove(model, dataset, traffic, expert, before),
        effect_of(another, model, dataset, users, lambda rows: drop(others[rows]), before),
        remove_alike(model, dataset, traffic, expert),
        swap(model, dataset, traffic, expert, other, before),
        pooled(f"an expert used as much as {other} in its place ({len(swapped)} others)", swapped) if swapped else None,
    ]
    return pd.DataFrame([row.row() for row in rows if row is not None])


def remove_alike(model: Recommender, dataset: Dataset, traffic: Routing, expert: int) -> Effect | None:
    """The other yardstick: experts about as busy, each taken from up to 40 of its own people. None where there are none."""
    if not traffic.load[expert]:
        return None
    found = [remove(model, dataset, traffic, each, most=FEW) for each in alike(traffic, expert)]
    return pooled(f"without an expert used as much ({len(found)} others, each from its own people)", found) if found else None


def random_used(traffic: Routing, expert: int, seed: int = 0, apart: bool = False) -> int:
    """Another expert that somebody retrieves, the same for the same seed; the expert itself if there is no other. `apart`: one
    that nobody retrieves together with it, where there is one."""
    used = np.flatnonzero(traffic.load)
    used = used[used != expert]
    if apart:
        beside = traffic.experts[(traffic.experts == expert).any(1)]
        alone = used[~np.isin(used, beside)]
        used = alone if len(alone) else used
    return int(np.random.default_rng([seed, expert]).choice(used)) if len(used) else expert


def remove_each(
    model: Recommender, dataset: Dataset, traffic: Routing, tell: Callable[[float], None] | None = None
) -> pd.DataFrame:
    """The effect of removing each expert, for all experts in k passes over everybody (each removes one rank): expert, n,
    d_rank_median, d_ndcg, low, high. Equals `remove` one by one. `tell` hears the share that is done."""
    users, k = np.arange(len(traffic.experts)), traffic.experts.shape[1]
    before = judged(model, dataset, users)
    moved, gained = np.zeros((len(users), k)), np.zeros((len(users), k))
    for at in range(k):
        if tell:
            tell((at + 1) / (k + 1))
        after = judged(model, dataset, users, lambda rows, at=at: drop(np.full(len(rows), at)))  # type: ignore[misc]
        moved[:, at], gained[:, at] = after.rank - before.rank, after.gain - before.gain
    rows = []
    for expert in np.flatnonzero(traffic.load):
        here = traffic.experts == expert
        low, high = interval(gained[here])
        median = float(np.median(moved[here]))
        rows.append((int(expert), int(here.sum()), median, float(gained[here].mean()), low, high))
    return pd.DataFrame(rows, columns=["expert", "n", "d_rank_median", "d_ndcg", "low", "high"])
