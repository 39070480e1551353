"""Causal ELASTIC (core/elastic.py) followed event by event."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core import dispatch
from elastic_core.core.dispatch import CAP, CausalDispatcher, FoldedMaps
from elastic_core.core.layers import LocalConvolution, zero_padding
from elastic_core.core.stream import Stream, StreamState, norm_arguments

if TYPE_CHECKING:
    from elastic_core.core.elastic import Elastic


class ElasticStream(Stream):
    """A person's state of constant size: one new event costs the same whatever the history's length (causal ELASTIC).

    In the causal form a layer's slots are running sums over the past and its interests P do not depend on time
    (core/elastic.py), so a history can be forgotten once it has been summed. What is kept per person, in float32:

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
    No running maximum is kept: the dispatcher bounds its logits to ±30 (dispatch.CAP), so a denominator of float32 would
    overflow after 10²⁵ events. A new event costs O(H·k·d + H·d²) per layer.

    Positions are learned and counted from the end, so the stream is `limited`: it equals the batch pass with `retrieval_items` =
    what `refresh` read, for at most `room` events, at most length - 1. That is the situation the objective `window` trains
    (`room` = `objective.span`: experts from before the cut, targets after it), so nothing is asked of the model that it was not
    taught. It differs from `last_state` of the same history, which moves the end and asks the memory anew. A refresh costs one
    pass, O(N), so O(N / room) per event. Without positions there would be no limit, as in slots/elastic_slots.py.

    The maps are those of the batch pass (core/dispatch.py, `fold_maps` of the layer). With one person a step is some forty small
    operations, whose fixed costs are all it costs, so constants are folded into weights where that is exact: 1/CAP into what the
    interests ask, and √½ and ½ of gelu(z) = ½ z (1 + erf(√½ z)) into the feed-forward layer.
    """

    limited = True
    derived = ("maps", "given")

    def __init__(self, model: "Elastic", room: int) -> None:
        super().__init__(model, room)
        with torch.inference_mode():
            self.fixed = [FixedWeights.from_layer(layer) for layer in model.layers]  # type: ignore[arg-type]
        self.turn = 0  # which row of `echo` the next event takes; the layers have the same

    def _read_history(self, history: Tensor, columns: slice) -> tuple[Tensor, StreamState]:
        model, real = self.model, history > 0
        content = model.events.embed_items(history)
        x = zero_padding(content + model.events.positions_of(columns), real)
        state = {f"{i}.interests": memory(content, real, history).interests for i, memory in enumerate(model.memories)}
        for i, layer in enumerate(model.layers):
            p = self._layer_interests(state, i)
            h = zero_padding(layer.norm(x), real).to(p.dtype)
            total, mass = dispatch.sum_history(h, layer.fold_maps(p), real)
            state[f"{i}.total"], state[f"{i}.mass"] = total.flatten(1, 2), mass.flatten(1).unsqueeze(-1)
            if layer.local is not None:
                state[f"{i}.echo"] = _local_remainder(layer.local, h)
            x, _ = layer(x, p, real, last=i == len(model.layers) - 1)
        self.turn = 0
        return model.norm(x[:, -1]), {**state, **self._derive_tensors(state)}

    def _derive_tensors(self, state: StreamState) -> StreamState:
        derived: StreamState = {}
        for i, layer in enumerate(self.model.layers):
            folded: FoldedMaps = layer.fold_maps(self._layer_interests(state, i))
            maps = torch.cat([folded.asks.flatten(1, 2) / CAP, folded.bias.flatten(1, 2)], 1)
            derived[f"{i}.maps"], derived[f"{i}.given"] = maps.transpose(1, 2).contiguous(), folded.values.flatten(1, 2)
        return derived

    def _layer_interests(self, state: StreamState, layer: int) -> Tensor:
        return state[f"{layer}.interests"] if f"{layer}.interests" in state else state["0.interests"]

    def _unify_form(self) -> None:
        if self.turn:
            for name in [name for name in self.state if name.endswith(".echo")]:
                self.state[name] = self.state[name].roll(-self.turn, 1)
            self.turn = 0
            self._rebind_tensors()

    def _rebind_tensors(self) -> None:
        names = ("total", "mass", "maps", "given")
        self.bound = [tuple(self.state[f"{i}.{name}"] for name in names) for i in range(len(self.fixed))]
        self.echoes = [self.state.get(f"{i}.echo") for i in range(len(self.fixed))]

    def _read_event(self, items: Tensor) -> Tensor:
        events, turn = self.model.events, self.turn
        x = torch.add(self.next_positions(), functional.embedding(items, events.items.weight), alpha=events.scale)
        for fixed, (total, mass, maps, values), echo in zip(self.fixed, self.bound, self.echoes, strict=True):
            h = torch.layer_norm(x, *fixed.norm)
            row, slots_of = h.unsqueeze(1), fixed.heads * len(h)
            scores, bias = torch.bmm(row, maps).chunk(2, -1)  # [B, 1, H k] each
            weight = torch.mul(torch.tanh(scores), fixed.cap).exp_()
            total.baddbmm_(weight.mT, row)
            mass.add_(weight.mT)
            memory = torch.div(total, mass)  # [B, H k, d]
            query = torch.mm(h, fixed.query)  # [B, H d]
            if fixed.heads > 1:
                memory, bias = memory.view(slots_of, -1, h.shape[1]), bias.reshape(slots_of, 1, -1)
            slots = torch.baddbmm(bias, query.view(slots_of, 1, -1), memory.mT).softmax(-1)  # [B H, 1, k]
            mixed = torch.bmm(slots, memory)
            x = torch.baddbmm(x.unsqueeze(1), slots.view(len(h), 1, -1), values).squeeze(1)
            x = torch.addmm(x, mixed.view(len(h), -1), fixed.carried)
            if echo is not None:
                echo.addcmul_(row, fixed.taps[turn])
                now = echo.select(1, turn)
                x = x.add_(now)
                now.zero_()
            z = torch.addmm(fixed.inner_bias, torch.layer_norm(x, *fixed.inner_norm), fixed.inner)
            x = torch.addmm(x, torch.addcmul(z, z, torch.erf(z)), fixed.outer).add_(fixed.outer_bias)
        self.turn = (turn + 1) % self.model.config.conv_width if self.model.config.conv_width else 0
        return torch.layer_norm(x, *norm_arguments(self.model.norm))


class FixedWeights(NamedTuple):
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
    def from_layer(cls, layer: CausalDispatcher) -> "FixedWeights":
        weight = layer.norm.weight
        shared = layer.fold_maps(weight.new_zeros(1, 1, len(weight)))  # what is the same whatever the interests
        taps = [] if layer.local is None else [layer.local.taps.roll(i, 0) for i in range(len(layer.local.taps))]
        inner, outer, half = layer.feed_forward.inner, layer.feed_forward.outer, math.sqrt(0.5)
        return cls(
            norm=norm_arguments(layer.norm), heads=layer.heads, cap=weight.new_tensor(CAP),
            query=shared.query.permute(2, 0, 1).flatten(1).contiguous(),
            carried=shared.carried.flatten(0, 1).contiguous(), taps=taps,
            inner_norm=norm_arguments(layer.feed_forward.norm), inner=inner.weight.T * half, inner_bias=inner.bias * half,
            outer=outer.weight.T * half, outer_bias=outer.bias,
        )  # fmt: skip


def _local_remainder(local: LocalConvolution, h: Tensor) -> Tensor:
    """What events `h [B, n, d]` still give to those that follow them: `[B, conv_width, d]`."""
    width = len(local.taps)
    remainder: Tensor = local(functional.pad(h, (0, 0, 0, width)))[:, -width:]
    return remainder.contiguous()
