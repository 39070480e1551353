"""Each item of a batch once, for what is worked out by item: fewer than events, where items come again."""

import torch
from torch import Tensor


def distinct_items(items: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Items `[...]`, all below `most` → the different ones `[U]`, and which of them each is, `[...]`.

    Only a processor is asked how many there are; it would hold up any other device, which is given every item there can be, or,
    where these are fewer, every event."""
    if items.device.type == "cpu" and not torch.compiler.is_compiling():
        return items.unique(return_inverse=True)
    if most <= items.numel():
        return torch.arange(most, device=items.device), items
    return items.flatten(), torch.arange(items.numel(), device=items.device).view_as(items)
