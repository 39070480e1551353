"""What product keys cost and whether they are exact: counts, the search done both ways, and Eq. 7 as it is printed."""

import copy
import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.elastic import Keys, ProductKeys, candidate_ranks, top_pairs
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.services.keys.search import Lesson, of_chance, queries
from elastic_core.services.person.inspect import grid
from elastic_core.services.person.recommend import batch_of

TIE = 1e-9  # scores in double precision that differ by less, in proportion, are equal
WRITTEN = 2**16  # full keys written out at a time
TURN_SIDES, TURN_QUERIES, MANY = (8, 16, 32, 64), 128, 512


# --- how much work ---------------------------------------------------------------------------------------------------


def operations(side: int, width: int, k: int) -> pd.DataFrame:
    """Multiplications and additions of one search: every key, and product keys. Sorting and norms are left out of both."""
    keys, sums = side * side, len(candidate_ranks(k, side))
    flat = {"search": "every key", "multiplications": keys * width, "additions": keys * (width - 1)}
    product = {"search": "product keys", "multiplications": side * width, "additions": 2 * side * (width // 2 - 1) + sums}
    return pd.DataFrame([flat, product])


# --- is it exact? ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """Searches done both ways. `agree` found the same experts; `ties` others of exactly the same scores; the rest is wrong."""

    queries: int = 0
    agree: int = 0
    ties: int = 0
    product_seconds: float = 0.0
    flat_seconds: float = 0.0

    @property
    def wrong(self) -> int:
        return self.queries - self.agree - self.ties

    @property
    def sentence(self) -> str:
        """The count, ties and errors named, and the time both took."""
        tied = f" ({self.ties:,} of them by a tie: other experts, exactly equal scores)" if self.ties else ""
        right = f"Brute force agrees: **{self.queries - self.wrong:,} of {self.queries:,}**{tied}."
        clock = f"All together: {self.product_seconds * 1e3:.1f} ms by halves, {self.flat_seconds * 1e3:.1f} ms one by one."
        return f"{right} {clock}"

    def __add__(self, other: "Check") -> "Check":
        return Check(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


@torch.inference_mode()
def check_search(keys: ProductKeys, k: int, queries: Tensor) -> Check:
    """Queries `[n, d]`, each searched twice: by halves, and against all side² full keys of width d, in double precision, of which
    so many rows of the grid are written out at a time as fit."""
    twin, queries = copy.deepcopy(keys).double(), queries.double()
    side, step, (rows, columns), comparable = twin.side, max(WRITTEN // twin.side, 1), twin.sub_keys, queries
    if twin.log_temperature is not None:
        rows, columns = functional.normalize(twin.sub_keys, dim=-1)
        comparable = (functional.normalize(queries.unflatten(-1, (2, -1)), dim=-1) * twin.log_temperature.exp()).flatten(-2)

    @functools.lru_cache(maxsize=1)
    def written(row: int) -> Tensor:  # the time that it takes counts only where one block does not hold them all
        some = rows[row : row + step]
        return torch.cat([some.repeat_interleave(side, dim=0), columns.repeat(len(some), 1)], dim=-1)

    def best_in(row: int) -> Keys:
        every = comparable @ written(row).T
        found = every.topk(min(k, every.shape[1]), dim=-1)
        return Keys(found.indices + row * side, found.values)

    def by_all() -> Keys:
        first, *rest = map(best_in, range(0, side, step))
        if not rest:
            return first
        indices, scores = (torch.cat(each, dim=-1) for each in zip(first, *rest, strict=True))
        kept = scores.topk(k, dim=-1)
        return Keys(indices.gather(-1, kept.indices), kept.values)

    (fast, product_seconds), (flat, flat_seconds) = _timed(lambda: top_pairs(twin(queries), k)), _timed(by_all)
    found = fast.indices.sort(-1).values
    same = (found == flat.indices.sort(-1).values).all(-1)
    reached = torch.cat([rows[fast.indices // side], columns[fast.indices % side]], dim=-1)  # and what they really score:
    scores = torch.einsum("nkd,nd->nk", reached, comparable).sort(-1, descending=True).values
    equal = ((scores - flat.scores).abs() < TIE * (1 + flat.scores.abs())).all(-1) & (found.diff(dim=-1) > 0).all(-1)
    return Check(len(queries), int((same & equal).sum()), int((~same & equal).sum()), product_seconds, flat_seconds)


Result = TypeVar("Result")


def _timed(act: Callable[[], Result]) -> tuple[Result, float]:
    """What it gives and this thread's processor seconds; a first time, in which memory is asked for, does not count."""
    act()
    began = time.thread_time()
    return act(), time.thread_time() - began


def turning(width: int, k: int) -> list[tuple[int, float, float]]:
    """Where the halves begin to save time here: K, and seconds for `TURN_QUERIES` queries by halves and by every key."""
    rows, queries = [], random_queries(width, TURN_QUERIES, seed=0)
    for side in TURN_SIDES:
        if side >= k:
            keys = of_chance(side, width, k, seed=0).keys
            found = [check_search(keys, k, queries) for _ in range(3)]
            rows.append((side * side, min(f.product_seconds for f in found), min(f.flat_seconds for f in found)))
    return rows


def turned(rows: Sequence[tuple[int, float, float]]) -> str:
    """The same as a sentence."""
    times = "; ".join(f"{size:,}: {1e3 * halves:.2f} and {1e3 * flat:.2f} ms" for size, halves, flat in rows)
    first = next((size for n, (size, *_) in enumerate(rows) if all(halves < flat for _, halves, flat in rows[n:])), None)
    where = f"here halves win from K = {first:,} on" if first else "here halves win at no such K"
    return f"Searching by halves has a fixed cost, sorting and gathering; {where} ({times})."


def random_queries(width: int, n: int, seed: int) -> Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed))


# --- Eq. 7 as printed ------------------------------------------------------------------------------------------------


@torch.inference_mode()
def people_queries(model: Recommender, dataset: Dataset, first: int, ago: int) -> Tensor:
    """The queries `[n, d]` of up to 512 people, evenly spread over the data; the person `first` comes first, where every
    event asks with the one `ago` before their newest."""
    others = np.linspace(0, dataset.histories.n_users - 1, min(MANY, dataset.histories.n_users)).astype(np.int64)
    batch = batch_of(model, dataset, np.concatenate([[first], others[others != first]]))
    found = queries(model, batch).clone()
    found[0] = queries(model, batch.rows(slice(1)), ago)[0]
    return found


def chance_queries(lesson: Lesson) -> Tensor:
    """The lesson's query, and random ones."""
    return torch.cat([lesson.query[None], random_queries(lesson.width, MANY, 0)])


class Printed(NamedTuple):
    """Many queries searched as meant (q1, q2) and as printed (q1, q1)."""

    first: pd.DataFrame  # the first query: place, expert as meant, expert as printed, whether the printed one is right
    load: pd.DataFrame  # per expert: row, column, and how many queries have it as their best, both ways
    queries: int
    k: int
    shared: float  # experts in common, of k, on average
    used: int  # different best experts as meant …
    used_printed: int  # … and as printed
    deaf: int  # queries that keep all their experts, as meant, when q2 is somebody else's; as printed all of them do

    @property
    def kept(self) -> int:
        """The first query's experts that the printed form finds too."""
        return int(self.first["printed_is_right"].sum())


@torch.inference_mode()
def as_printed(keys: ProductKeys, k: int, queries: Tensor) -> Printed:
    """Eq. 7 prints q1 for both halves. Queries `[n, d]`; the first one is shown in full."""
    half, side = queries.shape[-1] // 2, keys.side
    first = queries[:, :half]
    meant = top_pairs(keys(queries), k).indices
    printed = top_pairs(keys(torch.cat([first, first], dim=-1)), k).indices
    exchanged = top_pairs(keys(torch.cat([first, queries[:, half:].roll(1, 0)], dim=-1)), k).indices
    common = (meant[:, :, None] == printed[:, None, :]).any(-1)
    best = {
        name: torch.bincount(each[:, 0], minlength=side**2).numpy() for name, each in (("meant", meant), ("printed", printed))
    }
    load = grid(side).assign(**best)
    table = pd.DataFrame({"place": range(1, k + 1), "meant": meant[0].tolist(), "printed": printed[0].tolist()})
    table["printed_is_right"] = table["printed"].isin(table["meant"])
    return Printed(
        first=table,
        load=load,
        queries=len(queries),
        k=k,
        shared=float(common.sum(-1).float().mean()),
        used=int((load["meant"] > 0).sum()),
        used_printed=int((load["printed"] > 0).sum()),
        deaf=int((meant.sort(-1).values == exchanged.sort(-1).values).all(-1).sum()),
    )
