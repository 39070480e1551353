"""What only some peers can tell of themselves: attention weights, codewords, intensities."""

from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from elastic_core.models import Batch, Catalog


@runtime_checkable
class AttentionModel(Protocol):
    """Reads a history by weights on its events; says what they are."""

    def last_weights(self, batch: Batch) -> Tensor | None:
        """What the events of the last row are multiplied by in every layer and head, `[L, B, H, N]`, 0 on padding; None where
        this attention has no such numbers. Without a softmax they add up to anything, and may be negative."""
        ...


class Codewords(NamedTuple):
    """Items in words, of b codebooks with w words each."""

    chosen: Tensor  # [n_items, b] int64, the best word of each codebook
    words: Tensor  # [b, w, d]
    shares: Tensor | None  # [n_items, b, w] how much of an item is in each word, where items belong to several


@runtime_checkable
class QuantisedModel(Protocol):
    """Writes items as sums of codewords."""

    def history_codewords(self) -> Codewords: ...

    def codebook_shape(self) -> tuple[int, int]:
        """How many codebooks there are, and words of each."""
        ...


@runtime_checkable
class ModulatedModel(Protocol):
    """Knows how intensely each kind of event, a mark, is happening. 1: as the mean of all marks."""

    marks: Tensor  # [n_items + 1, E] how much every item is of which mark

    def mark_names(self, catalog: Catalog) -> list[str]: ...

    def mark_intensities(self, batch: Batch) -> Tensor | None:
        """Of every mark after every event, `[L, B, N, E]`, 0 on padding; None where a setting modulates nothing."""
        ...

    def interval_surprise(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor] | None:
        """-log-likelihood, in nats, of how long every interval between two events took and of what ended it: by these
        intensities `[L, B, N - 1]`, by intensities that are always 1 `[B, N - 1]`; and where both ends are known."""
        ...
