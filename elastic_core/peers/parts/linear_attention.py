"""L2-normalised linear attention (LinRec, Liu et al. 2023): no softmax, so the products can be taken from the other end.

    φ(x) = elu(x) / ‖elu(x)‖₂ of every position and head,   out = φ(Q) (φ(K)ᵀ V) / √d_h

is linear in the length N, and nothing of size N x N is made. Padding has φ(k) = 0, so whoever reads it reads nothing. The causal
form reads S_t = S_{t-1} + φ(k_t) v_tᵀ instead of φ(K)ᵀ V: a running sum, here in chunks of C events. A chunk inherits the sum
of all before it and adds its own events through C x C products, so N/C states of d_h x d_h are kept and not N.

Sums are `precise`: float32 at least, under autocast too. Symbols: b people, h heads, c chunks, e = d_h.
"""

import math

from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import add_product, merge_heads, precise, split_heads

CHUNK = 64


@precise
def normalised(x: Tensor) -> Tensor:
    """φ of `[..., e]`: elu, brought to unit length. A vector of zeros stays one."""
    return functional.normalize(functional.elu(x), dim=-1)


@precise
def summed(k: Tensor, v: Tensor) -> Tensor:
    """S = Σ_j k_j v_jᵀ of `[B, H, N, e]` each: `[B, H, e, e]`."""
    return k.transpose(-1, -2) @ v


@precise
def read(q: Tensor, total: Tensor) -> Tensor:
    """q S: `[B, H, M, e]`, `[B, H, e, e]` → `[B, H, M, e]`."""
    return q @ total


@precise
def read_once(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same for one query `[B, H, 1, e]`, the shorter way: (q kᵀ) v, O(N·e) where S takes O(N·e²)."""
    return (q @ k.transpose(-1, -2)) @ v


@precise
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


class LinearAttention(nn.Module):
    """Linear self-attention of `x [B, N, d]`, causal or of the whole history; `real` is the padding mask `[B, N]` or None.

    Nobody reads padding; what the result has there means nothing. An empty history reads zeros.
    """

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal, self.scale = heads, causal, 1 / math.sqrt(width // heads)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        q, (k, v) = self.ask(x), self.told(x, real)
        return self.mixed(read_past(q, k, v) if self.causal else read(q, summed(k, v)))

    def last(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """The last row of `forward`, `[B, 1, d]`: both forms read the same there."""
        return self.mixed(read_once(self.ask(x[:, -1:]), *self.told(x, real)))

    def last_weights(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """What the last row multiplies every event by, `[B, H, N]`: of either sign, and they add up to anything."""
        weights: Tensor = (self.ask(x[:, -1:]) @ self.told(x, real)[0].transpose(-1, -2)).squeeze(-2) * self.scale
        return weights

    def ask(self, x: Tensor) -> Tensor:
        """φ(Q) `[B, H, N, e]`."""
        return normalised(split_heads(self.query(x), self.heads))

    def told(self, x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """φ(K), zero on padding, and V, `[B, H, N, e]` each."""
        k = normalised(split_heads(self.key(x), self.heads))
        return k if real is None else k * real[:, None, :, None], split_heads(self.value(x), self.heads)

    def mixed(self, found: Tensor) -> Tensor:
        """What was read `[B, H, N, e]`, scaled and through the output: `[B, N, d]`."""
        out: Tensor = self.output(merge_heads(found * self.scale))
        return out
