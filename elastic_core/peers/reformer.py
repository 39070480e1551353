"""Reformer (Kitaev et al. 2020): attention inside the buckets of a locality-sensitive hash.

    h(x) = argmax([x R; -x R])      R random, d_h x buckets/2 (angular hashing)
    o_t = Σ_{j ∈ P_t} softmax_j(q_t·k_j / √d_h) v_j,      P_t = { j <= t : h(q_t) = h(k_j) },      k_j = q_j / |q_j|     (Eq. 2-4)

Queries and keys are the same vectors, keys of unit length; an event reads itself only if its bucket has nobody else. `rounds`
hashes are joined by Eq. 6 into one softmax over all that any of them finds. O(rounds·N·window).

What is done differently (parts/bucket_attention.py): the paper bounds the cost by cutting the events, sorted by bucket, into
chunks that read themselves and the one before; where the cuts fall depends on later events, and this leaks into what an event
reads. Here an event reads the last `window` of its bucket, itself counted, whatever follows. R is drawn once and kept with the
weights, so that a person's scores are the same every time; the paper draws anew. Reversible layers are left out, as in LISA's
comparison.

With one bucket and a window no shorter than the history it is softmax attention with shared queries and keys.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.layers import split_heads
from elastic_core.models import ModelConfig, Several, Variant, Within, register
from elastic_core.peers.parts.blocks import Blocks
from elastic_core.peers.parts.bucket_attention import BucketAttention, project_precisely, saved_numbers


@dataclass(frozen=True, kw_only=True)
class ReformerConfig(ModelConfig, name="reformer", label="Reformer"):
    buckets: Several = 4
    rounds: Annotated[int, Within(1, 16)] = 1  # hashes
    window: Annotated[int, Within(2, 8_192)] = 64  # how many events of its bucket one may read, itself counted


class HashedAttention(BucketAttention):
    """Buckets by angular hashing of the queries."""

    def __init__(self, config: ReformerConfig) -> None:
        super().__init__(config)
        self.n_buckets = config.buckets
        self.rotations: Tensor
        self.register_buffer(
            "rotations", torch.randn(config.heads, config.rounds, config.width // config.heads, -(-config.buckets // 2))
        )

    def shared_queries(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q = split_heads(project_precisely(x, self.query.weight, self.query.bias), self.heads)
        return q, functional.normalize(q, dim=-1)

    @torch.no_grad()
    def find_buckets(self, q: Tensor) -> Tensor:
        turned = project_precisely(q.unsqueeze(2), self.rotations.mT)  # [B, H, R, N, buckets/2]
        return torch.cat([turned, -turned], -1)[..., : self.n_buckets].argmax(-1)


@register(ReformerConfig)
class Reformer(Blocks):
    """See the module's equations."""

    objective = "all"
    variants = (
        Variant("Reformer", {}, "Attention to earlier events in the same bucket of a random hash."),
        Variant("Reformer, four hashes", {"rounds": 4}, "Attention to earlier events that any of four hashes finds."),
    )
    causal = True
    attention = HashedAttention
    config: ReformerConfig

    def saved_per_event(self, columns: int) -> int:
        return self.saved_by_blocks() + saved_numbers(columns, self.config, self.config.rounds)
