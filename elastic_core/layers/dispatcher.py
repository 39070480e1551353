"""Linear Dispatcher Attention (Eq. 2-3): k interests aggregate the history and dispatch it back, O(N·k).

Both forms are *folded*. Keys and values of the long side are linear in X and only k rows stand on the short side, so
(P W_Q)(X W_K)ᵀ = (P W_Q W_Kᵀ) Xᵀ and softmax(·)(X W_V) = (softmax(·) X) W_V: every N x d x d product becomes a k x d x d
one. That is algebra, not an approximation. Symbols: h heads, e = d/H, o of the output.
"""

import math

import torch
from torch import Tensor, nn

from elastic_core.layers import prefix_slots
from elastic_core.layers.attention import merge_heads
from elastic_core.layers.dropout import Dropout
from elastic_core.layers.feed_forward import FeedForward
from elastic_core.layers.local_convolution import LocalConvolution
from elastic_core.layers.padding import masked
from elastic_core.layers.precision import precise
from elastic_core.layers.prefix_slots import Maps
from elastic_core.layers.products import add, linear


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
        """`[H, d/H, d]`: the rows that produce head h."""
        return projection.weight.unflatten(0, (self.heads, -1))

    def asking(self) -> Tensor:
        """W_Q1 W_K1ᵀ / √e, `[H, d, d]`: interests → the logits that they have for an event."""
        return self.per_head(self.query1).transpose(1, 2) @ (self.per_head(self.key1) * self.scale)

    def answering(self) -> tuple[Tensor, Tensor]:
        """W_K2 W_Q2ᵀ / √e and W_V2 W_O, `[H, d, d]` each: interests → what an event asks of them, and what they give."""
        asked = self.per_head(self.key2).transpose(1, 2) @ (self.per_head(self.query2) * self.scale)
        return asked, self.per_head(self.value2).transpose(1, 2) @ self._out()

    def finish(self, x: Tensor, mixed: Tensor, h: Tensor, last: int) -> Tensor:
        """Residual, local order, feed-forward, of the last rows or, at 0, of all. `mixed [B, n, d]`, what was dispatched, is
        overwritten."""
        if self.local is not None:
            mixed = add(mixed, self.local.last(h, last) if last else self.local(h))
        return self.feed_forward(add(self.dropout(mixed), x))

    def _out(self) -> Tensor:
        """The output's weights by head, `[H, e, d]`."""
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
        rows, x = (h[:, -last:], x[:, -last:]) if last else (h, x)
        return self.finish(x, self.dispatch(rows, p), h, last), p

    def attention(self, x: Tensor, p: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """For people: how each interest reads the history `[B, H, k, N]` and the last event the interests `[B, H, k]`."""
        h = masked(self.norm(x), real)
        weights, read = self.aggregate(p, h, real)
        slots, _ = self.slots(h[:, -1:], self.carry(p, weights, read))
        return weights.unflatten(1, (self.heads, -1)), slots[..., 0]

    def aggregate(self, p: Tensor, h: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """How each interest reads normalised events `h [B, N, d]`, `[B, H k, N]`, and what it reads, `[B, H k, d]`."""
        logits = (h @ _through(p, self.asking()).flatten(1, 2).transpose(1, 2)).transpose(1, 2)  # so that h's gradient is dense
        if real is not None:
            logits = logits.masked_fill(~real[:, None, :], torch.finfo(logits.dtype).min)
        weights = logits.softmax(-1)
        return weights, weights @ h

    def carry(self, p: Tensor, weights: Tensor, read: Tensor) -> Tensor:
        """The next P: the interests `[B, k, d]` and what they have read."""
        read = read.unflatten(1, (self.heads, -1)) @ self.per_head(self.value1).transpose(1, 2)
        return self.interest_feed_forward(p + self.dropout(merge_heads(read)))

    def slots(self, h: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        """How events weigh the interests, `[B, H, k, n]`, and what these give, `[B, H k, d]`."""
        asked, given = _through(self.interest_norm(p), torch.cat(self.answering())).tensor_split(2, dim=1)
        logits = (h @ asked.flatten(1, 2).transpose(1, 2)).transpose(1, 2)
        slots = logits.unflatten(1, (self.heads, -1)).softmax(2)  # over rows: torch's softmax over few neighbours is slow
        return slots, (given + self.output.bias / self.heads).flatten(1, 2)  # every head's slots add up to 1

    def dispatch(self, h: Tensor, p: Tensor) -> Tensor:
        """What events `h [B, n, d]` are given by the interests, `[B, n, d]`."""
        slots, given = self.slots(h, p)
        return slots.flatten(1, 2).transpose(1, 2) @ given  # heads side by side: the product adds them up


class CausalDispatcher(Dispatcher):
    """The causal form (method: `window`): event t reads interests that have aggregated events up to t only.

    The aggregate query is the retrieved P itself, the same for all t and not updated by time, so each slot is a running
    sum (prefix_slots.py) and a user's state stays k x (d + 1) numbers per head and layer. Nothing non-linear stands
    between aggregation and dispatch, so the slot's key and value are P + M_t W_V1, folded like everything else: `fold` is all
    that the operation needs, for all rows, for the last, for one new event and for people.
    """

    def forward(self, x: Tensor, p: Tensor, real: Tensor | None, last: int = 0) -> tuple[Tensor, Tensor]:
        """x `[B, N, d]`, p `[B, k, d]`, real `[B, N]` or None → the next x (only its `last` rows, 0: all) and the same p."""
        h, maps = masked(self.norm(x), real), self.fold(p)
        if last == 1:
            return self.finish(x[:, -1:], prefix_slots.last(h, maps, real), h, 1), p
        return self.finish(x[:, -last:], prefix_slots.prefixes(h, maps, real, last=last), h, last), p

    @precise
    def fold(self, p: Tensor) -> Maps:
        """The maps of the operation for these interests `[B, k, d]`, in float32 at least."""
        asks, bias, given = _through(p, torch.cat([self.asking(), *self.answering()])).tensor_split(3, dim=1)
        aggregated = self.per_head(self.value1).transpose(1, 2)  # [H, d, e]
        query = aggregated @ (self._own(self.key2).transpose(1, 2) @ (self.per_head(self.query2) * self.scale))
        carried = aggregated @ (self._own(self.value2).transpose(1, 2) @ self._out())
        return Maps(asks, query, bias, given + self.output.bias / self.heads, carried)  # every head's slots add up to 1

    def attention(self, x: Tensor, p: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """For people: how each interest reads the history `[B, H, k, N]` and the last event the interests `[B, H, k]`."""
        return prefix_slots.trace(masked(self.norm(x), real), self.fold(p), real)

    def _own(self, projection: nn.Linear) -> Tensor:
        """`[H, d/H, d/H]`: head h of the output from head h of the input."""
        blocks = projection.weight.unflatten(0, (self.heads, -1)).unflatten(2, (self.heads, -1))
        return blocks.diagonal(dim1=0, dim2=2).permute(2, 0, 1)


def _through(p: Tensor, maps: Tensor) -> Tensor:
    """Interests `[B, k, d]` through each of `[m, d, o]` in one product: `[B, m, k, o]`."""
    return linear(p, maps.transpose(1, 2).flatten(0, 1)).unflatten(-1, maps.shape[::2]).transpose(1, 2)
