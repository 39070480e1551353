"""HSTU (Zhai et al. 2024), the sequential transduction unit: attention without softmax, gated, and no feed-forward layer.

    z = LN(x);   U, V, Q, K = SiLU(z W)
    A_ij = SiLU(q_i · k_j + b[i - j]) / n   for j <= i, 0 otherwise
    x ← x + W_o (U ⊙ LN(A V))

n: the release divides by the number of columns that it pads every history to, whatever it holds; here that is the model's
`length`, so padding stays invisible (a batch may have fewer columns). LN follows, so n only decides how soon its ε counts. As
released: b is learned, one number for every distance and layer, shared by the heads; LN in here has no weights; SiLU stands on q
and k too; dropout is on what W_o reads. Input and output are as everywhere here: item plus learned position, layer norm, inner
product with the item table, softmax over all items. (The release brings states and items to unit length, with a temperature and
sampled negatives.)

Time: the published bias of event i for event j is bucketed log(t_{i+1} - t_j): it reads the time of the very event that is to be
predicted, which nobody knows when a list is made and which tells much. It is not offered.

| `time_bias` | |
| --- | --- |
| `none` | positions only |
| `previous` | + c[⌊ln(max(t_i - t_j, 1 s)) / 0.301⌋], what is known when event i has just happened (ours); buckets as released |
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.layers import Dropout, merge_heads, split_heads, zero_padding
from elastic_core.errors import InputError
from elastic_core.models import Batch, Catalog, Encoded, ModelConfig, Recommender, Variant, register
from elastic_core.peers.parts.blocks import make_embedding

BUCKETS, STEP = 128, 0.301  # of time differences: a bucket's upper end is e^0.301 = 1.35 times its lower one
EPSILON = 1e-6


@dataclass(frozen=True, kw_only=True)
class HSTUConfig(ModelConfig, name="hstu", label="HSTU"):
    time_bias: Literal["none", "previous"] = "none"


class TransductionUnit(nn.Module):
    """One layer on `x [B, N, d]`. `real [B, N]` or None; `gaps [B, N, N]` buckets of time differences or None."""

    def __init__(self, config: HSTUConfig) -> None:
        super().__init__()
        width = config.width
        self.heads, self.length = config.heads, config.length
        self.uq_projection = nn.Linear(width, 2 * width, bias=False)  # U and Q: of the event that reads
        self.vk_projection = nn.Linear(width, 2 * width, bias=False)  # V and K: of the events that are read
        self.output = nn.Linear(width, width)
        self.dropout = Dropout(config.dropout)
        self.distance = nn.Parameter(0.02 * torch.randn(config.length))  # b
        self.gap = nn.Parameter(0.02 * torch.randn(BUCKETS + 1)) if config.time_bias != "none" else None  # c

    def forward(self, x: Tensor, real: Tensor | None, gaps: Tensor | None, last: bool = False) -> Tensor:
        """The next x; only its last row `[B, 1, d]` if `last`."""
        z = _bare_norm(x)
        v, k = functional.silu(self.vk_projection(z)).chunk(2, -1)
        if last:
            x, z = x[:, -1:], z[:, -1:]
        u, q = functional.silu(self.uq_projection(z)).chunk(2, -1)
        mixed = self._attention_weights(q, k, gaps) @ split_heads(zero_padding(v, real), self.heads)  # of padding nothing is read
        return x + self.output(self.dropout(u * _bare_norm(merge_heads(mixed))))

    def last_weights(self, x: Tensor, real: Tensor | None, gaps: Tensor | None) -> Tensor:
        """What the last row multiplies every event by, `[B, H, N]`: SiLU's, so slightly negative where it would not look."""
        z = _bare_norm(x)
        k = functional.silu(self.vk_projection(z)).chunk(2, -1)[1]
        q = functional.silu(self.uq_projection(z[:, -1:])).chunk(2, -1)[1]
        weights = self._attention_weights(q, k, gaps).squeeze(-2)
        return weights if real is None else weights * real.unsqueeze(1)

    def _attention_weights(self, q: Tensor, k: Tensor, gaps: Tensor | None) -> Tensor:
        """Of the last rows `q [B, n, d]`, all or one: `[B, H, n, N]`."""
        last = q.shape[1] < k.shape[1]
        scores = split_heads(q, self.heads) @ split_heads(k, self.heads).transpose(-1, -2) + self._position_bias(
            k.shape[1], gaps, last
        )
        if not last:
            is_later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(is_later, 0)  # SiLU(0) = 0
        return functional.silu(scores) / self.length

    def _position_bias(self, n: int, gaps: Tensor | None, last: bool) -> Tensor:
        """b[i - j] `[N, N]`, with a time bias `[B, 1, N, N]`; of the last row alone if `last`. Where j > i it means nothing."""
        near = self.distance[:n].flip(0)  # b[n - 1] … b[0], the last row
        # row i is the same turned by n - 1 - i places: all rows are windows of one vector
        bias = near.unsqueeze(0) if last else functional.pad(near, (0, n - 1)).unfold(0, n, 1).flip(0)
        if self.gap is None or gaps is None:
            return bias
        gaps = gaps[:, -1:] if last else gaps
        return bias + functional.embedding(gaps, self.gap.unsqueeze(1)).squeeze(-1).unsqueeze(1)


