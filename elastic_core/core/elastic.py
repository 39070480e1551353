"""ELASTIC: retrieve k interests for this person, let them aggregate the history and dispatch it back (Eq. 1-9).

The model in one file. B people, N events (left-padded, `real` [B, N]), width d, k of K = side² experts, H heads, e = d/H:

    X [B, N, d]                             item embeddings + positions                                              Eq. 1
    q [B, d] = QueryNetwork(X)              (N/stride, stride·d) → linear → self-attention, until one row is left    Eq. 4
    s [B, 2, side] = (q₁ C₁ᵀ, q₂ C₂ᵀ)       half scores; the k best of their side² sums, exactly                     Eq. 6-7
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
| `query` | `network` (Eq. 4), `mean` (w/o Query Net), `votes` (ours: every event asks, slots/voting.py) |
| `dispatch` | `linear` (Eq. 2-3), `none` (w/o Dispatcher: self-attention, the experts as extra keys; the paper defines none) |
| `gate` | `softmax`, `none` (Algorithm 1 as printed: no gradient to keys and query network) |
| `query_norm` | `whiten` (ours), `layer` |
| `conv_width` | width of the causal convolution beside the dispatch (ours), 0 = the paper |
| `bank` | `dense`, or `rows` (ours: a step touches only the experts it retrieved, scale/row_bank.py) |
| `interest_weight` | of the loss that asks experts to stand for items (ours, slots/standing.py), 0 = the paper |
"""

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core import prefix_slots
from elastic_core.core.attention import Attention, merge_heads
from elastic_core.core.batches import Batch
from elastic_core.core.dropout import Dropout
from elastic_core.core.embedding import EventEmbedding, rows_of
from elastic_core.core.feed_forward import FeedForward
from elastic_core.core.local_convolution import LocalConvolution
from elastic_core.core.padding import masked, pad_front
from elastic_core.core.precision import precise, without_autocast
from elastic_core.core.prefix_slots import Maps
from elastic_core.core.products import add, linear, through
from elastic_core.core.retrieved import Edit, Retrieved, Traced
from elastic_core.core.settings import ElasticConfig
from elastic_core.core.whitening import Whitening
from elastic_core.errors import InputError

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
        pooled = linear(masked(x, real).unflatten(1, (-1, self.stride)).flatten(2), self.project.weight, self.project.bias)
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
        return x.mean(1) if real is None else masked(x, real).sum(1) / real.sum(1, keepdim=True).clamp_min(1)


# --- product keys (Eq. 6-7; Lample et al. 2019) ----------------------------------------------------------------------


class Keys(NamedTuple):
    """The k best keys of each query, best first: their number `row · side + column` and score, both `[B, k]`."""

    indices: Tensor
    scores: Tensor


