"""A person's state of constant size: one new event costs the same whatever the history's length (causal ELASTIC).

In the causal form a layer's slots are running sums over the past and its interests P do not depend on time
(layers/dispatcher.py), so a history can be forgotten once it has been summed. What is kept per person, in float32:

    the state proper, per layer                         H x k x d   numerators Σ_j e^{a_j[s]} h_j
                                                        H x k       denominators Σ_j e^{a_j[s]}
                                                        (local - 1) x d   the last events, for the local convolution
    the interests, once (per memory)                    k x d       what the last `refresh` retrieved
    maps derived from the interests, per layer          3 x H x k x d   what they ask of an event, what an event asks of
                                                        them and what they give (`asks`, `bias`, `given`)

The maps could be recomputed from the interests at each event, for O(k·d²) operations; kept, they are most of the memory: with
L = 2, H = 1, k = 8, d = 64, local = 8 the state proper is 1,936 numbers, the interests 512, the maps 3,072, together 5,520.
What everybody shares (`query`, `carried`: folded weights) is not a person's. No running maximum is kept: the dispatcher
bounds its logits to ±30 (prefix_slots.CAP), so a denominator of float32 would overflow after 10²⁵ events. A new event costs
O(H·k·d + H·d²) per layer.

What "equal to the batch pass" means. Positions are learned and counted back from the *end* of what is read
(EventEmbedding). If every event were the new end, all older events would move back by one place with each of them, all
their embeddings would change, and no constant-size state could follow: with positions counted from the newest event exact
streaming is impossible. What does stream exactly is one pass over one window whose end lies ahead: `refresh` puts the
history before the last `room` columns of the window, and every new event takes the next free column. After m new events
the state equals column length - room - 1 + m of *one* batch pass, with `recall` = what `refresh` read. That is the
situation the objective `window` trains (`room` = `train.window`: experts from before the cut, targets after it), so nothing
is asked of the model that it was not taught. It differs from `last_state` of the same history, which moves the end and
asks the memory anew. When the `room` is used up, `refresh` must be called again; it costs one pass, O(N), so
O(N / room) per event. The limit falls away only for a model whose positions do not depend on the end.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from elastic_core.errors import InputError
from elastic_core.layers.dispatcher import CausalDispatcher
from elastic_core.layers.padding import masked
from elastic_core.layers.prefix_slots import precise, weigh
from elastic_core.models.elastic import Elastic
from elastic_core.models.registry import Recommender


class Stream:
    """The states of B people who advance together. Made by `open_stream`; the model must be in eval mode."""

    room: int
    left: int  # events until the next refresh is due

    def refresh(self, history: Tensor) -> Tensor:
        """Reads left-padded histories `[B, n]` (their last length - room events), retrieves, returns states `[B, d]`."""
        raise NotImplementedError

    def step(self, items: Tensor) -> Tensor:
        """One new event for everybody, `[B]`, and the states `[B, d]` that score the next. Raises InputError when full."""
        raise NotImplementedError

    def numbers(self) -> int:
        """How many numbers are kept for one person between two events, everything counted."""
        raise NotImplementedError


@dataclass
class LayerState:
    """What one layer keeps: three that every event changes, and maps that follow from P and stay until the next refresh."""

    total: Tensor  # [B, H, k, d]
    mass: Tensor  # [B, H, k]
    tail: Tensor  # [B, local - 1, d]
    asks: Tensor  # [B, H, d, k] logits of the interests for an event: e^a
    query: Tensor  # [1, H, d, d] what an event asks of the running part of the slots, the same for everybody
    bias: Tensor  # [B, H, d, k] what it asks of the interests themselves
    given: Tensor  # [B, H k, d] what a slot gives through its interest
    carried: Tensor  # [1, H d, d] what it gives through its running part, the same for everybody


class ElasticStream(Stream):
    """See the module. All of a layer's maps are linear in the event, so a layer applied to the identity is its matrix."""

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
        x = masked(content + model.events.positions[first:cut], real)
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
        x = events.content(items.unsqueeze(1)) + events.positions[self.model.length - self.left]
        for layer, state in zip(self.model.layers, self.states, strict=True):
            x = _advance(layer, state, x)  # type: ignore[arg-type]
        self.left -= 1
        return self.model.norm(x[:, -1])

    def numbers(self) -> int:
        """The state proper, L·(H·k·(d + 1) + (local - 1)·d); the interests, k·d per memory; their maps, 3·L·H·k·d."""
        kept = [y for s in self.states for y in (s.total, s.mass, s.tail, s.asks, s.bias, s.given)] + self.interests
        return sum(math.prod(y.shape[1:]) for y in kept)


