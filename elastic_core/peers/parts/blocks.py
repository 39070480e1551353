"""SASRec's input, blocks and scores around any attention: what the systems with another attention share (Wu et al. 2021, 4.3)."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from elastic_core.core.layers import EventEmbedding
from elastic_core.core.sasrec import Block
from elastic_core.models import Batch, Catalog, Encoded, ModelConfig, Recommender


def make_embedding(config: ModelConfig, inputs: int, positions: bool = True) -> EventEmbedding:
    """The events of a model of this shape."""
    return EventEmbedding(inputs, config.length, config.width, config.dropout, positions)


class Blocks(Recommender):
    """A model says which `attention` its blocks have, each made from the settings; `core/sasrec.Block` says what that must answer
    to."""

    attention: ClassVar[type[nn.Module]]

    def __init__(self, config: ModelConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.events = make_embedding(config, self.n_items + self.masks)  # the mask is the last
        self.blocks = nn.ModuleList(self.make_block() for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def make_block(self) -> nn.Module:
        """One layer: SASRec's block around this attention."""
        return Block(self.config, 1, self.attention(self.config))

    def forward(self, batch: Batch) -> Encoded:
        return Encoded(self.norm(self._encode(batch, last=False)))

    def last_state(self, batch: Batch) -> Tensor:
        return self.norm(self._encode(self.prediction_batch(batch), last=True)[:, -1])

    def block_weights(self, batch: Batch) -> Tensor:
        """What the last row multiplies every event by, `[L, B, H, N]`, of attentions that tell their `last_weights`."""
        x, real, weights = self.events(batch.items, batch.padded), batch.mask, []
        for block in self.blocks:
            weights.append(block.attention.last_weights(block.norm(x), real))  # type: ignore[operator, union-attr]
            x = block(x, real)
        return torch.stack(weights)

    def _encode(self, batch: Batch, last: bool) -> Tensor:
        x, real = self.events(batch.items, batch.padded), batch.mask
        for i, block in enumerate(self.blocks):
            x = block(x, real, last=last and i == len(self.blocks) - 1)
        return x
