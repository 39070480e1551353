"""Whether product keys are exact and from where on they save time: the search done both ways, and Eq. 7 as it is printed."""

import copy
import functools
import operator
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.elastic import BestKeys, ProductKeys, top_pairs
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.services.keys.search import Lesson, random_lesson, read_queries
from elastic_core.services.person.recommend import batch_of

TIE = 1e-9  # scores in double precision that differ by less, in proportion, are equal
WRITTEN = 2**16  # full keys written out at a time
TURN_SIDES, TURN_QUERIES, N_QUERIES = (8, 16, 32, 64), 128, 512


# --- is it exact? ----------------------------------------------------------------------------------------------------


class Check(NamedTuple):
    """Searches done both ways. `agree` found the same experts; `ties` others of exactly the same scores; the rest is wrong."""

    queries: int
    agree: int
    ties: int
    product_seconds: float
    flat_seconds: float

    @property
    def n_wrong(self) -> int:
        return self.queries - self.agree - self.ties

    @property
    def sentence(self) -> str:
        """The count, ties and errors named, and the time both took."""
        ties_text = f" ({self.ties:,} of them by a tie: other experts with exactly equal scores)" if self.ties else ""
        return (
            f"Brute force finds the same experts for **{self.agree + self.ties:,} of {self.queries:,}** queries{ties_text}. "
            f"It took {self.product_seconds * 1e3:.1f} ms with split keys, and {self.flat_seconds * 1e3:.1f} ms one by one."
        )

    def add_check(self, other: "Check") -> "Check":
        return Check(*map(operator.add, self, other))


@torch.inference_mode()
def check_search(keys: ProductKeys, k: int, queries: Tensor) -> Check:
    """Queries `[n, d]`, each searched twice: by halves, and against all K = n_subkeys² full keys of width d, in double precision,
    of which so many rows of the grid are written out at a time as fit."""
    twin, queries = copy.deepcopy(keys).double(), queries.double()
    n_subkeys, step, (rows, columns), comparable = twin.n_subkeys, max(WRITTEN // twin.n_subkeys, 1), twin.sub_keys, queries
    if twin.log_temperature is not None:
        rows, columns = functional.normalize(twin.sub_keys, dim=-1)
        comparable = (functional.normalize(queries.unflatten(-1, (2, -1)), dim=-1) * twin.log_temperature.exp()).flatten(-2)

    @functools.lru_cache(maxsize=1)
    def write_keys(row: int) -> Tensor:  # the time that it takes counts only where one block does not hold them all
        block = rows[row : row + step]
        return torch.cat([block.repeat_interleave(n_subkeys, dim=0), columns.repeat(len(block), 1)], dim=-1)

    def by_all() -> BestKeys:
        blocks = []
        for row in range(0, n_subkeys, step):
            every = comparable @ write_keys(row).T
            experts = every.topk(min(k, every.shape[1]), dim=-1)
            blocks.append((experts.indices + row * n_subkeys, experts.values))
        indices, scores = (torch.cat(each, dim=-1) for each in zip(*blocks, strict=True))
        best = scores.topk(k, dim=-1)
        return BestKeys(indices.gather(-1, best.indices), best.values)

    (fast, product_seconds), (flat, flat_seconds) = _time_call(lambda: top_pairs(twin(queries), k)), _time_call(by_all)
    experts = fast.indices.sort(-1).values
    same = (experts == flat.indices.sort(-1).values).all(-1)
    reached = torch.cat([rows[fast.indices // n_subkeys], columns[fast.indices % n_subkeys]], dim=-1)  # what they score:
    scores = torch.einsum("nkd,nd->nk", reached, comparable).sort(-1, descending=True).values
    equal = ((scores - flat.scores).abs() < TIE * (1 + flat.scores.abs())).all(-1) & (experts.diff(dim=-1) > 0).all(-1)
    return Check(len(queries), int((same & equal).sum()), int((~same & equal).sum()), product_seconds, flat_seconds)


Result = TypeVar("Result")


def _time_call(act: Callable[[], Result]) -> tuple[Result, float]:
    """What it gives and this thread's processor seconds; a first time, in which memory is asked for, does not count."""
    act()
    began = time.thread_time()
    return act(), time.thread_time() - began


def rotate_toy(width: int, k: int) -> str:
    """Say from where on the halves save time here: for every K, milliseconds of `TURN_QUERIES` queries both ways."""
    rows, queries, first = [], random_queries(width, TURN_QUERIES, seed=0), None
    for n_subkeys in (n_subkeys for n_subkeys in TURN_SIDES if n_subkeys >= k):
        keys = random_lesson(n_subkeys, width, k, seed=0).keys
        checks = [check_search(keys, k, queries) for _ in range(3)]
        halves, flat = min(each.product_seconds for each in checks), min(each.flat_seconds for each in checks)
        first = None if halves >= flat else first or n_subkeys**2
        rows.append(f"{n_subkeys**2:,} experts: {1e3 * halves:.2f} ms with split keys, {1e3 * flat:.2f} ms one by one")
    crossing_text = f"Here they are faster from {first:,} experts on" if first else "Here they are faster at none of these sizes"
    return f"Split keys have a fixed cost for sorting and gathering. {crossing_text} ({'; '.join(rows)})."


def random_queries(width: int, n: int, seed: int) -> Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed))


# --- Eq. 7 as printed ------------------------------------------------------------------------------------------------


@torch.inference_mode()
def people_queries(model: Recommender, dataset: Dataset, first: int, ago: int) -> Tensor:
    """The queries `[n, d]` of up to 512 people, evenly spread over the data; the person `first` comes first, where every
    event asks with the one `ago` before their newest."""
    others = np.linspace(0, dataset.histories.n_users - 1, min(N_QUERIES, dataset.histories.n_users)).astype(np.int64)
    batch = batch_of(model, dataset, np.concatenate([[first], others[others != first]]))
    queries = read_queries(model, batch).clone()
    queries[0] = read_queries(model, batch.select_rows(slice(1)), ago)[0]
    return queries


def chance_queries(lesson: Lesson, count: int = N_QUERIES) -> Tensor:
    """The lesson's query, and random ones."""
    return torch.cat([lesson.query[None], random_queries(lesson.width, count, seed=0)])


class PrintedSearch(NamedTuple):
    """Many queries searched as meant (q1, q2) and as printed (q1, q1)."""

    queries: int
    k: int
    overlap: int  # experts of the first query that the printed form finds too
    shared: float  # experts in common, of k, on average
    used: int  # different best experts as meant …
    used_printed: int  # … and as printed
    deaf: int  # queries that keep all their experts, as meant, when q2 is somebody else's; as printed all of them do


@torch.inference_mode()
def search_as_printed(keys: ProductKeys, k: int, queries: Tensor) -> PrintedSearch:
    """Eq. 7 prints q1 for both halves. Queries `[n, d]`."""
    first, second = queries.chunk(2, dim=-1)
    meant_search, printed_search, exchanged_search = (
        top_pairs(keys(torch.cat([first, half], dim=-1)), k).indices for half in (second, first, second.roll(1, 0))
    )
    common = (meant_search[:, :, None] == printed_search[:, None, :]).any(-1).sum(-1)
    return PrintedSearch(
        queries=len(queries),
        k=k,
        overlap=int(common[0]),
        shared=float(common.float().mean()),
        used=len(meant_search[:, 0].unique()),
        used_printed=len(printed_search[:, 0].unique()),
        deaf=int((meant_search.sort(-1).values == exchanged_search.sort(-1).values).all(-1).sum()),
    )
