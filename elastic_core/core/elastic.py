"""ELASTIC: retrieve k interests for this person, let them aggregate the history and dispatch it back (Eq. 1-9).

The model in one file. B people, N events (left-padded, `real` [B, N]), width d, k of K = n_subkeys² experts, H heads, e = d/H:

    X [B, N, d]                             item embeddings + positions                                              Eq. 1
    q [B, d] = QueryNetwork(X)              (N/stride, stride·d) → linear → self-attention, until one row is left    Eq. 4
    s [B, 2, √K] = (q₁ C₁ᵀ, q₂ C₂ᵀ)         half scores; the k best of their K sums, exactly                         Eq. 6-7
    P [B, k, d] = gate(s) · V[best]         the retrieved interest experts                                           Eq. 5
    M = softmax(P W_Q1 (X W_K1)ᵀ) X W_V1    the k interests aggregate the history, O(N·k)                            Eq. 2
    X' = softmax(X W_Q2 (M W_K2)ᵀ) M W_V2   and dispatch it back to the events, O(N·k)                               Eq. 3
    scores = norm(X'[-1]) Eᵀ                against the item table                                                   Eq. 8-9

Both dispatchers are *folded*: (P W_Q)(X W_K)ᵀ = (P W_Q W_Kᵀ) Xᵀ and softmax(·)(X W_V) = (softmax(·) X) W_V, so that every product
of N x d x d becomes one of k x d x d. That is algebra, not an approximation. Every variant is a setting:
| setting | values |
| --- | --- |
| `bidirectional` | `False`: causal (learns from `window` or `last`); `True`: the paper's two-way encoder (`last` only) |
| `memory` | `shared` one retrieval carried through the layers (ELASTIC), `per-layer` (PKM-ACT), `none` (w/o IMR) |
| `query` | `network` (Eq. 4), `mean` (w/o Query Net) |
| `dispatch` | `linear` (Eq. 2-3), `none` (w/o Dispatcher: self-attention, the experts as extra keys; the paper defines none) |
| `gate` | `softmax`, `none` (Algorithm 1 as printed: no gradient to keys and query network) |
| `query_norm` | `whiten` (ours), `layer` |
| `conv_width` | width of the causal convolution beside the dispatch (ours), 0 = the paper |

Two models of ours build on this one: slots/elastic_votes.py (every event asks the memory) and slots/elastic_slots.py.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.batches import Batch
from elastic_core.core.config import ConvWidth, ModelConfig, Several, Weight, Within
from elastic_core.core.contract import (
    Edit,
    Encoded,
    Judge,
    Retrieved,
    RetrievingModel,
    Scorer,
    StreamingModel,
    Trace,
    TracingModel,
    Variant,
    balance_penalty,
    register,
)
from elastic_core.core.dispatch import CausalDispatcher, SelfAttentionLayer, TwoWayDispatcher
from elastic_core.core.elastic_reader import ElasticReader, can_read
from elastic_core.core.elastic_stream import ElasticStream
from elastic_core.core.histories import Catalog
from elastic_core.core.layers import Attention, EventEmbedding, Whitening, linear, pad_front, without_autocast, zero_padding
from elastic_core.errors import InputError

# --- settings: of every model with an interest memory, and ELASTIC's own ---------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MemoryConfig(ModelConfig):
    n_subkeys: Annotated[int, Within(2, 4_096)] = 16  # √K
    k: Several = 8
    memory: Literal["shared", "per-layer", "none"] = "shared"
    query: Literal["network", "mean"] = "network"
    balance_weight: Weight = 0.3  # of the auxiliary loss that spreads what is asked over the sub-keys

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k > self.n_subkeys**2:
            raise InputError(f"model.k must lie in 1 … n_subkeys² = {self.n_subkeys**2}, not {self.k}")


@dataclass(frozen=True, kw_only=True)
class ElasticConfig(MemoryConfig, name="elastic", label="ELASTIC"):
    bidirectional: bool = False
    gate: Literal["softmax", "none"] = "softmax"
    query_norm: Literal["whiten", "layer"] = "whiten"
    dispatch: Literal["linear", "none"] = "linear"
    conv_width: ConvWidth = 8


# --- the query network (Eq. 4) ---------------------------------------------------------------------------------------


class PoolingLevel(nn.Module):
    """Reduce `[B, n, d]` to `[B, ceil(n / stride), d]`, blocks counted back from the last event, and let the blocks attend.

    Padding must not speak: a block is rescaled by how many real events it holds, and empty blocks are never read."""

    def __init__(self, width: int, heads: int, stride: int, window: int | None, attends: bool) -> None:
        super().__init__()
        self.stride, self.window = stride, window
        self.project = nn.Linear(stride * width, width)
        self.norm = nn.LayerNorm(width) if attends else None
        self.attention = Attention(width, heads, dropout=0.0, causal=False) if attends else None

    def forward(self, x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor | None]:
        x, real = pad_front(x, real, self.stride)
        pooled = linear(zero_padding(x, real).unflatten(1, (-1, self.stride)).flatten(2), self.project.weight, self.project.bias)
        if real is not None:
            counts = real.unflatten(1, (-1, self.stride)).sum(-1, keepdim=True)
            pooled, real = pooled * (self.stride / counts.clamp_min(1)), counts.squeeze(-1) > 0
        if self.norm is None or self.attention is None:  # one block is left: nobody to attend to
            return pooled, real
        h, n, window = self.norm(pooled), pooled.shape[1], self.window
        if window is None or n <= window:
            return pooled + self.attention(h, real), real
        h, known = pad_front(h, real, window)  # in windows, or N/stride blocks would cost (N/stride)²
        mixed = self.attention(h.reshape(-1, window, h.shape[2]), None if known is None else known.reshape(-1, window))
        return pooled + mixed.reshape(h.shape)[:, -n:], real


class QueryNetwork(nn.Module):
    """Turn a history's content `[B, N, d]` into one query `[B, d]` in as many levels as `length` events need, at most."""

    def __init__(self, length: int, width: int, heads: int, stride: int = 8, window: int | None = 64) -> None:
        super().__init__()
        if stride < 2 or (window is not None and window < 1):
            raise InputError(f"a query network needs a stride of 2 or more and a window of 1 or more, not {stride} and {window}")
        self.length, self.levels = length, nn.ModuleList()
        n = length
        while n > 1:
            n = -(-n // stride)
            self.levels.append(PoolingLevel(width, heads, stride, window, attends=n > 1))

    def forward(self, x: Tensor, real: Tensor | None) -> Tensor:
        if x.shape[1] > self.length:
            raise InputError(f"the strides of this query network cover {self.length} events, not {x.shape[1]}")
        for level in self.levels:
            x, real = level(x, real)
        return x[:, 0]


class MeanQuery(nn.Module):
    """Table 3's "w/o Query Net": the average of the real events, `[B, d]`."""

    def forward(self, x: Tensor, real: Tensor | None) -> Tensor:
        return x.mean(1) if real is None else zero_padding(x, real).sum(1) / real.sum(1, keepdim=True).clamp_min(1)


# --- product keys (Eq. 6-7; Lample et al. 2019) ----------------------------------------------------------------------


class BestKeys(NamedTuple):
    """The k best keys of each query, best first: their number `row · n_subkeys + column` and score, both `[B, k]`."""

    indices: Tensor
    scores: Tensor


@lru_cache(maxsize=256)
def candidate_ranks(k: int, n_subkeys: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs of ranks (from 0) that can be among the k best: (i + 1)(j + 1) <= k; those up and left are no worse."""
    return tuple((i, j) for i in range(min(k, n_subkeys)) for j in range(min(k // (i + 1), n_subkeys)))


@lru_cache(maxsize=256)
def _ranks_on(k: int, n_subkeys: int, device: torch.device) -> Tensor:
    """Return `candidate_ranks` `[C, 2]`, on the device once: a copy in every step would be waited for."""
    with torch.inference_mode(False):
        return torch.tensor(candidate_ranks.__wrapped__(k, n_subkeys), device=device)


def top_pairs(halves: Tensor, k: int) -> BestKeys:
    """Return the k best sums of half scores `[B, 2, n_subkeys]`, exactly: equals `search_exhaustively` up to the order of equal
    scores."""
    n_subkeys = halves.shape[-1]
    if not 1 <= k <= n_subkeys * n_subkeys:
        raise InputError(f"k must lie in 1 … n_subkeys² = {n_subkeys * n_subkeys}, not {k}")
    best, where = halves.topk(min(k, n_subkeys), dim=-1)
    ranks = (_ranks_on.__wrapped__ if torch.compiler.is_compiling() else _ranks_on)(k, n_subkeys, halves.device)
    sums = best[:, 0, ranks[:, 0]] + best[:, 1, ranks[:, 1]]
    scores, winners = sums.topk(k, dim=-1)
    rows, columns = (where[:, half].gather(1, ranks[winners, half]) for half in (0, 1))
    return BestKeys(rows * n_subkeys + columns, scores)


def search_exhaustively(halves: Tensor, k: int) -> BestKeys:
    """Return the same from all n_subkeys² sums: what product keys avoid, and what they must equal."""
    scores, indices = (halves[:, 0, :, None] + halves[:, 1, None, :]).flatten(1).topk(k, dim=-1)
    return BestKeys(indices, scores)


class ProductKeys(nn.Module):
    """Two sets of `n_subkeys` sub-keys of width d/2. Queries `[B, d]` → half scores `[B, 2, n_subkeys]`.

    With `cosine` (ours), both halves of the query and all sub-keys have unit norm and their product is scaled by a learned
    temperature, so that no sub-key wins by its length; without, Eq. 7 (whose second half, printed with q1 again, reads q2)."""

    def __init__(self, width: int, n_subkeys: int, cosine: bool = True) -> None:
        super().__init__()
        self.n_subkeys, self.cosine = n_subkeys, cosine
        bound = 1 / math.sqrt(width // 2)
        self.sub_keys = nn.Parameter(torch.empty(2, n_subkeys, width // 2).uniform_(-bound, bound))
        self.log_temperature = nn.Parameter(torch.tensor(math.log(4.0))) if cosine else None

    def forward(self, query: Tensor) -> Tensor:
        halves: Tensor = query.unflatten(-1, (2, -1))
        keys: Tensor = self.sub_keys
        if self.log_temperature is not None:
            halves = functional.normalize(halves, dim=-1) * self.log_temperature.exp()
            keys = functional.normalize(keys, dim=-1)
        return torch.einsum("bhd,hsd->bhs", halves, keys)


# --- the interest memory (Eq. 5, Algorithm 1) ------------------------------------------------------------------------


def gate_weights(scores: Tensor, kind: str) -> Tensor:
    """Return `softmax` of scores `[B, k]` times k (so that the mean stays 1), or ones for `none`: Algorithm 1 drops the scores
    after the search, so no gradient could ever reach sub-keys and query network."""
    return scores.softmax(-1) * scores.shape[-1] if kind == "softmax" else torch.ones_like(scores)


class InterestMemory(nn.Module):
    """K = n_subkeys² experts of width d behind product keys. Subclasses say what a history asks: `forward` takes its content
    `[B, N, d]`, its mask and, where equal items have equal content, the items `[B, N]` to `Retrieved`; `event_queries` gives the
    queries `[M, d]`."""

    def __init__(self, config: MemoryConfig, norm: str, gate: str) -> None:
        super().__init__()
        self.k, self.kind = config.k, gate
        width, size = config.width, config.n_subkeys**2
        self.norm = Whitening(width) if norm == "whiten" else nn.LayerNorm(width)  # queries and sub-keys on one scale
        self.keys = ProductKeys(width, config.n_subkeys)
        self.values = nn.Embedding(size, width)
        nn.init.normal_(self.values.weight, std=width**-0.5)

    def event_queries(self, x: Tensor, real: Tensor | None) -> Tensor:
        raise NotImplementedError

    @torch.no_grad()
    def calibrate(self, x: Tensor, real: Tensor | None, rate: float = 1.0) -> None:
        """Tell the whitening what these histories ask; at rate 1 it forgets all earlier ones."""
        if isinstance(self.norm, Whitening):
            with without_autocast(x.device.type):  # a covariance of rounded queries is one of the rounding
                self.norm.update_statistics(self.event_queries(x.to(self.values.weight.dtype), real), rate)


class QueriedMemory(InterestMemory):
    """The paper's: one query for the whole history, by Eq. 4 (`network`) or as its plain mean."""

    def __init__(self, config: MemoryConfig, norm: str, gate: str) -> None:
        network = MeanQuery() if config.query == "mean" else QueryNetwork(config.length, config.width, config.heads)
        super().__init__(config, norm, gate)  # its numbers are drawn after the network's
        self.query_network = network

    def forward(self, x: Tensor, real: Tensor | None, items: Tensor | None = None) -> Retrieved:
        return self.search(self.query_network(x, real))

    def search(self, pooled: Tensor) -> Retrieved:
        """Retrieve the experts for queries `[B, d]`."""
        pooled = pooled.to(self.values.weight.dtype)
        with without_autocast(pooled.device.type):  # in bfloat16 most of close scores would be ties
            query = self.norm(pooled)
            halves = self.keys(query)
            experts, scores = top_pairs(halves, self.k)
            gates = gate_weights(scores, self.kind)
            return Retrieved(self.values(experts) * gates.unsqueeze(-1), experts, scores, gates, halves, query, pooled)

    def event_queries(self, x: Tensor, real: Tensor | None) -> Tensor:
        return self.query_network(x, real)


class SharedInterests(nn.Module):
    """Table 3's "w/o IMR": the same k learned interests for everybody."""

    def __init__(self, width: int, k: int) -> None:
        super().__init__()
        self.interests = nn.Parameter(torch.randn(k, width) * width**-0.5)

    def forward(self, x: Tensor, real: Tensor | None, items: Tensor | None = None) -> Retrieved:
        b, k = x.shape[0], self.interests.shape[0]
        ones, nothing, numbers = x.new_ones(b, k), x.new_zeros(b, 0), torch.arange(k, device=x.device).expand(b, k)
        return Retrieved(self.interests.expand(b, -1, -1), numbers, ones, ones, x.new_zeros(b, 2, 0), nothing, nothing)


# --- what models with an interest memory share: what its experts are, and what they stand for ------------------------


def make_interest_memory(config: MemoryConfig, norm: str = "whiten", gate: str = "softmax") -> InterestMemory | SharedInterests:
    """Return one memory, as the settings ask for it."""
    if config.memory == "none":
        return SharedInterests(config.width, config.k)
    return QueriedMemory(config, norm, gate)


class WithMemory(RetrievingModel):
    """Its experts are those of `memories[0]`."""

    config: MemoryConfig
    memories: nn.ModuleList
    events: EventEmbedding

    def expert_values(self) -> Tensor:
        memory = self.memories[0]
        return memory.values.weight if isinstance(memory, InterestMemory) else torch.zeros(0, self.config.width)

    def select_experts(self, experts: Tensor) -> Tensor:
        memory = self.memories[0]
        return memory.values(experts) if isinstance(memory, InterestMemory) else self.expert_values()[experts]

    def saved_per_event(self, columns: int) -> int:
        return self.saved_by_blocks() + self.config.heads * 34 * (self.config.width + self.config.k)


# --- the model -------------------------------------------------------------------------------------------------------


def make_layer(config: ElasticConfig) -> nn.Module:
    """Return one layer, as the settings ask for it."""
    shape = config.width, config.heads, config.dropout
    if config.dispatch == "none":
        return SelfAttentionLayer(*shape, causal=not config.bidirectional)
    return (TwoWayDispatcher if config.bidirectional else CausalDispatcher)(*shape, config.conv_width)


@register(ElasticConfig)
class Elastic(WithMemory, StreamingModel, TracingModel):
    """See the module's table. `edit` arguments change what was retrieved before it is used, for what-if questions."""

    objective = "window"
    forms: ClassVar = {
        "elastic": {"bidirectional": False},  # the recipes' form: causal dispatcher and local convolution
        "elastic-two-way": {"bidirectional": True, "conv_width": 0},  # the paper's encoder
    }
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("ELASTIC", {}, "The paper’s model, reading only earlier events: one search a history."),
        Variant("ELASTIC, two-way", {"bidirectional": True}, "The paper’s encoder as printed: a sample has one target.", "last"),
        Variant(
            "PKM-ACT",
            {"memory": "per-layer"},
            "The paper’s first version has a memory before every layer and needs at least two layers. In the causal form all "
            "memories are asked with the same events; the two-way form asks with the input of each layer, as printed.",
        ),
        Variant("ELASTIC without query network", {"query": "mean"}, "Table 3: the query is the plain mean of the events."),
        Variant("ELASTIC without memory", {"memory": "none"}, "Table 3: everybody has the same k interests."),
        Variant("ELASTIC without dispatcher", {"dispatch": "none"}, "Table 3: self-attention replaces the linear dispatcher."),
        Variant("ELASTIC without gate", {"gate": "none"}, "Algorithm 1 as printed: the keys receive no gradient."),
    )
    config: ElasticConfig
    memories: nn.ModuleList  # one, or with `per-layer` one a layer

    def __init__(self, config: ElasticConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.causal = not config.bidirectional
        self.n_experts = config.n_subkeys**2
        self.retrieves = config.memory != "none"
        self.traces = config.dispatch != "none"
        self.streams = self.causal and config.dispatch == "linear"
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout)
        memories = config.layers if config.memory == "per-layer" else 1
        self.memories = nn.ModuleList(self.make_memory() for _ in range(memories))
        self.layers = nn.ModuleList(make_layer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def make_memory(self) -> InterestMemory | SharedInterests:
        return make_interest_memory(self.config, self.config.query_norm, self.config.gate)

    def forward(self, batch: Batch) -> Encoded:
        x, retrieved = self._encode(batch, last=batch.target_columns)
        auxiliary = {}
        if self.retrieves and self.config.balance_weight:
            auxiliary["balance"] = torch.stack([balance_penalty(r) for r in retrieved]).mean()
        return Encoded(self.norm(x), auxiliary, self.summed_losses(retrieved[0], batch))

    def summed_losses(self, retrieved: Retrieved, batch: Batch) -> dict[str, Tensor]:
        """More losses, summed over the targets: the paper has none."""
        return {}

    def _memory_input(self, batch: Batch) -> tuple[Tensor, Tensor | None, Tensor | None]:
        return self.events.embed_items(batch.retrieval_items), batch.retrieval_items > 0, batch.retrieval_items

    def _retrieve_for_layer(
        self, i: int, x: Tensor, real: Tensor | None, items: Tensor | None, edit: Edit | None = None
    ) -> Retrieved:
        retrieved: Retrieved = self.memories[i](x, real, items)
        retrieved = edit(retrieved) if edit else retrieved
        if retrieved.turned is None:
            return retrieved
        return retrieved._replace(
            interests=retrieved.interests * retrieved.turned.unsqueeze(-1), gates=retrieved.gates * retrieved.turned
        )

    def _encode(
        self, batch: Batch, last: int = 0, edit: Edit | None = None, seen: list[Any] | None = None
    ) -> tuple[Tensor, list[Retrieved]]:
        """The events after all layers, or the `last` of them, and every retrieval; to `seen`, each layer tells how it reads."""
        content, real = self.events.embed_items(batch.items), batch.mask
        x = self.events.add_positions(content, real)
        memory_input = (content, real, batch.items) if batch.retrieval_items is batch.items else self._memory_input(batch)
        retrieved = [self._retrieve_for_layer(0, *memory_input, edit)]
        p = retrieved[0].interests
        for i, layer in enumerate(self.layers):
            if i and self.config.memory == "per-layer":
                # PKM-ACT asks with the layer's input, which holds later events: the causal form asks with the same events
                retrieved.append(self._retrieve_for_layer(i, *(memory_input if self.causal else (x, real, None)), edit))
                p = retrieved[-1].interests
            if seen is not None:
                seen.append((retrieved[-1], *layer.attention_weights(x, p, real)))  # type: ignore[operator]
            x, p = layer(x, p, real, last=last if i == len(self.layers) - 1 else 0)
        return x, retrieved

    def auxiliary_weights(self) -> dict[str, float]:
        return {"balance": self.config.balance_weight} if self.retrieves and self.config.balance_weight else {}

    def last_state(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        return self.norm(self._encode(batch, last=1, edit=edit)[0][:, -1])

    def prepare_states(self) -> tuple[Judge, Scorer]:
        """Folds the weights once; where that cannot be, nothing is prepared."""
        return ElasticReader(self) if can_read(self) else self.last_state, self.scorer()

    def retrieve(self, batch: Batch) -> Retrieved:
        return self._retrieve_for_layer(0, *self._memory_input(batch))

    @torch.no_grad()
    def calibrate(self, batch: Batch, rate: float = 1.0) -> None:
        """Tells every memory's query normalisation what `batch.retrieval_items [B, N]` ask, without dropout, as they are served;
        memory by memory, because in the two-way form what a layer asks depends on what the layer before it has found."""
        was_training = self.training
        self.eval()
        content, real, _ = self._memory_input(batch)
        x = self.events.add_positions(content, real)
        for i, memory in enumerate(self.memories):
            if not isinstance(memory, InterestMemory):
                break
            memory_input = content if i == 0 or self.causal else x
            memory.calibrate(memory_input, real, rate)
            if not self.causal and i + 1 < len(self.memories):
                x, _ = self.layers[i](x, memory(memory_input, real).interests, real)
        self.train(was_training)

    def trace_reading(self, batch: Batch) -> Trace:
        """How this history was read. Costs O(N·k) more than scoring; meant for one person at a time."""
        if self.config.dispatch == "none":
            raise InputError("this run has no dispatcher (dispatch = none), so there is no aggregation to show")
        seen: list[tuple[Retrieved, Tensor, Tensor]] = []
        self._encode(batch, seen=seen)
        return Trace(*map(list, zip(*seen, strict=True)))  # type: ignore[arg-type]

    def slot_weights(self, batch: Batch, retrieved: Retrieved) -> Tensor:
        x, first = self.events(batch.items, batch.padded), self.layers[0]
        assert isinstance(first, TwoWayDispatcher | CausalDispatcher)
        return first.attention_weights(x, retrieved.interests, batch.mask)[0].mean(1)

    def open_stream(self, room: int) -> ElasticStream:
        return ElasticStream(self, room)
