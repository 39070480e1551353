"""Clustered attention (Vyas et al. 2020): queries that are alike attend together, as their mean.

    q^c = mean of cluster c,   A^c = softmax(q^c Kᵀ / √d_h),   o_t = A^c V of one's cluster   (parts/clustered_attention.py)

`top` > 0 is the *improved* form that LISA compares with: on its cluster's top keys a query attends by itself. O(N·clusters·d).
With a cluster for each query, or with no fewer top keys than events, it is softmax attention.

A cluster's mean holds queries of all its members, later ones too, and all its members use it: a causal mask on the keys would
not mend that, and a mean of one's own for each prefix would save nothing. So every event reads the whole history, and only the
last position may be asked (objective `last`). LISA trained it with a causal mask and does not say how.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import nn

from elastic_core.core.config import Within
from elastic_core.core.contract import Variant
from elastic_core.core.registry import register
from elastic_core.peers.parts.blocks import Blocks, BlocksConfig
from elastic_core.peers.parts.clustered_attention import ClusteredAttention


@dataclass(frozen=True, kw_only=True)
class ClusteredConfig(BlocksConfig, name="clustered"):
    label: ClassVar[str] = "Clustered attention"
    clusters: Annotated[int, Within(1, 4_096)] = 25
    top: Annotated[int, Within(0, 4_096)] = 32  # keys that a query reads by itself; 0: the plain form
    bits: Annotated[int, Within(1, 1_024)] = 63  # random directions of the hash
    iterations: Annotated[int, Within(0, 100)] = 10  # of K-means


@register(ClusteredConfig)
class Clustered(Blocks):
    """See the module's equations."""

    objective = "last"
    variants = (
        Variant(
            "Clustered attention", {}, "Queries that are alike attend together, and by themselves to the keys that matter most."
        ),
        Variant("Clustered attention, plain", {"top": 0}, "Queries that are alike attend together, as their mean."),
    )
    config: ClusteredConfig

    def attention(self) -> nn.Module:
        config = self.config
        return ClusteredAttention(
            config.width, config.heads, config.dropout, config.clusters, config.top, config.bits, config.iterations
        )

    def kept_per_event(self, columns: int) -> int:
        """Beside the block's own: what clusters score and who is in them; of the top keys, copies for every query."""
        config = self.config
        top = min(config.top, columns)
        clusters = config.heads * config.clusters * (7 + -(-6 * top // columns))
        return super().kept_per_event(columns) + clusters + top * (2 * config.width + 12 * config.heads)
