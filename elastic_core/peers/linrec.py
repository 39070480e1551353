"""LinRec (Liu et al. 2023): SASRec with L2-normalised linear attention instead of softmax attention.

    φ(x) = elu(x) / ‖elu(x)‖₂ of every position and head,   out = φ(Q) (φ(K)ᵀ V) / √d_h

is linear in the length N, and nothing of size N x N is made: the products are taken from the other end. Padding has φ(k) = 0, so
whoever reads it reads nothing. The causal form reads S_t = S_{t-1} + φ(k_t) v_tᵀ instead of φ(K)ᵀ V: a running sum, here in
chunks of C events. A chunk inherits the sum of all before it and adds its own events through C x C products, so N/C states of
d_h x d_h are kept and not N. Sums are taken in float32 at least, under autocast too.

Keys: the paper normalises them by column (every feature over the whole history), the released code by position, as queries; so do
we, because a norm over the history would change with what comes later. Padding: the released attention takes no mask, so padding
counts as events, and every event reads all others; we mask it, and every event reads the past alone (ours), so that all positions
can be learned from. The block around the attention is SASRec's as everywhere here (pre-norm), not RecBole's (post-norm, GELU,
four times as wide).

Symbols: b people, h heads, c chunks, e = d_h.
"""

import math
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import add_product, in_full_precision, merge_heads, split_heads, zero_padding
from elastic_core.core.sasrec import Block
from elastic_core.core.stream import Stream, StreamState
from elastic_core.models import ModelConfig, StreamingModel, Variant, register
from elastic_core.peers.parts.blocks import Blocks

CHUNK = 64


@in_full_precision
def feature_map(x: Tensor) -> Tensor:
    """φ of `[..., e]`: elu, brought to unit length. A vector of zeros stays one."""
    return functional.normalize(functional.elu(x), dim=-1)


@in_full_precision
def sum_outer_products(k: Tensor, v: Tensor) -> Tensor:
    """S = Σ_j k_j v_jᵀ of `[B, H, N, e]` each: `[B, H, e, e]`."""
    return k.transpose(-1, -2) @ v


@in_full_precision
def read_total(q: Tensor, total: Tensor) -> Tensor:
    """q S: `[B, H, M, e]`, `[B, H, e, e]` → `[B, H, M, e]`."""
    return q @ total


