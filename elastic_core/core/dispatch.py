"""The dispatchers (Eq. 2-3), two-way and causal.

The operation of the causal one: slots that summarise every prefix, and what each event reads of them.

Slot s at time t holds a softmax average of the past (ABC attention with given slots, Peng et al. 2022),

    M_t[s] = Σ_{j<=t} e^{a_j[s]} h_j / Z_t[s],   Z_t[s] = Σ_{j<=t} e^{a_j[s]},   a_j[s] = asks[s] · h_j,

event t weighs the slots by w_t = softmax_s(bias[s] · h_t + (query h_t) · M_t[s]) and is given
Σ_s w_t[s] (given[s] + carried M_t[s]).
`FoldedMaps` is all that a layer's weights and one retrieval's interests come to in it (`CausalDispatcher.fold_maps` makes them).
The forms:

    prefixes   every t of a whole history, in training and for all rows        O(N·(k·d + C·(d + k) + d²))
    read_last  the last t only, for a next-item score                          O(N·k·d)
    trace      who read what, for people                                       O(N·k·d)

One more event into the sums of a finished history, O(k·d + d²), is the stream's (core/elastic_stream.py), with the same
`FoldedMaps`.

Written directly it needs N x k x d numbers; in chunks of C it needs N/C x k x d for the states at the chunk borders and N x C
inside, all of it plain matrix products.

All of it is computed in float32 at least, under autocast too.

Symbols: b people, h heads, c chunks, e = d of an output, k slots.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.fused_ops import sums_before
from elastic_core.core.layers import (
    Attention,
    Dropout,
    FeedForward,
    LocalConvolution,
    add_in_place,
    add_product,
    apply_maps,
    in_full_precision,
    linear,
    merge_heads,
    zero_padding,
)

CAP = 30.0  # bounded logits: e^±30 needs no running maximum in float32, so a prefix never depends on what follows
CHUNK = 32  # events; a history is cut into about so many at a time (`chunk_length`)
LEAST = 1e-30  # a mass that is none: an empty history reads zeros


class FoldedMaps(NamedTuple):
    """The folded maps of one layer for the interests of B people. Nothing here is as long as a history."""

    asks: Tensor  # [B, H, k, d] logits with which slots take an event
    query: Tensor  # [H, d, d] what an event asks of what slots have aggregated (rows: of M, columns: of h); everybody's
    bias: Tensor  # [B, H, k, d] what it asks of the slots' interests themselves
    values: Tensor  # [B, H, k, d] what a slot gives through its interest, the layer's bias included
    carried: Tensor  # [H, d, d] what it gives through what it has aggregated (rows: of M, columns: of the output); everybody's


class SlotSums(NamedTuple):
    """What a history leaves in the slots."""

    total: Tensor  # [B, H, k, d] Σ_j e^{a_j} h_j
    mass: Tensor  # [B, H, k] Σ_j e^{a_j}


# --- the operation ---------------------------------------------------------------------------------------------------


@in_full_precision
def read_last(h: Tensor, maps: FoldedMaps, real: Tensor | None) -> Tensor:
    """The last row of `read_causally`, `[B, 1, d]`."""
    return _write_back(*_read_slots(h[:, -1:], maps, sum_history(h, maps, real)), maps)


@in_full_precision
def trace_slots(h: Tensor, maps: FoldedMaps, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """For people: how each slot reads the history `[B, H, k, N]`, and the last event the slots `[B, H, k]`."""
    weights = weigh_events(h, maps, real)
    state = _sum_events(h, weights)
    slots, _ = _read_slots(h[:, -1:], maps, state)
    return weights / state.mass.clamp_min(LEAST).unsqueeze(-1), slots[..., 0]


@in_full_precision
def sum_history(h: Tensor, maps: FoldedMaps, real: Tensor | None) -> SlotSums:
    """What a whole history `h [B, N, d]` leaves in the slots."""
    return _sum_events(h, weigh_events(h, maps, real))


@in_full_precision
def weigh_events(h: Tensor, maps: FoldedMaps, real: Tensor | None) -> Tensor:
    """e^a, how heavily each slot takes each event: `[B, H, k, N]`, zero on padding."""
    return soft_exponential(_slot_logits(h, maps.asks), real)


@in_full_precision
def soft_exponential(logits: Tensor, real: Tensor | None = None) -> Tensor:
    """e^a with a softly bounded to ±CAP, zero on padding. (By a sigmoid it would be faster, and a logit near 0 off by 2e-6.)"""
    weights = (logits / CAP).tanh_().mul(CAP).exp_()
    return weights if real is None else weights * real[:, None, None]


# --- every prefix ----------------------------------------------------------------------------------------------------


@in_full_precision
def read_causally(h: Tensor, maps: FoldedMaps, real: Tensor | None, last: int = 0) -> Tensor:
    """Return what every event is given, `[B, N, d]`, or only the `last` rows (0: all), in chunks (`read_prefixes`).
    `h [B, N, d]` is zero on padding. What comes before the last rows is summed, no more."""
    logits, bias = _slot_logits(h, torch.cat([maps.asks, maps.bias], 1)).tensor_split(2, dim=1)
    weights, before = soft_exponential(logits, real), None
    n_early = h.shape[1] - last if last else 0
    if n_early:
        before = _sum_events(h[:, :n_early], weights[..., :n_early])
        h, weights, bias = h[:, n_early:], weights[..., n_early:], bias[..., n_early:]
    return _write_back(*read_prefixes(h, weights, _slot_queries(h, maps), bias, start=before), maps)


def chunk_length(n: int) -> int:
    """About `CHUNK`, so that chunks of it add up to n, or to little more: what is padded is copied, and worked on for nothing."""
    if n <= CHUNK * 3 // 2:
        return max(n, 1)
    return min(range(CHUNK * 3 // 4, CHUNK * 3 // 2 + 1), key=lambda chunk: (-n % chunk, chunk % 8 > 0, abs(chunk - CHUNK)))


@in_full_precision
def read_prefixes(
    x: Tensor, weights: Tensor, queries: Tensor, bias: Tensor, chunk: int = 0, start: SlotSums | None = None
) -> tuple[Tensor, Tensor]:
    """One pass over all prefixes.

    x `[B, N, d]` events; weights `[B, H, k, N]` e^a, zero on padding; queries `[B, H, N, d]`; bias `[B, H, k, N]`.
    Returns the slot softmax `[B, H, k, N]` and Σ_s w_s M_t[s] `[B, H, N, d]`. A prefix without events reads zeros.
    `chunk`: so many events at a time; 0 chooses. `start`: what events before these have left in the slots.
    """
    n = x.shape[1]
    chunk = chunk or chunk_length(n)
    n_missing = -n % chunk
    if n_missing:
        x, queries = (functional.pad(y, (0, 0, 0, n_missing)) for y in (x, queries))
        weights, bias = (functional.pad(y, (0, n_missing)) for y in (weights, bias))
    x, queries = x.unflatten(1, (-1, chunk)).unsqueeze(1), queries.unflatten(2, (-1, chunk))
    weights, bias = (y.unflatten(-1, (-1, chunk)).transpose(2, 3) for y in (weights, bias))
    # x [B, 1, c, C, d], weights and bias [B, H, c, k, C], queries [B, H, c, C, d]; what every chunk inherits are sums over the
    # chunks before it (shifted, not subtracted: exact, and blind to the chunk itself)
    before, mass = sums_before(weights @ x), weights.cumsum(-1)
    mass = mass + sums_before(mass[..., -1:])  # Z_t
    if start is not None:
        before, mass = before + start.total.unsqueeze(2), mass + start.mass[:, :, None, :, None]
    mass, queries = mass + (mass == 0), queries.transpose(-1, -2)  # 1 where a prefix has no events: it reads zeros
    # inside a chunk, event j (rows) to t: masked products (cut, not multiplied: what lies ahead may be too large for a float)
    nearby_logits = (x @ queries).triu_()
    scores = add_product(weights @ nearby_logits, before, queries)
    slots = torch.addcdiv(bias, scores, mass).softmax(-2)
    shares = slots / mass
    inside_weights = (weights.transpose(-1, -2) @ shares).triu_()
    mixed = add_product(shares.transpose(-1, -2) @ before, inside_weights.transpose(-1, -2), x)
    return slots.transpose(2, 3).flatten(3)[..., :n], mixed.flatten(2, 3)[:, :, :n]


# --- its parts -------------------------------------------------------------------------------------------------------


def _slot_logits(h: Tensor, asks: Tensor) -> Tensor:
    """`[B, N, d]` and rows `[B, H, k, d]` → `[B, H, k, N]`; all heads in one product."""
    return (h @ asks.flatten(1, 2).transpose(1, 2)).transpose(1, 2).unflatten(1, asks.shape[1:3])  # so h's gradient is dense


def _slot_queries(h: Tensor, maps: FoldedMaps) -> Tensor:
    """What events ask of what slots have aggregated, `[B, H, N, d]`."""
    return linear(h, maps.query.flatten(0, 1)).unflatten(-1, maps.query.shape[:2]).transpose(1, 2)


def _sum_events(h: Tensor, weights: Tensor) -> SlotSums:
    return SlotSums((weights.flatten(1, 2) @ h).unflatten(1, weights.shape[1:3]), weights.sum(-1))


def _read_slots(h: Tensor, maps: FoldedMaps, state: SlotSums) -> tuple[Tensor, Tensor]:
    """One event `[B, 1, d]` against finished sums: the slots' weights `[B, H, k, 1]` and what they hold, mixed `[B, H, 1, d]`."""
    memory = state.total / state.mass.clamp_min(LEAST).unsqueeze(-1)
    slots = (memory @ _slot_queries(h, maps).transpose(-1, -2) + _slot_logits(h, maps.bias)).softmax(-2)
    return slots, slots.transpose(-1, -2) @ memory


