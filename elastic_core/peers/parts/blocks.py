"""SASRec's input, blocks and scores around any attention: what the systems with another attention share (Wu et al. 2021, 4.3)."""

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn

from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig, Within
from elastic_core.core.contract import Encoded, Recommender
from elastic_core.core.histories import Catalog
from elastic_core.core.layers import EventEmbedding
from elastic_core.core.sasrec import Block


@dataclass(frozen=True, kw_only=True)
class BlocksConfig(ModelConfig):
    expansion: Annotated[int, Within(1, 16)] = 1  # hidden width of the feed-forward layers, in multiples of d


class Blocks(Recommender):
    """A model says which attention its blocks have; `models/sasrec.Block` says what that must answer to."""

    config: BlocksConfig

    def __init__(self, config: BlocksConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout, rows=config.items_by_rows)
        self.blocks = nn.ModuleList(Block(config, config.expansion, self.attention()) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def attention(self) -> nn.Module:
        """A fresh attention for one block."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Encoded:
        return Encoded(self.norm(self._encode(batch, last=False)))

    def last_state(self, batch: Batch) -> Tensor:
        return self.norm(self._encode(batch, last=True)[:, -1])

    def _encode(self, batch: Batch, last: bool) -> Tensor:
        x, real = self.events(batch.items, batch.padded), batch.real if batch.padded else None
        for i, block in enumerate(self.blocks):
            x = block(x, real, last=last and i == len(self.blocks) - 1)
        return x
