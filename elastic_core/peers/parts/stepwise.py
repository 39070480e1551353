"""What recurrent models share: all they know of a history is a few vectors, so one more event needs those and nothing else."""

from abc import abstractmethod

from torch import Tensor

from elastic_core.core.stream import Stream, StreamState
from elastic_core.models import Batch, StreamingModel


class Stepwise(StreamingModel):
    """A causal model without positions that says in `read_on` how it goes on from what it kept."""

    causal = True
    streams = True

    @abstractmethod
    def read_on(self, items: Tensor, real: Tensor | None, state: list[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        """Reads `items [B, n]`, after what `state` says: the state `[B, d]` after the last of them, and what is to be kept.

        Before the first event nothing is kept (None); then alone may rows be left-padded, and `real` says where events are."""

    def last_state(self, batch: Batch) -> Tensor:
        return self.read_on(batch.items, batch.mask, None)[0]

    def open_stream(self, room: int) -> "StepStream":
        return StepStream(self, room)


class StepStream(Stream):
    """States that equal one pass over everything, event by event, without limit: nothing here counts from an end."""

    def _read_history(self, history: Tensor, columns: slice) -> tuple[Tensor, StreamState]:
        state, parts = self.model.read_on(history, history > 0, None)
        return state, {str(i): part for i, part in enumerate(parts)}

    def _read_event(self, items: Tensor) -> Tensor:
        state, parts = self.model.read_on(items.unsqueeze(1), None, list(self.state.values()))
        self.state = dict(zip(self.state, parts, strict=True))
        return state
