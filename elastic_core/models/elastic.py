"""ELASTIC: retrieve k interests for this person, let them aggregate the history and dispatch it back (Eq. 1-9).

One implementation, every variant a setting:

| setting | values |
| --- | --- |
| `bidirectional` | `False`: causal (learns from `window` or `last`); `True`: the paper's two-way encoder (`last` only) |
| `memory` | `shared` one retrieval carried through the layers (ELASTIC), `per-layer` (PKM-ACT), `none` (w/o IMR) |
| `query` | `network` (Eq. 4), `mean` (w/o Query Net), `votes` (ours: every event asks, layers/voting.py) |
| `dispatch` | `linear` (Eq. 2-3), `none` (w/o Dispatcher: self-attention, the experts as extra keys; the paper defines none) |
| `gate` | `softmax`, `none` (Algorithm 1 as printed: no gradient to keys and query network) |
| `query_norm` | `whiten` (ours), `layer` |
| `conv_width` | width of the causal convolution beside the dispatch (ours), 0 = the paper |
| `bank` | `dense`, or `rows` (ours: a step touches only the experts it retrieved, layers/row_bank.py) |
| `interest_weight` | of the loss that asks experts to stand for items (ours, layers/standing.py), 0 = the paper |

`per-layer`: in the causal form all its memories are asked with the same events, not with each layer's input; only the two-way
form asks with the layer's input, as PKM-ACT prints it.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.config import Within
from elastic_core.data.batches import Batch
from elastic_core.data.catalog import Catalog
from elastic_core.errors import InputError
from elastic_core.layers import prefix_slots
from elastic_core.layers.attention import Attention
from elastic_core.layers.dispatcher import CausalDispatcher, TwoWayDispatcher
from elastic_core.layers.dropout import Dropout
from elastic_core.layers.embedding import EventEmbedding
from elastic_core.layers.feed_forward import FeedForward
from elastic_core.layers.interest_memory import InterestMemory, Retrieved, balance_penalty
from elastic_core.layers.local_convolution import LocalConvolution
from elastic_core.layers.padding import masked
from elastic_core.layers.prefix_slots import CAP, Maps
from elastic_core.layers.standing import Standing
from elastic_core.models.contract import Edit, Encoded, Streams, Trace, Traces, Variant
from elastic_core.models.registry import register
from elastic_core.models.streaming import Kept, Stream
from elastic_core.models.with_memory import MemoryConfig, WithMemory, interest_memory


@dataclass(frozen=True, kw_only=True)
class ElasticConfig(MemoryConfig, name="elastic"):
    label: ClassVar[str] = "ELASTIC"
    bidirectional: bool = False
    gate: Literal["softmax", "none"] = "softmax"
    query_norm: Literal["whiten", "layer"] = "whiten"
    dispatch: Literal["linear", "none"] = "linear"
    conv_width: Annotated[int, Within(0, 1_024)] = 8


class SelfAttentionLayer(nn.Module):
    """`dispatch="none"`: softmax self-attention over the events with the retrieved experts as extra keys, O(N²)."""

    def __init__(self, config: ElasticConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.attend = Attention(config.width, config.heads, config.dropout, causal=not config.bidirectional)
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.width, config.dropout)

    def forward(self, x: Tensor, p: Tensor, real: Tensor | None, last: int = 0) -> tuple[Tensor, Tensor]:
        h = self.norm(x)
        if last == 1:  # of more rows all are computed
            return self.feed_forward(x[:, -1:] + self.attend.last(h, real, p)), p
        return self.feed_forward(x + self.dropout(self.attend(h, real, p))), p


def _asked_for(batch: Batch) -> int:
    """How many of the last columns hold all targets; 0 where nothing is said of them."""
    if batch.targets is None or not len(batch.places.columns):
        return 0
    return batch.targets.shape[1] - batch.places.first


def _layer(config: ElasticConfig) -> nn.Module:
    if config.dispatch == "none":
        return SelfAttentionLayer(config)
    form = TwoWayDispatcher if config.bidirectional else CausalDispatcher
    return form(config.width, config.heads, config.dropout, config.conv_width)


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
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout, rows=config.items_by_rows)
        self.memories = nn.ModuleList(
            interest_memory(config, config.query_norm, config.gate)
            for _ in range(config.layers if config.memory == "per-layer" else 1)
        )
        self.layers = nn.ModuleList(_layer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.standing = Standing(config.width) if config.interest_weight and self.retrieves else None

    def forward(self, batch: Batch) -> Encoded:
        x, retrieved = self._encode(batch, last=_asked_for(batch))
        auxiliary, summed = {}, {}
        if self.retrieves and self.config.balance_weight:
            auxiliary["balance"] = torch.stack([balance_penalty(r) for r in retrieved]).mean()
        if self.standing is not None and batch.targets is not None:
            found, table = retrieved[0], self.scorer().table
            experts, masses = self._values(found), self._masses(found)
            summed["interest"] = self.standing.surprise(found, *batch.places.asked, experts, table, masses)
        return Encoded(self.norm(x), auxiliary, summed)

    def auxiliary_weights(self) -> dict[str, float]:
        config = self.config
        weights = {"balance": config.balance_weight, "interest": config.interest_weight}
        return {name: weight for name, weight in weights.items() if weight and self.retrieves}

    def last_state(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        return self.norm(self._encode(batch, last=1, edit=edit)[0][:, -1])

    def retrieve(self, batch: Batch) -> Retrieved:
        return self._retrieve(0, *self._read_for_retrieval(batch), batch.retrieval_items)

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

    def _retrieve(
        self, layer: int, content: Tensor, real: Tensor | None, items: Tensor | None, edit: Edit | None = None
    ) -> Retrieved:
        found: Retrieved = self.memories[layer](content, real, items)
        found = edit(found) if edit else found
        if found.turned is None:
            return found
        return found._replace(interests=found.interests * found.turned.unsqueeze(-1), gates=found.gates * found.turned)

    def _encode(
        self, batch: Batch, last: int = 0, edit: Edit | None = None, trace: Trace | None = None
    ) -> tuple[Tensor, list[Retrieved]]:
        content, real = self.events.content(batch.items), batch.real if batch.padded else None
        x = self.events.place(content, real)
        read = (content, real) if batch.retrieval_items is batch.items else self._read_for_retrieval(batch)
        asked = (*read, batch.retrieval_items)
        retrieved = [self._retrieve(0, *asked, edit)]
        p = retrieved[0].interests
        for i, layer in enumerate(self.layers):
            if i and self.config.memory == "per-layer":
                # PKM-ACT asks again before every layer with the layer's input. The causal form asks with the same events
                # themselves: a layer's input holds later events, which must not reach an earlier position through the query
                again: tuple[Tensor, Tensor | None, Tensor | None] = asked if self.causal else (x, real, None)
                retrieved.append(self._retrieve(i, *again, edit))
                p = retrieved[-1].interests
            if trace is not None:
                assert isinstance(layer, TwoWayDispatcher | CausalDispatcher)
                reading, slots = layer.attention(x, p, real)
                trace.retrieved.append(retrieved[-1])
                trace.reading.append(reading)
                trace.slots.append(slots)
            x, p = layer(x, p, real, last=last if i == len(self.layers) - 1 else 0)
        return x, retrieved

    def open_stream(self, room: int) -> "ElasticStream":
        return ElasticStream(self, room)


# --- streaming -------------------------------------------------------------------------------------------------------


class ElasticStream(Stream):
    """A person's state of constant size: one new event costs the same whatever the history's length (causal ELASTIC).

    In the causal form a layer's slots are running sums over the past and its interests P do not depend on time
    (layers/dispatcher.py), so a history can be forgotten once it has been summed. What is kept per person, in float32:

        the state proper, per layer                         H x k x d   numerators Σ_j e^{a_j[s]} h_j            `total`
                                                            H x k       denominators Σ_j e^{a_j[s]}               `mass`
                                                            conv_width x d   what the last events still give the next, through
                                                                             the local convolution                 `echo`
        the interests, once (per memory)                    k x d       what the last `refresh` retrieved
        maps derived from the interests, per layer          3 x H x k x d   what they ask of an event and an event of them
                                                                             (`maps`), and what they give (`given`)
        how many events have been read since the refresh    1

    The maps could be recomputed from the interests at each event, for O(k·d²) operations; kept, they are most of the memory:
    with L = 2, H = 1, k = 8, d = 64, conv_width = 8 the state proper is 2,064 numbers, the interests 512, the maps 3,072.
    No running maximum is kept: the dispatcher bounds its logits to ±30 (prefix_slots.CAP), so a denominator of float32 would
    overflow after 10²⁵ events. A new event costs O(H·k·d + H·d²) per layer.

    Positions are learned and counted from the end, so the stream is `limited`: it equals the batch pass with `retrieval_items` =
    what `refresh` read, for at most `room` events, at most length - 1. That is the situation the objective `window` trains
    (`room` = `objective.span`: experts from before the cut, targets after it), so nothing is asked of the model that it was not
    taught. It differs from `last_state` of the same history, which moves the end and asks the memory anew. A refresh costs one
    pass, O(N), so O(N / room) per event. Without positions there would be no limit, as in models/elastic_slots.py.

    The maps are those of the batch pass (layers/prefix_slots.py, `fold` of the layer). With one person a step is some forty small
    operations, whose fixed costs are all it costs, so constants are folded into weights where that is exact: 1/CAP into what the
    interests ask, and √½ and ½ of gelu(z) = ½ z (1 + erf(√½ z)) into the feed-forward layer.
    """

    derived = ("maps", "given")

    def __init__(self, model: Elastic, room: int) -> None:
        super().__init__(model, room, limited=True)
        with torch.inference_mode():
            self.fixed = [Fixed.of(layer) for layer in model.layers]  # type: ignore[arg-type]
        self.turn = 0  # which row of `echo` the next event takes; the layers have the same

    def _start(self, history: Tensor, columns: slice) -> tuple[Tensor, Kept]:
        model, real = self.model, history > 0
        content = model.events.content(history)
        x = masked(content + model.events.where(columns), real)
        kept = {f"{i}.interests": memory(content, real, history).interests for i, memory in enumerate(model.memories)}
        for i, layer in enumerate(model.layers):
            p = self._interests(kept, i)
            h = masked(layer.norm(x), real).to(p.dtype)
            total, mass = prefix_slots.sums(h, layer.fold(p), real)
            kept[f"{i}.total"], kept[f"{i}.mass"] = total.flatten(1, 2), mass.flatten(1).unsqueeze(-1)
            if layer.local is not None:
                kept[f"{i}.echo"] = _echo(layer.local, h)
            x, _ = layer(x, p, real, last=i == len(model.layers) - 1)
        self.turn = 0
        return model.norm(x[:, -1]), {**kept, **self._derive(kept)}

    def _derive(self, kept: Kept) -> Kept:
        found: Kept = {}
        for i, layer in enumerate(self.model.layers):
            folded: Maps = layer.fold(self._interests(kept, i))
            maps = torch.cat([folded.asks.flatten(1, 2) / CAP, folded.bias.flatten(1, 2)], 1)
            found[f"{i}.maps"], found[f"{i}.given"] = maps.transpose(1, 2).contiguous(), folded.given.flatten(1, 2)
        return found

    def _interests(self, kept: Kept, layer: int) -> Tensor:
        return kept[f"{layer}.interests"] if f"{layer}.interests" in kept else kept["0.interests"]

    def _settle(self) -> None:
        if self.turn:
            for name in [name for name in self.kept if name.endswith(".echo")]:
                self.kept[name] = self.kept[name].roll(-self.turn, 1)
            self.turn = 0
            self._bind()

    def _bind(self) -> None:
        names = ("total", "mass", "maps", "given")
        self.bound = [tuple(self.kept[f"{i}.{name}"] for name in names) for i in range(len(self.fixed))]
        self.echoes = [self.kept.get(f"{i}.echo") for i in range(len(self.fixed))]

    def _next(self, items: Tensor) -> Tensor:
        events, turn = self.model.events, self.turn
        x = torch.add(self.where(), functional.embedding(items, events.items.weight), alpha=events.scale)
        for fixed, (total, mass, maps, given), echo in zip(self.fixed, self.bound, self.echoes, strict=True):
            h = torch.layer_norm(x, *fixed.norm)
            row, slots_of = h.unsqueeze(1), fixed.heads * len(h)
            asked, bias = torch.bmm(row, maps).chunk(2, -1)  # [B, 1, H k] each
            weight = torch.mul(torch.tanh(asked), fixed.cap).exp_()
            total.baddbmm_(weight.mT, row)
            mass.add_(weight.mT)
            memory = torch.div(total, mass)  # [B, H k, d]
            query = torch.mm(h, fixed.query)  # [B, H d]
            if fixed.heads > 1:
                memory, bias = memory.view(slots_of, -1, h.shape[1]), bias.reshape(slots_of, 1, -1)
            slots = torch.baddbmm(bias, query.view(slots_of, 1, -1), memory.mT).softmax(-1)  # [B H, 1, k]
            mixed = torch.bmm(slots, memory)
            x = torch.baddbmm(x.unsqueeze(1), slots.view(len(h), 1, -1), given).squeeze(1)
            x = torch.addmm(x, mixed.view(len(h), -1), fixed.carried)
            if echo is not None:
                echo.addcmul_(row, fixed.taps[turn])
                now = echo.select(1, turn)
                x = x.add_(now)
                now.zero_()
            z = torch.addmm(fixed.inner_bias, torch.layer_norm(x, *fixed.inner_norm), fixed.inner)
            x = torch.addmm(x, torch.addcmul(z, z, torch.erf(z)), fixed.outer).add_(fixed.outer_bias)
        self.turn = (turn + 1) % self.model.config.conv_width if self.model.config.conv_width else 0
        return torch.layer_norm(x, *_norm(self.model.norm))


class Fixed(NamedTuple):
    """A layer's weights as a step reads them, the same for everybody."""

    norm: tuple[Any, ...]
    heads: int
    cap: Tensor
    query: Tensor  # [d, H d] what an event asks of the running part of the slots
    carried: Tensor  # [H d, d] what a slot gives through its running part
    taps: list[Tensor]  # conv_width times [conv_width, d]: the taps as `echo` has them after so many events
    inner_norm: tuple[Any, ...]
    inner: Tensor
    inner_bias: Tensor
    outer: Tensor
    outer_bias: Tensor

    @classmethod
    def of(cls, layer: CausalDispatcher) -> "Fixed":
        weight = layer.norm.weight
        shared = layer.fold(weight.new_zeros(1, 1, len(weight)))  # what is the same whatever the interests
        taps = [] if layer.local is None else [layer.local.taps.roll(i, 0) for i in range(len(layer.local.taps))]
        inner, outer, half = layer.feed_forward.inner, layer.feed_forward.outer, math.sqrt(0.5)
        return cls(
            norm=_norm(layer.norm), heads=layer.heads, cap=weight.new_tensor(CAP),
            query=shared.query.permute(2, 0, 1).flatten(1).contiguous(),
            carried=shared.carried.flatten(0, 1).contiguous(), taps=taps,
            inner_norm=_norm(layer.feed_forward.norm), inner=inner.weight.T * half, inner_bias=inner.bias * half,
            outer=outer.weight.T * half, outer_bias=outer.bias,
        )  # fmt: skip


def _norm(norm: nn.LayerNorm) -> tuple[Any, ...]:
    return norm.normalized_shape, norm.weight, norm.bias, norm.eps


def _echo(local: LocalConvolution, h: Tensor) -> Tensor:
    """What events `h [B, n, d]` still give to those that follow them: `[B, conv_width, d]`."""
    width = len(local.taps)
    kept: Tensor = local(functional.pad(h, (0, 0, 0, width)))[:, -width:]
    return kept.contiguous()
