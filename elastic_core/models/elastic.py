"""ELASTIC: retrieve k interests for this person, let them aggregate the history and dispatch it back (Eq. 1-9).

One implementation, every variant a setting:

| setting | values |
| --- | --- |
| `bidirectional` | `False`: causal (learns from `window` or `last`); `True`: the paper's two-way encoder (`last` only) |
| `memory` | `shared` one retrieval carried through the layers (ELASTIC), `per-layer` (PKM-ACT), `none` (w/o IMR) |
| `query` | `network` (Eq. 4), `mean` (w/o Query Net), `votes` (ours: every event asks, layers/voting.py) |
| `dispatch` | `linear` (Eq. 2-3), `none` (w/o Dispatcher: self-attention, the experts as extra keys; the paper defines none) |
| `gate` | `softmax`, `sigmoid`, `none` (Algorithm 1 as printed: no gradient to keys and query network) |
| `query_norm` | `whiten` (ours), `layer`, `batch` (each coordinate by its own variance), `none` |
| `scores` | `cosine` of query and sub-key times a learned temperature (ours), `dot` (Eq. 7: no sub-key is brought to unit norm) |
| `conv_width` | width of the causal convolution beside the dispatch (ours), 0 = the paper |
| `bank` | `dense`, or `rows` (ours: a step touches only the experts it retrieved, layers/row_bank.py) |
| `interest_weight` | of the loss that asks experts to stand for items (ours, layers/standing.py), 0 = the paper |

`per-layer`: in the causal form all its memories are asked with the same events, not with each layer's input; only the two-way
form asks with the layer's input, as PKM-ACT prints it.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn

from elastic_core.config import Within
from elastic_core.data.batches import Batch
from elastic_core.data.catalog import Catalog
from elastic_core.errors import InputError
from elastic_core.layers import prefix_slots
from elastic_core.layers.attention import Attention
from elastic_core.layers.dispatcher import CausalDispatcher, TwoWayDispatcher
from elastic_core.layers.embedding import EventEmbedding
from elastic_core.layers.feed_forward import FeedForward
from elastic_core.layers.interest_memory import InterestMemory, Retrieved, balance_penalty
from elastic_core.layers.padding import masked
from elastic_core.layers.prefix_slots import Maps, Sums
from elastic_core.layers.standing import Standing
from elastic_core.models.contract import Edit, Encoded, Scorer, Streams, Trace, Traces, Variant
from elastic_core.models.registry import register
from elastic_core.models.with_memory import MemoryConfig, WithMemory, interest_memory


@dataclass(frozen=True, kw_only=True)
class ElasticConfig(MemoryConfig, name="elastic"):
    label: ClassVar[str] = "ELASTIC"
    bidirectional: bool = False
    dispatch: Literal["linear", "none"] = "linear"
    conv_width: Annotated[int, Within(0, 1_024)] = 8


class SelfAttentionLayer(nn.Module):
    """`dispatch="none"`: softmax self-attention over the events with the retrieved experts as extra keys, O(N²)."""

    def __init__(self, config: ElasticConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.attend = Attention(config.width, config.heads, config.dropout, causal=not config.bidirectional)
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
    form = TwoWayDispatcher if config.bidirectional else CausalDispatcher
    return form(config.width, config.heads, config.dropout, config.conv_width, config.expansion)


@register(ElasticConfig)
class Elastic(WithMemory, Streams, Traces):
    """See the module's table. `edit` arguments change what was retrieved before it is used, for what-if questions."""

    objective = "window"
    forms: ClassVar = {
        "elastic": {"bidirectional": False},  # the recipes' form: causal dispatcher and local convolution
        "elastic-two-way": {"bidirectional": True, "conv_width": 0},  # the paper's encoder
    }
    variants = (
        Variant("ELASTIC", {}, "The model of the paper in its causal form."),
        Variant("ELASTIC, two-way", {"bidirectional": True}, "The encoder as printed: one target a sample.", "last"),
        Variant(
            "PKM-ACT",
            {"memory": "per-layer"},
            "A memory before every layer; needs two layers. In the causal form all its memories are asked with the same events, "
            "not with each layer's input; only the two-way form asks with the layer's input, as PKM-ACT prints it.",
        ),
        Variant("ELASTIC without query network", {"query": "mean"}, "Table 3: the query is the plain mean of the events."),
        Variant("ELASTIC without memory", {"memory": "none"}, "Table 3, w/o IMR: k interests that everybody shares."),
        Variant("ELASTIC without dispatcher", {"dispatch": "none"}, "Table 3: self-attention instead of linear dispatch."),
        Variant("ELASTIC without gate", {"gate": "none"}, "Algorithm 1 as printed: the keys get no gradient."),
    )
    config: ElasticConfig

    def __init__(self, config: ElasticConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.causal = not config.bidirectional
        self.n_experts = config.side**2
        self.retrieves = config.memory != "none"
        self.traces = config.dispatch != "none"
        self.streams = self.causal and config.dispatch == "linear"
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout)
        self.memories = nn.ModuleList(
            interest_memory(config) for _ in range(config.layers if config.memory == "per-layer" else 1)
        )
        self.layers = nn.ModuleList(_layer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.standing = Standing(config.width) if config.interest_weight and self.retrieves else None

    def forward(self, batch: Batch) -> Encoded:
        x, retrieved = self._encode(batch)
        auxiliary, summed = {}, {}
        if self.retrieves and self.config.balance_weight:
            auxiliary["balance"] = torch.stack([balance_penalty(r) for r in retrieved]).mean()
        if self.standing is not None and batch.targets is not None:
            found, table = retrieved[0], self.events.items.weight
            masses = self._masses(found)
            assert masses is not None
            summed["interest"] = self.standing.surprise(found, batch.targets, self._values(found), table, masses)
        return Encoded(self.norm(x), auxiliary, summed)

    def auxiliary_weights(self) -> dict[str, float]:
        weights = {"balance": self.config.balance_weight, "interest": self.config.interest_weight}
        return {name: weight for name, weight in weights.items() if weight and self.retrieves}

    def last_state(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        return self.norm(self._encode(batch, last=True, edit=edit)[0][:, -1])

    def scorer(self) -> Scorer:
        return Scorer(self.events.items.weight, again=self.again)

    def retrieve(self, batch: Batch) -> Retrieved:
        return self._retrieve(0, *self._read_for_retrieval(batch))

    @torch.no_grad()
    def calibrate(self, batch: Batch, rate: float = 1.0) -> None:
        """Tells every memory's query normalisation what histories ask: those that `batch.retrieval_items [B, N]` holds.

        `rate` is how far its statistics move (1 = only this batch counts). Without dropout, as histories are served; memory
        by memory, because in the two-way form what a layer asks depends on what the layer before it has found.
        """
        was_training = self.training
        self.eval()
        content, real = self._read_for_retrieval(batch)
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

    def taken(self, batch: Batch, found: Retrieved) -> Tensor:
        real, first = batch.real if batch.padded else None, self.layers[0]
        assert isinstance(first, TwoWayDispatcher | CausalDispatcher)
        x = self.events.place(self.events.content(batch.items), real)
        return first.attention(x, found.interests, real)[0].mean(1)

    def _read_for_retrieval(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.events.content(batch.retrieval_items), batch.retrieval_items > 0

    def _retrieve(self, layer: int, content: Tensor, real: Tensor | None, edit: Edit | None = None) -> Retrieved:
        found: Retrieved = self.memories[layer](content, real)
        found = edit(found) if edit else found
        if found.turned is None:
            return found
        return found._replace(interests=found.interests * found.turned.unsqueeze(-1), gates=found.gates * found.turned)

    def _encode(
        self, batch: Batch, last: bool = False, edit: Edit | None = None, trace: Trace | None = None
    ) -> tuple[Tensor, list[Retrieved]]:
        content, real = self.events.content(batch.items), batch.real if batch.padded else None
        x = self.events.place(content, real)
        asked = (content, real) if batch.retrieval_items is batch.items else self._read_for_retrieval(batch)
        retrieved = [self._retrieve(0, *asked, edit)]
        p = retrieved[0].interests
        for i, layer in enumerate(self.layers):
            if i and self.config.memory == "per-layer":
                # PKM-ACT asks again before every layer with the layer's input. The causal form asks with the same events
                # themselves: a layer's input holds later events, which must not reach an earlier position through the query
                retrieved.append(self._retrieve(i, *(asked if self.causal else (x, real)), edit))
                p = retrieved[-1].interests
            if trace is not None:
                assert isinstance(layer, TwoWayDispatcher | CausalDispatcher)
                reading, slots = layer.attention(x, p, real)
                trace.retrieved.append(retrieved[-1])
                trace.reading.append(reading)
                trace.slots.append(slots)
            x, p = layer(x, p, real, last=last and i == len(self.layers) - 1)
        return x, retrieved

    def open_stream(self, room: int) -> "ElasticStream":
        return ElasticStream(self, room)


# --- streaming -------------------------------------------------------------------------------------------------------


@dataclass
class LayerState:
    """What one layer keeps: three that every event changes, and maps that follow from P and stay until the next refresh."""

    total: Tensor  # [B, H, k, d]
    mass: Tensor  # [B, H, k]
    tail: Tensor  # [B, conv_width - 1, d]
    asks: Tensor  # [B, H, k, d] logits of the interests for an event: e^a
    query: Tensor  # [H, d, d] what an event asks of the running part of the slots, the same for everybody
    bias: Tensor  # [B, H, k, d] what it asks of the interests themselves
    given: Tensor  # [B, H, k, d] what a slot gives through its interest
    carried: Tensor  # [H, d, d] what it gives through its running part, the same for everybody

    @property
    def sums(self) -> Sums:
        return Sums(self.total, self.mass)

    @property
    def maps(self) -> Maps:
        return Maps(self.asks, self.query, self.bias, self.given, self.carried)


class ElasticStream:
    """A person's state of constant size: one new event costs the same whatever the history's length (causal ELASTIC).

    In the causal form a layer's slots are running sums over the past and its interests P do not depend on time
    (layers/dispatcher.py), so a history can be forgotten once it has been summed. What is kept per person, in float32:

        the state proper, per layer                         H x k x d   numerators Σ_j e^{a_j[s]} h_j
                                                            H x k       denominators Σ_j e^{a_j[s]}
                                                            (conv_width - 1) x d   the last events, for the local convolution
        the interests, once (per memory)                    k x d       what the last `refresh` retrieved
        maps derived from the interests, per layer          3 x H x k x d   what they ask of an event, what an event asks of
                                                            them and what they give (`asks`, `bias`, `given`)

    The maps could be recomputed from the interests at each event, for O(k·d²) operations; kept, they are most of the memory:
    with L = 2, H = 1, k = 8, d = 64, conv_width = 8 the state proper is 1,936 numbers, the interests 512, the maps 3,072.
    What everybody shares (`query`, `carried`: folded weights) is not a person's. No running maximum is kept: the dispatcher
    bounds its logits to ±30 (prefix_slots.CAP), so a denominator of float32 would overflow after 10²⁵ events. A new event costs
    O(H·k·d + H·d²) per layer.

    What "equal to the batch pass" means. Positions are learned and counted back from the *end* of what is read
    (EventEmbedding). If every event were the new end, all older events would move back by one place with each of them, all
    their embeddings would change, and no constant-size state could follow: with positions counted from the newest event exact
    streaming is impossible. What does stream exactly is one pass over one window whose end lies ahead: `refresh` puts the
    history before the last `room` columns of the window, and every new event takes the next free column. After m new events
    the state equals column length - room - 1 + m of *one* batch pass, with `retrieval_items` = what `refresh` read. That is the
    situation the objective `window` trains (`room` = `objective.span`: experts from before the cut, targets after it), so nothing
    is asked of the model that it was not taught. It differs from `last_state` of the same history, which moves the end and
    asks the memory anew. When the `room` is used up, `refresh` must be called again; it costs one pass, O(N), so
    O(N / room) per event. The limit falls away only for a model whose positions do not depend on the end.

    The maps and what is done with them are those of the batch pass (layers/prefix_slots.py, `fold` of the layer).
    """

    def __init__(self, model: Elastic, room: int) -> None:
        self.model, self.room, self.left = model, room, 0
        self.states: list[LayerState] = []
        self.interests: list[Tensor] = []

    @torch.no_grad()
    def refresh(self, history: Tensor) -> Tensor:
        model = self.model
        cut = model.length - self.room
        history = history[:, -cut:]
        real = history > 0
        content = model.events.content(history)
        first = cut - history.shape[1]
        x = masked(content + model.events.where(slice(first, cut)), real)
        self.interests = [memory(content, real).interests for memory in model.memories]
        self.states = []
        for i, layer in enumerate(model.layers):
            p = self.interests[min(i, len(self.interests) - 1)]
            self.states.append(_read(layer, p, masked(layer.norm(x), real), real))  # type: ignore[operator, arg-type]
            x, _ = layer(x, p, real, last=i == len(model.layers) - 1)
        self.left = self.room
        return model.norm(x[:, -1])

    @torch.no_grad()
    def step(self, items: Tensor) -> Tensor:
        if not self.left:
            raise InputError(f"the window has no room for another event; refresh it (every {self.room} events at the latest)")
        events = self.model.events
        x = events.content(items.unsqueeze(1)) + events.where(self.model.length - self.left)
        for layer, state in zip(self.model.layers, self.states, strict=True):
            x = _advance(layer, state, x)  # type: ignore[arg-type]
        self.left -= 1
        return self.model.norm(x[:, -1])

    def numbers(self) -> int:
        """The state proper, L·(H·k·(d + 1) + (conv_width - 1)·d); the interests, k·d per memory; their maps, 3·L·H·k·d."""
        kept = [y for s in self.states for y in (s.total, s.mass, s.tail, s.asks, s.bias, s.given)] + self.interests
        return sum(math.prod(y.shape[1:]) for y in kept)


def _read(layer: CausalDispatcher, p: Tensor, h: Tensor, real: Tensor) -> LayerState:
    """The sums over a whole history `h [B, n, d]`, and the layer's maps for these interests."""
    maps = layer.fold(p)
    keep = layer.local.taps.shape[0] - 1 if layer.local else 0
    tail = torch.nn.functional.pad(h.to(maps.asks.dtype), (0, 0, keep, 0))[:, h.shape[1] :]
    return LayerState(*prefix_slots.sums(h, maps, real), tail, *maps)


def _advance(layer: CausalDispatcher, state: LayerState, x: Tensor) -> Tensor:
    """One event `[B, 1, d]` through a layer, into its sums."""
    h = layer.norm(x)
    y = prefix_slots.step(h, state.maps, state.sums)
    window = torch.cat([state.tail, h], dim=1)
    state.tail = window[:, window.shape[1] - state.tail.shape[1] :]
    return layer.finish(x, y, window, last=True)
