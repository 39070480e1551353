"""Linear Dispatcher Attention (Eq. 2-3): k interests aggregate the history and dispatch it back, O(N·k).

Both forms are *folded*. Keys and values of the long side are linear in X and only k rows stand on the short side, so
(P W_Q)(X W_K)ᵀ = (P W_Q W_Kᵀ) Xᵀ and softmax(·)(X W_V) = (softmax(·) X) W_V: every N x d x d product becomes a k x d x d
one. That is algebra, not an approximation.
"""

import math

import torch
from torch import Tensor, nn

from elastic_core.layers.attention import split_heads
from elastic_core.layers.feed_forward import FeedForward
from elastic_core.layers.local_convolution import LocalConvolution
from elastic_core.layers.padding import masked
from elastic_core.layers.prefix_slots import add_product, precise, read_prefixes, weigh


class Dispatcher(nn.Module):
    """The weights of one layer, shared by both forms. Heads are aligned: dispatch head h reads what head h aggregated."""

    def __init__(self, width: int, heads: int, dropout: float, local: int, expansion: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, 1 / math.sqrt(width // heads)
        self.norm = nn.LayerNorm(width)
        self.query1, self.key1, self.value1 = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.query2, self.key2, self.value2 = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.output = nn.Linear(width, width)
        self.local = LocalConvolution(width, local) if local else None
        self.dropout = nn.Dropout(dropout)
        self.feed_forward = FeedForward(width, dropout, expansion)

    def per_head(self, linear: nn.Linear) -> Tensor:
        """`[H, d/H, d]`: the rows that produce head h."""
        return linear.weight.unflatten(0, (self.heads, -1))

    def aggregate_logits(self, p: Tensor, h: Tensor) -> Tensor:
        """Interests `[B, k, d]` and normalised events `[B, N, d]` → logits `[B, H, N, k]`, keys folded into the queries."""
        folded = torch.einsum("bhke,hed->bhkd", split_heads(self.query1(p), self.heads), self.per_head(self.key1)) * self.scale
        return torch.einsum("bnd,bhkd->bhnk", h, folded)

    def finish(self, x: Tensor, mixed: Tensor, h: Tensor, last: bool) -> Tensor:
        """Residual, local order, feed-forward."""
        if self.local is not None:
            mixed = mixed + (self.local.last(h) if last else self.local(h))
        return self.feed_forward(x + self.dropout(mixed))


class TwoWayDispatcher(Dispatcher):
    """Eq. 2-3 as printed: every interest reads all events, every event reads all interests, P is carried on."""

    def __init__(self, width: int, heads: int, dropout: float, local: int, expansion: int) -> None:
        super().__init__(width, heads, dropout, local, expansion)
        self.interest_feed_forward = FeedForward(width, dropout, expansion)
        self.interest_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, p: Tensor, real: Tensor | None, last: bool = False) -> tuple[Tensor, Tensor]:
        """x `[B, N, d]`, p `[B, k, d]`, real `[B, N]` or None → the next x (only its last row if `last`) and p."""
        h = masked(self.norm(x), real)
        p = self.interest_feed_forward(p + self.dropout(self._aggregate(p, h, real)))
        rows, x = (h[:, -1:], x[:, -1:]) if last else (h, x)
        return self.finish(x, self._dispatch(rows, self.interest_norm(p)), h, last), p

    def attention(self, x: Tensor, p: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """For people: how each interest reads the history `[B, H, k, N]` and the last event the interests `[B, H, k]`."""
        h = masked(self.norm(x), real)
        weights = self._reading(p, h, real)
        p = self.interest_feed_forward(p + self._aggregate(p, h, real))
        return weights, self._slots(h[:, -1:], self.interest_norm(p)).softmax(-1)[:, :, 0]

    def _reading(self, p: Tensor, h: Tensor, real: Tensor | None) -> Tensor:
        logits = self.aggregate_logits(p, h).transpose(-1, -2)
        if real is not None:
            logits = logits.masked_fill(~real[:, None, None, :], torch.finfo(logits.dtype).min)
        return logits.softmax(-1)

    def _aggregate(self, p: Tensor, h: Tensor, real: Tensor | None) -> Tensor:
        read = self._reading(p, h, real) @ h.unsqueeze(1)  # [B, H, k, d]
        return torch.einsum("bhkd,hed->bkhe", read, self.per_head(self.value1)).flatten(-2)

    def _slots(self, h: Tensor, p: Tensor) -> Tensor:
        folded = torch.einsum("bhke,hed->bhkd", split_heads(self.key2(p), self.heads), self.per_head(self.query2))
        return torch.einsum("bnd,bhkd->bhnk", h, folded) * self.scale

    def _dispatch(self, h: Tensor, p: Tensor) -> Tensor:
        out = self.output.weight.unflatten(1, (self.heads, -1))  # [d, H, d/H]
        given = torch.einsum("bhke,dhe->bhkd", split_heads(self.value2(p), self.heads), out)
        return _over_heads(self._slots(h, p).softmax(-1) @ given) + self.output.bias


class CausalDispatcher(Dispatcher):
    """The causal form (method: `window`): event t reads interests that have aggregated events up to t only.

    The aggregate query is the retrieved P itself, the same for all t and not updated by time, so each slot is a running
    sum (prefix_slots.py) and a user's state stays k x (d + 1) numbers per head and layer. Nothing non-linear stands
    between aggregation and dispatch, so the slot's key and value are P + M_t W_V1, folded like everything else.
    """

    def forward(self, x: Tensor, p: Tensor, real: Tensor | None, last: bool = False) -> tuple[Tensor, Tensor]:
        """x `[B, N, d]`, p `[B, k, d]`, real `[B, N]` or None → the next x (only its last row if `last`) and the same p."""
        h = masked(self.norm(x), real)
        weights = self.weights(p, h, real)
        if not last:
            slots, mixed = read_prefixes(h, weights, *self.slot_query(h, p))
            return self.finish(x, self.dispatch(slots, mixed, p), h, False), p
        slots, mixed = self.read(h[:, -1:], p, *self.sums(weights, h))
        return self.finish(x[:, -1:], self.dispatch(slots, mixed, p), h, True), p

    @precise
    def weights(self, p: Tensor, h: Tensor, real: Tensor | None) -> Tensor:
        """e^a, how heavily each interest reads each event: `[B, H, N, k]`, zero on padding."""
        weights = weigh(self.aggregate_logits(p, h))
        return weights if real is None else weights * real[:, None, :, None]

    @precise
    def sums(self, weights: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """What a whole history leaves in the slots: Σ_j e^{a_j} h_j `[B, H, k, d]` and the masses Σ_j e^{a_j} `[B, H, k]`."""
        return weights.transpose(-1, -2) @ h.unsqueeze(1), weights.sum(2)

    @precise
    def read(self, h: Tensor, p: Tensor, total: Tensor, mass: Tensor) -> tuple[Tensor, Tensor]:
        """One event `h [B, 1, d]` against a finished state: sums `[B, H, k, d]` and masses `[B, H, k]`."""
        memory = total / mass.clamp_min(1e-30).unsqueeze(-1)
        query, bias = self.slot_query(h, p)
        slots = (query @ memory.transpose(-1, -2) + bias).softmax(-1)
        return slots, slots @ memory

    @precise
    def slot_query(self, h: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        """What event t asks of the slots: of their running part `[B, H, N, d]`, of P itself `[B, H, N, k]`."""
        key = torch.einsum("hed,bkd->bhke", self.per_head(self.key2), p)
        fixed = torch.einsum("bhke,hed->bhkd", key, self.per_head(self.query2)) * self.scale
        moving = torch.einsum("hei,hef,hfj->hij", self.per_head(self.query2), self._own(self.key2), self.per_head(self.value1))
        return torch.einsum("bni,hij->bhnj", h, moving * self.scale), torch.einsum("bnd,bhkd->bhnk", h, fixed)

    def dispatch(self, slots: Tensor, mixed: Tensor, p: Tensor) -> Tensor:
        """The slots `[B, H, N, k]` and their mixture `[B, H, N, d]` through W_V2 and the output: `[B, N, d]`."""
        fixed, moving = self.folded_values(p)
        given = slots @ (fixed + self.output.bias / self.heads)  # every head's slots add up to 1
        return _over_heads(add_product(given, mixed, moving))

    def folded_values(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """What a slot gives: for its P `[B, H, k, d]`, and as a map of what it has aggregated `[H, d, d]`."""
        out = self.output.weight.unflatten(1, (self.heads, -1))  # [d, H, d/H]
        fixed = torch.einsum("hed,bkd,ohe->bhko", self.per_head(self.value2), p, out)
        return fixed, torch.einsum("hfj,hef,ohe->hjo", self.per_head(self.value1), self._own(self.value2), out)

    def attention(self, x: Tensor, p: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """For people: how each interest reads the history `[B, H, k, N]` and the last event the interests `[B, H, k]`."""
        h = masked(self.norm(x), real)
        weights = self.weights(p, h, real)
        total, mass = self.sums(weights, h)
        slots, _ = self.read(h[:, -1:], p, total, mass)
        return weights.transpose(-1, -2) / mass.clamp_min(1e-30).unsqueeze(-1), slots[:, :, 0]

    def _own(self, linear: nn.Linear) -> Tensor:
        """`[H, d/H, d/H]`: head h of the output from head h of the input."""
        return (
            linear.weight.unflatten(0, (self.heads, -1)).unflatten(2, (self.heads, -1)).diagonal(dim1=0, dim2=2).permute(2, 0, 1)
        )


def _over_heads(x: Tensor) -> Tensor:
    """The sum over heads: `[B, H, N, d]` → `[B, N, d]`."""
    return x[:, 0] if x.shape[1] == 1 else x.sum(1)
