"""BERT4Rec (Sun et al. 2019): bidirectional self-attention, learned by filling in masked events (objective `cloze`).

To predict the next event a mask is put behind the history. As everywhere here the layers are pre-norm and the score is the
inner product with the item table; the paper's are post-norm with GELU and a projection before the table.
"""

from dataclasses import dataclass, replace

from torch import Tensor
from torch.nn import functional

from elastic_core.core.layers import Attention
from elastic_core.models import Batch, ModelConfig, Variant, register
from elastic_core.peers.parts.blocks import Blocks


@dataclass(frozen=True, kw_only=True)
class Bert4RecConfig(ModelConfig, name="bert4rec", label="BERT4Rec"):
    pass


class MaskedAttention(Attention):
    """In both directions."""

    def __init__(self, config: Bert4RecConfig) -> None:
        super().__init__(config.width, config.heads, config.dropout, causal=False)


@register(Bert4RecConfig)
class Bert4Rec(Blocks):
    objective = "cloze"
    masks = True
    attention = MaskedAttention
    variants = (Variant("BERT4Rec", {}, "Self-attention in both directions, learned by filling in masked events."),)

    def saved_per_event(self, columns: int) -> int:
        return self.saved_by_blocks()  # its attention is fused

    def prediction_batch(self, batch: Batch) -> Batch:
        return append_mask(batch, self.length, self.n_items + 1)

    def last_weights(self, batch: Batch) -> Tensor:
        """`AttentionModel`: softmax weights of the mask."""
        return drop_mask_weight(self.block_weights(self.prediction_batch(batch)), batch.items.shape[1])


def append_mask(batch: Batch, length: int, mask: int) -> Batch:
    """The mask behind the history; of one of `length` the oldest event makes room."""
    keep = min(batch.items.shape[1], length - 1)
    items = functional.pad(batch.items[:, -keep:], (0, 1), value=mask)
    times = None if batch.times is None else functional.pad(batch.times[:, -keep:], (0, 1))
    return replace(batch, items=items, retrieval_items=items, targets=None, times=times)


def drop_mask_weight(weights: Tensor, columns: int) -> Tensor:
    """The weights `[..., N]` that a mask gives `columns` events; what it gives itself is left out."""
    weights = weights[..., :-1]
    return functional.pad(weights, (columns - weights.shape[-1], 0))