def _write_back(slots: Tensor, mixed: Tensor, maps: FoldedMaps) -> Tensor:
    """The slots `[B, H, k, N]` and their mixture `[B, H, N, d]` through `values` and `carried`: `[B, N, d]`."""
    by_event, side_by_side = slots.flatten(1, 2).transpose(1, 2), mixed.transpose(1, 2).flatten(2)  # products add the heads up
    return add_product(linear(side_by_side, maps.carried.flatten(0, 1).T), by_event, maps.values.flatten(1, 2))


class Dispatcher(nn.Module):
    """The weights of one layer, shared by both forms. Heads are aligned: dispatch head h reads what head h aggregated."""

    def __init__(self, width: int, heads: int, dropout: float, local: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, 1 / math.sqrt(width // heads)
        self.norm = nn.LayerNorm(width)
        self.query1, self.key1, self.value1 = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.query2, self.key2, self.value2 = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.output = nn.Linear(width, width)
        self.local = LocalConvolution(width, local) if local else None
        self.dropout = Dropout(dropout)
        self.feed_forward = FeedForward(width, dropout)

    def per_head(self, projection: nn.Linear) -> Tensor:
        """Return the rows that produce head h, `[H, e, d]`."""
        return projection.weight.unflatten(0, (self.heads, -1))

    def aggregation_maps(self) -> Tensor:
        """Return W_Q1 W_K1ᵀ / √e, `[H, d, d]`: interests → the logits that they have for an event."""
        return self.per_head(self.query1).transpose(1, 2) @ (self.per_head(self.key1) * self.scale)

    def readout_maps(self) -> tuple[Tensor, Tensor]:
        """Return W_K2 W_Q2ᵀ / √e and W_V2 W_O, `[H, d, d]` each: interests → what an event asks of them, and what they give."""
        query_maps = self.per_head(self.key2).transpose(1, 2) @ (self.per_head(self.query2) * self.scale)
        return query_maps, self.per_head(self.value2).transpose(1, 2) @ self._output_by_head()

    def finish_layer(self, x: Tensor, mixed: Tensor, h: Tensor, last: int) -> Tensor:
        """Add residual, local order and feed-forward to what was dispatched, `mixed [B, n, d]` (overwritten), of the
        last rows or, at 0, of all."""
        if self.local is not None:
            mixed = add_in_place(mixed, self.local.forward_last(h, last) if last else self.local(h))
        return self.feed_forward(add_in_place(self.dropout(mixed), x))

    def _output_by_head(self) -> Tensor:
        """Return the output's weights by head, `[H, e, d]`."""
        return self.output.weight.T.unflatten(0, (self.heads, -1))


class TwoWayDispatcher(Dispatcher):
    """Eq. 2-3 as printed: every interest reads all events, every event reads all interests, P is carried on."""

    def __init__(self, width: int, heads: int, dropout: float, local: int) -> None:
        super().__init__(width, heads, dropout, local)
        self.interest_feed_forward = FeedForward(width, dropout)
        self.interest_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, p: Tensor, real: Tensor | None, last: int = 0) -> tuple[Tensor, Tensor]:
        """x `[B, N, d]`, p `[B, k, d]`, real `[B, N]` or None → the next x (only its `last` rows, 0: all) and p."""
        h = zero_padding(self.norm(x), real)
        p = self.carry_interests(p, *self.aggregate(p, h, real))
        return self.finish_layer(x[:, -last:], self.dispatch(h[:, -last:], p), h, last), p

    def attention_weights(self, x: Tensor, p: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """For people: how each interest reads the history `[B, H, k, N]` and the last event the interests `[B, H, k]`."""
        h = zero_padding(self.norm(x), real)
        weights, read = self.aggregate(p, h, real)
        slots, _ = self.weigh_interests(h[:, -1:], self.carry_interests(p, weights, read))
        return weights.unflatten(1, (self.heads, -1)), slots[..., 0]

    def aggregate(self, p: Tensor, h: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """Eq. 2: how each interest reads normalised events `h [B, N, d]`, `[B, H k, N]`, and what it reads, `[B, H k, d]`."""
        maps = apply_maps(p, self.aggregation_maps()).flatten(1, 2)
        logits = (h @ maps.transpose(1, 2)).transpose(1, 2)  # so that h's gradient is dense
        if real is not None:
            logits = logits.masked_fill(~real[:, None, :], torch.finfo(logits.dtype).min)
        weights = logits.softmax(-1)
        return weights, weights @ h

    def carry_interests(self, p: Tensor, weights: Tensor, read: Tensor) -> Tensor:
        """Return the next P: the interests `[B, k, d]` and what they have read."""
        read = read.unflatten(1, (self.heads, -1)) @ self.per_head(self.value1).transpose(1, 2)
        return self.interest_feed_forward(p + self.dropout(merge_heads(read)))

    def weigh_interests(self, h: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        """Return how events weigh the interests, `[B, H, k, n]`, and what these give, `[B, H k, d]`."""
        queries, values = apply_maps(self.interest_norm(p), torch.cat(self.readout_maps())).tensor_split(2, dim=1)
        logits = (h @ queries.flatten(1, 2).transpose(1, 2)).transpose(1, 2)
        slots = logits.unflatten(1, (self.heads, -1)).softmax(2)  # over rows: torch's softmax over few neighbours is slow
        return slots, (values + self.output.bias / self.heads).flatten(1, 2)  # every head's slots add up to 1

    def dispatch(self, h: Tensor, p: Tensor) -> Tensor:
        """Eq. 3: what events `h [B, n, d]` are given by the interests, `[B, n, d]`."""
        slots, values = self.weigh_interests(h, p)
        return slots.flatten(1, 2).transpose(1, 2) @ values  # heads side by side: the product adds them up


class CausalDispatcher(Dispatcher):
    """The causal form (objective `window`): event t reads interests that have aggregated events up to t only.

    The aggregate query is the retrieved P itself, the same for all t and not updated by time, so each slot is a running sum and
    a user's state stays k x (d + 1) numbers per head and layer. Nothing non-linear stands between aggregation and dispatch, so
    the slot's key and value are P + M_t W_V1, folded like everything else: `fold_maps` is all that the operation needs, for all
    rows, for the last, for one new event (core/elastic_stream.py) and for people."""

    def forward(self, x: Tensor, p: Tensor, real: Tensor | None, last: int = 0) -> tuple[Tensor, Tensor]:
        """x `[B, N, d]`, p `[B, k, d]`, real `[B, N]` or None → the next x (only its `last` rows, 0: all) and the same p."""
        h, maps = zero_padding(self.norm(x), real), self.fold_maps(p)
        if last == 1:
            return self.finish_layer(x[:, -1:], read_last(h, maps, real), h, 1), p
        return self.finish_layer(x[:, -last:], read_causally(h, maps, real, last), h, last), p

    @in_full_precision
    def fold_maps(self, p: Tensor) -> FoldedMaps:
        """Return the maps of the operation for these interests `[B, k, d]`, in float32 at least."""
        asks, bias, values = apply_maps(p, torch.cat([self.aggregation_maps(), *self.readout_maps()])).tensor_split(3, dim=1)
        aggregated = self.per_head(self.value1).transpose(1, 2)  # [H, d, e]
        query = aggregated @ (self._output_per_head(self.key2).transpose(1, 2) @ (self.per_head(self.query2) * self.scale))
        carried = aggregated @ (self._output_per_head(self.value2).transpose(1, 2) @ self._output_by_head())
        return FoldedMaps(asks, query, bias, values + self.output.bias / self.heads, carried)  # every head's slots add up to 1

    def attention_weights(self, x: Tensor, p: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """For people: how each interest reads the history `[B, H, k, N]` and the last event the interests `[B, H, k]`."""
        return trace_slots(zero_padding(self.norm(x), real), self.fold_maps(p), real)

    def _output_per_head(self, projection: nn.Linear) -> Tensor:
        """Return head h of the output from head h of the input, `[H, e, e]`."""
        blocks = projection.weight.unflatten(0, (self.heads, -1)).unflatten(2, (self.heads, -1))
        return blocks.diagonal(dim1=0, dim2=2).permute(2, 0, 1)


class SelfAttentionLayer(nn.Module):
    """Table 3's "w/o Dispatcher": softmax self-attention over the events with the retrieved experts as extra keys, O(N²)."""

    def __init__(self, width: int, heads: int, dropout: float, causal: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attend = Attention(width, heads, dropout, causal=causal)
        self.dropout = Dropout(dropout)
        self.feed_forward = FeedForward(width, dropout)

    def forward(self, x: Tensor, p: Tensor, real: Tensor | None, last: int = 0) -> tuple[Tensor, Tensor]:
        h = self.norm(x)
        if last == 1:  # of more rows all are computed
            return self.feed_forward(x[:, -1:] + self.attend.forward_last(h, real, p)), p
        return self.feed_forward(x + self.dropout(self.attend(h, real, p))), p