@in_full_precision
def read_once(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same for one query `[B, H, 1, e]`, the shorter way: (q kᵀ) v, O(N·e) where S takes O(N·e²)."""
    return (q @ k.transpose(-1, -2)) @ v


@in_full_precision
def read_past(q: Tensor, k: Tensor, v: Tensor, chunk: int = CHUNK) -> Tensor:
    """Σ_{j<=t} (q_t · k_j) v_j for every t: `[B, H, N, e]` three times → `[B, H, N, e]`, O(N·e·(e + C))."""
    n = q.shape[2]
    chunk = -(-n // -(-n // chunk))  # as many chunks as it takes, all of about the same size: little is padded
    short = -n % chunk
    if short:
        q, k, v = (functional.pad(y, (0, 0, 0, short)) for y in (q, k, v))
    q, k, v = (y.unflatten(2, (-1, chunk)) for y in (q, k, v))  # [B, H, c, C, e]
    totals = k[:, :, :-1].transpose(-1, -2) @ v[:, :, :-1]  # [B, H, c - 1, e, e]
    before = functional.pad(totals, (0, 0, 0, 0, 1, 0)).cumsum(2)  # shifted, not subtracted: blind to the chunk itself
    inside = (q @ k.transpose(-1, -2)).tril()
    return add_product(q @ before, inside, v).flatten(2, 3)[:, :, :n]


@dataclass(frozen=True, kw_only=True)
class LinRecConfig(ModelConfig, name="linrec", label="LinRec"):
    """No settings of its own."""


class LinearAttention(nn.Module):
    """Causal linear self-attention of `x [B, N, d]`; `real` is the padding mask `[B, N]` or None.

    Nobody reads padding; what the result has there means nothing. An empty history reads zeros.
    """

    def __init__(self, config: LinRecConfig) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.scale = 1 / math.sqrt(width // self.heads)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        q, (k, v) = self.query_features(x), self.key_features(x, real)
        return self.project_output(read_past(q, k, v))

    def forward_last(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """The last row of `forward`, `[B, 1, d]`."""
        return self.project_output(read_once(self.query_features(x[:, -1:]), *self.key_features(x, real)))

    def last_weights(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """What the last row multiplies every event by, `[B, H, N]`: of either sign, and they add up to anything."""
        return (self.query_features(x[:, -1:]) @ self.key_features(x, real)[0].transpose(-1, -2)).squeeze(-2) * self.scale

    def query_features(self, x: Tensor) -> Tensor:
        """φ(Q) `[B, H, N, e]`."""
        return feature_map(split_heads(self.query(x), self.heads))

    def key_features(self, x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """φ(K), zero on padding, and V, `[B, H, N, e]` each."""
        k = feature_map(split_heads(self.key(x), self.heads))
        return k if real is None else k * real[:, None, :, None], split_heads(self.value(x), self.heads)

    def project_output(self, mixed: Tensor) -> Tensor:
        """What was read `[B, H, N, e]`, scaled and through the output: `[B, N, d]`."""
        return self.output(merge_heads(mixed * self.scale))


@register(LinRecConfig)
class LinRec(Blocks, StreamingModel):
    """See the module's table."""

    objective = "all"
    attention = LinearAttention
    last_weights = Blocks.block_weights  # `AttentionModel`: φ(q)·φ(k) / √d_h
    variants = (
        Variant("LinRec", {}, "Linear attention without softmax: a running sum over the past, all positions learned at once."),
    )
    causal = streams = True
    config: LinRecConfig

    def saved_per_event(self, columns: int) -> int:
        """Beside the block's own: φ and its norms, a chunk's products and the states between chunks."""
        width, chunk = self.config.width, min(CHUNK, columns)
        states = 2 * self.config.heads * chunk + 2 * width * width // (self.config.heads * chunk)
        return self.saved_by_blocks() + 8 * width + states

    def open_stream(self, room: int) -> "LinRecStream":
        return LinRecStream(self, room)


class LinRecStream(Stream):
    """A person's state of constant size: S = Σ_j φ(k_j) v_jᵀ of every layer and head, L·d²/H numbers in float32.

    Positions are counted back from the end of what is read, so it is `limited`, as ELASTIC's (core/elastic.py) is.
    """

    limited = True

    def _read_history(self, history: Tensor, columns: slice) -> tuple[Tensor, StreamState]:
        model, real, state = self.model, history > 0, StreamState()
        x = zero_padding(model.events.embed_items(history) + model.events.positions_of(columns), real)
        for i, block in enumerate(model.blocks):
            state[f"{i}.sum"] = sum_outer_products(*_attention_of(block).key_features(block.norm(x), real))  # [B, H, e, e]
            x = block(x, real, last=i == len(model.blocks) - 1)
        return model.norm(x[:, -1]), state

    def _read_event(self, items: Tensor) -> Tensor:
        x = (self.model.events.embed_items(items) + self.next_positions()).unsqueeze(1)
        for i, block in enumerate(self.model.blocks):
            attention, h, total = _attention_of(block), block.norm(x), self.state[f"{i}.sum"]
            total += sum_outer_products(*attention.key_features(h, None))
            x = block.feed_forward(x + attention.project_output(read_total(attention.query_features(h), total)))
        return self.model.norm(x[:, -1])


def _attention_of(block: nn.Module) -> LinearAttention:
    assert isinstance(block, Block) and isinstance(block.attention, LinearAttention)
    return block.attention
