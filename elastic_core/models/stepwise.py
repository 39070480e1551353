"""What recurrent models share: all they know of a history is a few vectors, so one more event needs those and nothing else."""

import math
from abc import abstractmethod

import torch
from torch import Tensor

from elastic_core.data.batches import Batch
from elastic_core.errors import InputError
from elastic_core.models.contract import Streams


class Stepwise(Streams):
    """A causal model without positions that says in `advance` how it reads on from what it kept."""

    causal = True
    streams = True

    @abstractmethod
    def advance(self, items: Tensor, real: Tensor | None, kept: list[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        """Reads `items [B, n]`, after what was `kept`: the state `[B, d]` after the last of them, and what is to be kept.

        Before the first event nothing is kept (None); then alone may rows be left-padded, and `real` says where events are."""

    def last_state(self, batch: Batch) -> Tensor:
        return self.advance(batch.items, batch.real if batch.padded else None, None)[0]

    def open_stream(self, room: int) -> "StepStream":
        return StepStream(self, room)


class StepStream:
    """States that equal one pass over the window, event by event (models/contract.py, `Stream`). Nothing in them grows old: a
    refresh is due only because a pass reads no more than `length` events."""

    def __init__(self, model: Stepwise, room: int) -> None:
        self.model, self.room, self.left = model, room, 0
        self.kept: list[Tensor] | None = None

    @torch.no_grad()
    def refresh(self, history: Tensor) -> Tensor:
        history = history[:, -(self.model.length - self.room) :]
        state, self.kept = self.model.advance(history, history > 0, None)
        self.left = self.room
        return state

    @torch.no_grad()
    def step(self, items: Tensor) -> Tensor:
        if not self.left:
            raise InputError(f"the window has no room for another event; refresh it (every {self.room} events at the latest)")
        self.left -= 1
        state, self.kept = self.model.advance(items.unsqueeze(1), None, self.kept)
        return state

    def numbers(self) -> int:
        return sum(math.prod(part.shape[1:]) for part in self.kept or ())
