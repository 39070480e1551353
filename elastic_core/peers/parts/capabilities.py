"""What only some peers can tell of themselves: attention weights, codebooks."""

from typing import Protocol, runtime_checkable

from torch import Tensor

from elastic_core.models import Batch


@runtime_checkable
class AttentionModel(Protocol):
    """Reads a history by weights on its events; says what they are."""

    def last_weights(self, batch: Batch) -> Tensor | None:
        """What the events of the last row are multiplied by in every layer and head, `[L, B, H, N]`, 0 on padding; None where
        this attention has no such numbers. Without a softmax they add up to anything, and may be negative."""
        ...


@runtime_checkable
class QuantisedModel(Protocol):
    """Writes items as sums of codewords."""

    def codebook_shape(self) -> tuple[int, int]:
        """How many codebooks there are, and words of each."""
        ...
