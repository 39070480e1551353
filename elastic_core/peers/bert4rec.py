"""BERT4Rec (Sun et al. 2019): bidirectional self-attention, learned by filling in masked events (objective `cloze`).

To predict the next event a mask is put behind the history. As everywhere here the layers are pre-norm and the score is the
inner product with the item table; the paper's are post-norm with GELU and a projection before the table.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig, Within
from elastic_core.core.contract import Encoded, Recommender, Variant
from elastic_core.core.histories import Catalog
from elastic_core.core.layers import EventEmbedding
from elastic_core.core.registry import register
from elastic_core.core.sasrec import Block, self_attention


@dataclass(frozen=True, kw_only=True)
class Bert4RecConfig(ModelConfig, name="bert4rec"):
    label: ClassVar[str] = "BERT4Rec"
    fused: bool = True
    expansion: Annotated[int, Within(1, 16)] = 1


@register(Bert4RecConfig)
class Bert4Rec(Recommender):
    objective = "cloze"
    masks = True
    variants = (Variant("BERT4Rec", {}, "Self-attention in both directions, learned by filling in masked events."),)
    config: Bert4RecConfig

    def __init__(self, config: Bert4RecConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        rows = config.items_by_rows
        self.events = EventEmbedding(self.n_items + 1, config.length, config.width, config.dropout, rows=rows)  # mask: the last
        self.blocks = nn.ModuleList(
            Block(config, config.expansion, self_attention(config, config.fused, causal=False)) for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.width)

    def forward(self, batch: Batch) -> Encoded:
        return Encoded(self.norm(self._encode(batch, last=False)))

    def last_state(self, batch: Batch) -> Tensor:
        return self.norm(self._encode(self.asked(batch), last=True)[:, -1])

    def asked(self, batch: Batch) -> Batch:
        """The mask behind the history; of a full one the oldest event makes room."""
        keep = min(batch.items.shape[1], self.length - 1)
        items = functional.pad(batch.items[:, -keep:], (0, 1), value=self.n_items + 1)
        times = None if batch.times is None else functional.pad(batch.times[:, -keep:], (0, 1))
        return replace(batch, items=items, retrieval_items=items, targets=None, times=times)

    def last_weights(self, batch: Batch) -> Tensor:
        """`Attends`: softmax weights of the mask. What it gives itself is left out."""
        asked, columns = self.asked(batch), batch.items.shape[1]
        x, real, found = self.events(asked.items, asked.padded), asked.real if asked.padded else None, []
        for block in self.blocks:
            found.append(block.attention.last_weights(block.norm(x), real)[..., :-1])  # type: ignore[operator, union-attr]
            x = block(x, real)
        weights = torch.stack(found)
        return functional.pad(weights, (columns - weights.shape[-1], 0))

    def kept_per_event(self, columns: int) -> int:
        return super().kept_per_event(columns) + (0 if self.config.fused else 3 * self.config.heads * columns)

    def _encode(self, batch: Batch, last: bool) -> Tensor:
        x, real = self.events(batch.items, batch.padded), batch.real if batch.padded else None
        for i, block in enumerate(self.blocks):
            x = block(x, real, last=last and i == len(self.blocks) - 1)
        return x