@register(HSTUConfig)
class HSTU(Recommender):
    """See the module's table. With `time_bias`, learning needs them; a history without is scored by positions alone."""

    objective = "all"
    variants = (
        Variant("HSTU", {}, "Gated attention without softmax or feed-forward layers; positions only."),
        Variant("HSTU with time", {"time_bias": "previous"}, "It also sees how long before the latest known event each one was."),
    )
    causal = True
    config: HSTUConfig

    def __init__(self, config: HSTUConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.reads_times = config.time_bias != "none"
        self.events = make_embedding(config, self.n_items)
        self.units = nn.ModuleList(TransductionUnit(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, batch: Batch) -> Encoded:
        return Encoded(self.norm(self._encode(batch, last=False)))

    def last_state(self, batch: Batch) -> Tensor:
        return self.norm(self._encode(batch, last=True)[:, -1])

    def saved_per_event(self, columns: int) -> int:
        """Beside the scores and weights of every pair, N x N: their buckets."""
        return super().saved_per_event(columns) + (4 * columns if self.config.time_bias != "none" else 0)

    def last_weights(self, batch: Batch) -> Tensor:
        """`AttentionModel`."""
        x, real = self.events(batch.items, batch.padded), batch.mask
        gaps, weights = self._time_buckets(batch), []
        for unit in self.units:
            assert isinstance(unit, TransductionUnit)
            weights.append(unit.last_weights(x, real, gaps))
            x = unit(x, real, gaps)
        return torch.stack(weights)

    def _encode(self, batch: Batch, last: bool) -> Tensor:
        x, real = self.events(batch.items, batch.padded), batch.mask
        gaps = self._time_buckets(batch)
        for i, unit in enumerate(self.units):
            x = unit(x, real, gaps, last=last and i == len(self.units) - 1)
        return x

    def _time_buckets(self, batch: Batch) -> Tensor | None:
        """The bucket of t_i - t_j for every pair `[B, N, N]`, or None. Raises InputError where it should learn from no times."""
        if self.config.time_bias == "none":
            return None
        if batch.times is None:
            if self.training:
                raise InputError("model.time_bias = previous needs the times of events, and these data have none")
            return None
        gaps = batch.times.unsqueeze(2) - batch.times.unsqueeze(1)
        return (gaps.clamp_min(1).float().log() / STEP).int().clamp_max(BUCKETS)


def _bare_norm(x: Tensor) -> Tensor:
    """Layer norm without weights."""
    return functional.layer_norm(x, x.shape[-1:], eps=EPSILON)
