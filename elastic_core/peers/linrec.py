"""LinRec (Liu et al. 2023): SASRec with L2-normalised linear attention instead of softmax attention (parts/linear_attention.py).

    φ(q) = elu(q) / ‖elu(q)‖₂, likewise φ(k);   out = φ(Q) (φ(K)ᵀ V) / √d_h

Keys: the paper normalises them by column (every feature over the whole history), the released code by position, as queries; so do
we, because a norm over the history would change with what comes later. Padding: the released attention takes no mask, so padding
counts as events, and every event reads all others; we mask it. The block around the attention is SASRec's as everywhere here
(pre-norm), not RecBole's (post-norm, GELU, four times as wide).

| `bidirectional` | |
| --- | --- |
| `False` | causal (ours): S_t = S_{t-1} + φ(k_t) v_tᵀ; learns from every position, and a stream keeps S alone |
| `True` | as released: every event reads the whole history, so only the last position may be asked (objective `last`) |
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig, Within
from elastic_core.core.contract import Encoded, Streams, Variant
from elastic_core.core.histories import Catalog
from elastic_core.core.layers import EventEmbedding, masked
from elastic_core.core.registry import register
from elastic_core.core.sasrec import Block
from elastic_core.following.stream import Kept, Stream
from elastic_core.peers.parts.linear_attention import CHUNK, LinearAttention, read, summed


@dataclass(frozen=True, kw_only=True)
class LinRecConfig(ModelConfig, name="linrec"):
    label: ClassVar[str] = "LinRec"
    bidirectional: bool = False
    expansion: Annotated[int, Within(1, 16)] = 1  # hidden width of the feed-forward layers, in multiples of d


@register(LinRecConfig)
class LinRec(Streams):
    """See the module's table."""

    objective = "all"
    variants = (
        Variant("LinRec", {}, "Linear attention without softmax: a running sum over the past, all positions learned at once."),
        Variant("LinRec, two-way", {"bidirectional": True}, "As released: every event reads the whole history.", "last"),
    )
    config: LinRecConfig

    def __init__(self, config: LinRecConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.causal = self.streams = not config.bidirectional
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout, rows=config.items_by_rows)
        self.blocks = nn.ModuleList(
            Block(config, config.expansion, LinearAttention(config.width, config.heads, self.causal))
            for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.width)

    def forward(self, batch: Batch) -> Encoded:
        return Encoded(self.norm(self._encode(batch, last=False)))

    def last_state(self, batch: Batch) -> Tensor:
        return self.norm(self._encode(batch, last=True)[:, -1])

    def last_weights(self, batch: Batch) -> Tensor:
        """`Attends`: φ(q)·φ(k) / √d_h."""
        x, real, found = self.events(batch.items, batch.padded), batch.real if batch.padded else None, []
        for block in self.blocks:
            found.append(_attention(block).last_weights(block.norm(x), real))  # type: ignore[operator]
            x = block(x, real)
        return torch.stack(found)

    def kept_per_event(self, columns: int) -> int:
        """Beside the block's own: φ and its norms, and in the causal form a chunk's products and the states between chunks."""
        width, chunk = self.config.width, min(CHUNK, columns)
        states = 2 * self.config.heads * chunk + 2 * width * width // (self.config.heads * chunk) if self.causal else 0
        return super().kept_per_event(columns) + 8 * width + states

    def open_stream(self, room: int) -> "LinRecStream":
        return LinRecStream(self, room)

    def _encode(self, batch: Batch, last: bool) -> Tensor:
        x, real = self.events(batch.items, batch.padded), batch.real if batch.padded else None
        for i, block in enumerate(self.blocks):
            x = block(x, real, last=last and i == len(self.blocks) - 1)
        return x


class LinRecStream(Stream):
    """A person's state of constant size: S = Σ_j φ(k_j) v_jᵀ of every layer and head, L·d²/H numbers in float32.

    Positions are counted back from the end of what is read, so it is `limited`, as ELASTIC's (core/elastic.py) is.
    """

    def __init__(self, model: LinRec, room: int) -> None:
        super().__init__(model, room, limited=True)

    def _start(self, history: Tensor, columns: slice) -> tuple[Tensor, Kept]:
        model, real, kept = self.model, history > 0, Kept()
        x = masked(model.events.content(history) + model.events.where(columns), real)
        for i, block in enumerate(model.blocks):
            kept[f"{i}.sum"] = summed(*_attention(block).told(block.norm(x), real))  # [B, H, e, e]
            x = block(x, real, last=i == len(model.blocks) - 1)
        return model.norm(x[:, -1]), kept

    def _next(self, items: Tensor) -> Tensor:
        x = (self.model.events.content(items) + self.where()).unsqueeze(1)
        for i, block in enumerate(self.model.blocks):
            attention, h, total = _attention(block), block.norm(x), self.kept[f"{i}.sum"]
            total += summed(*attention.told(h, None))
            x = block.feed_forward(x + attention.mixed(read(attention.ask(h), total)))
        state: Tensor = self.model.norm(x[:, -1])
        return state


def _attention(block: nn.Module) -> LinearAttention:
    assert isinstance(block, Block) and isinstance(block.attention, LinearAttention)
    return block.attention