@lru_cache(maxsize=256)
def candidate_ranks(k: int, side: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs of ranks (from 0) that can be among the k best: (i + 1)(j + 1) <= k; those up and left are no worse."""
    return tuple((i, j) for i in range(min(k, side)) for j in range(min(k // (i + 1), side)))


@lru_cache(maxsize=256)
def _ranks_on(k: int, side: int, device: torch.device) -> Tensor:
    """Return `candidate_ranks` `[C, 2]`, on the device once: a copy in every step would be waited for."""
    with torch.inference_mode(False):
        return torch.tensor(candidate_ranks.__wrapped__(k, side), device=device)


def top_pairs(halves: Tensor, k: int) -> Keys:
    """Return the k best sums of half scores `[B, 2, side]`, exactly: equals `exhaustive` up to the order of equal scores."""
    side = halves.shape[-1]
    if not 1 <= k <= side * side:
        raise InputError(f"k must lie in 1 … side² = {side * side}, not {k}")
    best, where = halves.topk(min(k, side), dim=-1)
    ranks = (_ranks_on.__wrapped__ if torch.compiler.is_compiling() else _ranks_on)(k, side, halves.device)
    sums = best[:, 0, ranks[:, 0]] + best[:, 1, ranks[:, 1]]
    scores, winners = sums.topk(k, dim=-1)
    rows, columns = (where[:, half].gather(1, ranks[winners, half]) for half in (0, 1))
    return Keys(rows * side + columns, scores)


def exhaustive(halves: Tensor, k: int) -> Keys:
    """Return the same from all side² sums: what product keys avoid, and what they must equal."""
    scores, indices = (halves[:, 0, :, None] + halves[:, 1, None, :]).flatten(1).topk(k, dim=-1)
    return Keys(indices, scores)


class ProductKeys(nn.Module):
    """Two sets of `side` sub-keys of width d/2. Queries `[B, d]` → half scores `[B, 2, side]`.

    With `cosine` (ours), both halves of the query and all sub-keys have unit norm and their product is scaled by a learned
    temperature, so that no sub-key wins by its length; without, Eq. 7 (whose second half, printed with q1 again, reads q2)."""

    def __init__(self, width: int, side: int, cosine: bool = True) -> None:
        super().__init__()
        self.side, self.cosine = side, cosine
        bound = 1 / math.sqrt(width // 2)
        self.sub_keys = nn.Parameter(torch.empty(2, side, width // 2).uniform_(-bound, bound))
        self.log_temperature = nn.Parameter(torch.tensor(math.log(4.0))) if cosine else None

    def forward(self, query: Tensor) -> Tensor:
        halves: Tensor = query.unflatten(-1, (2, -1))
        keys: Tensor = self.sub_keys
        if self.log_temperature is not None:
            halves = functional.normalize(halves, dim=-1) * self.log_temperature.exp()
            keys = functional.normalize(keys, dim=-1)
        return torch.einsum("bhd,hsd->bhs", halves, keys)


# --- the interest memory (Eq. 5, Algorithm 1) ------------------------------------------------------------------------


def gate(scores: Tensor, kind: str) -> Tensor:
    """Return `softmax` of scores `[B, k]` times k (so that the mean stays 1), or ones for `none`: Algorithm 1 drops the scores
    after the search, so no gradient could ever reach sub-keys and query network."""
    return scores.softmax(-1) * scores.shape[-1] if kind == "softmax" else torch.ones_like(scores)


class InterestMemory(nn.Module):
    """side² experts of width d behind product keys. Subclasses say what a history asks: `forward` takes its content `[B, N, d]`,
    its mask and, where equal items have equal content, the items `[B, N]` to `Retrieved`; `asked` returns the queries `[M, d]`.
    `rows`: a step touches only the experts it retrieved, with a learning `rate` of their own."""

    def __init__(self, width: int, side: int, k: int, *, norm: str, gate: str, rows: bool = False, rate: float = 0.0) -> None:
        super().__init__()
        self.k, self.kind = k, gate
        self.norm = Whitening(width) if norm == "whiten" else nn.LayerNorm(width)  # queries and sub-keys on one scale
        self.keys = ProductKeys(width, side)
        self.values = rows_of(side * side, width, rows, rate)
        nn.init.normal_(self.values.weight, std=width**-0.5)

    def asked(self, x: Tensor, real: Tensor | None) -> Tensor:
        raise NotImplementedError

    @torch.no_grad()
    def calibrate(self, x: Tensor, real: Tensor | None, rate: float = 1.0) -> None:
        """Tell the whitening what these histories ask; at rate 1 it forgets all earlier ones."""
        if isinstance(self.norm, Whitening):
            with without_autocast(x.device.type):  # a covariance of rounded queries is one of the rounding
                self.norm.learn(self.asked(x.to(self.values.weight.dtype), real), rate)


class QueriedMemory(InterestMemory):
    """The paper's: one query for the whole history, by Eq. 4 (`network`) or as its plain mean."""

    def __init__(self, length: int, width: int, heads: int, side: int, k: int, *, query: str, **settings: str | float) -> None:
        network = MeanQuery() if query == "mean" else QueryNetwork(length, width, heads)  # drawn first
        super().__init__(width, side, k, **settings)  # type: ignore[arg-type]
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
            gates = gate(scores, self.kind)
            return Retrieved(self.values(experts) * gates.unsqueeze(-1), experts, scores, gates, halves, query, pooled)

    def asked(self, x: Tensor, real: Tensor | None) -> Tensor:
        return self.query_network(x, real)


class SharedInterests(nn.Module):
    """Table 3's "w/o IMR": the same k learned interests for everybody."""

    def __init__(self, width: int, k: int) -> None:
        super().__init__()
        self.interests = nn.Parameter(torch.randn(k, width) * width**-0.5)

    def forward(self, x: Tensor, real: Tensor | None, items: Tensor | None = None) -> Retrieved:
        b, k = x.shape[0], self.interests.shape[0]
        ones, nothing = x.new_ones(b, k), x.new_zeros(b, 0)
        numbers = torch.arange(k, device=x.device).expand(b, k)
        return Retrieved(self.interests.expand(b, -1, -1), numbers, ones, ones, x.new_zeros(b, 2, 0), nothing, nothing)


# --- the dispatchers (Eq. 2-3) ---------------------------------------------------------------------------------------


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

    def asking(self) -> Tensor:
        """Return W_Q1 W_K1ᵀ / √e, `[H, d, d]`: interests → the logits that they have for an event."""
        return self.per_head(self.query1).transpose(1, 2) @ (self.per_head(self.key1) * self.scale)

    def answering(self) -> tuple[Tensor, Tensor]:
        """Return W_K2 W_Q2ᵀ / √e and W_V2 W_O, `[H, d, d]` each: interests → what an event asks of them, and what they give."""
        asked = self.per_head(self.key2).transpose(1, 2) @ (self.per_head(self.query2) * self.scale)
        return asked, self.per_head(self.value2).transpose(1, 2) @ self._out()

    def finish(self, x: Tensor, mixed: Tensor, h: Tensor, last: int) -> Tensor:
        """Add residual, local order and feed-forward to what was dispatched, `mixed [B, n, d]` (overwritten), of the
        last rows or, at 0, of all."""
        if self.local is not None:
            mixed = add(mixed, self.local.last(h, last) if last else self.local(h))
        return self.feed_forward(add(self.dropout(mixed), x))

    def _out(self) -> Tensor:
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
        h = masked(self.norm(x), real)
        p = self.carry(p, *self.aggregate(p, h, real))
        return self.finish(x[:, -last:], self.dispatch(h[:, -last:], p), h, last), p

    def attention(self, x: Tensor, p: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """For people: how each interest reads the history `[B, H, k, N]` and the last event the interests `[B, H, k]`."""
        h = masked(self.norm(x), real)
        weights, read = self.aggregate(p, h, real)
        slots, _ = self.slots(h[:, -1:], self.carry(p, weights, read))
        return weights.unflatten(1, (self.heads, -1)), slots[..., 0]

    def aggregate(self, p: Tensor, h: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """Eq. 2: how each interest reads normalised events `h [B, N, d]`, `[B, H k, N]`, and what it reads, `[B, H k, d]`."""
        logits = (h @ through(p, self.asking()).flatten(1, 2).transpose(1, 2)).transpose(1, 2)  # so that h's gradient is dense
        if real is not None:
            logits = logits.masked_fill(~real[:, None, :], torch.finfo(logits.dtype).min)
        weights = logits.softmax(-1)
        return weights, weights @ h

    def carry(self, p: Tensor, weights: Tensor, read: Tensor) -> Tensor:
        """Return the next P: the interests `[B, k, d]` and what they have read."""
        read = read.unflatten(1, (self.heads, -1)) @ self.per_head(self.value1).transpose(1, 2)
        return self.interest_feed_forward(p + self.dropout(merge_heads(read)))

    def slots(self, h: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        """Return how events weigh the interests, `[B, H, k, n]`, and what these give, `[B, H k, d]`."""
        asked, given = through(self.interest_norm(p), torch.cat(self.answering())).tensor_split(2, dim=1)
        logits = (h @ asked.flatten(1, 2).transpose(1, 2)).transpose(1, 2)
        slots = logits.unflatten(1, (self.heads, -1)).softmax(2)  # over rows: torch's softmax over few neighbours is slow
        return slots, (given + self.output.bias / self.heads).flatten(1, 2)  # every head's slots add up to 1

    def dispatch(self, h: Tensor, p: Tensor) -> Tensor:
        """Eq. 3: what events `h [B, n, d]` are given by the interests, `[B, n, d]`."""
        slots, given = self.slots(h, p)
        return slots.flatten(1, 2).transpose(1, 2) @ given  # heads side by side: the product adds them up


class CausalDispatcher(Dispatcher):
    """The causal form (objective `window`): event t reads interests that have aggregated events up to t only (`causal_dispatch`).

    The aggregate query is the retrieved P itself, the same for all t and not updated by time, so each slot is a running sum and
    a user's state stays k x (d + 1) numbers per head and layer. Nothing non-linear stands between aggregation and dispatch, so
    the slot's key and value are P + M_t W_V1, folded like everything else: `fold` is all that the operation needs, for all rows,
    for the last, for one new event (following/elastic.py) and for people."""

    def forward(self, x: Tensor, p: Tensor, real: Tensor | None, last: int = 0) -> tuple[Tensor, Tensor]:
        """x `[B, N, d]`, p `[B, k, d]`, real `[B, N]` or None → the next x (only its `last` rows, 0: all) and the same p."""
        h, maps = masked(self.norm(x), real), self.fold(p)
        if last == 1:
            return self.finish(x[:, -1:], prefix_slots.last(h, maps, real), h, 1), p
        return self.finish(x[:, -last:], prefix_slots.prefixes(h, maps, real, last), h, last), p

    @precise
    def fold(self, p: Tensor) -> Maps:
        """Return the maps of the operation for these interests `[B, k, d]`, in float32 at least."""
        asks, bias, given = through(p, torch.cat([self.asking(), *self.answering()])).tensor_split(3, dim=1)
        aggregated = self.per_head(self.value1).transpose(1, 2)  # [H, d, e]
        query = aggregated @ (self._own(self.key2).transpose(1, 2) @ (self.per_head(self.query2) * self.scale))
        carried = aggregated @ (self._own(self.value2).transpose(1, 2) @ self._out())
        return Maps(asks, query, bias, given + self.output.bias / self.heads, carried)  # every head's slots add up to 1

    def attention(self, x: Tensor, p: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """For people: how each interest reads the history `[B, H, k, N]` and the last event the interests `[B, H, k]`."""
        return prefix_slots.trace(masked(self.norm(x), real), self.fold(p), real)

    def _own(self, projection: nn.Linear) -> Tensor:
        """Return head h of the output from head h of the input, `[H, e, e]`."""
        blocks = projection.weight.unflatten(0, (self.heads, -1)).unflatten(2, (self.heads, -1))
        return blocks.diagonal(dim1=0, dim2=2).permute(2, 0, 1)


def causal_dispatch(h: Tensor, maps: Maps, real: Tensor | None) -> Tensor:
    """Return what every event of `h [B, N, d]` is given, `[B, N, d]`: the equations as they are written, with N x k x d numbers.

    Slot s holds a softmax average of the past, M_t[s] = Σ_{j<=t} e^{a_j[s]} h_j / Σ_{j<=t} e^{a_j[s]} with a_j[s] = asks[s] · h_j
    (softly bounded), event t weighs the slots by w_t = softmax_s(bias[s] · h_t + (query h_t) · M_t[s]) and is given
    Σ_s w_t[s] (given[s] + carried M_t[s]). `prefix_slots.prefixes` gives the same in chunks; a layer calls that."""
    weights = prefix_slots.weigh_events(h, maps, real).transpose(-1, -2)  # e^a, [B, H, N, k]
    mass = weights.cumsum(2).clamp_min(prefix_slots.LEAST)
    memory = (weights.unsqueeze(-1) * h[:, None, :, None, :]).cumsum(2) / mass.unsqueeze(-1)  # M [B, H, N, k, d]
    asked = torch.einsum("hji,bni->bhnj", maps.query, h)
    slots = (torch.einsum("bhnj,bhnkj->bhnk", asked, memory) + torch.einsum("bhkd,bnd->bhnk", maps.bias, h)).softmax(-1)
    through = maps.given.unsqueeze(2) + torch.einsum("bhnkj,hje->bhnke", memory, maps.carried)
    return torch.einsum("bhnk,bhnke->bne", slots, through)


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
            return self.feed_forward(x[:, -1:] + self.attend.last(h, real, p)), p
        return self.feed_forward(x + self.dropout(self.attend(h, real, p))), p


# --- the encoder -----------------------------------------------------------------------------------------------------


def layer_of(config: ElasticConfig) -> nn.Module:
    """Return one layer, as the settings ask for it."""
    shape = config.width, config.heads, config.dropout
    if config.dispatch == "none":
        return SelfAttentionLayer(*shape, causal=not config.bidirectional)
    return (TwoWayDispatcher if config.bidirectional else CausalDispatcher)(*shape, config.conv_width)


class Encoder(nn.Module):
    """The forward pass of the model (core/elastic_model.py), whose parts these are."""

    config: ElasticConfig
    causal: bool
    events: EventEmbedding
    memories: nn.ModuleList  # one, or with `per-layer` one a layer
    layers: nn.ModuleList

    def _read_for_retrieval(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.events.content(batch.retrieval_items), batch.retrieval_items > 0

    def _retrieve(self, i: int, x: Tensor, real: Tensor | None, items: Tensor | None, edit: Edit | None = None) -> Retrieved:
        found: Retrieved = self.memories[i](x, real, items)
        found = edit(found) if edit else found
        if found.turned is None:
            return found
        return found._replace(interests=found.interests * found.turned.unsqueeze(-1), gates=found.gates * found.turned)

    def _encode(
        self, batch: Batch, last: int = 0, edit: Edit | None = None, trace: Traced | None = None
    ) -> tuple[Tensor, list[Retrieved]]:
        content, real = self.events.content(batch.items), batch.real if batch.padded else None
        x = self.events.place(content, real)
        read = (content, real) if batch.retrieval_items is batch.items else self._read_for_retrieval(batch)
        asked = (*read, batch.retrieval_items)
        retrieved = [self._retrieve(0, *asked, edit)]
        p = retrieved[0].interests
        for i, layer in enumerate(self.layers):
            if i and self.config.memory == "per-layer":
                # PKM-ACT asks with the layer's input, which holds later events: the causal form asks with the same events
                again: tuple[Tensor, Tensor | None, Tensor | None] = asked if self.causal else (x, real, None)
                retrieved.append(self._retrieve(i, *again, edit))
                p = retrieved[-1].interests
            if trace is not None:
                trace(retrieved[-1], *layer.attention(x, p, real))  # type: ignore[operator]
            x, p = layer(x, p, real, last=last if i == len(self.layers) - 1 else 0)
        return x, retrieved
