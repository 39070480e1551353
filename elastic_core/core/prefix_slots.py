"""The causal dispatch, one operation: slots that summarise every prefix, and what each event reads of them.

Slot s at time t holds a softmax average of the past (ABC attention with given slots, Peng et al. 2022),

    M_t[s] = Σ_{j<=t} e^{a_j[s]} h_j / Z_t[s],   Z_t[s] = Σ_{j<=t} e^{a_j[s]},   a_j[s] = asks[s] · h_j,

event t weighs the slots by w_t = softmax_s(bias[s] · h_t + (query h_t) · M_t[s]) and is given
Σ_s w_t[s] (given[s] + carried M_t[s]).
`Maps` is all that a layer's weights and one retrieval's interests come to in it (`CausalDispatcher.fold` makes them). The forms:

    prefixes   every t of a whole history, in training and for all rows        O(N·(k·d + C·(d + k) + d²))
    last       the last t only, for a next-item score                          O(N·k·d)
    trace      who read what, for people                                       O(N·k·d)

One more event into the sums of a finished history, O(k·d + d²), is the stream's (core/elastic_model.py), with the same `Maps`.

Written directly it needs N x k x d numbers (core/elastic.py, `causal_dispatch`); in chunks of C it needs N/C x k x d for
the states at the chunk borders and N x C inside, all of it plain matrix products.

All of it is `precise`: float32 at least, under autocast too.

Symbols: b people, h heads, c chunks, e = d of an output, k slots.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.precision import precise
from elastic_core.core.products import add_product, linear
from elastic_core.scale.chunk_products import ReadChunks

CAP = 30.0  # bounded logits: e^±30 needs no running maximum in float32, so a prefix never depends on what follows
CHUNK = 32  # events; a history is cut into about so many at a time (`chunk_of`)
LEAST = 1e-30  # a mass that is none: an empty history reads zeros


class Maps(NamedTuple):
    """The folded maps of one layer for the interests of B people. Nothing here is as long as a history."""

    asks: Tensor  # [B, H, k, d] logits with which slots take an event
    query: Tensor  # [H, d, d] what an event asks of what slots have aggregated (rows: of M, columns: of h); everybody's
    bias: Tensor  # [B, H, k, d] what it asks of the slots' interests themselves
    given: Tensor  # [B, H, k, d] what a slot gives through its interest, the layer's bias included
    carried: Tensor  # [H, d, d] what it gives through what it has aggregated (rows: of M, columns: of the output); everybody's


class Sums(NamedTuple):
    """What a history leaves in the slots."""

    total: Tensor  # [B, H, k, d] Σ_j e^{a_j} h_j
    mass: Tensor  # [B, H, k] Σ_j e^{a_j}


# --- the operation ---------------------------------------------------------------------------------------------------


@precise
def last(h: Tensor, maps: Maps, real: Tensor | None) -> Tensor:
    """The last row of `prefixes`, `[B, 1, d]`."""
    return _answer(h[:, -1:], maps, sums(h, maps, real))


@precise
def trace(h: Tensor, maps: Maps, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """For people: how each slot reads the history `[B, H, k, N]`, and the last event the slots `[B, H, k]`."""
    weights = weigh_events(h, maps, real)
    state = _sums(h, weights)
    slots, _ = _read(h[:, -1:], maps, state)
    return weights / state.mass.clamp_min(LEAST).unsqueeze(-1), slots[..., 0]


@precise
def sums(h: Tensor, maps: Maps, real: Tensor | None) -> Sums:
    """What a whole history `h [B, N, d]` leaves in the slots."""
    return _sums(h, weigh_events(h, maps, real))


@precise
def weigh_events(h: Tensor, maps: Maps, real: Tensor | None) -> Tensor:
    """e^a, how heavily each slot takes each event: `[B, H, k, N]`, zero on padding."""
    return _heard(weigh(_logits(h, maps.asks)), real)


@precise
def weigh(logits: Tensor) -> Tensor:
    """e^a with a softly bounded to ±CAP. (By a sigmoid it would be faster, and a logit near 0 off by 2e-6.)"""
    return (logits / CAP).tanh_().mul(CAP).exp_()


# --- every prefix ----------------------------------------------------------------------------------------------------


@precise
def prefixes(h: Tensor, maps: Maps, real: Tensor | None, last: int = 0, way: str = "") -> Tensor:
    """Return what every event is given, `[B, N, d]`, or only the `last` rows (0: all), in chunks and in this `way`
    (`read_prefixes`). `h [B, N, d]` is zero on padding. What comes before the last rows is summed, no more."""
    logits, bias = _logits(h, torch.cat([maps.asks, maps.bias], 1)).tensor_split(2, dim=1)
    weights, before = _heard(weigh(logits), real), None
    early = h.shape[1] - last if last else 0
    if early:
        before = _sums(h[:, :early], weights[..., :early])
        h, weights, bias = h[:, early:], weights[..., early:], bias[..., early:]
    return _given(*read_prefixes(h, weights, _asked(h, maps), bias, start=before, way=way), maps)


def chunk_of(n: int) -> int:
    """About `CHUNK`, so that chunks of it add up to n, or to little more: what is padded is copied, and worked on for nothing."""
    if n <= CHUNK * 3 // 2:
        return max(n, 1)
    return min(range(CHUNK * 3 // 4, CHUNK * 3 // 2 + 1), key=lambda chunk: (-n % chunk, chunk % 8 > 0, abs(chunk - CHUNK)))


@precise
def read_prefixes(
    x: Tensor, weights: Tensor, queries: Tensor, bias: Tensor, chunk: int = 0, start: Sums | None = None, way: str = ""
) -> tuple[Tensor, Tensor]:
    """One pass over all prefixes.

    x `[B, N, d]` events; weights `[B, H, k, N]` e^a, zero on padding; queries `[B, H, N, d]`; bias `[B, H, k, N]`.
    Returns the slot softmax `[B, H, k, N]` and Σ_s w_s M_t[s] `[B, H, N, d]`. A prefix without events reads zeros.
    `chunk`: so many events at a time; 0 chooses. `start`: what events before these have left in the slots. `way`: `plain`, as
    torch differentiates it; `written`, with gradients written out (chunk_products.py), which a CPU takes where none is named;
    `fused`, a chunk's inside in one kernel of a GPU (fused_slots.py), in float32.
    """
    way = way or ("written" if x.device.type == "cpu" and not torch.compiler.is_compiling() else "plain")
    n = x.shape[1]
    chunk = chunk or chunk_of(n)
    short = -n % chunk
    if short:
        x, queries = (functional.pad(y, (0, 0, 0, short)) for y in (x, queries))
        weights, bias = (functional.pad(y, (0, short)) for y in (weights, bias))
    x = x.unflatten(1, (-1, chunk)).unsqueeze(1)  # [B, 1, c, C, d]
    queries = queries.unflatten(2, (-1, chunk)).transpose(-1, -2)  # [B, H, c, d, C]
    weights, bias = (y.unflatten(-1, (-1, chunk)).transpose(2, 3) for y in (weights, bias))  # [B, H, c, k, C]
    weights = weights.contiguous()
    if way == "written":
        slots, mixed = ReadChunks.apply(x, weights, queries.transpose(-1, -2), bias, *(start or (None, None)))
        return slots.transpose(2, 3).flatten(3)[..., :n], mixed.flatten(2, 3)[:, :, :n]

    # what every chunk inherits: sums over the chunks before it (shifted, not subtracted: exact, and blind to the chunk itself)
    before = _earlier(weights @ x)  # [B, H, c, k, d]
    mass = weights.cumsum(-1)
    mass = mass + _earlier(mass[..., -1:])  # Z_t
    if start is not None:
        before, mass = before + start.total.unsqueeze(2), mass + start.mass[:, :, None, :, None]
    mass = mass + (mass == 0)  # a prefix without events reads zeros, and must not divide by next to nothing

    if way == "fused":
        from elastic_core.scale.fused_slots import InsideChunks  # Triton is an extra

        slots, mixed = InsideChunks.apply(x, weights, queries.transpose(-1, -2), bias, before, mass)
        return slots.transpose(2, 3).flatten(3)[..., :n], mixed.flatten(2, 3)[:, :, :n]

    # inside a chunk, event j (rows) to t: masked products (cut, not multiplied: what lies ahead may be too large for a float)
    near = (x @ queries).triu_()
    scores = add_product(weights @ near, before, queries)
    slots = torch.addcdiv(bias, scores, mass).softmax(-2)
    shares = slots / mass
    inside = (weights.transpose(-1, -2) @ shares).triu_()
    mixed = add_product(shares.transpose(-1, -2) @ before, inside.transpose(-1, -2), x)
    return slots.transpose(2, 3).flatten(3)[..., :n], mixed.flatten(2, 3)[:, :, :n]


# --- its parts -------------------------------------------------------------------------------------------------------


def _logits(h: Tensor, asks: Tensor) -> Tensor:
    """`[B, N, d]` and rows `[B, H, k, d]` → `[B, H, k, N]`; all heads in one product."""
    return (h @ asks.flatten(1, 2).transpose(1, 2)).transpose(1, 2).unflatten(1, asks.shape[1:3])  # so h's gradient is dense


def _heard(weights: Tensor, real: Tensor | None) -> Tensor:
    return weights if real is None else weights * real[:, None, None]


def _earlier(x: Tensor) -> Tensor:
    """Sums over all chunks before each one, `[B, H, c, ., .]`."""
    return functional.pad(x[:, :, :-1], (0, 0, 0, 0, 1, 0)).cumsum(2)


def _asked(h: Tensor, maps: Maps) -> Tensor:
    """What events ask of what slots have aggregated, `[B, H, N, d]`."""
    return linear(h, maps.query.flatten(0, 1)).unflatten(-1, maps.query.shape[:2]).transpose(1, 2)


def _sums(h: Tensor, weights: Tensor) -> Sums:
    return Sums((weights.flatten(1, 2) @ h).unflatten(1, weights.shape[1:3]), weights.sum(-1))


def _read(h: Tensor, maps: Maps, state: Sums) -> tuple[Tensor, Tensor]:
    """One event `[B, 1, d]` against finished sums: the slots' weights `[B, H, k, 1]` and what they hold, mixed `[B, H, 1, d]`."""
    memory = state.total / state.mass.clamp_min(LEAST).unsqueeze(-1)
    slots = (memory @ _asked(h, maps).transpose(-1, -2) + _logits(h, maps.bias)).softmax(-2)
    return slots, slots.transpose(-1, -2) @ memory


def _answer(h: Tensor, maps: Maps, state: Sums) -> Tensor:
    return _given(*_read(h, maps, state), maps)


def _given(slots: Tensor, mixed: Tensor, maps: Maps) -> Tensor:
    """The slots `[B, H, k, N]` and their mixture `[B, H, N, d]` through `given` and `carried`: `[B, N, d]`."""
    by_event, side_by_side = slots.flatten(1, 2).transpose(1, 2), mixed.transpose(1, 2).flatten(2)  # products add the heads up
    return add_product(linear(side_by_side, maps.carried.flatten(0, 1).T), by_event, maps.given.flatten(1, 2))
