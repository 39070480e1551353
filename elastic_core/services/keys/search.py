"""The product-key search (Eq. 5-7), one step at a time, as tables: what the page on product keys shows.

A `Lesson` is one query with the keys that it is asked of: a person's own query, or one of their events', and a run's sub-keys,
or random ones. Every table is computed from it by the code that the model itself runs; nothing is rehearsed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from elastic_core.core.batches import Batch
from elastic_core.core.elastic import BestKeys, InterestMemory, ProductKeys, gate_weights, top_pairs
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import AttentionModel, QuantisedModel
from elastic_core.services.person.recommend import batch_of
from elastic_core.slots.voting import VotingMemory

# Directions of the sub-keys of a memory of 4 × 4, in degrees. No two of one half score the same for a whole multiple of 5.
TOY_DEGREES = ((12, 101, 187, 297), (58, 149, 236, 333))
LARGEST_WRITTEN = 256  # experts a side up to which their random vectors are written out
VOTE = "vote"  # in place of a gate: how one event splits its vote among the experts it finds
NAMES = ("row", "column")  # the first half chooses the row of the grid, the second the column


@dataclass(frozen=True, eq=False)
class Lesson:
    """One query `[d]`, the keys that it meets, and every step of the search as a table, computed once."""

    keys: ProductKeys
    values: Tensor  # [n_subkeys², d]
    query: Tensor
    k: int
    kind: str = "softmax"  # the gate, or `VOTE`

    @property
    def n_subkeys(self) -> int:
        return self.keys.n_subkeys

    @property
    def width(self) -> int:
        return self.query.shape[-1]

    @cached_property
    @torch.no_grad()
    def halves(self) -> Tensor:
        """Return the half scores, `[2, n_subkeys]`."""
        return self.keys(self.query[None])[0]

    @cached_property
    def winners(self) -> BestKeys:
        """The k best, best first, each `[k]`."""
        pairs = top_pairs(self.halves[None], self.k)
        return BestKeys(pairs.indices[0], pairs.scores[0])

    @cached_property
    def weights(self) -> Tensor:
        """What each of them counts, `[k]`."""
        scores = self.winners.scores
        return scores.softmax(-1) if self.kind == VOTE else gate_weights(scores, self.kind)

    @cached_property
    def half_scores(self) -> pd.DataFrame:
        """Steps 2 and 3. One row per half and sub-key: its score, its rank from 1, whether it stays."""
        ranks = self.halves.argsort(stable=True, dim=-1, descending=True).argsort(dim=-1) + 1
        table = pd.DataFrame({"half": np.repeat(NAMES, self.n_subkeys), "sub_key": np.tile(np.arange(self.n_subkeys), 2)})
        table["score"], table["rank"] = self.halves.flatten().tolist(), ranks.flatten().tolist()
        return table.assign(kept=table["rank"] <= self.k)

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """Steps 4 and 5. The k × k pairs of kept sub-keys: their sum, whether i·j <= k (the staircase), the place they take."""
        best = self.halves.sort(stable=True, dim=-1, descending=True)
        order, scores = best.indices[:, : self.k].numpy(), best.values[:, : self.k].double().numpy()
        i, j = np.indices((order.shape[1], order.shape[1])).reshape(2, -1)
        table = pd.DataFrame({"rank_row": i + 1, "rank_column": j + 1, "ranks_product": (i + 1) * (j + 1)})
        table["row"], table["column"] = order[0, i], order[1, j]
        table["expert"] = table["row"] * self.n_subkeys + table["column"]
        table["row_score"], table["column_score"] = scores[0, i], scores[1, j]
        table["score"] = table["row_score"] + table["column_score"]
        places = dict(zip(self.winners.indices.tolist(), range(1, self.k + 1), strict=True))
        return table.assign(can_win=table["ranks_product"] <= self.k, place=table["expert"].map(places).astype("Int64"))

    @cached_property
    def winner_rows(self) -> pd.DataFrame:
        """Steps 6 and 7. One row per winner: where it stands, its score, its weight and its share of all weights."""
        table = pd.DataFrame({"place": range(1, self.k + 1), "expert": self.winners.indices.tolist()})
        table["row"], table["column"] = table["expert"] // self.n_subkeys, table["expert"] % self.n_subkeys
        table["score"], table["weight"] = self.winners.scores.tolist(), self.weights.tolist()
        return table.assign(share=(self.weights / self.weights.sum()).tolist())


def why_no_search(model: Recommender, dataset: Dataset, user: int) -> str:
    """What a model without keys compares the newest event of a person with, in a sentence."""
    events = min(int(dataset.readable_lengths()[user]), model.length)
    if isinstance(model, QuantisedModel):
        books, words = model.codebook_shape()
        return (
            f"It has another search: an item is compared with the {words:,} words of each of {books} codebooks. That is "
            f"{books * words:,} in all, for any number of items."
        )
    if isinstance(model, AttentionModel):
        return f"It looks nothing up: it weighs each of the {events:,} events of person {user + 1} that it reads."
    return "It looks nothing up."


@torch.inference_mode()
def lesson_of_user(model: Recommender, dataset: Dataset, user: int, k: int | None = None, ago: int = 0) -> Lesson:
    """A person's query in the run's first memory, or one event's (`read_queries`); k is the run's own unless given."""
    memory, query = first_memory(model), read_queries(model, batch_of(model, dataset, np.array([user])), ago)
    kind = VOTE if has_votes(model) else memory.kind
    return Lesson(memory.keys, memory.values.weight, query[0], k or experts_wanted(model), kind)


@torch.inference_mode()
def read_queries(model: Recommender, batch: Batch, ago: int = 0) -> Tensor:
    """What the first memory's sub-keys meet, `[B, d]`: a history's query, or where every event asks, that of the one `ago`
    events before the newest."""
    memory, content, real = first_memory(model), model.events.embed_items(batch.items), batch.real
    return memory.norm(
        memory.event_queries(content[:, [-1 - ago]], None) if has_votes(model) else memory.event_queries(content, real)
    )


def experts_wanted(model: Recommender) -> int:
    """How many experts one search is for: k, or those that an event votes for."""
    memory = first_memory(model)
    return memory.m if isinstance(memory, VotingMemory) else memory.k


def has_votes(model: Recommender) -> bool:
    """Whether every event of a history asks the memory, and not the history as a whole."""
    return isinstance(first_memory(model), VotingMemory)


@torch.no_grad()
def random_lesson(n_subkeys: int, width: int, k: int, seed: int) -> Lesson:
    """A random query and random sub-keys, drawn as a fresh memory draws them. The same seed gives the same lesson.

    A memory of more than 256 × 256 has no vectors here: the search never looks at them."""
    generator = torch.Generator().manual_seed(seed)
    keys = ProductKeys(width, n_subkeys)
    keys.sub_keys.copy_(torch.rand(keys.sub_keys.shape, generator=generator) * 2 - 1)
    written = n_subkeys * n_subkeys if n_subkeys <= LARGEST_WRITTEN else 0
    values = torch.randn(written, width, generator=generator) * width**-0.5
    query = torch.randn(width, generator=generator)
    return Lesson(keys, values, query, k)


@torch.no_grad()
def lesson_of_angles(first: int, second: int, k: int) -> Lesson:
    """The smallest search that shows everything: 4 × 4 experts, a query of two arrows of length 1 (`first` and `second` are their
    directions in degrees) and sub-keys that are arrows, too. All are rounded to two decimals, so that one can follow on paper."""
    generator = torch.Generator().manual_seed(0)
    keys = ProductKeys(4, len(TOY_DEGREES[0]), cosine=False)
    keys.sub_keys.copy_(angles_to_vectors(TOY_DEGREES))
    values = (torch.randn(keys.n_subkeys**2, 4, generator=generator) * 0.5).round(decimals=1)
    return Lesson(keys, values, angles_to_vectors([first, second]).flatten(), k)


def angles_to_vectors(degrees: Sequence[object]) -> Tensor:
    """Draw arrows of length 1 in these directions, `[…, 2]`, rounded to two decimals."""
    turns = torch.tensor(degrees, dtype=torch.double).deg2rad()
    return torch.stack([turns.cos(), turns.sin()], dim=-1).round(decimals=2).float()


def first_memory(model: Recommender) -> InterestMemory:
    """The memory that `model.retrieve` asks. Raises TypeError where a model has none (`model.retrieves` is False)."""
    memory = model.memories[0] if model.retrieves else None  # type: ignore[index]
    if not isinstance(memory, InterestMemory):
        raise TypeError(f"{model.config.name} has no interest memory")
    return memory