@precise
def _read(layer: CausalDispatcher, p: Tensor, h: Tensor, real: Tensor) -> LayerState:
    """The sums over a whole history `h [B, n, d]`, and the layer's maps for these interests as matrices."""
    people, _, width = p.shape
    total, mass = layer.sums(layer.weights(p, h, real), h)
    eye = torch.eye(width, device=p.device, dtype=p.dtype).expand(people, -1, -1)
    query, bias = layer.slot_query(eye, p)
    keep = layer.local.taps.shape[0] - 1 if layer.local else 0
    tail = torch.nn.functional.pad(h, (0, 0, keep, 0))[:, h.shape[1] :]
    fixed, moving = layer.folded_values(p)
    return LayerState(
        total=total,
        mass=mass,
        tail=tail,
        asks=layer.aggregate_logits(p, eye),
        query=query[:1],
        bias=bias,
        given=fixed.flatten(1, 2),
        carried=moving.flatten(0, 1)[None],
    )


def _advance(layer: CausalDispatcher, state: LayerState, x: Tensor) -> Tensor:
    """One event `[B, 1, d]` through a layer, into its sums."""
    h = layer.norm(x)
    y = _into_slots(h, state) + layer.output.bias
    window = torch.cat([state.tail, h], dim=1)
    state.tail = window[:, window.shape[1] - state.tail.shape[1] :]
    return layer.finish(x, y, window, last=True)


@precise
def _into_slots(h: Tensor, state: LayerState) -> Tensor:
    """Adds one normalised event `[B, 1, d]` to the sums; what the slots then answer it, `[B, 1, d]`."""
    row = h.unsqueeze(1)  # [B, 1, 1, d]
    weight = weigh(row @ state.asks)  # [B, H, 1, k]
    state.total += weight.transpose(-1, -2) * row
    state.mass += weight[:, :, 0]
    memory = state.total / state.mass.clamp_min(1e-30).unsqueeze(-1)
    slots = ((row @ state.query) @ memory.transpose(-1, -2) + row @ state.bias).softmax(-1)  # [B, H, 1, k]
    mixed = slots @ memory
    return slots.flatten(1)[:, None] @ state.given + mixed.flatten(1)[:, None] @ state.carried


Opener = Callable[[Recommender, int], Stream]
_openers: dict[type[Recommender], Opener] = {Elastic: ElasticStream}  # type: ignore[dict-item]
Kind = TypeVar("Kind", bound=Opener)


def streams(model: type[Recommender]) -> Callable[[Kind], Kind]:
    """Registers how a model that sets `streams` is streamed: a class or function of the model and the room."""

    def add(opener: Kind) -> Kind:
        _openers[model] = opener
        return opener

    return add


def open_stream(model: Recommender, room: int | None = None) -> Stream:
    """A stream with `room` new events between two refreshes (default: a quarter of what the model reads).

    Raises InputError for a model that does not claim to stream, or a room that leaves no history.
    """
    if not model.streams or type(model) not in _openers:
        raise InputError(f"{model.config.name} in this configuration has no state of constant size")
    room = max(1, model.length // 4) if room is None else room
    if not 1 <= room < model.length:
        raise InputError(f"room must lie in 1 … {model.length - 1}, not {room}")
    model.eval()
    return _openers[type(model)](model, room)
