"""ELASTIC: retrieve k interests for this person, let them aggregate the history and dispatch it back (Eq. 1-9).

One implementation, every variant a setting:

| setting | values |
| --- | --- |
| `form` | `causal` (learns from `window` or `last`), `two-way` (the paper's encoder; `last` only) |
| `memory` | `shared` one retrieval carried through the layers (ELASTIC), `per-layer` (PKM-ACT), `none` (w/o IMR) |
| `query` | `network` (Eq. 4), `mean` (w/o Query Net) |
| `dispatch` | `linear` (Eq. 2-3), `none` (w/o Dispatcher: self-attention, the experts as extra keys; the paper defines none) |
| `gate` | `softmax`, `sigmoid`, `none` (Algorithm 1 as printed: no gradient to keys and query network) |
| `query_norm` | `whiten` (ours), `layer`, `batch` (each coordinate by its own variance), `none` |
| `scores` | `cosine` of query and sub-key times a learned temperature (ours), `dot` (Eq. 7: no sub-key is brought to unit norm) |
| `local` | width of the convolution beside the dispatch (ours), 0 = the paper |

`per-layer`: in the causal form all its memories are asked with the same events, not with each layer's input; only the two-way
form asks with the layer's input, as PKM-ACT prints it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from elastic_core.config import ModelConfig, Objective
from elastic_core.data.batches import Batch
from elastic_core.errors import InputError
from elastic_core.layers.attention import Attention
from elastic_core.layers.dispatcher import CausalDispatcher, TwoWayDispatcher
from elastic_core.layers.embedding import EventEmbedding
from elastic_core.layers.feed_forward import FeedForward
from elastic_core.layers.interest_memory import InterestMemory, Retrieved, SharedInterests, balance_penalty
from elastic_core.models.registry import Encoded, Recommender, register

Edit = Callable[[Retrieved], Retrieved]


@dataclass(frozen=True, kw_only=True)
class ElasticConfig(ModelConfig, name="elastic"):
    side: int = 16  # √K
    k: int = 8
    form: Literal["causal", "two-way"] = "causal"
    memory: Literal["shared", "per-layer", "none"] = "shared"
    query: Literal["network", "mean"] = "network"
    dispatch: Literal["linear", "none"] = "linear"
    gate: Literal["softmax", "sigmoid", "none"] = "softmax"
    query_norm: Literal["whiten", "layer", "batch", "none"] = "whiten"
    scores: Literal["cosine", "dot"] = "cosine"
    local: int = 8
    stride: int = 8
    window: int = 64  # attention window of the query network; 0 = full attention
    expansion: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.side < 2:
            raise InputError(f"model.side (√K) must be at least 2, not {self.side}")
        if not 1 <= self.k <= self.side**2:
            raise InputError(f"model.k must lie in 1 … side² = {self.side**2}, not {self.k}")
        if self.stride < 2 or self.window < 0 or self.local < 0:
            raise InputError("model.stride must be at least 2, model.window and model.local at least 0")


class Trace(NamedTuple):
    """What happened inside, for people: one entry per layer."""

    retrieved: list[Retrieved]
    reading: list[Tensor]  # [B, H, k, N] how each interest aggregates the events
    slots: list[Tensor]  # [B, H, k] how the last event reads the interests


class SelfAttentionLayer(nn.Module):
    """`dispatch="none"`: softmax self-attention over the events with the retrieved experts as extra keys, O(N²)."""

    def __init__(self, config: ElasticConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.attend = Attention(config.width, config.heads, config.dropout, causal=config.form == "causal")
        self.dropout = nn.Dropout(config.dropout)
        self.feed_forward = FeedForward(config.width, config.dropout, config.expansion)

    def forward(self, x: Tensor, p: Tensor, real: Tensor | None, last: bool = False) -> tuple[Tensor, Tensor]:
        h = self.norm(x)
        if last:
            return self.feed_forward(x[:, -1:] + self.attend.last(h, real, p)), p
        return self.feed_forward(x + self.dropout(self.attend(h, real, p))), p


def _layer(config: ElasticConfig) -> nn.Module:
    if config.dispatch == "none":
        return SelfAttentionLayer(config)
    form = CausalDispatcher if config.form == "causal" else TwoWayDispatcher
    return form(config.width, config.heads, config.dropout, config.local, config.expansion)


def _memory(config: ElasticConfig) -> nn.Module:
    if config.memory == "none":
        return SharedInterests(config.width, config.k)
    return InterestMemory(
        config.length, config.width, config.heads, config.side, config.k,
        query=config.query, norm=config.query_norm, scores=config.scores, gate=config.gate,
        stride=config.stride, window=config.window or None,
    )  # fmt: skip


@register(ElasticConfig)
class Elastic(Recommender):
    """See the module's table. `edit` arguments change what was retrieved before it is used, for what-if questions."""

    objectives = ("window", "last")
    config: ElasticConfig

    def __init__(self, config: ElasticConfig, n_items: int) -> None:
        super().__init__(config, n_items)
        self.causal = config.form == "causal"
        self.retrieves = config.memory != "none"
        self.streams = self.causal and config.dispatch == "linear"
        self.events = EventEmbedding(n_items, config.length, config.width, config.dropout)
        self.memories = nn.ModuleList(_memory(config) for _ in range(config.layers if config.memory == "per-layer" else 1))
        self.layers = nn.ModuleList(_layer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def honest_objectives(self) -> tuple[Objective, ...]:
        return self.objectives if self.causal else ("last",)

    def forward(self, batch: Batch) -> Encoded:
        x, retrieved = self._encode(batch)
        penalty = torch.stack([balance_penalty(r.halves) for r in retrieved]).mean()
        return Encoded(self.norm(x), penalty)

    def last_state(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        return self.norm(self._encode(batch, last=True, edit=edit)[0][:, -1])

    def logits(self, states: Tensor) -> Tensor:
        return self.events.score(states)

    def item_table(self) -> Tensor:
        return self.events.items.weight

    def expert_values(self) -> Tensor:
        memory = self.memories[0]
        return memory.values.weight if isinstance(memory, InterestMemory) else super().expert_values()

    def retrieve(self, batch: Batch) -> Retrieved:
        """The first layer's retrieval for what `batch.recall` holds."""
        return self._retrieve(0, *self._recalled(batch))

    @torch.no_grad()
    def calibrate(self, batch: Batch, rate: float = 1.0) -> None:
        """Tells every memory's query normalisation what histories ask: those that `batch.recall [B, N]` holds.

        `rate` is how far its statistics move (1 = only this batch counts). Without dropout, as histories are served; memory
        by memory, because in the two-way form what a layer asks depends on what the layer before it has found.
        """
        was_training = self.training
        self.eval()
        content, real = self._recalled(batch)
        x = self.events.place(content, real)
        for i, memory in enumerate(self.memories):
            if not isinstance(memory, InterestMemory):
                break
            asked = content if i == 0 or self.causal else x
            memory.calibrate(asked, real, rate)
            if not self.causal and i + 1 < len(self.memories):
                x, _ = self.layers[i](x, memory(asked, real).interests, real)
        self.train(was_training)

    def trace(self, batch: Batch) -> Trace:
        """How this history was read. Costs O(N·k) more than scoring; meant for one person at a time."""
        if self.config.dispatch == "none":
            raise InputError("this run has no dispatcher (dispatch = none), so there is no aggregation to show")
        trace = Trace([], [], [])
        self._encode(batch, trace=trace)
        return trace

    def _recalled(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.events.content(batch.recall), batch.recall > 0

    def _retrieve(self, layer: int, content: Tensor, real: Tensor | None, edit: Edit | None = None) -> Retrieved:
        found: Retrieved = self.memories[layer](content, real)
        return edit(found) if edit else found

    def _encode(
        self, batch: Batch, last: bool = False, edit: Edit | None = None, trace: Trace | None = None
    ) -> tuple[Tensor, list[Retrieved]]:
        content, real = self.events.content(batch.items), batch.real if batch.padded else None
        x = self.events.place(content, real)
        recalled = (content, real) if batch.recall is batch.items else self._recalled(batch)
        retrieved = [self._retrieve(0, *recalled, edit)]
        p = retrieved[0].interests
        for i, layer in enumerate(self.layers):
            if i and self.config.memory == "per-layer":
                # PKM-ACT asks again before every layer with the layer's input. The causal form asks with the recalled events
                # themselves: a layer's input holds later events, which must not reach an earlier position through the query
                retrieved.append(self._retrieve(i, *(recalled if self.causal else (x, real)), edit))
                p = retrieved[-1].interests
            if trace is not None:
                assert isinstance(layer, TwoWayDispatcher | CausalDispatcher)
                reading, slots = layer.attention(x, p, real)
                trace.retrieved.append(retrieved[-1])
                trace.reading.append(reading)
                trace.slots.append(slots)
            x, p = layer(x, p, real, last=last and i == len(self.layers) - 1)
        return x, retrieved
