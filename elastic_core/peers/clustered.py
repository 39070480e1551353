"""Clustered attention (Vyas et al. 2020): queries that are alike attend together, as their mean.

    q^c = mean of the queries of cluster c,    A^c = softmax(q^c Kᵀ / √d_h)      clusters x N scores instead of N x N
    plain:     o_t = A^c V of one's cluster c                                                        (section 3.2)
    improved:  of the top keys T_c of A^c a query computes its own softmax, times the mass m_c = Σ_{j ∈ T_c} A^c_j that they
               have in the cluster; all other keys keep what the cluster gives them                  (section 3.3)

`topk` > 0 is the improved form, which LISA compares with. O(N·clusters·d). With a cluster for each query, or with no fewer top
keys than events, it is softmax attention.

Queries are clustered as the paper does: their signs in random directions (LSH), then Lloyd's K-means on these codes with the
Hamming distance; a cluster's centre has the majority's bits. The random directions are drawn once and kept with the weights;
clusters start from events spread evenly over the history (the paper does not say from which). Codes and counts are whole
numbers, so who else is in the batch cannot move a cluster.

A cluster's mean holds queries of all its members, later ones too, and all its members use it: a causal mask on the keys would
not mend that, and a mean of one's own for each prefix would save nothing. So every event reads the whole history, and only the
last position may be asked (objective `last`). LISA trained it with a causal mask and does not say how.

Symbols: B people, H heads, N events, C clusters, T top keys, e = d_h.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from elastic_core.core.layers import Attention, dropout, in_full_precision, merge_heads, readable_columns, split_heads
from elastic_core.models import ModelConfig, Several, Variant, Within, register
from elastic_core.peers.parts.blocks import Blocks
from elastic_core.peers.parts.bucket_attention import project_precisely, rows_at

BITS = 63  # random directions of the hash
ITERATIONS = 10  # of K-means


@dataclass(frozen=True, kw_only=True)
class ClusteredConfig(ModelConfig, name="clustered", label="Clustered attention"):
    clusters: Several = 25
    topk: Annotated[int, Within(0, 4_096)] = 32  # keys that a query reads by itself; 0: the plain form


@torch.no_grad()
@in_full_precision
def cluster_queries(q: Tensor, real: Tensor, directions: Tensor, clusters: int) -> Tensor:
    """q `[B, H, N, e]`, real `[B, N]` (left-padded), directions `[H, bits, e]` → the cluster of each query `[B, H, N]`."""
    code = _hash_signs(q @ directions.mT)  # [B, H, N, bits]
    n, events = real.shape[1], real.sum(1, keepdim=True)
    first = n - events + torch.arange(clusters, device=q.device) * events // clusters  # [B, C]
    centres = code.gather(2, first[:, None, :, None].expand(-1, code.shape[1], -1, code.shape[-1]))
    for _ in range(ITERATIONS):
        member = _membership((code @ centres.mT).argmax(-1), real, clusters, code)
        new_centres = torch.where(member.sum(2).unsqueeze(-1) > 0, _hash_signs(member.mT @ code), centres)
        if new_centres.device.type == "cpu" and not torch.compiler.is_compiling() and torch.equal(new_centres, centres):
            break  # more would change nothing, but to ask another device costs more
        centres = new_centres
    return (code @ centres.mT).argmax(-1)


def _hash_signs(x: Tensor) -> Tensor:
    return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)


def _membership(cluster: Tensor, real: Tensor, clusters: int, like: Tensor) -> Tensor:
    """Who is in which cluster, `[B, H, N, C]`: 1 or 0, and 0 for padding. Numbers are those of `like`."""
    no_members = torch.zeros(*cluster.shape, clusters, dtype=like.dtype, device=like.device)
    return no_members.scatter_(-1, cluster.unsqueeze(-1), real[:, None, :, None].expand(*cluster.shape, 1).to(like.dtype))


class ClusteredAttention(Attention):
    """Self-attention of `x [B, N, d]`; `topk`: how many keys a query reads by itself, 0 for none.

    What it has on padding means nothing."""

    def __init__(self, config: ClusteredConfig) -> None:
        super().__init__(config.width, config.heads, config.dropout, causal=False)
        self.clusters, self.topk = config.clusters, config.topk
        self.directions: Tensor
        self.register_buffer("directions", torch.randn(config.heads, BITS, config.width // config.heads))

    def forward(self, x: Tensor, real: Tensor | None = None, extra: Tensor | None = None) -> Tensor:
        q, k, v, cluster, there = self._cluster_inputs(x, real)
        member = _membership(cluster, there, self.clusters, q)
        return self._cluster_shares(q, k, v, member, cluster, there)

    def forward_last(self, x: Tensor, real: Tensor | None = None, extra: Tensor | None = None) -> Tensor:
        """The last row of `forward`, `[B, 1, d]`: one cluster attends."""
        q, k, v, cluster, there = self._cluster_inputs(x, real)
        member = ((cluster == cluster[..., -1:]) & there.unsqueeze(1)).unsqueeze(-1).to(q)  # [B, H, N, 1]
        return self._cluster_shares(q, k, v, member, torch.zeros_like(cluster[..., -1:]), there)

    def _cluster_inputs(self, x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        there = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if real is None else readable_columns(real)
        k, v = (split_heads(f(x), self.heads) for f in (self.key, self.value))
        q = split_heads(project_precisely(x, self.query.weight, self.query.bias), self.heads)
        cluster = cluster_queries(q, there, self.directions, self.clusters)
        return q.to(k.dtype), k, v, cluster, there

    def _cluster_shares(self, q: Tensor, k: Tensor, v: Tensor, member: Tensor, cluster: Tensor, there: Tensor) -> Tensor:
        """Of the last M queries, those in `cluster [B, H, M]`, one of the columns of `member [B, H, N, C]`."""
        scale, p = 1 / math.sqrt(q.shape[-1]), self.p if self.training else 0.0
        mean = member.mT @ q / member.sum(2).clamp_min(1).unsqueeze(-1)  # q^c [B, H, C, e]
        shares = (mean @ k.mT * scale).masked_fill(~there[:, None, None], -torch.inf).softmax(-1)  # A^c [B, H, C, N]
        top = min(self.topk, k.shape[2])
        mass, keys = shares.topk(top, dim=-1)  # [B, H, C, T]
        others = dropout(shares.scatter(-1, keys, 0.0), p) @ v
        mixed = rows_at(others, cluster)
        if top:
            own = rows_at(keys, cluster)  # [B, H, M, T]
            scores = (rows_at(k, own) @ q[:, :, -own.shape[2] :].unsqueeze(-1)).squeeze(-1) * scale
            known = there.unsqueeze(1).expand(-1, k.shape[1], -1).gather(2, own.flatten(2)).view_as(own)
            exact = scores.masked_fill(~known, -torch.inf).softmax(-1) * rows_at(mass.sum(-1, keepdim=True), cluster)
            mixed = mixed + (dropout(exact, p).unsqueeze(-2) @ rows_at(v, own)).squeeze(-2)
        return self.output(merge_heads(mixed))


@register(ClusteredConfig)
class Clustered(Blocks):
    """See the module's equations."""

    objective = "last"
    attention = ClusteredAttention
    variants = (
        Variant(
            "Clustered attention", {}, "Queries that are alike attend together, and by themselves to the keys that matter most."
        ),
        Variant("Clustered attention, plain", {"topk": 0}, "Queries that are alike attend together, as their mean."),
    )
    config: ClusteredConfig

    def saved_per_event(self, columns: int) -> int:
        """Beside the block's own: what clusters score and who is in them; of the top keys, copies for every query."""
        config = self.config
        top = min(config.topk, columns)
        clusters = config.heads * config.clusters * (7 + -(-6 * top // columns))
        return self.saved_by_blocks() + clusters + top * (2 * config.width + 12 * config.heads)
