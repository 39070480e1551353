"""Routing Transformer (Roy et al. 2021): attention inside clusters of an online k-means, learned with the model.

    q = LayerNorm(x W) without scale and bias,  k = q (causal form),  c(t) = argmax_i μ_i·q_t
    o_t = Σ_{j < t, c(j) = c(t)} softmax_j(q_t·k_j / √d_h) v_j      (section 4.1)
    μ_i ← λ μ_i + (1 - λ) mean of the q of cluster i

O(N·window) and N·clusters·d to find clusters. In the paper half of the heads read the last events instead; here none.

What is done differently. The paper's implementation gives every centroid its nearest events of the sequence, as many to each, so
that clusters are of one size; whether an event is among them depends on later ones: it leaks, and an event may be in several
clusters or none. Here an event is in the cluster of its nearest centroid, as the paper's formula says, and reads the last
`window` of it, itself counted (parts/bucket_attention.py); one that has nobody to read reads itself. Centroids have unit length,
and the moving average is taken where all statistics are (`calibrate`: every tenth step, over histories as they are served,
without dropout, and once more for averaged weights; 1 - λ is the trainer's rate, 0.2 where the paper has 0.001 at every step). A
centroid that nobody is nearest to moves to an event that fits its own worst (ours).

With one cluster and a window no shorter than the history it is softmax attention to what came before.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.layers import readable_columns, split_heads
from elastic_core.models import Batch, ModelConfig, Several, Variant, Within, register
from elastic_core.peers.parts.blocks import Blocks
from elastic_core.peers.parts.bucket_attention import BucketAttention, project_precisely, saved_numbers


@dataclass(frozen=True, kw_only=True)
class RoutingConfig(ModelConfig, name="routing", label="Routing Transformer"):
    clusters: Several = 6
    window: Annotated[int, Within(2, 8_192)] = 32  # how many events of its cluster one may read, itself counted


class RoutedAttention(BucketAttention):
    """Buckets by the nearest centroid, in each head of its own."""

    def __init__(self, config: RoutingConfig) -> None:
        super().__init__(config)
        self.centroids: Tensor
        drawn = torch.randn(config.heads, config.clusters, config.width // config.heads)
        self.register_buffer("centroids", functional.normalize(drawn, dim=-1))

    def shared_queries(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q = split_heads(project_precisely(x, self.query.weight, self.query.bias), self.heads)
        q = functional.layer_norm(q, q.shape[-1:])
        return q, q

    @torch.no_grad()
    def find_buckets(self, q: Tensor) -> Tensor:
        return project_precisely(q, self.centroids).argmax(-1).unsqueeze(2)

    @torch.no_grad()
    def calibrate(self, x: Tensor, real: Tensor, rate: float) -> None:
        """Moves the centroids by `rate` towards the means of those who are nearest to them, over the events of `x [B, N, d]`."""
        q = functional.normalize(self.shared_queries(x)[0], dim=-1).transpose(0, 1)[:, readable_columns(real)]  # [H, M, e]
        fit, nearest = (q @ self.centroids.mT).max(-1)
        member = functional.one_hot(nearest, self.centroids.shape[1]).to(q)  # [H, M, clusters]
        count = member.sum(1).unsqueeze(-1)
        moved = self.centroids.lerp(member.mT @ q / count.clamp_min(1), rate)
        worst = fit.topk(min(len(fit[0]), len(moved[0])), largest=False).indices  # [H, clusters] or fewer
        alone = (count == 0).squeeze(-1)
        which = (alone.cumsum(-1) - 1).clamp(0, worst.shape[-1] - 1)  # the i-th deserted centroid takes the i-th of them
        replacements = q.gather(1, worst.gather(1, which).unsqueeze(-1).expand_as(moved))
        self.centroids.copy_(functional.normalize(torch.where(count > 0, moved, replacements), dim=-1))


@register(RoutingConfig)
class Routing(Blocks):
    """See the module's equations."""

    objective = "all"
    variants = (
        Variant("Routing Transformer", {}, "Attention to earlier events in the same cluster of a k-means learned on the way."),
    )
    causal = True
    attention = RoutedAttention
    config: RoutingConfig

    @torch.no_grad()
    def calibrate(self, batch: Batch, rate: float = 1.0) -> None:
        """Every block's centroids, block by block, without dropout."""
        was_training = self.training
        self.eval()
        x = self.events(batch.items, batch.padded)
        for block in self.blocks:
            attention = block.attention
            assert isinstance(attention, RoutedAttention)
            attention.calibrate(block.norm(x), batch.real, rate)  # type: ignore[operator]
            x = block(x, batch.real)
        self.train(was_training)

    def saved_per_event(self, columns: int) -> int:
        return self.saved_by_blocks() + saved_numbers(columns, self.config, 1)
