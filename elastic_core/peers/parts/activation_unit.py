"""DIN's activation unit (Zhou et al. 2018): how much an event matters for a candidate, from the two of them and nothing else.

    a(e, c) = w · PReLU(W_e e + W_p (e ⊙ c) + W_c c + b) + b'

The paper feeds [e; out product; c] to the first layer; the product here is taken number by number, as is common. Its other
activation, Dice, is not here: it reads the mean and the variance of a batch, so that a score would depend on who else is in it.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

CHUNK = 2**22  # numbers that are worked on together: 16 MiB


class ActivationUnit(nn.Module):
    """A table of all pairs: events `[U, d]` and candidates `[C, d]` → `[U, C]`. Nothing of size U x C x hidden is kept for the
    way back; it is made again, chunk by chunk."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.event = nn.Linear(width, hidden)  # W_e, b
        self.candidate = nn.Linear(width, hidden, bias=False)  # W_c
        self.product = nn.Linear(width, hidden, bias=False)  # W_p
        self.activation = nn.PReLU(hidden)
        self.outer = nn.Linear(hidden, 1)  # w, b'

    def forward(self, events: Tensor, candidates: Tensor) -> Tensor:
        return chunked(lambda part: self._some(part, candidates), CHUNK // (len(candidates) * self.event.out_features), events)

    def _some(self, events: Tensor, candidates: Tensor) -> Tensor:
        # for one event, the first layer is linear in the candidate: W_p (e ⊙ c) + W_c c = (W_p diag(e) + W_c) c
        maps = self.product.weight * events.unsqueeze(1) + self.candidate.weight  # [U, h, d]
        hidden = functional.linear(candidates, maps.flatten(0, 1), self.event(events).flatten())  # [C, U h]
        hidden = hidden.view(-1, self.event.out_features)
        # PReLU(x) = x (1 + a) / 2 + |x| (1 - a) / 2, so w · PReLU is two products, whose way back is shorter than torch's PReLU's
        slope, w = self.activation.weight, self.outer.weight[0]
        told: Tensor = hidden @ (w * (1 + slope) / 2) + hidden.abs() @ (w * (1 - slope) / 2) + self.outer.bias
        return told.view(len(candidates), len(events)).T


def chunked(work: Callable[..., Tensor], rows: int, *of: Tensor) -> Tensor:
    """`work` on so many rows of the tensors at a time. With gradients, every chunk is worked twice and keeps its rows alone."""
    rows, found = max(1, rows), []
    for at in range(0, max(len(of[0]), 1), rows):
        part = [x[at : at + rows] for x in of]
        if torch.is_grad_enabled():
            found.append(checkpoint(work, *part, use_reentrant=False, preserve_rng_state=False))
        else:
            found.append(work(*part))
    return found[0] if len(found) == 1 else torch.cat(found)
