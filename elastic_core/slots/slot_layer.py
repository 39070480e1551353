"""One layer over interest slots: events read what the slots hold; in the last one every slot predicts by itself (ours).

Symbols: x the stream `[B, n, d]`, h the same normalised, p the retrieved experts `[B, k, d]`, held what the slots hold
(gated_slots.py).
"""

import torch
from torch import Tensor, nn

from elastic_core.core.layers import Dropout, FeedForward, LocalConvolution

NOTHING = 1e-9  # a share that is none, where its logarithm is needed


class SlotLayer(nn.Module):
    """Events read the slots and are changed by their mixture; with `final` the slots are not mixed but predict one by one."""

    def __init__(self, width: int, dropout: float, conv_width: int, *, final: bool, lately: int) -> None:
        """`lately`: over how many spans of the recent past the slots' shares know how often each was written."""
        super().__init__()
        self.final, self.scale = final, width**-0.5
        self.norm = nn.LayerNorm(width)
        self.query, self.expert_key, self.slot_key = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.expert_value, self.slot_value = nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.local = LocalConvolution(width, conv_width) if conv_width else None
        self.dropout = Dropout(dropout)
        self.feed_forward = FeedForward(width, dropout)
        if final:
            self.other = nn.Linear(width, 1)  # the share of a part that reads no slot
            self.recency = nn.Parameter(torch.zeros(2, lately))

    def ask(self, h: Tensor, p: Tensor, turned: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What events `h [B, n, d]` ask of what the slots hold `[B, n, d]`, and of the experts themselves `[B, n, k]`.

        `turned [B, k]`: factors by which slots count more or less than they would."""
        q = self.query(h) * self.scale
        asked = q @ self.expert_key(p).transpose(-1, -2)
        return q @ self.slot_key.weight, asked if turned is None else asked + turned.clamp_min(NOTHING).log().unsqueeze(1)

    def mix(self, x: Tensor, slots: Tensor, mixed: Tensor, p: Tensor, local: Tensor) -> Tensor:
        """The next x: the slots' weights `[B, n, k]` and mixture `[B, n, d]` and what came just before go in."""
        return self.feed_forward(x + self.dropout(slots @ self.expert_value(p) + self.slot_value(mixed) + local))

    def predict(
        self, x: Tensor, h: Tensor, held: Tensor, p: Tensor, local: Tensor, lately: Tensor, turned: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """What every slot says `[B, n, P, d]` and the logarithms of their shares `[B, n, P]`, for `held [B, n, k, d]`."""
        moving, shares = self.ask(h, p, turned)
        shares = shares + torch.einsum("bnd,bnkd->bnk", moving, held.to(moving.dtype))
        base = (x + self.dropout(local)).unsqueeze(2)
        said = self.dropout(self.slot_value(held) + self.expert_value(p).unsqueeze(1))
        shares = shares + lately[:, :, :-1] @ self.recency[0]
        rest = self.other(h) + lately[:, :, -1:] @ self.recency[1]
        return self.feed_forward(torch.cat([base + said, base], 2)), torch.cat([shares, rest], 2).float().log_softmax(-1)

    def nearby(self, h: Tensor, last: bool = False) -> Tensor:
        """The local convolution of the normalised events, or nothing."""
        if self.local is None:
            return h.new_zeros(1)
        return self.local.last(h) if last else self.local(h)
