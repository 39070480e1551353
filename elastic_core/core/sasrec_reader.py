"""Read the last state of SASRec (core/sasrec.py) for a series of histories: `SASRec.prepare_states` (core/folded.py).

It has every gain of ELASTIC's reader that is not ELASTIC's own, so that their ratio compares models and not how they are written.
With `folded`, queries and keys are one matrix, and so are values and output: of one head only, and no implementation known to us
does so, so it is timed as a system of its own.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.batches import Batch
from elastic_core.core.folded import FoldedAttention, FoldedConvolution, FoldedFeedForward, can_read_batch
from elastic_core.core.layers import left_align, readable_columns, right_align, zero_padding
from elastic_core.core.stream import norm_arguments

if TYPE_CHECKING:
    from elastic_core.core.sasrec import Block, SASRec


class FoldedBlock:
    """`sasrec.Block` with one head. What is not folded goes through one product of queries, keys and values."""

    def __init__(self, block: "Block", folded: bool) -> None:
        self.folded = folded
        own: Any = block.attention  # layers.Attention
        self.norm, self.feed_forward = norm_arguments(block.norm), FoldedFeedForward(block.feed_forward)
        self.local = None if block.local is None else FoldedConvolution(block.local)
        self.maps = FoldedAttention(own.query, own.key, own.value, own.output)
        scale = len(own.query.weight) ** -0.5
        self.query, self.query_bias = own.query.weight.T * scale, own.query.bias * scale
        keys_values = [own.key.weight.T, own.value.weight.T]
        self.keys_values, self.queries_keys_values = torch.cat(keys_values, 1), torch.cat([self.query, *keys_values], 1)
        self.output = own.output.weight.T.contiguous()

    def read_all(self, x: Tensor) -> Tensor:
        """x `[B, N, d]`, padded behind if at all (overwritten) → the next x."""
        h, rows = torch.layer_norm(x, *self.norm), x.view(-1, x.shape[2])
        output = self.maps.output if self.folded else self.output
        rows.addmm_(self._attend(h).view(rows.shape), output).add_(self.maps.output_bias)
        if self.local is not None:
            self.local.add_to(x, h)
        del h
        return self.feed_forward(rows).view(x.shape)

    def _attend(self, h: Tensor) -> Tensor:
        """What the events `[B, N, d]` read, `[B, 1, N, d]`, before the output."""
        rows = h.view(-1, h.shape[2])
        if self.folded:
            keys = values = h
            queries = torch.addmm(self.maps.query_bias, rows, self.maps.query).view(h.shape)
        else:
            queries, keys, values = torch.mm(rows, self.queries_keys_values).view(*h.shape[:2], -1).chunk(3, 2)
            queries.add_(self.query_bias)
        queries, keys, values = queries.unsqueeze(1), keys.unsqueeze(1), values.unsqueeze(1)
        return functional.scaled_dot_product_attention(queries, keys, values, is_causal=True, scale=1.0)

    def read_last(self, x: Tensor, real: Tensor | None) -> Tensor:
        """The last row of the same, `[B, d]`, of x that is padded in front."""
        h = torch.layer_norm(x, *self.norm)
        bias, query = (self.maps.query_bias, self.maps.query) if self.folded else (self.query_bias, self.query)
        keys = values = h
        if not self.folded:
            keys, values = torch.mm(h.view(-1, h.shape[2]), self.keys_values).view(*h.shape[:2], -1).chunk(2, 2)
        logits = torch.bmm(keys, torch.addmm(bias, h[:, -1], query).unsqueeze(2))
        if real is not None:
            logits.masked_fill_(~readable_columns(real).unsqueeze(2), -torch.inf)
        mixed = torch.bmm(logits.softmax(1).mT, values).squeeze(1)
        x = (x[:, -1] + self.maps.output_bias).addmm_(mixed, self.maps.output if self.folded else self.output)
        if self.local is not None:
            self.local.add_last(x, zero_padding(h, None if real is None else readable_columns(real)))
        return self.feed_forward(x)


class SASRecReader:
    """Batches to the states `[B, d]` of their last events, as `SASRec.last_state`."""

    def __init__(self, model: "SASRec", folded: bool) -> None:
        self.model, self.norm = model, norm_arguments(model.norm)
        self.blocks = [FoldedBlock(block, folded) for block in model.blocks]  # type: ignore[arg-type]

    def __call__(self, batch: Batch) -> Tensor:
        events, real = self.model.events, batch.mask
        if not can_read_batch(self.model, batch):
            return self.model.last_state(batch)
        x = functional.embedding(batch.items, events.items.weight)
        x = torch.add(events.positions_of(slice(-x.shape[1], None)), x, alpha=events.scale)
        x = left_align(zero_padding(x, real), real)
        *early, last = self.blocks
        for block in early:
            x = block.read_all(x)
        return torch.layer_norm(last.read_last(right_align(x, real), real), *self.norm)
