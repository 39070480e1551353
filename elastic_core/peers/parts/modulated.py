"""What models share whose attention is modulated by intensities (peers/parts/intensity.py): the marks of events, the time between
them, and CTReg. The settings, which time is read and why, and its scale: peers/sma.py.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig, Within
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Catalog
from elastic_core.peers.parts.intensity import NODES, Clock, Intensity

LEAST_USUAL = 1e-3  # of log(1 + Δ / unit): data whose events all happen at once


@dataclass(frozen=True, kw_only=True)
class ModulatedConfig(ModelConfig):
    """Settings of every modulated model."""

    time_unit: Annotated[float, Within(1e-3, 1e10)] = 60.0  # seconds: beyond, intervals count by their logarithm
    marks: Annotated[int, Within(1, 1_000)] = 32  # at most; the rarest genres beyond are one
    channels: Annotated[int, Within(1, 256)] = 8  # width of g
    ctreg_weight: Annotated[float, Within(0, 1_000)] = 0.0  # γ


RARE, ALL = "the rarest, or none", "all"


def marks_of(catalog: Catalog, most: int) -> np.ndarray:
    """How much every item is of which mark, float32 `[n_items + 1, E]`: rows add up to 1, that of padding is 0."""
    return named_marks(catalog, most)[1]


def named_marks(catalog: Catalog, most: int) -> tuple[list[str], np.ndarray]:
    """What the marks are called, and `marks_of`."""
    genres, holds = catalog.genre_table
    order = np.argsort(-holds.sum(0), kind="stable")
    few = len(order) > most
    kept, rest = holds[:, order[: most - few]], holds[:, order[most - few :]].sum(1, keepdims=True)
    rest = rest + (holds.sum(1, keepdims=True) == 0)
    rest[0] = 0
    if not rest.any():
        rest = rest[:, :0]
    elif kept.shape[1] == most:  # no room for a mark of those that have none: they are with the rarest
        kept, rest = kept[:, :-1], rest + kept[:, -1:]
    table = np.concatenate([kept, rest], 1)
    names = [str(genres[i]) for i in order[: kept.shape[1]]] + [RARE if kept.shape[1] else ALL] * rest.shape[1]
    return names, (table / np.maximum(table.sum(1, keepdims=True), 1)).astype(np.float32)


class Modulated(Recommender):
    """Knows what kinds of events there are and how long a usual interval between two is."""

    config: ModulatedConfig
    marks: Tensor
    usual: Tensor

    def __init__(self, config: ModulatedConfig, catalog: Catalog) -> None:
        super().__init__(config, catalog)
        self.register_buffer("marks", torch.tensor(marks_of(catalog, config.marks)), persistent=False)
        self.register_buffer("usual", torch.tensor(1.0))  # the mean interval, on its logarithmic scale

    @torch.no_grad()
    def calibrate(self, batch: Batch, rate: float = 1.0) -> None:
        """Learns what a usual interval is."""
        after, ended = self._intervals(batch)
        if ended.any():
            self.usual += rate * (after[ended].mean() - self.usual)

    def auxiliary_weights(self) -> dict[str, float]:
        return {"ctreg": self.config.ctreg_weight} if self.config.ctreg_weight else {}

    def kept_by_intensities(self, times: int = 1) -> int:
        """Numbers of an event that intensities keep for the backward pass, which are asked `times` times, and for CTReg."""
        asked = times + (NODES + 1 if self.config.ctreg_weight else 0)
        return self.marks.shape[1] * (2 * self.config.channels + 8) * asked

    def mark_names(self, catalog: Catalog) -> list[str]:
        """`Modulates`."""
        return named_marks(catalog, self.config.marks)[0]

    def said(self, batch: Batch) -> list[tuple[Intensity, Tensor]]:
        """Every set of intensities, and what the histories say to it after every event `[B, N, d]`; none, if a host has none."""
        return []

    def intensities(self, batch: Batch) -> Tensor | None:
        """`Modulates`."""
        since = self._clock(batch).since
        found = [intensity(h, since) * batch.real.unsqueeze(-1) for intensity, h in self.said(batch)]
        return torch.stack(found) if found else None

    def surprise(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor] | None:
        """`Modulates`."""
        clock = self._clock(batch)
        took, following = clock.until[:, :-1], clock.marks[:, 1:]
        found = [
            intensity.surprise(h[:, :-1].flatten(0, 1), took.flatten(), following.flatten(0, 1)).view_as(took)
            for intensity, h in self.said(batch)
        ]
        return (torch.stack(found), took, clock.ended[:, :-1]) if found else None

    # --- for the models themselves -----------------------------------------------------------------------------------

    def _intervals(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """From every event to the one after it, on the logarithmic scale: `[B, N - 1]`, and where both are there."""
        ended = batch.real[:, :-1] & batch.real[:, 1:]
        if batch.times is None:
            return self.usual.expand(ended.shape), torch.zeros_like(ended)
        seconds = (batch.times[:, 1:] - batch.times[:, :-1]).clamp_min(0)  # whole numbers: nothing is lost before the logarithm
        return (seconds.to(self.usual.dtype) / self.config.time_unit).log1p(), ended

    def _clock(self, batch: Batch) -> Clock:
        after, ended = self._intervals(batch)
        after = torch.where(ended, after / self.usual.clamp_min(LEAST_USUAL), 1.0)
        edge = after.new_ones(len(after), 1)
        ended = functional.pad(ended, (0, 1))
        return Clock(self.marks[batch.items], torch.cat([edge, after], 1), torch.cat([after, edge], 1), ended)

    def _explains(self, batch: Batch) -> bool:
        """Whether CTReg is asked of a batch: it is learned from, and there are times."""
        return batch.targets is not None and batch.times is not None and self.config.ctreg_weight > 0

    def _surprise(self, intensity: Intensity, h: Tensor, clock: Clock) -> Tensor:
        """CTReg, the mean over intervals, from what histories say after every event, h `[B, N, d]`."""
        began = clock.ended[:, :-1]
        parts = (x.flatten(0, 1) for x in (h[:, :-1], clock.until[:, :-1], clock.marks[:, 1:]))
        each = intensity.surprise(*parts).where(began.flatten(), 0.0)  # picked out, a device would have to be asked how many
        return each.sum() / began.sum().clamp_min(1)

    def _summed(self, batch: Batch, surprise: Tensor | None) -> dict[str, Tensor]:
        """CTReg as a batch's share of it: a batch counts as its targets do."""
        if surprise is None or batch.targets is None:
            return {}
        return {"ctreg": surprise * len(batch.places.items)}
