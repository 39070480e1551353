"""SASRec (Kang and McAuley 2018) with full softmax: the quadratic peer. `fused=False` materialises the N x N scores."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from elastic_core.core.batches import Batch
from elastic_core.core.config import ConvWidth, ModelConfig, Within
from elastic_core.core.contract import Encoded, Judge, Scorer, StreamingModel, Variant, register
from elastic_core.core.folded import can_fold
from elastic_core.core.histories import Catalog
from elastic_core.core.layers import (
    Attention,
    Dropout,
    EventEmbedding,
    FeedForward,
    LocalConvolution,
    left_align,
    readable_columns,
    right_align,
    zero_padding,
)
from elastic_core.core.sasrec_reader import SASRecReader
from elastic_core.core.sasrec_stream import SASRecStream


@dataclass(frozen=True, kw_only=True)
class SASRecConfig(ModelConfig, name="sasrec", label="SASRec"):
    fused: bool = True
    folded: bool = False  # when it is judged, queries and keys are one matrix, values and output another (one head)
    expansion: Annotated[int, Within(1, 16)] = 1  # hidden width of the feed-forward layers, in multiples of d
    conv_width: ConvWidth = 0  # of a causal convolution beside the attention, as ELASTIC has one; 0 = none


class Block(nn.Module):
    """Pre-norm attention and feed-forward layer on `[B, N, d]`; `local`: over how many events a convolution goes beside.

    `attention`: anything that is called with (x, real) as `Attention` is, and has its `forward_last`."""

    def __init__(self, config: ModelConfig, expansion: int, attention: nn.Module, local: int = 0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.attention = attention
        self.local = LocalConvolution(config.width, local) if local else None
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.width, config.dropout, expansion)

    def forward(self, x: Tensor, real: Tensor | None = None, last: bool = False) -> Tensor:
        h = self.norm(x)
        if last:
            y = self.attention.forward_last(h, real)  # type: ignore[operator]
            if self.local is not None:
                y = y + self.local.forward_last(zero_padding(h, None if real is None else readable_columns(real)))
            return self.feed_forward(x[:, -1:] + y)
        y = self.attention(h, real)
        return self.feed_forward(x + self.dropout(y if self.local is None else y + self.local(h)))


def self_attention(config: ModelConfig, fused: bool, causal: bool) -> Attention:
    """Softmax attention of this shape."""
    return Attention(config.width, config.heads, config.dropout, causal=causal, fused=fused)


@register(SASRecConfig)
class SASRec(StreamingModel):
    """Unidirectional self-attention; learns from every position at once. Its stream keeps keys and values: it grows."""

    objective = "all"
    forms: ClassVar = {"sasrec-fused": {"fused": True}, "sasrec-eager": {"fused": False}, "sasrec-folded": {"folded": True}}
    variants = (
        Variant("SASRec", {}, "The quadratic peer: causal self-attention, all positions learned at once."),
        Variant("SASRec with convolution", {"conv_width": 16}, "A control: ELASTIC's local convolution beside attention."),
    )
    causal = True
    streams = True
    config: SASRecConfig

    def __init__(self, config: SASRecConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout)
        self.blocks = nn.ModuleList(
            Block(config, config.expansion, self_attention(config, config.fused, causal=True), config.conv_width)
            for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.width)

    def forward(self, batch: Batch) -> Encoded:
        return Encoded(self.norm(self._encode(batch, last=False)))

    def last_state(self, batch: Batch) -> Tensor:
        return self.norm(self._encode(batch, last=True)[:, -1])

    def prepare_states(self) -> tuple[Judge, Scorer]:
        """Folds the weights once; where that cannot be, nothing is prepared."""
        reads = self.config.fused and can_fold(self)
        return SASRecReader(self, self.config.folded) if reads else self.last_state, self.scorer()

    def last_weights(self, batch: Batch) -> Tensor:
        """`AttentionModel`: softmax weights."""
        real = batch.mask
        x, weights = left_align(self.events(batch.items, batch.padded), real), []
        for block in self.blocks:
            weights.append(block.attention.last_weights(right_align(block.norm(x), real), real))  # type: ignore[operator, union-attr]
            x = block(x)
        return torch.stack(weights)

    def saved_per_event(self, columns: int) -> int:
        return self.saved_by_blocks() if self.config.fused else super().saved_per_event(columns)

    def _encode(self, batch: Batch, last: bool) -> Tensor:
        real = batch.mask
        x = left_align(self.events(batch.items, batch.padded), real)  # once a pass, and no block needs a mask
        for block in self.blocks[: len(self.blocks) - last]:
            x = block(x)
        x = right_align(x, real)
        return self.blocks[-1](x, real, last=True) if last else x

    def open_stream(self, room: int) -> SASRecStream:
        return SASRecStream(self, room)
