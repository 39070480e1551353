"""SASRec followed event by event: the peer that a kept state is measured against."""

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.layers import Attention, left_align, right_align, split_heads, zero_padding
from elastic_core.core.stream import Stream, StreamState, norm_arguments

if TYPE_CHECKING:
    from elastic_core.core.sasrec import Block, SASRec


class SASRecStream(Stream):
    """The peer that a kept state is measured against: keys and values of every event read are kept, so one more costs one row.

    Kept per person and layer: 2·length·d numbers, room made for the whole window at the start (an event stands in the column of
    its position), `conv_width` - 1 events where there is a convolution, and the column of the first event. A step reads all
    columns so far: O(N·d + d²) per layer. A step is written as tightly as ELASTIC's (elastic.py): one product for
    queries, keys and values, the scale and the constants of gelu folded into weights, nothing copied but the new row.
    """

    limited = True
    grows = True

    def __init__(self, model: "SASRec", room: int) -> None:
        super().__init__(model, room)
        with torch.inference_mode():
            self.folded = [_fold_weights(block) for block in model.blocks]  # type: ignore[arg-type]

    def _read_history(self, history: Tensor, columns: slice) -> tuple[Tensor, StreamState]:
        model, real, heads = self.model, history > 0, self.model.config.heads
        x = left_align(zero_padding(model.events.embed_items(history) + model.events.positions_of(columns), real), real)
        state = {"first": columns.stop - real.sum(1)}
        for i, block in enumerate(model.blocks):
            h = right_align(block.norm(x), real)
            for name, linear in (("keys", block.attention.key), ("values", block.attention.value)):
                full = h.new_zeros(len(h), heads, model.length, h.shape[2] // heads)
                full[:, :, columns] = split_heads(linear(h), heads)
                state[f"{i}.{name}"] = full
            if block.local is not None:
                tail = len(block.local.taps) - 1
                state[f"{i}.tail"] = functional.pad(zero_padding(h, real), (0, 0, tail, 0))[:, h.shape[1] :]
            x = block(x)
        return model.norm(right_align(x, real)[:, -1]), state

    def _rebind_tensors(self) -> None:
        first = self.state["first"]
        self.first = int(first.min()) if len(first) else 0
        self.is_aligned = self._alike and (not len(first) or int(first.max()) == self.first)

    def _read_event(self, items: Tensor) -> Tensor:
        events, start = self.model.events, self.model.length - self.room
        x = torch.add(self.next_positions(), functional.embedding(items, events.items.weight), alpha=events.scale)
        seen, rows = slice(self.first, start + self._most + 1), torch.arange(len(x), device=x.device)
        unread = None
        if not self.is_aligned:
            column = torch.arange(self.model.length, device=x.device)[seen]
            unread = (column < self.state["first"][:, None]) | (column > start + self.used[:, None])
            unread = unread[:, None, None]
        for i, (block, (norm, heads, into, into_bias, output, inner_norm, inner, inner_bias, outer)) in enumerate(
            zip(self.model.blocks, self.folded, strict=True)
        ):
            keys, values = self.state[f"{i}.keys"], self.state[f"{i}.values"]
            h = torch.layer_norm(x, *norm)
            query, key, value = torch.addmm(into_bias, h, into).view(len(h), 3, heads, -1).unbind(1)
            if self._alike:
                keys.select(2, seen.stop - 1).copy_(key)
                values.select(2, seen.stop - 1).copy_(value)
            else:
                keys[rows, :, start + self.used], values[rows, :, start + self.used] = key, value
            every_key, every_value = keys[:, :, seen].flatten(0, 1), values[:, :, seen].flatten(0, 1)  # [B H, n, e]
            scores = torch.bmm(query.reshape(len(every_key), 1, -1), every_key.mT)
            if unread is not None:
                scores.view(len(h), heads, 1, -1).masked_fill_(unread, -torch.inf)
            mixed = torch.bmm(scores.softmax(-1), every_value).view(len(h), -1)
            x = torch.addmm(x, mixed, output).add_(block.attention.output.bias)
            if block.local is not None:
                window = torch.cat([self.state[f"{i}.tail"], h.unsqueeze(1)], 1)
                self.state[f"{i}.tail"] = window[:, 1:]
                x = x.add_(block.local.forward_last(window)[:, 0])
            z = torch.addmm(inner_bias, torch.layer_norm(x, *inner_norm), inner)
            x = torch.addmm(x, torch.addcmul(z, z, torch.erf(z)), outer).add_(block.feed_forward.outer.bias)
        return torch.layer_norm(x, *norm_arguments(self.model.norm))


def _fold_weights(block: "Block") -> tuple[Any, ...]:
    """A block's weights as a step reads them; gelu(z) = ½ z (1 + erf(√½ z)), with √½ in front of z and the rest behind."""
    own, half = block.attention, math.sqrt(0.5)
    assert isinstance(own, Attention)
    scale = 1 / math.sqrt(len(own.key.weight) // own.heads)
    into = torch.cat([own.query.weight * scale, own.key.weight, own.value.weight]).T.contiguous()
    bias = torch.cat([own.query.bias * scale, torch.zeros_like(own.value.bias), own.value.bias])
    inner, outer = block.feed_forward.inner, block.feed_forward.outer
    return (
        norm_arguments(block.norm), own.heads, into, bias, own.output.weight.T, norm_arguments(block.feed_forward.norm),
        inner.weight.T * half, inner.bias * half, outer.weight.T * half,
    )  # fmt: skip
